"""How differently a prediction treats groups: demographic parity, equalized odds, equal opportunity.

One definition holds for any number of groups and classes. The gap of a label is the largest total-variation
distance between two groups' distributions of the prediction among the rows of that label::

    rate(c | y, g) = P(prediction = c | label = y, group = g)
    gap(y)         = max over groups g, g' of  1/2 * sum over c of |rate(c | y, g) - rate(c | y, g')|

Equalized odds takes the max or the sum of `gap(y)` over labels; demographic parity is the same gap without
conditioning on the label. With two classes `gap(y)` is the difference of the rates of the second class.

The three metrics take labels, with Fairlearn's signatures, and refuse an empty (group, label) cell, because a rate of
no rows is not a number. The functions below them take tables of counts of shape (..., n_groups, n_labels, n_classes):
the leading axes may hold bootstrap draws or thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core import Agg, Constraint, Gap
from setminus.core.checks import check_weights, encode_groups, encode_labels, group_name, recode
from setminus.errors import UserError

__all__ = [
    "GAP_NAMES",
    "count_table",
    "demographic_parity_from_rates",
    "demographic_parity_from_table",
    "demographic_parity_gap",
    "equal_opportunity_from_rates",
    "equal_opportunity_from_table",
    "equal_opportunity_gap",
    "equalized_odds_from_rates",
    "equalized_odds_from_table",
    "equalized_odds_gap",
    "gap_key",
    "grouped_table",
    "rates",
]

Floats = NDArray[np.float64]

GAP_NAMES: dict[Gap, str] = {
    "demographic_parity": "demographic parity gap",
    "equalized_odds_max": "equalized odds gap (max)",
    "equalized_odds_sum": "equalized odds gap (sum)",
    "equal_opportunity": "equal opportunity gap",
}
"""The gaps of an audit, as text calls them."""


def demographic_parity_gap(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The largest distance between two groups' distributions of the prediction.

    With two classes: the largest difference of selection rates, max over g, g' of |P(1 | g) - P(1 | g')|.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        Ignored; present so that the function has a metric's signature.
    y_pred : array-like of shape (n,)
    sensitive_features : array-like of shape (n,) or (n, k)
        The group of each row; several columns are crossed.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> demographic_parity_gap(None, [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    table, groups, _ = _labelled_table(None, y_pred, sensitive_features, sample_weight)
    _refuse_empty(table.sum(axis=(-2, -1)), groups, None)
    return float(demographic_parity_from_table(table))


def equalized_odds_gap(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    agg: Agg = "max",
    sample_weight: ArrayLike | None = None,
) -> float:
    """The distance between groups' predictions given the label, max or sum over the labels of `y_true`.

    With two classes: the max, or the sum, of the differences of true and of false positive rates.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    sensitive_features : array-like of shape (n,) or (n, k)
        The group of each row; several columns are crossed.
    agg : {"max", "sum"}
        "max" is Fairlearn's default, "sum" the paper's Delta_EO.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1 for "max", between 0 and the number of labels for "sum".

    Examples
    --------
    >>> y, prediction, group = [0, 1, 0, 1], [0, 1, 1, 1], ["a", "a", "b", "b"]
    >>> equalized_odds_gap(y, prediction, sensitive_features=group)
    1.0
    """
    table, groups, classes = _labelled_table(y_true, y_pred, sensitive_features, sample_weight)
    occurs = table.sum(axis=(0, 2)) > 0
    labels = [label for label, present in zip(classes, occurs, strict=True) if present]
    _refuse_empty(table[:, occurs].sum(axis=-1), groups, labels)
    return float(equalized_odds_from_table(table[:, occurs], agg))


def equal_opportunity_gap(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The largest difference between two groups' recall of the class `pos_label`.

    In symbols: max over g, g' of |P(pos | pos, g) - P(pos | pos, g')|.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    sensitive_features : array-like of shape (n,) or (n, k)
        The group of each row; several columns are crossed.
    pos_label : label, optional
        The class whose recall counts. By default the second of two classes in sorted order; of more classes,
        the one whose recall differs most.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> y, prediction, group = [1, 1, 1, 1], [1, 0, 1, 1], ["a", "a", "b", "b"]
    >>> equal_opportunity_gap(y, prediction, sensitive_features=group, pos_label=1)
    0.5
    """
    table, groups, classes = _labelled_table(y_true, y_pred, sensitive_features, sample_weight)
    occurs = np.flatnonzero(table.sum(axis=(0, 2)) > 0)
    if pos_label is None:
        judged = [len(classes) - 1] if len(classes) <= 2 else occurs.tolist()
    elif pos_label in classes:
        judged = [classes.index(pos_label)]
    else:
        raise UserError(f"pos_label is {pos_label!r}, y_true and y_pred hold {classes}", do="name one of these.")
    _refuse_empty(table[:, judged].sum(axis=-1), groups, [classes[k] for k in judged])
    return max(float(equal_opportunity_from_table(table, k)) for k in judged)


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


