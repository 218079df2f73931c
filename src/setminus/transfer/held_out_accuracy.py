"""How often verdicts are right on images that were held out, and what guessing would reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["Told", "told"]

ONE_SIDED = 1.645
"""Standard errors above chance that chance itself reaches once in twenty times."""


@dataclass(frozen=True)
class Told:
    """How often a classifier is right on held-out images, of both classes alike: 0.5 is chance.

    Parameters
    ----------
    accuracy : float
    n : int
        Images that it was asked.
    by_chance : float
        What guessing stays below nineteen times in twenty.
    """

    accuracy: float
    n: int
    by_chance: float

    @property
    def above_chance(self) -> bool:
        """Whether it is more than guessing."""
        return self.accuracy > self.by_chance


def told(verdicts: NDArray[Any], truth: NDArray[Any], weights: NDArray[Any]) -> Told:
    """Compare verdicts with the truth.

    Parameters
    ----------
    verdicts, truth : int arrays of shape (n,)
    weights : float array of shape (n,)
        Not negative, and not all 0.

    Returns
    -------
    Told

    Examples
    --------
    >>> import numpy as np
    >>> told(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 1.0, 3.0]))
    Told(accuracy=0.8333333333333334, n=4, by_chance=0.974...)
    """
    total = float(weights.sum())
    error = 0.5 * math.sqrt(float((weights**2).sum())) / total
    right = float((weights * (verdicts == truth)).sum())
    return Told(right / total, int((weights > 0).sum()), min(1.0, 0.5 + ONE_SIDED * error))
