r"""``full \ principal`` as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from setminus.core.checks import OnViolation, check_on_violation, check_strength
from setminus.estimators.columns import known_columns
from setminus.estimators.fitting import calibrated, check_classes, check_known_labels, fit_part, needs_groups
from setminus.estimators.principal_mixin import Columns, PrincipalMixin, Proba, subtract, tags_like

__all__ = ["OrthogonalClassifier"]


class OrthogonalClassifier(PrincipalMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier that predicts as well as it can without what the principal one knows.

    ``orthogonal = prior * full / principal``, normalised: where z1 is what the principal classifier sees and z2 is
    the rest, independent of z1 given y, that is p(y | z2).

    Parameters
    ----------
    full : classifier
        Learns y from all of X. ``FrozenEstimator(model)`` takes a fitted model as it is.
    principal : classifier, or a list of them, optional
        What to ignore: `GroupPrincipal` (the default) and `ProxyPrincipal` for a sensitive attribute, or any
        classifier of the same y. Of several, each is subtracted; that is right where what they see is independent
        given y, and takes out too much where they overlap.
    prior : {"empirical", "uniform"} or array of shape (C,), default="empirical"
        p(y) of the data that the principal classifier was fitted on. "empirical" counts the y of `fit`; with a
        frozen principal fitted on other data, pass that data's class frequencies.
    strength : float, default=1.0
        0 keeps the full classifier, 1 is the paper's formula. `TunedOrthogonalClassifier` chooses it.
    calibration : {None, "sigmoid", "isotonic", "temperature"}, default=None
        Calibrate the full classifier, and a principal one that is not counted, by cross-validation. A frozen model
        is calibrated on the rows of `fit`, which should then not be those it was trained on.
    sensitive_columns : list of str or int, optional
        Columns of X that hold the groups, instead of the keyword `sensitive_features`: works in any
        cross-validation. The full classifier still sees them, as the method wants; a `ProxyPrincipal` does not.
    principal_columns : list of str or int, optional
        The principal classifier sees these columns only; without `principal` it is a clone of `full`.
    on_violation : {"raise", "clip", "warn"}, default="raise"
        What to do where a principal probability is exactly 0; see `orthogonalize`.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    full_ : the fitted full classifier
    principals_ : list of the fitted principal classifiers
    class_prior_ : ndarray of shape (C,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setminus import GroupPrincipal
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> sex = np.where(rng.random(2000) < 0.2 + 0.6 * y, "m", "f")
    >>> X = np.column_stack([y + rng.normal(size=2000), sex == "m"])
    >>> model = OrthogonalClassifier(LogisticRegression(), GroupPrincipal()).fit(X, y, sensitive_features=sex)
    >>> model.predict_proba([[0.5, 1.0], [0.5, 0.0]], sensitive_features=["m", "f"]).round(1)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    def __init__(
        self,
        full: Any,
        principal: Any = None,
        *,
        prior: ArrayLike | str = "empirical",
        strength: float = 1.0,
        calibration: Literal["sigmoid", "isotonic", "temperature"] | None = None,
        sensitive_columns: Columns | None = None,
        principal_columns: Columns | None = None,
        on_violation: OnViolation = "raise",
    ):
        self.full = full
        self.principal = principal
        self.prior = prior
        self.strength = strength
        self.calibration = calibration
        self.sensitive_columns = sensitive_columns
        self.principal_columns = principal_columns
        self.on_violation = on_violation

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> OrthogonalClassifier:
        """Fit the full and the principal classifier; frozen ones are only checked.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        y : array of shape (n,)
        sensitive_features : array or frame of shape (n,) or (n, k), optional
            The groups, where a principal needs them and `sensitive_columns` does not name them.
        sample_weight : array of shape (n,), optional
            Reaches both fits.
        """
        check_strength(self.strength)
        check_on_violation(self.on_violation)
        X, y, groups, sample_weight = self._check_fit(X, y, sensitive_features, sample_weight)
        full = calibrated(self.full, self.calibration)
        principals = self._principals(self.full)
        if isinstance(full, FrozenEstimator):
            check_is_fitted(full)
            check_known_labels(y, full.classes_)
            self.classes_ = full.classes_
        self._fit_prior(y, sample_weight)
        # the principals first: they are cheap, and they refuse bad groups before the long fit
        self._fit_principals(principals, X, y, groups, sample_weight, self.calibration)
        self.full_ = fit_part("full", full, self._full_view(X), y, sample_weight=sample_weight)
        check_classes("principal", self.principals_[0].classes_, self.full_.classes_)
        return self

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """p(y | z2): the orthogonal probabilities, one row of X each, in the order of `classes_`."""
        full, principals = self._parts(X, sensitive_features)
        return subtract(full, principals, self.class_prior_, self.strength, self.on_violation)

    def predict_log_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """The log of `predict_proba`."""
        with np.errstate(divide="ignore"):
            log_proba: Proba = np.log(self.predict_proba(X, sensitive_features=sensitive_features))
        return log_proba

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """The most probable class."""
        proba = self.predict_proba(X, sensitive_features=sensitive_features)
        labels: NDArray[Any] = self.classes_[np.argmax(proba, axis=1)]
        return labels

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _parts(self, X: Any, sensitive_features: Any) -> tuple[Proba, list[Proba]]:
        """The full probabilities and the principal ones."""
        X = self._check_predict(X)
        wanted = any(map(needs_groups, self.principals_))
        groups = self._groups(X, sensitive_features) if wanted else None
        return self.full_.predict_proba(self._full_view(X)), self._principal_probas(X, groups)

    def _full_view(self, X: Any) -> Any:
        """X for the full classifier: a model that is already there may not know the columns of the groups."""
        return known_columns(self.full, X) if isinstance(self.full, FrozenEstimator) else X

    def __sklearn_tags__(self) -> Any:
        return tags_like(self, super().__sklearn_tags__(), self.full)
