"""Digits in two colors (to change) on textures and photographs of two kinds (to keep), for `benchmarks.translators`.

A ground here is no color but a picture of its own, which no classifier of 400 labels or 1,400 pictures knows for
certain. What a translation did to it is measured by its pixels: their fourth channel, which no translation sees, is the
share of the digit in each pixel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.images import Bytes, resize
from setminus.datasets.split import Split

__all__ = ["cifar_grounds", "noise_grounds", "paste", "pasted_measure", "photo_grounds", "stl_grounds"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Grounds = Callable[[Ints, int, np.random.Generator], Bytes]
INK, NO_INK = 0.8, 0.05
"""Share of the digit from which on a pixel is the digit's, and up to which it is the ground's."""
KEPT_WITHIN, N_USUAL = 0.25, 200
"""A ground is kept if it moved by less than this share of the usual distance, that of so many pairs of both kinds."""


def paste(
    digits: Bytes,
    grounds: Grounds,
    colors: Floats,
    n: int,
    size: int,
    rng: np.random.Generator,
    shares: tuple[float, float],
) -> Split:
    """Digits on grounds of the kind z2, in the color z1; the fourth channel is the digit's share."""
    y = rng.integers(2, size=n)
    z1, z2 = (np.where(rng.random(n) < share, y, 1 - y) for share in shares)
    ink = resize(digits[rng.integers(len(digits), size=n)], size).reshape(n, size, size, 1) / 255
    fore = colors[z1] + rng.normal(0, 12, (n, 3))
    x = ink * fore[:, None, None] + (1 - ink) * grounds(z2, size, rng)
    return Split(
        x=np.concatenate([x, 255 * ink], axis=3).clip(0, 255).round().astype(np.uint8),
        y=y,
        z1=z1,
        z2=z2,
    )


def photo_grounds(z2: Ints, size: int, rng: np.random.Generator) -> Bytes:
    """Squares of 28 to 112 pixels of scikit-learn's two photographs, a temple and a flower."""
    from sklearn.datasets import load_sample_images

    photographs = load_sample_images().images
    found = np.empty((len(z2), size, size, 3), np.uint8)
    for row, kind in enumerate(z2):
        side = int(rng.integers(28, 113))
        whole = photographs[kind]
        top, left = (rng.integers(length - side + 1) for length in whole.shape[:2])
        found[row] = resize(whole[None, top : top + side, left : left + side], size)[0]
    return found


def noise_grounds(z2: Ints, size: int, rng: np.random.Generator) -> Bytes:
    """Drawn textures of any color: clouds, or fine grain along a direction like wood."""
    n = len(z2)
    frequency = np.fft.fftfreq(size)
    down, across = frequency[None, :, None], frequency[None, None, :]
    angle = rng.uniform(-0.5, 0.5, (n, 1, 1))
    along, beside = np.cos(angle) * down + np.sin(angle) * across, np.cos(angle) * across - np.sin(angle) * down
    clouds = 1 / (0.05 + np.hypot(down, across)) ** 2
    wood = np.exp(-((along / 0.04) ** 2) - ((beside - 0.18) / 0.12) ** 2)
    spectrum = np.where(z2[:, None, None] == 0, clouds, wood)
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(size=(n, size, size))) * spectrum).real
    noise /= noise.std(axis=(1, 2), keepdims=True)
    base = rng.uniform(70, 150, (n, 1, 1, 1)) + rng.normal(0, 25, (n, 1, 1, 3))
    tint = rng.uniform(18, 32, (n, 1, 1, 1)) * rng.uniform(0.7, 1.3, (n, 1, 1, 3))
    return (base + tint * noise[..., None]).clip(0, 255).astype(np.uint8)


def _class_grounds(name: str, kinds: tuple[tuple[int, ...], tuple[int, ...]]) -> Grounds:
    """Pictures of classes of an image set, each once before any is repeated."""

    def grounds(z2: Ints, size: int, rng: np.random.Generator) -> Bytes:
        from setminus_paper.data.images import load_images

        parts = [load_images(name, part) for part in (("train", "test") if name == "cifar10" else ("train",))]
        x, y = (np.concatenate([getattr(part, field) for part in parts]) for field in ("x", "y"))
        found = np.empty((len(z2), size, size, 3), np.uint8)
        for kind, classes in enumerate(kinds):
            rows = np.flatnonzero(z2 == kind)
            pool = rng.permutation(np.flatnonzero(np.isin(y, classes)))
            found[rows] = resize(x[np.resize(pool, len(rows))], size)
        return found

    return grounds


cifar_grounds = _class_grounds("cifar10", ((0, 8), (4, 7)))
"""Airplanes and ships, or deer and horses."""
stl_grounds = _class_grounds("stl10", ((2, 9), (4, 7)))
"""Cars and trucks, or deer and monkeys."""


def pasted_measure(colors: Floats, grounds: Grounds, size: int) -> Callable[[Split, Bytes], tuple[Ints, Ints]]:
    """The color of each digit, and the kind of its ground: its own where that is kept, else the other.

    A ground is kept if its pixels moved less, in the mean square, than a quarter of what grounds of both kinds usually
    differ by: noise and a tint of the other kind do not pass, whatever a classifier would call them.
    """

    @functools.cache
    def limit() -> float:
        kinds = [grounds(np.full(N_USUAL, kind), size, np.random.default_rng(kind)).astype(float) for kind in (0, 1)]
        return KEPT_WITHIN * float(np.median(np.sqrt(np.square(kinds[0] - kinds[1]).sum(axis=3).mean(axis=(1, 2)))))

    def measure(drawn: Split, images: Bytes) -> tuple[Ints, Ints]:
        share = drawn.x[..., 3:] / 255
        digit, ground = share >= INK, share <= NO_INK
        mean = (images * digit).sum(axis=(1, 2)) / digit.sum(axis=(1, 2)).clip(1)
        # along the line between both colors
        second = (mean - colors.mean(axis=0)) @ (colors[1] - colors[0]) > 0
        moved = np.square((images - drawn.x[..., :3].astype(float)) * ground).sum(axis=(1, 2, 3))
        kept = np.sqrt(moved / ground.sum(axis=(1, 2))[:, 0].clip(1)) < limit()
        return second.astype(np.int64), np.where(kept, drawn.z2, 1 - np.asarray(drawn.z2))

    return measure
