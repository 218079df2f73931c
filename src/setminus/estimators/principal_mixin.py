"""What every classifier here shares: finding the groups, fitting the principals, predicting what to ignore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from setminus.core.checks import OnViolation, check_unmasked
from setminus.core.groups import check_weights, encode_labels
from setminus.core.orthogonalize import orthogonalize
from setminus.errors import UserError
from setminus.estimators.columns import as_rows, drop_columns, take_columns
from setminus.estimators.fitting import calibrated, check_classes, fit_part, needs_groups, takes_groups
from setminus.estimators.principals import GroupPrincipal

__all__ = ["Columns", "PrincipalMixin", "Proba", "subtract", "tags_like"]

Proba = NDArray[np.float64]
Columns = Sequence[str | int]


class PrincipalMixin:
    """What every classifier here does with its principals: find the groups, fit, and predict what to ignore."""

    principal: Any
    prior: ArrayLike | str
    sensitive_columns: Columns | None
    principal_columns: Columns | None

    def _check_fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """Everything that can be refused before any work; the rows, the labels, the groups and the weights."""
        X = as_rows(X)
        validate_data(self, X, y, skip_check_array=True)
        check_unmasked("y", y)
        given, y = y, column_or_1d(y, warn=True)
        if y.dtype.kind in "OU":
            # named here: scikit-learn takes mixed labels of an array for a regression, and those of a list for words
            _, labels = encode_labels(given if isinstance(given, list | tuple) else y, name="y")
            if not isinstance(labels[0], str):
                raise UserError(
                    f"Unknown label type {type(labels[0]).__name__} in y, an array of objects such as {labels[0]!r}",
                    do="pass text, or an array of numbers of at most 64 bits.",
                )
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise UserError(
                f"y has one class only, {self.classes_.tolist()[0]!r}", do="a classifier needs two or more classes."
            )
        if _num_samples(X) != len(y):
            raise UserError(f"X has {_num_samples(X)} rows, y has {len(y)}", expected="the same number")
        return X, y, self._groups(X, sensitive_features), check_weights(sample_weight, len(y))

    def _check_predict(self, X: Any) -> Any:
        """The rows, with the columns that were there at fit time."""
        check_is_fitted(self)
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _groups(self, X: Any, sensitive_features: Any) -> Any:
        if self.sensitive_columns is None:
            return sensitive_features
        if sensitive_features is not None:
            raise UserError(
                "the groups came twice, as sensitive_features= and by sensitive_columns=", do="use one of them."
            )
        columns = take_columns(X, self.sensitive_columns, parameter="sensitive_columns")
        return columns.toarray() if issparse(columns) else columns

    def _principals(self, full: Any) -> list[Any]:
        """The principals to fit, one or several."""
        if isinstance(self.principal, (list, tuple)):
            if len(self.principal) == 0:
                raise UserError("principal is an empty list", expected="a classifier, or several, to take out")
            return list(self.principal)
        if self.principal is not None:
            return [self.principal]
        if self.principal_columns is None:
            return [GroupPrincipal()]
        if isinstance(full, FrozenEstimator):
            raise UserError(
                "principal_columns needs a classifier to fit on those columns, and full is frozen",
                do="pass principal=, for example LogisticRegression().",
            )
        return [full]

    def _fit_principals(
        self, parts: list[Any], X: Any, y: Any, groups: Any, sample_weight: Any, calibration: str | None = None
    ) -> None:
        self.principals_ = []
        for part in parts:
            # counts are calibrated as they are
            counted = hasattr(part, "fit") and takes_groups(part.fit)
            part = part if counted else calibrated(part, calibration)
            fitted = fit_part(
                "principal", part, self._principal_view(X, part), y, sample_weight=sample_weight, groups=groups
            )
            check_classes("principal", fitted.classes_, self.classes_)
            self.principals_.append(fitted)

    def _fit_prior(self, y: Any, sample_weight: Any) -> None:
        if isinstance(self.prior, str) and self.prior == "empirical":
            codes = np.searchsorted(self.classes_, y)
            weights = np.ones(len(y)) if sample_weight is None else sample_weight
            counts = np.bincount(codes, weights, minlength=len(self.classes_))
            if (counts == 0).any():
                absent = self.classes_[counts == 0].tolist()
                raise UserError(
                    f"prior='empirical' counts y, where class {absent} does not occur",
                    do="pass rows of every class, or prior= with the class frequencies of the principal's data.",
                )
            self.class_prior_ = counts / counts.sum()
            return
        size = len(self.classes_)
        words = isinstance(self.prior, str) and self.prior == "uniform"
        prior = np.full(size, 1 / size) if words else np.asarray(self.prior)
        # written so that NaN fails
        frequencies = prior.shape == (size,) and prior.dtype.kind in "fiu" and (prior > 0).all()
        if not (frequencies and abs(prior.sum() - 1) <= 1e-4):
            raise UserError(
                f"prior is {self.prior!r}",
                expected=f"'empirical', 'uniform', or {size} positive class frequencies that "
                f"sum to 1, in the order of the classes {self.classes_.tolist()}",
            )
        self.class_prior_ = prior.astype(np.float64)

    def _principal_view(self, X: Any, part: Any) -> Any:
        if self.principal_columns is not None:
            return take_columns(X, self.principal_columns, parameter="principal_columns")
        guesses = takes_groups(part.fit) and not needs_groups(part)
        if self.sensitive_columns is not None and guesses:
            # a proxy that sees the groups is none
            return drop_columns(X, self.sensitive_columns, parameter="sensitive_columns")
        return X

    def _principal_probas(self, X: Any, groups: Any) -> list[Proba]:
        return [
            part.predict_proba(self._principal_view(X, part), sensitive_features=groups)
            if needs_groups(part)
            else part.predict_proba(self._principal_view(X, part))
            for part in self.principals_
        ]


def subtract(
    full: Proba, principals: list[Proba], prior: Proba, strength: float, on_violation: OnViolation = "raise"
) -> Proba:
    r"""``full \ principals[0] \ principals[1] ...``: one after the other is all at once, since each only multiplies."""
    for principal in principals:
        # scikit-learn's float32 models stay beside counts in float64
        full = orthogonalize(
            np.asarray(full, np.float64),
            np.asarray(principal, np.float64),
            prior,
            strength=strength,
            on_violation=on_violation,
        )
    return full


def tags_like(estimator: Any, tags: Any, full: Any) -> Any:
    """Scikit-learn's tags of a classifier that takes what its full classifier takes."""
    if not hasattr(full, "__sklearn_tags__"):
        return tags  # fit will refuse it, with a reason
    inner = get_tags(full)
    tags.input_tags.sparse = inner.input_tags.sparse
    tags.input_tags.allow_nan = inner.input_tags.allow_nan
    if inner.classifier_tags is not None:
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
    # a classifier that must ignore columns of X gives up the accuracy they carry
    tags.classifier_tags.poor_score = bool(estimator.sensitive_columns or estimator.principal_columns)
    return tags
