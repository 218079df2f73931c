"""Accuracy on a target that may have classes of its own."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.errors import UserError

__all__ = ["Unknown", "known_rows", "target_accuracy"]

Unknown = Literal["raise", "ignore"]

SHOWN = 10
"""Classes that an error names, at most."""


def known_rows(labels: ArrayLike, classes: ArrayLike, *, unknown: Unknown = "raise") -> NDArray[np.bool_]:
    """Which rows have a class that the source has.

    Parameters
    ----------
    labels : array of shape (n,)
        True labels of target rows.
    classes : array of shape (C,)
        The classes of the source.
    unknown : {"raise", "ignore"}, default="raise"
        What to do with other classes, which no method can predict.

    Returns
    -------
    ndarray of bool of shape (n,)

    Examples
    --------
    >>> known_rows(["cat", "frog"], ["cat", "dog"], unknown="ignore")
    array([ True, False])
    """
    if unknown not in get_args(Unknown):
        raise UserError(f"unknown is {unknown!r}", expected="'raise' or 'ignore'")
    truth = np.asarray(labels)
    known: NDArray[np.bool_] = np.isin(truth, np.asarray(classes))
    if unknown == "raise" and not known.all():
        # by their words: labels of several kinds have no order, and NaN is not even equal to itself
        strangers = sorted({repr(label): label for label in truth[~known].tolist()}.values(), key=str)[:SHOWN]
        raise UserError(
            f"{int((~known).sum())} of {len(truth)} rows have classes that the source lacks, {strangers}",
            do="they cannot be predicted. Leave these rows out, or pass unknown='ignore' to score the others only.",
        )
    if not known.any():
        raise UserError("no row has a class that the source has", do="there is nothing to score.")
    return known


def target_accuracy(
    labels: ArrayLike,
    predicted: ArrayLike,
    classes: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    unknown: Unknown = "raise",
) -> float:
    """The share of target rows that are classified rightly.

    Parameters
    ----------
    labels, predicted : array of shape (n,)
    classes : array of shape (C,)
        The classes of the source.
    sample_weight : array of shape (n,), optional
    unknown : {"raise", "ignore"}, default="raise"
        See `known_rows`.

    Returns
    -------
    float

    Examples
    --------
    >>> target_accuracy([0, 1, 1, 2], [0, 1, 0, 0], [0, 1], unknown="ignore")
    0.6666666666666666
    """
    truth, answers = np.asarray(labels), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != answers.shape:
        raise UserError(f"labels have shape {truth.shape}, predicted {answers.shape}", expected="(n,) for both")
    known = known_rows(truth, classes, unknown=unknown)
    weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != truth.shape or not (np.all(weights >= 0) and 0 < weights[known].sum() < np.inf):
        raise UserError(
            f"sample_weight has shape {weights.shape} and sum {weights.sum():g} for {len(truth)} rows",
            expected=f"({len(truth)},), none negative, and some above 0 on rows that are scored",
        )
    return float(np.average(truth[known] == answers[known], weights=weights[known]))