def grouped_table(table: Floats, members: NDArray[np.bool_]) -> Floats:
    """Counts by group from counts by cell, where a group is a set of cells and groups may overlap.

    Parameters
    ----------
    table : ndarray of shape (..., n_cells, n_labels, n_classes)
    members : ndarray of bool of shape (n_groups, n_cells)

    Returns
    -------
    ndarray of shape (..., n_groups, n_labels, n_classes)

    Examples
    --------
    >>> by_cell = np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]])
    >>> grouped_table(by_cell, np.array([[True, True, False], [False, True, True]])).tolist()
    [[[4.0, 6.0]], [[8.0, 10.0]]]
    """
    summed: Floats = np.moveaxis(np.tensordot(members.astype(np.float64), table, (1, table.ndim - 3)), 0, -3)
    return summed


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


def equalized_odds_from_table(table: Floats, agg: Agg = "max") -> Floats:
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


def equalized_odds_from_rates(rate: Floats, agg: Agg = "max") -> Floats:
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


def _labelled_table(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None,
) -> tuple[Floats, list[Any], list[Any]]:
    """The count table with its group labels and its classes (those of y_true and y_pred together)."""
    pred_codes, pred_labels = encode_labels(y_pred, name="y_pred")
    y_codes, y_labels = (
        (np.zeros_like(pred_codes), pred_labels[:1]) if y_true is None else encode_labels(y_true, name="y_true")
    )
    unknown = set() if y_true is None else set(pred_labels) - set(y_labels)
    if len(unknown) > len(y_labels) and any(isinstance(label, float) and label % 1 for label in unknown):
        raise UserError(
            f"y_pred holds {len(pred_labels)} values such as {next(iter(unknown))!r}",
            expected="decisions, one label per row, not probabilities",
        )
    group_codes, groups = encode_groups(sensitive_features)
    if not len(y_codes) == len(pred_codes) == len(group_codes):
        raise UserError(
            f"y_true has {len(y_codes)} rows, y_pred {len(pred_codes)}, sensitive_features {len(group_codes)}",
            expected="the same number",
        )
    if len(groups) < 2:
        raise UserError(
            f"sensitive_features holds one group only ({group_name(groups[0])})", do="a gap needs at least two."
        )
    try:
        classes = sorted(set(y_labels) | set(pred_labels))
    except TypeError:
        raise UserError(
            f"y_true holds {y_labels} and y_pred {pred_labels}", expected="labels of one type in both"
        ) from None
    table = count_table(
        group_codes,
        recode(y_codes, y_labels, classes),
        recode(pred_codes, pred_labels, classes),
        (len(groups), len(classes), len(classes)),
        check_weights(sample_weight, len(pred_codes)),
    )
    return table, groups, classes


def _refuse_empty(totals: Floats, groups: Sequence[Any], labels: Sequence[Any] | None) -> None:
    empty = np.argwhere(totals <= 0)
    if len(empty) == 0:
        return
    names = [
        f"group {group_name(groups[cell[0]])}" + (f" with label {labels[cell[1]]}" if labels is not None else "")
        for cell in empty
    ]
    raise UserError(
        f"no rows (or no weight) in {'; '.join(names)}",
        do="the gap is undefined there. Collapse small groups, or leave these rows out.",
    )


def _largest_distance(distributions: Floats) -> Floats:
    """(..., n_groups, n_classes) -> (...): the largest total variation between two groups; NaN left out."""
    if distributions.shape[-1] <= 2:
        # the two rates have the same range, each from the smallest group to the largest: no pairs are needed
        span = np.fmax.reduce(distributions, axis=-2) - np.fmin.reduce(distributions, axis=-2)
        known = (~np.isnan(distributions[..., 0])).sum(axis=-1)
        return np.where(known > 1, 0.5 * span.sum(axis=-1), np.nan)
    largest = np.full(distributions.shape[:-2], np.nan)
    for g in range(distributions.shape[-2] - 1):
        others = distributions[..., g + 1 :, :]
        distance = 0.5 * np.abs(others - distributions[..., g : g + 1, :]).sum(axis=-1)
        # fmax passes over NaN, and is silent where all are
        largest = np.fmax(largest, np.fmax.reduce(distance, axis=-1))
    return largest


def gap_key(constraint: Constraint, agg: Agg) -> Gap:
    """The key under which an audit has the gap that a constraint bounds.

    Examples
    --------
    >>> gap_key("equalized_odds", "sum"), gap_key("demographic_parity", "max")
    ('equalized_odds_sum', 'demographic_parity')
    """
    if constraint == "equalized_odds":
        return "equalized_odds_max" if agg == "max" else "equalized_odds_sum"
    return constraint
