"""The parts of the tour that come with the reproduction: claims of the theory, digits, and an adaptation."""

import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from setminus_paper import demo
from setminus_paper.adaptation import small_digits
from setminus_paper.data import images
from setminus_paper.transfer import table1
from setminus_paper.transfer.translation import Translation

from setminus.datasets.sources import DataUnavailableError
from setminus.datasets.split import Split
from setminus.records import read_records
from setminus.transfer.domain_classifiers import ClassifierConfig


def test_the_parts_that_train_networks_at_a_tiny_size(command, tmp_path, monkeypatch):
    """From images to the page, on squares that stand for MNIST: 0 to 4 are low ones, 5 to 9 wide ones."""
    y = np.arange(400) % 10
    squares = np.zeros((400, 28, 28, 1), dtype=np.uint8)
    for square, digit in zip(squares, y, strict=True):
        square[8 : 12 + digit, 8:20] = 255
    mnist = Split(x=squares, y=y)
    for module in (demo, small_digits):
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
    monkeypatch.setattr(demo, "JOBS", 1)

    done = command("demo", "--out", tmp_path, "--parts", "digits,adaptation", "--seed", 3)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == str(tmp_path / "index.html")
    assert "w_x \\ w_1 (Oracle): Z2 accuracy" in done.out
    assert "VADA + w_x \\ w_1 (EM): accuracy on the target" in done.out
    digits = read_records(tmp_path / "table1" / "records.jsonl")
    assert [(one["config"]["method"], one["seed"]) for one in digits] == [("vanilla", 3), ("orthogonal_oracle", 3)]
    page = (tmp_path / "index.html").read_text()
    assert page.count("<h1") == 2
    assert re.search(r"\b12 pixels\b.*\b4 channels\b", page)
    assert "setminus demo --parts digits --seed 3" in page
    assert "setminus reproduce small_digits" in page

    # a second tour trains nothing
    before = (tmp_path / "table1" / "records.jsonl").read_text()
    monkeypatch.setattr(table1, "measure", nullcontext)
    assert command("demo", "--out", tmp_path, "--parts", "digits,adaptation", "--seed", 3).code == 0
    assert (tmp_path / "table1" / "records.jsonl").read_text() == before


def test_the_tours_size_is_smaller_than_the_quick_one_and_has_all_digits():
    demo_size, quick = table1.SIZES["demo"], table1.SIZES["quick"]
    assert demo_size.translation.steps < quick.translation.steps
    assert demo_size.classifier.epochs < quick.classifier.epochs
    assert demo_size.train_digits == quick.train_digits == 56_000
    runs = table1.plan("demo", (0,), demo.DIGITS)
    assert [(run.config["scale"], run.config["method"]) for run in runs] == [
        ("demo", "vanilla"),
        ("demo", "orthogonal_oracle"),
    ]


@pytest.mark.parametrize("check", [demo.digits.check, demo.adaptation.check])
def test_mnist_is_looked_for_before_anything_is_trained(monkeypatch, check):
    assert demo.load_images is images.load_images

    def absent(name, part="train"):
        raise DataUnavailableError(f"{name} could not be had.")

    monkeypatch.setattr(demo, "load_images", absent)
    with pytest.raises(DataUnavailableError, match="mnist could not be had"):
        check()
