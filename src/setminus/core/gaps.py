"""How differently a prediction treats groups: demographic parity, equalized odds, equal opportunity.

Metrics on labels, with Fairlearn's signatures, for any number of groups and classes. The definition and the
maths on counts are in `gap_tables`; here labels become counts, and an empty (group, label) cell is refused
because a rate of no rows is not a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core.checks import check_unmasked
from setminus.core.gap_tables import (
    Floats,
    count_table,
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
    rates,
)
from setminus.core.groups import encode_groups, group_name
from setminus.errors import UserError

__all__ = [
    "check_weights",
    "count_table",
    "demographic_parity_from_table",
    "demographic_parity_gap",
    "encode_labels",
    "equal_opportunity_from_table",
    "equal_opportunity_gap",
    "equalized_odds_from_table",
    "equalized_odds_gap",
    "rates",
    "recode",
]


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
    agg: Literal["max", "sum"] = "max",
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


def encode_labels(values: ArrayLike, *, name: str = "y") -> tuple[NDArray[np.intp], list[Any]]:
    """One code per row, and the sorted labels that the codes stand for; a missing label raises.

    Examples
    --------
    >>> codes, classes = encode_labels(["yes", "no", "yes"])
    >>> codes.tolist(), classes
    ([1, 0, 1], ['no', 'yes'])
    """
    check_unmasked(name, values)
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise UserError(f"{name} has shape {array.shape}", expected="one label per row, shape (n,) with n > 0")
    # a list as it came: beside words, numpy makes words of numbers, and "nan" of a missing label
    listed = values if isinstance(values, list | tuple) and array.dtype.kind == "U" else None
    try:
        unique, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise _mixed(name, array.tolist()) from None
    labels = unique.tolist()
    if any(label is None or label != label for label in listed or labels):
        raise UserError(f"{name} has missing values (NaN or None)", do="drop those rows.")
    if listed is not None and not all(isinstance(label, str) for label in listed):
        raise _mixed(name, listed)
    return codes.astype(np.intp), labels


def recode(codes: NDArray[np.intp], labels: list[Any], classes: list[Any]) -> NDArray[np.intp]:
    """Codes into `labels` as codes into `classes`, which hold all of the labels.

    Examples
    --------
    >>> recode(np.array([0, 1]), ["b", "c"], ["a", "b", "c"]).tolist()
    [1, 2]
    """
    return np.array([classes.index(label) for label in labels], dtype=np.intp)[codes]


def check_weights(sample_weight: ArrayLike | None, n: int) -> Floats | None:
    """The weights of n rows as floats, or None; negative, infinite or missing weights raise.

    Examples
    --------
    >>> check_weights([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    if sample_weight is None:
        return None
    check_unmasked("sample_weight", sample_weight)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise UserError(f"sample_weight has shape {weights.shape}", expected=f"({n},), one weight per row")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise UserError(
            "sample_weight has negative, infinite or missing values, or is zero everywhere",
            do="pass finite weights >= 0.",
        )
    return weights


def _mixed(name: str, labels: Sequence[Any]) -> ValueError:
    kinds = sorted({type(label).__name__ for label in labels})
    return ValueError(f"{name} mixes {', '.join(kinds)}: use one type of label, and drop rows whose label is missing.")


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
    strange = set() if y_true is None else set(pred_labels) - set(y_labels)
    if len(strange) > len(y_labels) and any(isinstance(label, float) and label % 1 for label in strange):
        raise UserError(
            f"y_pred holds {len(pred_labels)} values such as {next(iter(strange))!r}",
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
