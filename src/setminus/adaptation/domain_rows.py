"""Rows of two domains by skada's ``sample_domain``: masks, labels, held-out rows, decisions and accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.errors import UserError
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin

__all__ = [
    "DomainClassifier",
    "SampleDomain",
    "Unknown",
    "check_sample_domain",
    "held_out_rows",
    "known_rows",
    "labelled_rows",
    "labels_of_one_kind",
    "source_rows",
    "target_accuracy",
]

SampleDomain = ArrayLike | None
Unknown = Literal["raise", "ignore"]
MASKED = -1
"""The label that skada gives to target rows."""
MAX_NAMED = 10
"""Classes that an error lists, at most."""


def labels_of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of source rows, without the object dtype that they have beside missing labels of the target.

    Examples
    --------
    >>> labels_of_one_kind(np.array([1, 0], dtype=object)).dtype
    dtype('int64')
    """
    listed = labels.tolist()
    missing = sum(map(_is_missing, listed))
    if missing:
        raise UserError(
            f"{missing} of {len(labels)} source rows have no label",
            do="label them, leave them out, or mark them as target rows by a negative sample_domain.",
        )
    words = sum(isinstance(label, str) for label in listed)
    if 0 < words < len(listed):
        raise UserError(
            f"{words} of {len(labels)} labels of the source are words, the others are not", expected="one kind for all"
        )
    return np.array(listed) if labels.dtype == object else labels


def _is_missing(label: Any) -> bool:
    try:
        # NaN does not equal itself
        return label is None or bool(label != label)
    except TypeError:
        # pandas' NA has no truth value
        return True


def check_sample_domain(sample_domain: SampleDomain, n: int) -> NDArray[np.bool_] | None:
    """Mask of the source rows, by skada's convention: positive for any source, negative for any target.

    A number stands for all rows. None where there are no domains.

    Examples
    --------
    >>> check_sample_domain([1, 3, -2], 3)
    array([ True,  True, False])
    >>> check_sample_domain(-1, 3)
    array([False, False, False])
    """
    if sample_domain is None:
        return None
    domains = np.asarray(sample_domain)
    domains = np.full(n, domains) if domains.ndim == 0 else domains
    if domains.shape != (n,) or domains.dtype.kind not in "iuf":
        raise UserError(
            f"sample_domain has shape {domains.shape} of {domains.dtype}, X has {n} rows",
            expected=f"({n},), positive numbers for source rows and negative ones for target rows",
        )
    # `not all` also catches NaN
    if not np.all((domains > 0) | (domains < 0)):
        raise UserError("sample_domain has zeros or NaN", expected="positive for source, negative for target rows")
    of_source: NDArray[np.bool_] = domains > 0
    return of_source


def source_rows(sample_domain: ArrayLike, n: int) -> NDArray[np.bool_]:
    """`check_sample_domain` for fitting, which needs source rows.

    Examples
    --------
    >>> source_rows([1, 3, -2], 3)
    array([ True,  True, False])
    """
    of_source = check_sample_domain(sample_domain, n)
    if of_source is None or not of_source.any():
        raise UserError("the source domain has no rows", do="sample_domain must be positive for labelled rows.")
    return of_source


def labelled_rows(y: ArrayLike, classes: ArrayLike) -> NDArray[np.bool_]:
    """Mask of the rows to score: all but those with skada's label for an unknown class, -1, if it is no class itself.

    Examples
    --------
    >>> labelled_rows([0, 1, -1], [0, 1])
    array([ True,  True, False])
    >>> labelled_rows([1, -1], [-1, 1])
    array([ True,  True])
    """
    truth = np.asarray(y)
    if truth.dtype.kind not in "iuf" or MASKED in np.asarray(classes).tolist():
        return np.ones(truth.shape, dtype=bool)
    labelled: NDArray[np.bool_] = truth != MASKED
    return labelled


