"""The maths of the group gaps, on counts by (group, label, prediction).

One definition holds for any number of groups and classes. The gap of a label is the largest total-variation
distance between two groups' distributions of the prediction among the rows of that label::

    rate(c | y, g) = P(prediction = c | label = y, group = g)
    gap(y)         = max over groups g, g' of  1/2 * sum over c of |rate(c | y, g) - rate(c | y, g')|

Equalized odds takes the max or the sum of `gap(y)` over labels; demographic parity is the same gap without
conditioning on the label. With two classes `gap(y)` is the difference of the rates of the second class.

Every function takes tables of shape (..., n_groups, n_labels, n_classes): the leading axes may hold bootstrap
draws or thresholds, all answered at once.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = [
    "count_table",
    "demographic_parity_from_rates",
    "demographic_parity_from_table",
    "equal_opportunity_from_rates",
    "equal_opportunity_from_table",
    "equalized_odds_from_rates",
    "equalized_odds_from_table",
    "rates",
]

Floats = NDArray[np.float64]


def count_table(
    groups: NDArray[np.intp],
    labels: NDArray[np.intp],
    predictions: NDArray[np.intp],
    shape: tuple[int, int, int],
    weights: Floats | None = None,
) -> Floats:
    """Rows, or their weights, counted by (group, label, prediction).

    Parameters
    ----------
    groups, labels, predictions : ndarray of int of shape (n,)
        Codes from 0.
    shape : (n_groups, n_labels, n_classes)
    weights : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of float of the given shape

    Examples
    --------
    >>> codes = np.array([0, 1, 1])
    >>> count_table(codes, codes, np.array([0, 1, 0]), (2, 2, 2))[1].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    cells = np.ravel_multi_index((groups, labels, predictions), shape)
    counts = np.bincount(cells, weights=weights, minlength=int(np.prod(shape)))
    return counts.astype(np.float64).reshape(shape)


def rates(table: Floats) -> Floats:
    """P(prediction | label, group) from counts; NaN where a (group, label) cell is empty.

    Parameters
    ----------
    table : ndarray of shape (..., n_groups, n_labels, n_classes)

    Returns
    -------
    ndarray of the same shape
        Sums to one over the last axis.

    Examples
    --------
    >>> rates(np.array([[[3.0, 1.0], [0.0, 2.0]]])).tolist()
    [[[0.75, 0.25], [0.0, 1.0]]]
    """
    total = table.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(table, total, out=np.full(table.shape, np.nan), where=total > 0)
    return shares


def demographic_parity_from_table(table: Floats) -> Floats:
    """The demographic-parity gap of each table; empty groups are left out, NaN where fewer than two remain.

    Examples
    --------
    >>> float(demographic_parity_from_table(np.array([[[3.0, 1.0]], [[1.0, 3.0]]])))
    0.5
    """
    return demographic_parity_from_rates(rates(table.sum(axis=-2)))


def equalized_odds_from_table(table: Floats, agg: Literal["max", "sum"] = "max") -> Floats:
    """The equalized-odds gap of each table; empty cells are left out, NaN where nothing can be compared.

    Parameters
    ----------
    table : ndarray of shape (..., n_groups, n_labels, n_classes)
    agg : {"max", "sum"}
        How the gaps of the labels are put together.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> table = np.array([[[4.0, 0.0], [1.0, 1.0]], [[3.0, 1.0], [0.0, 2.0]]])
    >>> float(equalized_odds_from_table(table)), float(equalized_odds_from_table(table, "sum"))
    (0.5, 0.75)
    """
    return equalized_odds_from_rates(rates(table), agg)


def equal_opportunity_from_table(table: Floats, pos: int | None = None) -> Floats:
    """The equal-opportunity gap of each table: the largest between-group difference of a class's recall.

    Parameters
    ----------
    table : ndarray of shape (..., n_groups, n_classes, n_classes)
        Labels and predictions in the same order.
    pos : int, optional
        The class whose recall counts. By default the second of two classes; of more classes, the one whose
        recall differs most.

    Returns
    -------
    ndarray of shape (...)
        NaN where fewer than two groups have rows of the class.

    Examples
    --------
    >>> table = np.array([[[4.0, 0.0], [1.0, 1.0]], [[3.0, 1.0], [0.0, 2.0]]])
    >>> float(equal_opportunity_from_table(table))
    0.5
    """
    return equal_opportunity_from_rates(rates(table), pos)


def demographic_parity_from_rates(rate: Floats) -> Floats:
    """The gap of P(prediction | group), of shape (..., n_groups, n_classes); also a seminorm of its change."""
    return _largest_distance(rate)


def equalized_odds_from_rates(rate: Floats, agg: Literal["max", "sum"] = "max") -> Floats:
    """The gap of `rates`; also a seminorm, so that the gap moves no further than the gap of a change of rates."""
    # groups last but one, so that each label compares its own groups
    by_label = _largest_distance(np.swapaxes(rate, -3, -2))
    largest: Floats = np.fmax.reduce(by_label, axis=-1)
    if agg == "max":
        return largest
    if agg == "sum":
        return np.where(np.isnan(largest), np.nan, np.nansum(by_label, axis=-1))
    raise UserError(f"agg is {agg!r}", expected="'max' (Fairlearn's default) or 'sum' (the paper's Delta_EO)")


def equal_opportunity_from_rates(rate: Floats, pos: int | None = None) -> Floats:
    """The gap of the diagonal of `rates`, the recalls; also a seminorm of a change of rates."""
    recall = np.diagonal(rate, axis1=-2, axis2=-1)
    if pos is None and recall.shape[-1] == 2:
        pos = 1
    if pos is not None:
        recall = recall[..., [pos]]
    # one column per class, so that the distance is that of a single rate
    by_class = 2 * _largest_distance(np.swapaxes(recall, -2, -1)[..., None])
    difference: Floats = np.fmax.reduce(by_class, axis=-1)
    return difference


def _largest_distance(distributions: Floats) -> Floats:
    """(..., n_groups, n_classes) -> (...): the largest total variation between two groups; NaN left out."""
    largest = np.full(distributions.shape[:-2], np.nan)
    for g in range(distributions.shape[-2] - 1):
        others = distributions[..., g + 1 :, :]
        distance = 0.5 * np.abs(others - distributions[..., g : g + 1, :]).sum(axis=-1)
        # fmax passes over NaN, and is silent where all are
        largest = np.fmax(largest, np.fmax.reduce(distance, axis=-1))
    return largest
