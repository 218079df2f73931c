"""The tour in parts: each by name, those that cannot be had left out in a line, and one page of all."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from setminus_paper.run import FailedRunsError

from setminus.commands import demo
from setminus.datasets.sources import DataUnavailableError
from setminus.errors import MissingExtraError

NAMES = ("fairness", "theory", "digits", "adaptation")


@pytest.fixture
def parts(monkeypatch):
    """Parts that take no time, and the names of those that were done."""
    done = []

    def part(name):
        return demo.Part(name, lambda: None, lambda out, seed, display: done.append(name) or [], lambda records: [])

    known = {name: part(name) for name in NAMES}

    def points(group):
        others = [name for name in NAMES if name != "fairness"]
        return [SimpleNamespace(name=name, load=lambda name=name: known[name]) for name in others]

    monkeypatch.setattr(demo, "FAIRNESS", known["fairness"])
    monkeypatch.setattr(demo, "entry_points", points)
    monkeypatch.setattr(demo, "_show", lambda *_: done.append("page"))
    return SimpleNamespace(known=known, done=done)


def test_all_parts_by_default_and_those_asked_for(command, parts, tmp_path):
    assert command("demo", "--out", tmp_path).code == 0
    assert parts.done == [*NAMES, "page"]
    parts.done.clear()
    assert command("demo", "--out", tmp_path, "--parts", "adaptation, theory").code == 0
    assert parts.done == ["theory", "adaptation", "page"]


def test_an_unknown_part_is_refused_before_any_work(command, parts, tmp_path):
    done = command("demo", "--out", tmp_path, "--parts", "theory,digit")
    assert (done.code, parts.done) == (2, [])
    assert done.err.splitlines() == ["Error: the tour has no part 'digit'.", "Did you mean 'digits'?"]


def test_a_picture_needs_the_part_that_it_is_of(command, parts, tmp_path):
    done = command("demo", "--out", tmp_path, "--parts", "theory", "--picture", tmp_path / "adult.png")
    assert (done.code, parts.done) == (2, [])
    assert "the picture is of the part fairness" in done.err


def test_a_picture_of_another_kind_is_refused_before_the_tour(command, parts, tmp_path):
    done = command("demo", "--out", tmp_path, "--picture", tmp_path / "adult.jpg")
    assert (done.code, parts.done) == (2, [])
    assert "ends in .png or .svg" in done.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MissingExtraError("the part", "torch", extra="nn"), "the part needs torch, which is not installed."),
        (DataUnavailableError("mnist.npz could not be had", do="put it somewhere."), "mnist.npz could not be had."),
    ],
)
def test_what_cannot_be_trained_is_left_out_in_a_line_unless_it_was_asked_for(
    command, parts, tmp_path, monkeypatch, error, said
):
    def lacking():
        raise error

    for name in ("digits", "adaptation"):
        parts.known[name] = replace(parts.known[name], check=lacking)
    done = command("demo", "--out", tmp_path)
    assert done.code == 0
    assert parts.done == ["fairness", "theory", "page"]
    # a line for each of the two parts
    assert len(done.err.splitlines()) == 2
    assert all(line.startswith("Left out: ") and line.endswith(said) for line in done.err.splitlines())
    parts.done.clear()
    asked = command("demo", "--out", tmp_path, "--parts", "digits")
    assert (asked.code, parts.done) == (2, [])
    assert len(asked.err.splitlines()) == 2


def test_a_part_that_fails_does_not_cost_the_page(command, parts, tmp_path, monkeypatch):
    def fails(out, seed, display):
        raise FailedRunsError(["table1: the machine is too small"])

    parts.known["digits"] = replace(parts.known["digits"], run=fails)
    done = command("demo", "--out", tmp_path)
    assert done.code == 2
    assert parts.done == ["fairness", "theory", "adaptation", "page"]
    assert "the machine is too small" in done.err
