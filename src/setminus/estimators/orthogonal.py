r"""``full \ principal`` as a scikit-learn classifier, what the other two share with it, and its parts out of fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from setminus.core.checks import (
    OnViolation,
    check_on_violation,
    check_strength,
    check_unmasked,
    check_weights,
    encode_labels,
)
from setminus.core.orthogonalize import orthogonalize
from setminus.errors import UserError
from setminus.estimators.groupings import Groupings
from setminus.estimators.groups import as_rows, drop_columns, known_columns, take_columns
from setminus.estimators.principals import (
    GroupPrincipal,
    calibrated,
    check_classes,
    check_known_labels,
    fit_part,
    needs_groups,
    takes_groups,
)
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin
from setminus.progress import tracked

__all__ = [
    "Columns",
    "Fold",
    "OrthogonalClassifier",
    "Parts",
    "PrincipalMixin",
    "Proba",
    "check_folds",
    "out_of_fold_parts",
    "stratified_folds",
    "subtract",
    "tags_like",
]

Proba = NDArray[np.float64]
Columns = Sequence[str | int]


class PrincipalMixin:
    """The part that all three classifiers share: check the input, find the groups, fit and apply the principals."""

    classes_: NDArray[Any]
    principals_: list[Any]
    class_prior_: NDArray[np.float64]

    principal: Any
    prior: ArrayLike | str
    sensitive_columns: Columns | None
    principal_columns: Columns | None

    def _check_fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """Check and return the rows, the labels, the groups and the weights."""
        X = as_rows(X)
        validate_data(self, X, y, skip_check_array=True)
        check_unmasked("y", y)
        given, y = y, column_or_1d(y, warn=True)
        if y.dtype.kind in "OU":
            # checked here: scikit-learn reads mixed labels in an array as a regression, and in a list as strings
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
        """The groups of the rows, from the keyword or from the columns, by name where `groupings` are set."""
        found = sensitive_features
        if self.sensitive_columns is not None:
            if sensitive_features is not None:
                raise UserError(
                    "the groups came twice, as sensitive_features= and by sensitive_columns=", do="use one of them."
                )
            found = take_columns(X, self.sensitive_columns, parameter="sensitive_columns")
            found = found.toarray() if issparse(found) else found
        groupings = getattr(self, "groupings", None)
        return found if groupings is None or found is None else groupings.named(found)

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
            # a proxy must not see the groups themselves
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
    r"""``full \ principals[0] \ principals[1] ...``: the order does not matter, since each only multiplies."""
    for principal in principals:
        # models may give float32, counts are float64
        full = orthogonalize(
            np.asarray(full, np.float64),
            np.asarray(principal, np.float64),
            prior,
            strength=strength,
            on_violation=on_violation,
        )
    return full


def tags_like(estimator: Any, tags: Any, full: Any) -> Any:
    """Scikit-learn's tags: the input that the full classifier takes."""
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


class OrthogonalClassifier(PrincipalMixin, ClassifierMixin, BaseEstimator):
    r"""A classifier that predicts as well as it can without what the principal one knows.

    ``orthogonal = prior * full / principal``, normalised. It equals p(y | z2) where the principal classifier is
    p(y | z1) and z2, the other information in X, is independent of z1 given y.

    Parameters
    ----------
    full : classifier
        Learns y from all of X. ``FrozenEstimator(model)`` takes a fitted model as it is.
    principal : classifier, or a list of them, optional
        What to ignore: `GroupPrincipal` (the default) and `ProxyPrincipal` for a sensitive attribute, or any
        classifier of the same y. Of a list, each is subtracted; this is exact where their inputs are independent
        given y, and removes too much where they overlap.
    prior : {"empirical", "uniform"} or array of shape (C,), default="empirical"
        p(y) of the data that the principal classifier was fitted on. "empirical" counts the y of `fit`; with a
        frozen principal fitted on other data, pass that data's class frequencies.
    strength : float, default=1.0
        0 keeps the full classifier, 1 is the paper's formula. `TunedOrthogonalClassifier` chooses it.
    calibration : {None, "sigmoid", "isotonic", "temperature"}, default=None
        Calibrate the full classifier, and a principal one that is fitted to X, by cross-validation. A frozen model
        is calibrated on the rows of `fit`, which should not be its training rows.
    sensitive_columns : list of str or int, optional
        Columns of X that hold the groups, instead of the keyword `sensitive_features`: works in any
        cross-validation. The full classifier still uses them, as the method requires; a `ProxyPrincipal` does not.
    principal_columns : list of str or int, optional
        The principal classifier uses these columns only; without `principal` it is a clone of `full`.
    on_violation : {"raise", "clip", "warn"}, default="raise"
        What to do where a principal probability is exactly 0; see `orthogonalize`.
    groupings : Groupings, optional
        Names the groups that the principals are given, in place of the values; `TunedOrthogonalClassifier` sets it
        where groups are small, missing, or cut at given edges.

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

    classes_: NDArray[Any]
    full_: Any

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
        groupings: Groupings | None = None,
    ):
        self.full = full
        self.principal = principal
        self.prior = prior
        self.strength = strength
        self.groupings = groupings
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
        # the principals first: they are quick, and they refuse bad groups before the long fit
        self._fit_principals(principals, X, y, groups, sample_weight, self.calibration)
        self.full_ = fit_part("full", full, self._full_view(X), y, sample_weight=sample_weight)
        check_classes("principal", self.principals_[0].classes_, self.full_.classes_)
        return self

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """p(y | z2): the orthogonal probabilities, one row of X each, in the order of `classes_`."""
        full, principals, _ = self._parts(X, sensitive_features)
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

    def _parts(
        self, X: Any, sensitive_features: Any, features: bool = False
    ) -> tuple[Proba, list[Proba], Proba | None]:
        """The full probabilities, the principal ones, and where asked what the principal knows of the groups."""
        X = self._check_predict(X)
        wanted = any(map(needs_groups, self.principals_))
        groups = self._groups(X, sensitive_features) if wanted else None
        full = self.full_.predict_proba(self._full_view(X))
        part = self.principals_[0]
        if features and len(self.principals_) == 1 and hasattr(part, "predict_with_features"):
            proba, known = part.predict_with_features(np.asarray(full, np.float64), self._principal_view(X, part))
            return full, [proba], known
        # first the principal, whose errors tell what groups it needs
        principals = self._principal_probas(X, groups)
        return full, principals, self._group_features(full, X, groups) if features else None

    def _group_features(self, full: Proba, X: Any, groups: Any) -> Proba | None:
        """What the principal knows of each row's group; None where it is no model of groups, or one of several."""
        part = self.principals_[0]
        if len(self.principals_) > 1 or not hasattr(part, "group_features"):
            return None
        known = {"sensitive_features": groups} if needs_groups(part) else {}
        features: Proba = part.group_features(np.asarray(full, np.float64), self._principal_view(X, part), **known)
        return features

    def _full_view(self, X: Any) -> Any:
        """X for the full classifier: a frozen model may have been fitted without the columns of the groups."""
        return known_columns(self.full, X) if isinstance(self.full, FrozenEstimator) else X

    def __sklearn_tags__(self) -> Any:
        return tags_like(self, super().__sklearn_tags__(), self.full)


Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


