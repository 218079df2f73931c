"""What the random models share: probabilities that are never 0, and the check of a dependence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["Floats", "check_dependence", "simplex"]

Floats = NDArray[np.float64]


def check_dependence(dependence: float) -> None:
    """Refuse a dependence outside [0, 1)."""
    if not 0 <= dependence < 1:
        raise UserError(f"dependence is {dependence}", do="it must be at least 0 and below 1.")


def simplex(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Draw `rows` distributions over `columns` values, every probability well above 0.

    Examples
    --------
    >>> drawn = simplex(np.random.default_rng(0), rows=2, columns=4)
    >>> bool((drawn >= 0.025).all()), drawn.sum(axis=1).round(12).tolist()
    (True, [1.0, 1.0])
    """
    # a tenth of the uniform distribution bounds each from below
    return 0.9 * rng.dirichlet(np.ones(columns), size=rows) + 0.1 / columns
