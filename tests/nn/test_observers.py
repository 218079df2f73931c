"""Whoever looks on sees what was logged, and changes nothing."""

import io
import sys

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.observers import progress_bar, tensorboard  # noqa: E402


@pytest.fixture
def screen():
    """What a terminal would show."""
    rich = pytest.importorskip("rich")
    console, shown = rich.get_console(), io.StringIO()
    before = dict(console.__dict__)
    rich.reconfigure(file=shown, force_terminal=True, width=120)
    yield shown
    console.__dict__.update(before)


def test_the_bar_shows_title_steps_and_losses(screen):
    with progress_bar("digits", steps=40) as observe:
        observe(10, {"critic": 0.51234, "generator": 2.0})
        observe(40, {"critic": 0.25, "generator": 3.0})
    for part in ("digits", "40/40", "critic 0.25", "generator 3"):
        assert part in screen.getvalue()
    assert "critic 0.75" not in screen.getvalue()


@pytest.mark.parametrize("name", ["[/b]", "[red]loss", "a [b"])
def test_brackets_are_text(screen, name):
    with progress_bar(name, steps=2) as observe:
        observe(2, {name: 1.0})
    assert screen.getvalue().count(name) >= 2


def test_tensorboard_holds_what_was_logged(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tensorboard(tmp_path / "curves") as observe:
        for step in (1, 2, 3):
            observe(step, {"loss": 1.0 / step, "rate": 0.5})
    (events,) = (tmp_path / "curves").iterdir()
    assert events.name.startswith("events.out.tfevents")
    read = EventAccumulator(str(events)).Reload()
    assert sorted(read.Tags()["scalars"]) == ["loss", "rate"]
    assert [(e.step, round(e.value, 6)) for e in read.Scalars("loss")] == [(1, 1.0), (2, 0.5), (3, 0.333333)]


@pytest.mark.parametrize(
    ("module", "observer", "said"),
    [
        ("rich.progress", lambda: progress_bar("title", 1), r'needs rich: pip install "setminus\[cli\]"'),
        ("torch.utils.tensorboard", lambda: tensorboard("nowhere"), "need tensorboard: pip install tensorboard"),
    ],
)
def test_says_what_is_missing(monkeypatch, module, observer, said):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=said), observer():
        pass