def held_out_rows(codes: NDArray[np.int64], share: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    """Mask of a random share of the rows of each class, at least one and never all; none if a class has under three.

    Examples
    --------
    >>> codes = np.repeat([0, 1], [40, 10])
    >>> np.bincount(codes[held_out_rows(codes, 0.2, np.random.RandomState(0))])
    array([8, 2])
    """
    held = np.zeros(len(codes), dtype=bool)
    counts = np.bincount(codes)
    if counts.min() < 3:
        return held
    for k, count in enumerate(counts):
        rows = random.permutation(np.flatnonzero(codes == k))
        held[rows[: min(max(round(share * count), 1), count - 1)]] = True
    return held


def known_rows(labels: ArrayLike, classes: ArrayLike, *, unknown: Unknown = "raise") -> NDArray[np.bool_]:
    """Mask of the target rows whose class the source has; other classes raise an error unless ignored.

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
        # by their text: labels of several kinds have no order, and NaN does not equal itself
        unseen = sorted({repr(label): label for label in truth[~known].tolist()}.values(), key=str)[:MAX_NAMED]
        raise UserError(
            f"{int((~known).sum())} of {len(truth)} rows have classes that the source lacks, {unseen}",
            do="they cannot be predicted. Leave these rows out, or pass unknown='ignore' to score the others only.",
        )
    if not known.any():
        raise UserError("no row has a class that the source has", expected="at least one that can be scored")
    return known


def target_accuracy(
    labels: ArrayLike,
    predicted: ArrayLike,
    classes: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    unknown: Unknown = "raise",
) -> float:
    """Accuracy on labelled rows, over the classes of the source; a label of -1 is skada's for a row without one.

    Examples
    --------
    >>> target_accuracy([0, 1, 1, 2], [0, 1, 0, 0], [0, 1], unknown="ignore")
    0.6666666666666666
    >>> target_accuracy([0, 1, -1], [0, 1, 0], [0, 1])
    1.0
    """
    truth, answers = np.asarray(labels), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != answers.shape:
        raise UserError(f"labels have shape {truth.shape}, predicted {answers.shape}", expected="(n,) for both")
    weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    labelled = labelled_rows(truth, classes)
    if not labelled.all() and weights.shape == truth.shape:
        truth, answers, weights = truth[labelled], answers[labelled], weights[labelled]
    known = known_rows(truth, classes, unknown=unknown)
    if weights.shape != truth.shape or not (np.all(weights >= 0) and 0 < weights[known].sum() < np.inf):
        raise UserError(
            f"sample_weight has shape {weights.shape} and sum {weights.sum():g} for {len(truth)} rows",
            expected=f"({len(truth)},), none negative, and some above 0 on rows that are scored",
        )
    return float(np.average(truth[known] == answers[known], weights=weights[known]))


class DomainClassifier(ClassifierMixin, BaseEstimator):
    """`predict` and `score` from the `predict_proba` and `classes_` of a subclass."""

    classes_: NDArray[Any]
    predict_proba: Callable[..., NDArray[Any]]
    # skada's scorers pass these
    __metadata_request__fit: ClassVar = {"sample_domain": True}
    __metadata_request__predict: ClassVar = {"sample_domain": True, "allow_source": True}
    __metadata_request__predict_proba: ClassVar = {"sample_domain": True, "allow_source": True}
    __metadata_request__score: ClassVar = {"sample_domain": True, "sample_weight": True, "allow_source": True}

    def predict(self, X: Any, sample_domain: SampleDomain = None, *, allow_source: bool = True) -> NDArray[Any]:
        """The most probable class of target rows; parameters as in `predict_proba`."""
        codes = self.predict_proba(X, sample_domain).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def score(
        self,
        X: Any,
        y: Any,
        sample_domain: SampleDomain = None,
        *,
        sample_weight: Any = None,
        unknown: Unknown = "raise",
        allow_source: bool = True,
    ) -> float:
        """Accuracy on rows with labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : array of shape (n,)
            Rows with the label -1, which skada gives to target rows, are left out, if -1 is no class of the source.
        sample_domain, allow_source
            As in `predict_proba`.
        sample_weight : array of shape (n,), optional
        unknown : {"raise", "ignore"}, default="raise"
            What to do with rows of classes that the source lacks.
        """
        predicted = self.predict(X, sample_domain)
        return target_accuracy(y, predicted, self.classes_, sample_weight=sample_weight, unknown=unknown)
