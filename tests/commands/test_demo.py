"""The tour in parts: each by name, those that cannot be had left out in a line, and one page of all."""

from contextlib import nullcontext

import numpy as np
import pytest
from setminus_paper import demo as demo_parts
from setminus_paper.data import images
from setminus_paper.run import FailedRunsError

from setminus.commands import demo
from setminus.datasets.sources import DataUnavailableError
from setminus.datasets.split import Split
from setminus.records import read_records
from tests.made_transfers import made_digits


@pytest.fixture
def parts(monkeypatch):
    """Parts that take no time; gives the names of those that were done."""
    done = []

    def part(name):
        def run(out, seed, display):
            done.append(name)
            return [made_digits("vanilla"), made_digits("orthogonal_oracle", z2=1.0)]

        return run

    monkeypatch.setattr(demo, "RUN", {name: part(name) for name in demo_parts.PARTS})
    monkeypatch.setattr(demo, "_show", lambda measured, out, picture, display: done.append("page"))
    monkeypatch.setattr(demo_parts, "check_training", lambda: None)
    return done


def test_all_parts_by_default_and_those_asked_for(command, parts, tmp_path):
    assert command("demo", "--out", tmp_path).code == 0
    assert parts == [*demo_parts.PARTS, "page"]
    parts.clear()
    assert command("demo", "--out", tmp_path, "--parts", "adaptation, theory").code == 0
    assert parts == ["theory", "adaptation", "page"]


def test_an_unknown_part_is_refused_before_any_work(command, parts, tmp_path):
    done = command("demo", "--out", tmp_path, "--parts", "theory,digit")
    assert (done.code, parts) == (2, [])
    assert done.err.splitlines() == ["Error: the tour has no part 'digit'", "Did you mean 'digits'?"]


def test_a_picture_needs_the_part_that_it_is_of(command, parts, tmp_path):
    done = command("demo", "--out", tmp_path, "--parts", "theory", "--picture", tmp_path / "adult.png")
    assert (done.code, parts) == (2, [])
    assert "the picture is of the part fairness" in done.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ImportError('they need torch: pip install "setminus[nn]"'), 'they need torch: pip install "setminus[nn]"'),
        (DataUnavailableError("mnist.npz could not be had.\ntried: nothing\nPut it somewhere."), "could not be had."),
    ],
)
def test_what_cannot_be_trained_is_left_out_in_a_line_unless_it_was_asked_for(
    command, parts, tmp_path, monkeypatch, error, said
):
    def lacking():
        raise error

    monkeypatch.setattr(demo_parts, "check_training", lacking)
    done = command("demo", "--out", tmp_path)
    assert done.code == 0
    assert parts == ["fairness", "theory", "page"]
    (line,) = done.err.splitlines()
    assert line.startswith("Left out: ") and line.endswith(said)
    parts.clear()
    asked = command("demo", "--out", tmp_path, "--parts", "digits")
    assert (asked.code, parts) == (2, [])
    assert len(asked.err.splitlines()) == 2


def test_without_torch_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(demo_parts, "find_spec", lambda name: None if name == "torch" else name)
    with pytest.raises(ImportError, match=r"trains networks needs torch: pip install .*nn"):
        demo_parts.check_training()


def test_a_part_that_fails_does_not_cost_the_page(command, parts, tmp_path, monkeypatch):
    def fails(out, seed, display):
        raise FailedRunsError(["table1: the machine is too small"])

    monkeypatch.setitem(demo.RUN, "digits", fails)
    done = command("demo", "--out", tmp_path)
    assert done.code == 2
    assert parts == ["fairness", "theory", "adaptation", "page"]
    assert "the machine is too small" in done.err


def test_the_parts_that_train_networks_at_a_tiny_size(command, tmp_path, monkeypatch):
    """From images to the page, on squares that stand for MNIST: 0 to 4 are low ones, 5 to 9 wide ones."""
    pytest.importorskip("torch")
    from dataclasses import replace

    from setminus_paper.adaptation import small_digits
    from setminus_paper.transfer import table1
    from setminus_paper.transfer.translation import Translation

    from setminus.transfer.domain_classifiers import ClassifierConfig

    y = np.arange(400) % 10
    squares = np.zeros((400, 28, 28, 1), dtype=np.uint8)
    for square, digit in zip(squares, y, strict=True):
        square[8 : 12 + digit, 8:20] = 255
    mnist = Split(x=squares, y=y)
    for module in (demo_parts, small_digits):
        monkeypatch.setattr(module, "load_images", lambda name, part="train": mnist)
    monkeypatch.setattr(table1, "shrunk_digits", lambda pixels: np.repeat(squares[:, ::2, ::2][:, :12, :12], 2, axis=0))
    tiny = replace(
        table1.SIZES["demo"],
        pixels=12,
        train_digits=600,
        judged=20,
        width=4,
        translation=Translation(steps=4, batch_size=4, evaluate_every=2, precision="32-true"),
        classifier=ClassifierConfig(width=4, epochs=1),
        judge=ClassifierConfig(width=4, epochs=1),
        judge_digits=200,
    )
    monkeypatch.setitem(table1.SIZES, "demo", tiny)
    monkeypatch.setattr(small_digits, "SIZE", replace(small_digits.SIZE, source_rows=300, steps=10))
    # another process would not see what is changed here
    monkeypatch.setattr(demo_parts, "JOBS", 1)

    done = command("demo", "--out", tmp_path, "--parts", "digits,adaptation", "--seed", 3)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == str(tmp_path / "index.html")
    assert "w_x \\ w_1 (Oracle): Z2 accuracy" in done.out
    assert "VADA + w_x \\ w_1 (EM): accuracy on the target" in done.out
    digits = read_records(tmp_path / "table1" / "records.jsonl")
    assert [(one["config"]["method"], one["seed"]) for one in digits] == [("vanilla", 3), ("orthogonal_oracle", 3)]
    page = (tmp_path / "index.html").read_text()
    assert page.count("<h1") == 2
    assert "Images have 12 pixels a side, the generators&#39; first layer 4 channels" in page
    assert "setminus demo --parts digits --seed 3" in page
    assert "setminus reproduce small_digits" in page

    # a second tour trains nothing
    before = (tmp_path / "table1" / "records.jsonl").read_text()
    monkeypatch.setattr(table1, "measure", nullcontext)
    assert command("demo", "--out", tmp_path, "--parts", "digits,adaptation", "--seed", 3).code == 0
    assert (tmp_path / "table1" / "records.jsonl").read_text() == before


def test_the_tours_size_is_smaller_than_the_quick_one_and_has_all_digits():
    pytest.importorskip("torch")
    from setminus_paper.transfer.table1 import SIZES, plan

    demo_size, quick = SIZES["demo"], SIZES["quick"]
    assert demo_size.translation.steps < quick.translation.steps
    assert demo_size.classifier.epochs < quick.classifier.epochs
    assert demo_size.train_digits == quick.train_digits == 56_000
    runs = plan("demo", (0,), demo_parts.DIGITS)
    assert [(run.config["scale"], run.config["method"]) for run in runs] == [
        ("demo", "vanilla"),
        ("demo", "orthogonal_oracle"),
    ]


def test_mnist_is_looked_for_before_anything_is_trained(monkeypatch):
    pytest.importorskip("torch")
    assert demo_parts.load_images is images.load_images

    def absent(name, part="train"):
        raise DataUnavailableError(f"{name} could not be had.")

    monkeypatch.setattr(demo_parts, "load_images", absent)
    with pytest.raises(DataUnavailableError, match="mnist could not be had"):
        demo_parts.check_training()
