"""What progress looks like: lines that are drawn over on a terminal, and a few plain lines elsewhere."""

import io
import time

import pytest

from setminus.commands import terminal as module
from setminus.commands.terminal import Display
from setminus.progress import listen, tracked

REDRAWN = 0.3
"""Seconds after which a terminal shows what was reported."""


@pytest.fixture(autouse=True)
def draws(monkeypatch):
    """A terminal that can draw over its lines."""
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return now


def shown(work, terminal=False, quiet=False):
    display = Display(quiet)
    display.progress.file = io.StringIO()
    display.progress._force_terminal = display.progress.is_interactive = terminal
    display.progress.width = 120
    with listen(display):
        work()
    return display.progress.file.getvalue()


def test_without_a_terminal_a_line_every_ten_seconds_and_one_at_the_end(clock):
    def work():
        with tracked("adapt"), tracked("train", total=40, unit="steps") as steps:
            for _ in range(40):
                clock[0] += 1
                steps.advance()

    assert shown(work).splitlines() == [
        "  10.0 s  adapt: train, 10 of 40 steps",
        "  20.0 s  adapt: train, 20 of 40 steps",
        "  30.0 s  adapt: train, 30 of 40 steps",
        "  40.0 s  adapt: train, 40 of 40 steps",
        "  40.0 s  adapt",
    ]
    assert shown(work, quiet=True) == shown(work, quiet=True, terminal=True) == ""


def test_what_failed_has_no_time():
    def work():
        with pytest.raises(ValueError), tracked("fit"):
            raise ValueError

    assert shown(work) == ""
    assert " s  fit" not in shown(work, terminal=True)


def test_a_terminal_shows_each_piece_of_work_with_its_count_and_losses():
    def work():
        with tracked("outer"), tracked("train", total=40, unit="steps") as steps:
            steps.advance(40, "critic 0.25")
            time.sleep(REDRAWN)

    drawn = shown(work, terminal=True)
    for part in ("outer", "train", "40 of 40 steps", "critic 0.25", " s  outer"):
        assert part in drawn


@pytest.mark.parametrize("name", ["[/b]", "[red]loss", "a [b", "a\x1b[2Kb"])
@pytest.mark.parametrize("terminal", [False, True])
def test_names_are_text(name, terminal):
    def work():
        with tracked(name, total=1, unit=name) as one:
            one.advance(detail=name)

    drawn = shown(work, terminal)
    assert name.replace("\x1b", "\\x1b") in drawn
    assert terminal or "\x1b" not in drawn


def test_deep_work_is_left_out():
    def work(depth=0):
        with tracked(f"level {depth}", total=1) as one:
            if depth < module.MAX_LINES:
                work(depth + 1)
            one.advance()
            time.sleep(REDRAWN if depth == module.MAX_LINES else 0)

    drawn = shown(work, terminal=True)
    assert f"level {module.MAX_LINES - 1}" in drawn
    assert f"level {module.MAX_LINES}" not in drawn
