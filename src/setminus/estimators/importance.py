"""The paper's alternative, importance weighting, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core.importance import effective_sample_size, importance_weights
from setminus.errors import UserError
from setminus.estimators.orthogonal import Columns, PrincipalMixin, Proba, tags_like
from setminus.estimators.principals import check_classes, fit_part
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin

__all__ = ["ImportanceWeightedClassifier"]


class ImportanceWeightedClassifier(PrincipalMixin, ClassifierMixin, BaseEstimator):
    """A classifier fitted with weights under which y is independent of what the principal classifier knows.

    Row (x, y) weighs ``phi(x, y) = prior[y] / principal(x)[y]``. The fitted classifier estimates the same p(y | z2)
    as `OrthogonalClassifier` and needs no groups at predict time. In exchange it must be trained, and large weights
    add variance: check `effective_sample_size_`.

    Parameters
    ----------
    full : classifier
        Fitted with the weights; its fit must take `sample_weight`.
    principal, prior, sensitive_columns, principal_columns
        See `OrthogonalClassifier`.
    max_weight : float, optional
        Larger weights are clipped to it: less variance, some bias.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    full_ : the fitted classifier
    principals_ : list of the fitted principal classifiers
    effective_sample_size_ : float
        The number of unweighted rows with the same variance.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> sex = np.where(rng.random(4000) < 0.2 + 0.6 * y, "m", "f")
    >>> X = np.column_stack([y + rng.normal(size=4000), sex == "m"])
    >>> model = ImportanceWeightedClassifier(LogisticRegression()).fit(X, y, sensitive_features=sex)
    >>> bool(abs(model.full_.coef_[0, 1]) < 0.2)
    True
    """

    full_: Any
    effective_sample_size_: float

    def __init__(
        self,
        full: Any,
        principal: Any = None,
        *,
        prior: ArrayLike | str = "empirical",
        max_weight: float | None = None,
        sensitive_columns: Columns | None = None,
        principal_columns: Columns | None = None,
    ):
        self.full = full
        self.principal = principal
        self.prior = prior
        self.max_weight = max_weight
        self.sensitive_columns = sensitive_columns
        self.principal_columns = principal_columns

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> ImportanceWeightedClassifier:
        """Fit the principal, weigh the rows, fit the classifier on them."""
        if self.max_weight is not None and not self.max_weight > 0:
            raise UserError(f"max_weight is {self.max_weight}", expected="a number > 0, or None")
        X, y, groups, sample_weight = self._check_fit(X, y, sensitive_features, sample_weight)
        self._fit_prior(y, sample_weight)
        self._fit_principals(self._principals(self.full), X, y, groups, sample_weight)
        y_codes = np.searchsorted(self.classes_, y)
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        for proba in self._principal_probas(X, groups):
            weights = weights * importance_weights(y_codes, proba, self.class_prior_)
        if self.max_weight is not None:
            weights = np.minimum(weights, self.max_weight)
        self.effective_sample_size_ = effective_sample_size(weights)
        self.full_ = fit_part("full", self.full, X, y, sample_weight=weights)
        check_classes("principal", self.principals_[0].classes_, self.full_.classes_)
        return self

    def predict_proba(self, X: Any) -> Proba:
        """The probabilities of the weighted classifier."""
        X = self._check_predict(X)
        proba: Proba = self.full_.predict_proba(X)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        proba = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[np.argmax(proba, axis=1)]
        return labels

    def __sklearn_tags__(self) -> Any:
        return tags_like(self, super().__sklearn_tags__(), self.full)
