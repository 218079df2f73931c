"""What every part of the audit reads: labels, groups and probabilities, checked and encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core.groups import check_weights, encode_groups, encode_labels, group_name, recode
from setminus.errors import UserError

__all__ = ["Scored", "check_proba", "read_scored"]


@dataclass(frozen=True)
class Scored:
    """Scored rows: codes into `classes` and `groups`, and one probability per class.

    Attributes
    ----------
    y, group : ndarray of int of shape (n,)
    proba : ndarray of shape (n, n_classes)
    weight : ndarray of shape (n,) or None
    classes, groups : list
        What the codes stand for, in sorted order or as the caller gave them.
    """

    y: NDArray[np.intp]
    group: NDArray[np.intp]
    proba: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    classes: list[Any]
    groups: list[Any]


def read_scored(
    y: ArrayLike,
    proba: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Scored:
    """Check and encode what a user passes to an audit.

    Parameters
    ----------
    y : array-like of shape (n,)
    proba : array-like of shape (n, n_classes), or (n,) with P(second class)
    sensitive_features : array-like of shape (n,) or (n, k)
    classes : sequence, optional
        The class of each column of `proba`; by default the sorted labels of `y`.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    Scored

    Examples
    --------
    >>> rows = read_scored(["no", "yes"], [0.1, 0.8], ["f", "m"])
    >>> rows.classes, rows.y.tolist(), rows.proba.shape
    (['no', 'yes'], [0, 1], (2, 2))
    """
    codes, labels = encode_labels(y, name="y")
    group, groups = encode_groups(sensitive_features)
    n = len(codes)
    if len(group) != n:
        raise UserError(f"y has {n} rows and sensitive_features {len(group)}", expected="the same number")
    if len(groups) < 2:
        raise UserError(
            f"sensitive_features holds one group only ({group_name(groups[0])})", do="an audit compares at least two."
        )
    names = labels if classes is None else np.asarray(classes).tolist()
    if len(names) < 2:
        raise UserError(f"y holds one class only ({labels[0]})", do="an audit needs rows of at least two classes.")
    if set(names) != set(labels) or len(set(names)) != len(names):
        raise UserError(f"classes is {names}, y holds {labels}", expected="each class once, and rows of every class")
    return Scored(
        y=recode(codes, labels, names),
        group=group,
        proba=check_proba(proba, n, len(names), name="proba"),
        weight=check_weights(sample_weight, n),
        classes=names,
        groups=groups,
    )


def check_proba(proba: ArrayLike, n: int, n_classes: int, *, name: str) -> NDArray[np.float64]:
    """Probabilities as an (n, n_classes) array whose rows sum to one.

    Examples
    --------
    >>> check_proba([0.25], 1, 2, name="proba").tolist()
    [[0.75, 0.25]]
    """
    array = np.asarray(proba, dtype=np.float64)
    if array.ndim == 1 and n_classes == 2:
        array = np.column_stack([1 - array, array])
    if array.shape != (n, n_classes):
        allowed = f"({n}, {n_classes})" + (f" or ({n},)" if n_classes == 2 else "")
        raise UserError(
            f"{name} has shape {np.shape(proba)}",
            do=f"expected {allowed}, one row for each row of y and one "
            "column for each of its classes. A class without rows cannot be audited: drop its column.",
        )
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).any(axis=1).sum())
        raise UserError(f"{name} has missing or infinite values in {bad} of {n} rows", do="drop or score them again.")
    off = np.abs(array.sum(axis=1) - 1)
    if off.max() > 1e-4 or array.min() < 0:
        raise UserError(
            f"{name} is not a probability",
            do=f"values from {array.min():g} to {array.max():g}, row sums off by "
            f"up to {off.max():g}. Expected values >= 0 that sum to 1 in each row (not logits, not labels).",
        )
    # single precision leaves sums of 1 - 1e-7, which stricter readers would warn about
    return np.asarray(array / array.sum(axis=1, keepdims=True), dtype=np.float64)
