"""How well a translation did what was asked, in each direction: three numbers and a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIRECTIONS", "Verdict", "edge_correlation", "verdict", "worst"]

DIRECTIONS = ("a_to_b", "b_to_a")
Verdict = Literal["good", "train longer", "do not use"]
ORDER: tuple[Verdict, ...] = ("good", "train longer", "do not use")

GOOD = 0.9
"""Fraction of pictures that change, and that keep what they must, from which on a direction is good."""
BAD = 0.75
"""Below this fraction of pictures that keep what they must, a translation that no longer improves is not usable."""
MIN_STRUCTURE = 0.1
"""How much more of its own edges a translated picture must have than of another picture's."""
IMPROVES = 0.05
"""A fraction that rose by this much over the second half of the training is still rising."""


def edge_correlation(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """The correlation of the edges of each picture before and after: 1 where its outlines stay as they are.

    Edges are the lengths of the gradient of the mean over the channels.

    Parameters
    ----------
    before, after : float array of shape (n, channels, height, width)

    Returns
    -------
    float array of shape (n,)
        0 where one of the two has no edges.

    Examples
    --------
    >>> pictures = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    >>> edge_correlation(pictures, 2 - pictures).round(3).tolist()
    [1.0, 1.0]
    """
    edges = [_edges(pictures) for pictures in (before, after)]
    centred = [one - one.mean(axis=1, keepdims=True) for one in edges]
    scale = np.sqrt(np.prod([(one**2).sum(axis=1) for one in centred], axis=0))
    product = (centred[0] * centred[1]).sum(axis=1)
    return np.asarray(np.divide(product, scale, out=np.zeros_like(product), where=scale > 0))


def _edges(pictures: NDArray[np.float32]) -> NDArray[np.float64]:
    grey = pictures.mean(axis=1, dtype=np.float64)
    down, across = np.diff(grey, axis=1)[:, :, :-1], np.diff(grey, axis=2)[:, :-1]
    return np.asarray(np.hypot(down, across).reshape(len(grey), -1))


def verdict(scores: Mapping[str, Any], curve: Sequence[Mapping[str, Any]] = ()) -> Verdict:
    """The word for one direction.

    Parameters
    ----------
    scores : mapping
        `changed` and `kept`, fractions of held-out pictures; `structure` and `unrelated`, the correlation of the edges
        of a picture with its own translation, and with another picture's.
    curve : sequence of mapping
        The scores at evaluations during training, the last of them at its end.

    Returns
    -------
    {"good", "train longer", "do not use"}

    Examples
    --------
    >>> verdict({"changed": 0.97, "kept": 0.99, "structure": 0.8, "unrelated": 0.2})
    'good'
    >>> verdict({"changed": 0.97, "kept": 0.31, "structure": 0.8, "unrelated": 0.2})
    'do not use'
    """
    content = scores["structure"] - scores["unrelated"] >= MIN_STRUCTURE
    if content and min(scores["changed"], scores["kept"]) >= GOOD:
        return "good"
    # as it was halfway, where the learning rate began to fall
    middle = curve[(len(curve) - 1) // 2] if len(curve) > 1 else None
    rising = middle is not None and any(scores[name] - middle[name] >= IMPROVES for name in ("kept", "structure"))
    if (scores["kept"] < BAD or not content) and not rising:
        return "do not use"
    return "train longer"


def worst(words: Sequence[Verdict]) -> Verdict:
    """The word for a translation: that of its worse direction.

    Examples
    --------
    >>> worst(["good", "train longer"])
    'train longer'
    """
    return max(words, key=ORDER.index)
