"""Painted squares as a user's two folders: two factors that are known, small enough to learn within seconds."""

import csv

import numpy as np
import pytest

from setminus.datasets.colored_digits import ColoredDigits
from setminus.datasets.two_factor_folder import LabelledImages

VALUES = {"digit": ("red", "blue"), "background": ("green", "brown")}


@pytest.fixture(scope="module", autouse=True)
def few_epochs():
    """For modules that import it: classifiers of so plain pictures are trained for seconds, not minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setminus.transfer.factor_classifiers.MAX_EPOCHS", 12)
        yield


def painted_squares(n, size=12, seed=0, lambda_digit=0.8):
    """Squares of ink of two colors on two backgrounds, those of domain A first."""
    ink = np.zeros((n, size, size), dtype=np.uint8)
    ink[:, size // 4 : -size // 4, size // 4 : -size // 4] = 255
    split = ColoredDigits(lambda_digit, 0.8).paint(ink, seed=seed)
    return split.take(np.argsort(split.y, kind="stable"))


def folder_squares(column="digit", n=600, **options):
    """As `TwoFactorFolder` would load them, with the labels of one factor; and the truth."""
    split = painted_squares(n, **options)
    z = split.z1 if column == "digit" else split.z2
    return LabelledImages(split.x, split.y, z, VALUES[column], ()), split


def write_folders(home, n=240, size=16, **options):
    """The folders A and B with a table of both factors; gives the truth."""
    from PIL import Image

    split = painted_squares(n, size, **options)
    rows = []
    for k, (image, y, z1, z2) in enumerate(zip(split.x, split.y, split.z1, split.z2, strict=True)):
        name = f"{'AB'[y]}/{k:04d}.png"
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(home / name)
        rows.append((name, VALUES["digit"][z1], VALUES["background"][z2], "odd" if k % 2 else "even"))
    with (home / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "digit", "background", "parity"), *rows])
    return split
