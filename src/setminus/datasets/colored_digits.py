"""Digits in two colors on two backgrounds: images whose full, principal and orthogonal posteriors are known exactly.

The paper's CMNIST. The label `y` is the domain, A (0) or B (1); `z1` is the color of the digit, `z2` that of the
background. Each is the domain's own with a probability that is known, so that p(y|x) is known for every image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.datasets.split import Split
from setminus.errors import UserError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIGIT_COLORS = np.array([[255, 0, 0], [0, 0, 255]], dtype=np.uint8)
"""Red for domain A, blue for domain B."""
BACKGROUND_COLORS = (0.75 * np.array([[0, 255, 0], [150, 75, 0]])).astype(np.uint8)
"""Green for domain A, brown for domain B, both at three quarters of their light."""

NEITHER = -1
"""The color of a digit or a background that shows as much of the one as of the other."""

_CHUNK = 2048


@dataclass(frozen=True)
class ColoredDigits:
    """The paper's colored digits.

    ``y ~ Bernoulli(1/2)``; the digit has the color of its domain with probability `lambda_digit` and otherwise
    one of the two at random, so that ``p(z1 = y | y) = lambda_digit + (1 - lambda_digit) / 2``; the background
    likewise, and independent of the digit given `y`.

    Parameters
    ----------
    lambda_digit : float in [0, 1]
        How strongly the digit's color predicts the domain; 0 makes it useless.
    lambda_background : float in [0, 1]
        The same for the background's.

    Examples
    --------
    >>> model = ColoredDigits()
    >>> model.orthogonal([0, 1]).round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    >>> digits = np.zeros((5, 28, 28), dtype=np.uint8)
    >>> digits[:, 10:20, 10:20] = 255
    >>> split = model.paint(digits, seed=0)
    >>> split.x.shape, split.x.dtype
    ((5, 28, 28, 3), dtype('uint8'))
    >>> z1, z2 = model.measure_colors(split.x)
    >>> bool(np.all(z1 == split.z1) and np.all(z2 == split.z2))
    True
    """

    lambda_digit: float = 0.9
    lambda_background: float = 0.8

    def __post_init__(self) -> None:
        for name in ("lambda_digit", "lambda_background"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} is {getattr(self, name)}", do="it is a probability and must be in [0, 1].")

    @property
    def prior(self) -> Floats:
        """p(y), of shape (2,)."""
        return np.full(2, 0.5)

    def full(self, z1: ArrayLike, z2: ArrayLike) -> Floats:
        """p(y|z1, z2), which is p(y|x), of shape (n, 2)."""
        return _posterior(_given_y(self.lambda_digit, z1) * _given_y(self.lambda_background, z2))

    def principal(self, z1: ArrayLike) -> Floats:
        """p(y|z1), of shape (n, 2)."""
        return _posterior(_given_y(self.lambda_digit, z1))

    def orthogonal(self, z2: ArrayLike) -> Floats:
        """p(y|z2), of shape (n, 2)."""
        return _posterior(_given_y(self.lambda_background, z2))

    def oracle_principal(self) -> ColoredDigits:
        """The variant in which only the digit's color predicts the domain: a classifier fitted on it is p(y|z1)."""
        return replace(self, lambda_background=0.0)

    def oracle_orthogonal(self) -> ColoredDigits:
        """The variant in which only the background predicts the domain: a classifier fitted on it is p(y|z2)."""
        return replace(self, lambda_digit=0.0)

    def environments(self, backgrounds: Sequence[float] = (0.8, 0.4)) -> list[ColoredDigits]:
        """The variants among which only p(y|z1) stays: one for each `lambda_background`."""
        return [replace(self, lambda_background=background) for background in backgrounds]

    def paint(self, digits: NDArray[np.uint8], seed: int) -> Split:
        """Draw a domain and two colors for each image, and paint it.

        Parameters
        ----------
        digits : uint8 array of shape (n, height, width) or (n, height, width, 1)
            Grey images on black: all that is not 0 is the digit.
        seed : int
            Seed of the draw.

        Returns
        -------
        Split
            `x` is uint8 of shape (n, height, width, 3), `y`, `z1` and `z2` are 0 or 1, in the order of `digits`.
        """
        if digits.dtype != np.uint8 or digits.ndim not in (3, 4) or digits.shape[3:] not in ((), (1,)):
            raise UserError(
                f"digits are {digits.dtype} of shape {digits.shape}",
                do="they must be uint8 of shape (n, height, width) or (n, height, width, 1).",
            )
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=len(digits))
        z1 = _draw(rng, y, self.lambda_digit)
        z2 = _draw(rng, y, self.lambda_background)
        # of each image the color of its background and that of its digit, picked by the pixel
        colors = np.stack([BACKGROUND_COLORS[z2], DIGIT_COLORS[z1]], axis=1)
        x = np.empty((*digits.shape[:3], 3), dtype=np.uint8)
        ink = digits.reshape(digits.shape[:3]) > 0
        for channel in range(3):
            off, on = colors[:, 0, channel, None, None], colors[:, 1, channel, None, None]
            x[..., channel] = np.where(ink, on, off)
        return Split(x=x, y=y, z1=z1, z2=z2)

    @staticmethod
    def measure_colors(images: NDArray[np.uint8]) -> tuple[Ints, Ints]:
        """See which color digit and background have, in painted images or in those that a network made.

        Each pixel votes for the nearest of the four colors; the more frequent of the two digit colors is `z1`, the
        more frequent of the two background colors `z2`. Nothing is learned, and no mask of the digit is needed.

        Parameters
        ----------
        images : uint8 array of shape (n, height, width, 3)
            Red, green, blue.

        Returns
        -------
        z1, z2 : int arrays of shape (n,)
            0 or 1 as in `ColoredDigits`; -1 where both colors have equally many votes, as in an image without digit.

        Examples
        --------
        >>> blank = np.broadcast_to(BACKGROUND_COLORS[1], (1, 28, 28, 3))
        >>> [z.tolist() for z in ColoredDigits.measure_colors(blank)]
        [[-1], [1]]
        """
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
            raise UserError(
                f"images are {images.dtype} of shape {images.shape}",
                do="they must be uint8 of shape (n, height, width, 3).",
            )
        palette = np.concatenate([DIGIT_COLORS, BACKGROUND_COLORS]).astype(np.float32)
        votes = np.empty((len(images), 4), dtype=np.int64)
        for start in range(0, len(images), _CHUNK):
            pixels = images[start : start + _CHUNK].reshape(-1, images.shape[1] * images.shape[2], 3).astype(np.float32)
            # |pixel - color|^2 without |pixel|^2, which is the same for all four colors
            distance = (palette**2).sum(axis=1) - 2 * pixels @ palette.T
            votes[start : start + _CHUNK] = (distance.argmin(axis=2)[..., None] == np.arange(4)).sum(axis=1)
        return _winner(votes[:, :2]), _winner(votes[:, 2:])


def _draw(rng: np.random.Generator, y: Ints, strength: float) -> Ints:
    own = rng.random(len(y)) < strength
    return np.where(own, y, rng.integers(2, size=len(y)))


def _given_y(strength: float, z: ArrayLike) -> Floats:
    """p(z|y) for both y, of shape (n, 2)."""
    colors = np.asarray(z)
    if not np.all((colors == 0) | (colors == 1)):
        raise UserError(
            f"colors are {np.unique(colors)}", do="they must be 0 (that of domain A) or 1 (that of domain B)."
        )
    match = strength + (1 - strength) / 2
    return np.where(colors[..., None] == np.arange(2), match, 1 - match)


def _posterior(given_y: Floats) -> Floats:
    total = given_y.sum(axis=-1, keepdims=True)
    if not np.all(total):
        raise UserError(
            "an image has the colors of two domains, which never happens where both lambdas are 1",
            do="give colors of one domain for each image, or a lambda below 1.",
        )
    # both domains are equally frequent: the prior cancels
    return np.asarray(given_y / total)


def _winner(votes: Ints) -> Ints:
    return np.where(votes[:, 0] == votes[:, 1], NEITHER, votes.argmax(axis=1))