class Parts(NamedTuple):
    """What the models of one fold predict of their test rows."""

    full: Proba
    principals: list[Proba]
    prior: Proba
    features: Proba | None = None
    """What is known of each row's group, where the principal can give it."""

    def take(self, rows: NDArray[np.bool_]) -> Parts:
        """The same for some of the rows."""
        features = None if self.features is None else self.features[rows]
        return Parts(self.full[rows], [one[rows] for one in self.principals], self.prior, features)


def stratified_folds(cv: Any, X: Any, y: Any, strata: tuple[NDArray[np.intp], ...], seed: int) -> list[Fold]:
    """Rows to learn from and rows to predict, for each fold.

    Parameters
    ----------
    cv : int or splitter
        A number deals the rows out stratum by stratum, so that every fold has rows of each one that can be spread.
    X, y : the rows
    strata : arrays of codes
        Rows that agree in all of them are one stratum.
    seed : int
    """
    if not isinstance(cv, int | np.integer):
        return list(check_cv(cv, y, classifier=True).split(X, y))
    if not 2 <= cv <= len(y):
        raise UserError(f"cv is {cv} with {len(y)} rows", expected="at least 2 folds, and a row for each")
    shuffled = np.random.default_rng(seed).permutation(len(y))
    dealt = shuffled[np.lexsort([codes[shuffled] for codes in strata])]
    fold = np.empty(len(y), dtype=np.intp)
    fold[dealt] = np.arange(len(y)) % cv
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(cv)]


def check_folds(folds: list[Fold], y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise where a fold has no rows to predict, or its training rows lack a class."""
    for k, (train, test) in enumerate(folds, start=1):
        absent = np.setdiff1d(classes, y[train]).tolist()
        if absent or len(test) == 0:
            lack = f"no row of class {absent} to learn from" if absent else "no row to predict"
            raise UserError(
                f"fold {k} of {len(folds)} has {lack}", do="pass a cv that shuffles and stratifies, such as a number."
            )


def out_of_fold_parts(
    model: Any, X: Any, y: Any, groups: Any, sample_weight: Any, folds: list[Fold], n_jobs: int | None
) -> list[Parts]:
    """The parts of each fold's rows, by clones of an `OrthogonalClassifier` fitted on the other rows."""
    jobs = (delayed(_parts)(model, X, y, groups, sample_weight, *fold) for fold in folds)
    found = []
    with tracked("fit on each fold", total=len(folds), unit="fits") as fits:
        # as they are ready: progress is reported in this process, wherever the fits are done
        for parts in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            fits.advance()
            found.append(parts)
    return found


def _parts(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any, train: Any, test: Any) -> Parts:
    """Full and principal probabilities of the rows `test`, by models that have seen `train` only, and their prior."""
    take = _safe_indexing
    fitted = clone(model).fit(
        take(X, train),
        y[train],
        sensitive_features=None if groups is None else take(groups, train),
        sample_weight=None if sample_weight is None else sample_weight[train],
    )
    full, principals, features = fitted._parts(
        take(X, test), None if groups is None else take(groups, test), features=True
    )
    return Parts(full, principals, fitted.class_prior_, features)
