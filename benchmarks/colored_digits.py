"""What coloring the digits costs, as ratios; ``python -m benchmarks.colored_digits`` prints them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import Ratio, in_turns, table
from setminus.datasets.colored_digits import BACKGROUND_COLORS, DIGIT_COLORS, ColoredDigits

IMAGES = 70_000
"""Both parts of MNIST together."""


def coloring(images: int = IMAGES, repeats: int = 5) -> list[Ratio]:
    """Painting against a loop over the images, and against writing as many pixels once."""
    # what the pixels show does not matter here: a fifth of them is ink, as in MNIST
    digits = (np.random.default_rng(0).random((images, 28, 28)) < 0.2).astype(np.uint8)
    model = ColoredDigits()
    painted = model.paint(digits, seed=0)
    difference = float(np.any(_one_by_one(digits, painted.z1, painted.z2) != painted.x))
    ours, loop = in_turns(
        lambda: model.paint(digits, seed=0), lambda: _one_by_one(digits, painted.z1, painted.z2), repeats
    )
    again, copy = in_turns(lambda: model.paint(digits, seed=0), lambda: painted.x.copy(), repeats)
    return [
        Ratio(f"{images:,} colored digits / a loop over the images", ours, loop, 1.0, difference),
        Ratio(f"{images:,} colored digits / one copy of them", again, copy, 60.0),
    ]


def _one_by_one(digits: NDArray[np.uint8], z1: NDArray[np.int64], z2: NDArray[np.int64]) -> NDArray[np.uint8]:
    images = np.empty((*digits.shape, 3), dtype=np.uint8)
    for image, digit, color, ground in zip(images, digits, DIGIT_COLORS[z1], BACKGROUND_COLORS[z2], strict=True):
        image[:] = ground
        image[digit > 0] = color
    return images


if __name__ == "__main__":
    print(table(coloring()))
