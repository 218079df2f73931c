"""The parts of the tour that come with the reproduction: claims of the theory, digits, and an adaptation."""

from dataclasses import replace

import numpy as np
import pytest
from setminus_paper import demo
from setminus_paper.adaptation import small_digits
from setminus_paper.data import images

from setminus.datasets.sources import DataUnavailableError
from setminus.datasets.split import Split
from setminus.records import read_records


def test_the_parts_that_train_networks_at_a_tiny_size(command, tmp_path, monkeypatch):
    """From images to the page, on squares that stand for MNIST: 0 to 4 are low ones, 5 to 9 wide ones."""
    y = np.arange(400) % 10
    squares = np.zeros((400, 28, 28, 1), dtype=np.uint8)
    for square, digit in zip(squares, y, strict=True):
        square[8 : 12 + digit, 8:20] = 255
    mnist = Split(x=squares, y=y)
    for module in (demo, small_digits):
        monkeypatch.setattr(module, "load_images", lambda name, part="train": mnist)
    for name, value in {"N_DIGITS": 400, "N_LABELLED": 400, "STEPS": 4}.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr("setminus.transfer.factor_classifiers.MAX_EPOCHS", 12)
    monkeypatch.setattr(small_digits, "SIZE", replace(small_digits.SIZE, source_rows=300, steps=10))
    # another process would not see what is changed here
    monkeypatch.setattr(demo, "JOBS", 1)

    done = command("demo", "--out", tmp_path, "--parts", "digits,adaptation", "--seed", 3)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == str(tmp_path / "index.html")
    assert "blue on brown to red on green: changed" in done.out and "(plain CycleGAN)" in done.out
    assert "VADA + w_x \\ w_1 (EM): accuracy on the target" in done.out
    (digits,) = read_records(tmp_path / "transfer" / "records.jsonl")
    assert digits["job"] == "translation" and digits["seed"] == 3
    assert digits["metrics"]["accuracy"]["judge_column"]["accuracy"] > 0.9
    page = (tmp_path / "index.html").read_text()
    assert page.count("<h1") == 2
    assert "changing color of the digit" in page
    assert "setminus demo --parts digits --seed 3" in page
    assert "setminus reproduce small_digits" in page

    # a second tour trains nothing
    before = (tmp_path / "transfer" / "records.jsonl").read_text()
    monkeypatch.setattr("setminus.OrthogonalTranslator.fit", None)
    assert command("demo", "--out", tmp_path, "--parts", "digits,adaptation", "--seed", 3).code == 0
    assert (tmp_path / "transfer" / "records.jsonl").read_text() == before


@pytest.mark.parametrize("check", [demo.digits.check, demo.adaptation.check])
def test_mnist_is_looked_for_before_anything_is_trained(monkeypatch, check):
    assert demo.load_images is images.load_images

    def absent(name, part="train"):
        raise DataUnavailableError(f"{name} could not be had.")

    monkeypatch.setattr(demo, "load_images", absent)
    with pytest.raises(DataUnavailableError, match="mnist could not be had"):
        check()
