"""Is there enough of every label with every z1? The principal classifier divides, so it must not vanish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.core.importance import effective_sample_size, importance_weights

__all__ = ["Cell", "Overlap", "overlap", "small_cells"]


@dataclass(frozen=True)
class Overlap:
    """How far the division by the principal classifier reaches.

    Attributes
    ----------
    smallest : float
        The smallest probability that the principal classifier gives to any class.
    factor : float
        The correction `prior / principal` beyond which a row counts as extreme.
    share_beyond : float
        Share of rows that some class's correction takes beyond `factor`.
    effective_share : float
        Effective sample size of the importance weights over the number of rows; NaN where a weight is
        infinite.
    """

    smallest: float
    factor: float
    share_beyond: float
    effective_share: float


@dataclass(frozen=True)
class Cell:
    """Number of rows of one group with one label."""

    group: Any
    label: Any
    count: int


def overlap(y: NDArray[np.intp], principal_proba: NDArray[np.float64], *, factor: float = 10.0) -> Overlap:
    """Measure the overlap that the principal classifier leaves, with the labels' frequencies as prior.

    Parameters
    ----------
    y : ndarray of int of shape (n,)
    principal_proba : ndarray of shape (n, n_classes)
    factor : float

    Returns
    -------
    Overlap

    Examples
    --------
    >>> even = overlap(np.array([0, 1]), np.full((2, 2), 0.5))
    >>> even.smallest, even.share_beyond, even.effective_share
    (0.5, 0.0, 1.0)
    """
    prior = np.bincount(y, minlength=principal_proba.shape[1]) / len(y)
    beyond = (prior > factor * principal_proba).any(axis=1)
    if (np.take_along_axis(principal_proba, y[:, None], axis=1) > 0).all():
        effective = effective_sample_size(importance_weights(y, principal_proba, prior)) / len(y)
    else:
        effective = float("nan")
    return Overlap(float(principal_proba.min()), factor, float(beyond.mean()), effective)


def small_cells(table: NDArray[np.float64], groups: list[Any], classes: list[Any], *, below: int) -> tuple[Cell, ...]:
    """The (group, label) cells with fewer than `below` rows, smallest first.

    Parameters
    ----------
    table : ndarray of shape (n_groups, n_classes)
        Numbers of rows.
    groups, classes : list
        What the rows and the columns of the table stand for.
    below : int

    Returns
    -------
    tuple of Cell

    Examples
    --------
    >>> small_cells(np.array([[40, 2], [30, 50]]), ["f", "m"], ["no", "yes"], below=30)
    (Cell(group='f', label='yes', count=2),)
    """
    cells = [Cell(groups[g], classes[c], int(table[g, c])) for g, c in np.argwhere(table < below)]
    return tuple(sorted(cells, key=lambda cell: cell.count))
