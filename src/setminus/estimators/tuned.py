"""Strength and threshold under a fairness constraint, chosen without a held-out set."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Literal, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from setminus.core import Agg, Constraint
from setminus.core.checks import OnViolation
from setminus.core.groups import group_name
from setminus.errors import UserError
from setminus.estimators.frontier import COUNTED, Frontier, Problem, check_tolerance, decide, gap_of, search
from setminus.estimators.groups import Groups, check_every_class
from setminus.estimators.orthogonal import Columns, OrthogonalClassifier, PrincipalMixin, Proba, subtract, tags_like
from setminus.estimators.principals import check_classes
from setminus.progress import tracked

__all__ = ["Parts", "TunedOrthogonalClassifier", "check_folds", "out_of_fold_parts", "stratified_folds"]

Parts = tuple[Proba, list[Proba], Proba]
"""Full and principal probabilities of some rows, and the prior that goes with them."""

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


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
    full, principals = fitted._parts(take(X, test), None if groups is None else take(groups, test))
    return full, principals, fitted.class_prior_


# fine where the choice mostly falls
STRENGTHS = (*(i / 50 for i in range(51)), *(1 + i / 10 for i in range(1, 11)))


class TunedOrthogonalClassifier(PrincipalMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An `OrthogonalClassifier` with strength and threshold chosen to keep a gap within a tolerance.

    Full and principal classifiers predict each row out of fold. Strengths and thresholds are tried on these
    predictions, and those with the highest score among ``gap <= tolerance`` are chosen. Then both classifiers are
    fitted on all rows. The result is deterministic, and no prediction is randomized.

    Parameters
    ----------
    full, principal, prior, calibration, sensitive_columns, principal_columns, on_violation
        See `OrthogonalClassifier`.
    constraint : {"equalized_odds", "demographic_parity", "equal_opportunity"}, default="equalized_odds"
        The gap between the groups to bound. Equal opportunity is the gap of recall; with two classes, the recall of
        ``classes_[1]``: encode the favourable outcome as 1.
    agg : {"max", "sum"}, default="max"
        How equalized odds combines the gaps of the labels: Fairlearn takes the max, the paper the sum.
    tolerance : float, default=0.05
        The largest allowed gap, out of fold: a finite number >= 0.
    scoring : str or callable, default="accuracy"
        What to maximise: any scorer of scikit-learn, or a function of (estimator, X, y), which is slower. A scorer of
        probabilities ("roc_auc", "neg_log_loss") chooses the strength only and leaves the threshold at 0.5.
    strengths : sequence of float, optional
        Strengths to try; 0 to 1 in steps of 0.02 and on to 2 in steps of 0.1 by default.
    cv : int or splitter, default=5
        Folds, stratified by group and label where it is a number.
    n_jobs : int, optional
        Number of folds fitted in parallel, by joblib.
    random_state : int, default=0
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : OrthogonalClassifier
        Fitted on all rows, with `strength_`.
    strength_ : float
    threshold_ : float
        Two classes: the second is predicted where its probability is at least this.
    offsets_ : ndarray of shape (C,)
        Added to the log-probabilities before the largest is taken.
    frontier_ : Frontier
        The trade-off between score and gap; ``frontier_.plot()`` draws it, and `at` chooses another point.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> sex = np.where(rng.random(4000) < 0.2 + 0.6 * y, "m", "f")
    >>> X = np.column_stack([y + rng.normal(size=4000), sex == "m"])
    >>> model = TunedOrthogonalClassifier(LogisticRegression(), tolerance=0.05).fit(X, y, sensitive_features=sex)
    >>> bool(model.frontier_.gap[model.frontier_.chosen] <= 0.05)
    True
    >>> freer = model.at(tolerance=0.2)
    >>> freer.score(X, y, sensitive_features=sex) >= model.score(X, y, sensitive_features=sex)
    True
    """

    def __init__(
        self,
        full: Any,
        principal: Any = None,
        *,
        constraint: Constraint = "equalized_odds",
        agg: Agg = "max",
        tolerance: float = 0.05,
        scoring: Any = "accuracy",
        strengths: ArrayLike | None = None,
        cv: Any = 5,
        prior: ArrayLike | str = "empirical",
        calibration: Literal["sigmoid", "isotonic", "temperature"] | None = None,
        sensitive_columns: Columns | None = None,
        principal_columns: Columns | None = None,
        on_violation: OnViolation = "raise",
        n_jobs: int | None = None,
        random_state: int = 0,
    ):
        self.full = full
        self.principal = principal
        self.constraint = constraint
        self.agg = agg
        self.tolerance = tolerance
        self.scoring = scoring
        self.strengths = strengths
        self.cv = cv
        self.prior = prior
        self.calibration = calibration
        self.sensitive_columns = sensitive_columns
        self.principal_columns = principal_columns
        self.on_violation = on_violation
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> TunedOrthogonalClassifier:
        """Search on out-of-fold predictions, then fit on all rows.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        y : array of shape (n,)
        sensitive_features : array or frame of shape (n,) or (n, k), optional
            The groups; needed unless `sensitive_columns` names them.
        sample_weight : array of shape (n,), optional
            Reaches the fits and the search.
        """
        gap = gap_of(self.constraint, self.agg)
        check_tolerance(self.tolerance)
        strengths = np.atleast_1d(np.asarray(STRENGTHS if self.strengths is None else self.strengths, dtype=np.float64))
        if strengths.ndim != 1 or len(strengths) == 0 or not ((strengths >= 0) & np.isfinite(strengths)).all():
            raise UserError(f"strengths is {self.strengths!r}", expected="finite numbers >= 0")
        X, y, groups, sample_weight = self._check_fit(X, y, sensitive_features, sample_weight)
        if isinstance(self.full, FrozenEstimator):
            check_is_fitted(self.full)
            check_classes("full", self.full.classes_, self.classes_, other="y")
        if groups is None:
            raise UserError(
                f"the constraint {self.constraint!r} compares groups",
                do="pass sensitive_features= to fit, or set sensitive_columns=, which reads them from X.",
            )
        y_codes = np.searchsorted(self.classes_, y).astype(np.intp)
        known = Groups(least=2)
        codes = known.learn(groups, y_codes)
        check_every_class(codes, y_codes, known.labels, self.classes_, sample_weight, known.least)
        if len(known.labels) == 1:
            warnings.warn(
                f"all rows are in one group, {group_name(known.labels[0])!r}: there is no gap to bound, only the score "
                "counts. Check sensitive_features.",
                UserWarning,
                stacklevel=2,
            )

        self.model_ = OrthogonalClassifier(
            self.full,
            self.principal,
            prior=self.prior,
            calibration=self.calibration,
            sensitive_columns=self.sensitive_columns,
            principal_columns=self.principal_columns,
            on_violation=self.on_violation,
        )
        folds = stratified_folds(self.cv, X, y, (codes, y_codes), self.random_state)
        rows = np.concatenate([test for _, test in folds])
        check_folds(folds, y, self.classes_)
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        check_every_class(codes[rows], y_codes[rows], known.labels, self.classes_, weights[rows])
        keyword = None if self.sensitive_columns is not None else groups
        parts = out_of_fold_parts(self.model_, X, y, keyword, sample_weight, folds, self.n_jobs)
        problem = Problem(
            y_codes[rows],
            codes[rows],
            self.classes_,
            len(known.labels),
            weights[rows],
            gap if len(known.labels) > 1 else _no_gap,
            self.scoring if self.scoring in COUNTED else get_scorer(self.scoring),
        )
        with tracked("try strengths and thresholds"):
            self.frontier_ = self._search(problem, parts, strengths)
        if not np.isfinite(self.frontier_.score).any():
            raise UserError(
                f"scoring is {self.scoring!r}, which gives no finite score for any strength and threshold",
                do="choose another one, such as 'accuracy'.",
            )
        with tracked("fit on all rows"):
            self.model_.fit(X, y, sensitive_features=keyword, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        return self._take(self.frontier_.best(self.tolerance))

    def at(self, *, tolerance: float | None = None, index: int | None = None) -> TunedOrthogonalClassifier:
        """The same fitted model at another point of the frontier; nothing is fitted again.

        Parameters
        ----------
        tolerance : float, optional
            The point that a fit with this tolerance on the same rows would choose.
        index : int, optional
            That point of ``frontier_``; its gap becomes the copy's `tolerance`.

        Returns
        -------
        TunedOrthogonalClassifier
            A copy that shares the fitted parts; this one stays as it is.
        """
        check_is_fitted(self)
        if (tolerance is None) == (index is None):
            raise UserError(
                "at() got " + ("neither" if index is None else "both"), expected="either tolerance= or index="
            )
        other = copy.copy(self)
        other.model_ = copy.copy(self.model_)
        if index is not None:
            other.tolerance = float(self.frontier_.gap[self.frontier_.at(index).chosen])
            return other._take(index)
        check_tolerance(tolerance)
        other.tolerance = cast(float, tolerance)
        return other._take(self.frontier_.best(other.tolerance))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """The orthogonal probabilities at the chosen strength; `predict` applies the threshold to them."""
        check_is_fitted(self)
        return self.model_.predict_proba(X, sensitive_features=sensitive_features)

    def predict_log_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """The log of `predict_proba`."""
        check_is_fitted(self)
        return self.model_.predict_log_proba(X, sensitive_features=sensitive_features)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """The class at the chosen strength and threshold."""
        log_proba = self.predict_log_proba(X, sensitive_features=sensitive_features)
        labels: NDArray[Any] = self.classes_[decide(log_proba, self.offsets_)]
        return labels

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _search(self, problem: Problem, parts: list[Parts], strengths: NDArray[np.float64]) -> Frontier:
        def one(strength: float) -> Frontier:
            proba = np.concatenate(
                [subtract(full, principals, prior, strength, self.on_violation) for full, principals, prior in parts]
            )
            with np.errstate(divide="ignore"):
                log_proba = np.log(proba)
            return search(problem, strength, log_proba)

        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(one)(strength) for strength in strengths)
        agg = f" ({self.agg})" if self.constraint == "equalized_odds" else ""
        every = Frontier(
            np.concatenate([part.strength for part in found]),
            np.concatenate([part.offsets for part in found]),
            np.concatenate([part.score for part in found]),
            np.concatenate([part.gap for part in found]),
            score_name=self.scoring if isinstance(self.scoring, str) else "score",
            gap_name=self.constraint + agg,
            n_tried=sum(part.n_tried for part in found),
        )
        return every.thinned()

    def _take(self, index: int) -> TunedOrthogonalClassifier:
        self.frontier_ = self.frontier_.at(index)
        point = self.frontier_.chosen
        self.strength_ = self.model_.strength = float(self.frontier_.strength[point])
        self.offsets_ = self.frontier_.offsets[point]
        if len(self.classes_) == 2:
            self.threshold_ = float(self.frontier_.threshold[point])
        if self.frontier_.gap[point] > self.tolerance:
            warnings.warn(
                f"no strength and threshold keeps the {self.constraint} gap within {self.tolerance:g} out of fold: the "
                f"smallest gap found, {self.frontier_.gap[point]:.3g}, is used. Raise the tolerance, or try another "
                "principal.",
                UserWarning,
                stacklevel=3,
            )
        return self

    def __sklearn_tags__(self) -> Any:
        return tags_like(self, super().__sklearn_tags__(), self.full)


def _no_gap(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.zeros(tables.shape[:-3])
