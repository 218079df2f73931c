"""A classifier within a bound on a fairness gap, with a certificate, chosen on out-of-fold predictions."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from setminus.core import Agg, Constraint, ConstraintOver
from setminus.core.certificate import Certificate, rows_needed, smallest_tolerance, upper_gaps
from setminus.core.checks import OnViolation
from setminus.errors import UserError
from setminus.estimators.cautions import Caution, NotCertified, group_cautions
from setminus.estimators.frontier import (
    OPTIMISM,
    STARTS,
    Candidates,
    Frontier,
    check_tolerance,
    decide,
    gap_of,
)
from setminus.estimators.groupings import Groupings, needed_labels
from setminus.estimators.groups import SmallGroups
from setminus.estimators.orthogonal import (
    Columns,
    OrthogonalClassifier,
    Parts,
    PrincipalMixin,
    Proba,
    check_folds,
    out_of_fold_parts,
    stratified_folds,
    tags_like,
)
from setminus.estimators.principals import check_classes
from setminus.estimators.proposals import floored_log, log_proba_at, proposed, taken
from setminus.estimators.search import Costs, Problem, count_points, scorer_of
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin
from setminus.progress import tracked

__all__ = ["STRENGTHS", "TunedOrthogonalClassifier"]

# fine where the choice mostly falls
STRENGTHS = (*(i / 50 for i in range(51)), *(1 + i / 10 for i in range(1, 11)))

SEARCH_SHARE = 1 / 3
"""Share of the rows that choose the candidates for a certificate; the others test them."""


class Task(NamedTuple):
    """What a fit is given, checked: rows, labels, groups and weights, and each row's label and cell as codes."""

    X: Any
    y: NDArray[Any]
    groups: Any
    sample_weight: Any
    weights: NDArray[np.float64]
    y_codes: NDArray[np.intp]
    cells: NDArray[np.intp]
    strengths: NDArray[np.float64]
    promises: bool
    """Whether a certificate is sought."""


class TunedOrthogonalClassifier(PrincipalMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose gap between groups is within a tolerance, with a certificate, and as accurate as can be.

    Full and principal classifiers predict each row out of fold. On these predictions candidates are chosen: the
    paper's formula at many strengths, and offsets of the log-probabilities for what is known of a row's group, each
    with many thresholds. Points that are hardly better than a constant decision are no candidates. The candidates are
    tested from the smallest gap to the largest, and the last one whose gap is certified to be within the tolerance is
    taken: the full classifier itself, where its own gap is certified. Then both classifiers are fitted on all rows.
    The result is deterministic: no prediction is randomized.

    Parameters
    ----------
    full, principal, prior, calibration, sensitive_columns, principal_columns, on_violation
        See `OrthogonalClassifier`.
    constraint : {"equalized_odds", "demographic_parity", "equal_opportunity"}, default="equalized_odds"
        The gap between the groups to bound. Equal opportunity is the gap of recall; with two classes, the recall of
        ``favorable_label``.
    agg : {"max", "sum"}, default="max"
        How equalized odds combines the gaps of the labels: Fairlearn takes the max, the paper the sum.
    tolerance : float, default=0.05
        The largest allowed gap: a finite number >= 0.
    constraint_over : {"crossed", "each", "both"}, default="crossed"
        The groups that are compared where there are several sensitive columns: those of their crossing, those of each
        column, or both.
    min_group_size : int, optional
        Rows that a group must have, of each label that the constraint compares; demographic parity compares none, and
        the rows of a group are counted together. By default 20, or 2 where fewer than two groups have 20: the rates
        of a smaller group are hardly known, and would decide the gap of all.
    small_groups : {"merge", "drop", "raise"}, default="merge"
        Groups with fewer rows: "merge" makes one group of them, or drops them where it is still too small; with "drop"
        their rows train the models and count in no gap, as do rows whose group is missing; "raise" refuses them.
    bins : dict, optional
        Edges of numeric sensitive columns by name or position, such as ``{"age": [40, 62]}``: 40 to 61 is a group.
    favorable_label : label, optional
        The class that rates, recalls and floors refer to; by default ``classes_[1]``.
    confidence : float or None, default=0.95
        The chance, over the rows of `fit`, that the gap on new rows of the same distribution is within the tolerance
        where `certificate_` says so. A frozen full classifier is tested exactly: a third of the rows chooses the
        candidates and the others, which must not be its training rows, test them. Otherwise the certificate is
        approximate: the rows that choose also test, at a fifth of the level, and the models are fitted again on all
        rows. None takes the highest score among the points with ``gap <= tolerance`` out of fold, without a
        certificate: on new rows the gap is often larger.
    uncertified : {"warn", "raise"}, default="warn"
        Where no candidate is certified: warn, or raise an error. With a warning the full classifier is left as it is
        where its gap may be chance: equal groups of these sizes differ as much in 5 % of samples or more
        (`Certificate.noise_floor.p_value`). That holds also where a candidate is certified at a loss of accuracy of
        more than its standard error; with "raise" that candidate is taken. Otherwise the useful candidate is taken
        whose gap is most likely within the tolerance.
    scoring : str or callable, default="accuracy"
        What to maximise: any scorer of scikit-learn, or a function of (estimator, X, y), which is slower. A scorer of
        probabilities ("roc_auc", "neg_log_loss") chooses the strength only and leaves the threshold at 0.5.
    costs : dict, optional
        ``{"fp": 1, "fn": 5}``: minimise the mean cost of errors between two classes, in place of `scoring`.
    min_lead : float, default=0.7
        A useful point keeps this share of the full classifier's lead over the best constant decision, in the score and
        in balanced accuracy. 0 admits constant decisions.
    min_rate_ratio : float, default=0.9
        A useful point predicts each class at least this many times as often as the full classifier does. A gap is
        closed most cheaply by selecting fewer rows of every group; this forbids it. 0 admits any rates. It is set aside
        by `costs`, another `scoring` than accuracy, and the floors below.
    min_selection_rate, max_selection_rate : float, optional
        Bounds on the share of rows that are predicted to be the favourable one of two classes.
    min_recall : float, optional
        The least recall of the favourable one of two classes, or of each of more.
    levelling : {None, "up"}, default=None
        "up": the recall of the favourable class may fall in no group.
    group_offsets : bool, default=True
        Fit offsets for what the principal knows of the group. False searches the paper's formula alone.
    strengths : sequence of float, optional
        Strengths of the formula to try; 0 to 1 in steps of 0.02 and on to 2 in steps of 0.1 by default.
    cv : int or splitter, default=5
        Folds, stratified by group and label where it is a number.
    n_jobs : int, optional
        Number of folds fitted in parallel, by joblib.
    random_state : int, default=0
        Seed of the folds and of the rows of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : OrthogonalClassifier
        The full and the principal classifier, fitted on all rows.
    groups_ : Groupings
        The groups that were compared: ``groups_.names``, and ``groups_.notes()`` on small and missing ones.
    strength_ : float
        Of the formula, or of the fitted offsets; 0 is the full classifier.
    group_offsets_ : ndarray of shape (M, C) or None
        The offsets for the features of a row's group, times the strength; None for the paper's formula.
    threshold_ : float
        Two classes: the second is predicted where its probability is at least this. Assigning it moves it.
    offsets_ : ndarray of shape (C,)
        Added to the log-probabilities before the largest is taken.
    certificate_ : Certificate or None
        Tolerance, confidence, the bound on the gap, and the rows behind it; ``certificate_.certified`` is the result.
    choice_ : {"certified", "left alone", "not certified", "searched"}
        Why this point: "left alone" is the full classifier as it is.
    warnings_ : list of str
        What a user should know before using the model: a near constant decision, groups levelled down, no certificate.
    frontier_ : Frontier
        The trade-off between score and gap; ``frontier_.plot()`` draws it, and `at` chooses another point.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 20000)
    >>> sex = np.where(rng.random(20000) < 0.2 + 0.6 * y, "m", "f")
    >>> X = np.column_stack([y + rng.normal(size=20000), sex == "m"])
    >>> model = TunedOrthogonalClassifier(LogisticRegression(), tolerance=0.15).fit(X, y, sensitive_features=sex)
    >>> model.choice_, model.certificate_.certified, model.certificate_.bound <= 0.15
    ('certified', True, True)
    >>> freer = model.at(tolerance=0.3)
    >>> freer.score(X, y, sensitive_features=sex) >= model.score(X, y, sensitive_features=sex)
    True
    """

    classes_: NDArray[Any]
    groups_: Groupings
    model_: OrthogonalClassifier
    frontier_: Frontier
    offsets_: NDArray[Any]
    choice_: str
    strength_: float
    threshold_: float
    about_: dict[str, Any]
    group_offsets_: NDArray[Any] | None
    warnings_: list[str]

    def __init__(
        self,
        full: Any,
        principal: Any = None,
        *,
        constraint: Constraint = "equalized_odds",
        agg: Agg = "max",
        tolerance: float = 0.05,
        constraint_over: ConstraintOver = "crossed",
        min_group_size: int | None = None,
        small_groups: SmallGroups = "merge",
        bins: Mapping[str | int, Sequence[float]] | None = None,
        favorable_label: Any = None,
        confidence: float | None = 0.95,
        uncertified: Literal["warn", "raise"] = "warn",
        scoring: Any = "accuracy",
        costs: dict[str, float] | None = None,
        min_lead: float = 0.7,
        min_rate_ratio: float = 0.9,
        min_selection_rate: float | None = None,
        max_selection_rate: float | None = None,
        min_recall: float | None = None,
        levelling: Literal["up"] | None = None,
        group_offsets: bool = True,
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
        self.constraint_over = constraint_over
        self.min_group_size = min_group_size
        self.small_groups = small_groups
        self.bins = bins
        self.favorable_label = favorable_label
        self.confidence = confidence
        self.uncertified = uncertified
        self.scoring = scoring
        self.costs = costs
        self.min_lead = min_lead
        self.min_rate_ratio = min_rate_ratio
        self.min_selection_rate = min_selection_rate
        self.max_selection_rate = max_selection_rate
        self.min_recall = min_recall
        self.levelling = levelling
        self.group_offsets = group_offsets
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
        task = self._task(X, y, sensitive_features, sample_weight)
        if task.promises:
            self._check_rows(task.cells, task.y_codes, task.weights)
        folds = stratified_folds(self.cv, task.X, task.y, (task.cells, task.y_codes), self.random_state)
        rows = np.concatenate([test for _, test in folds])
        check_folds(folds, task.y, self.classes_)
        needed = needed_labels(self.constraint, len(self.classes_), self._pos)
        self.groups_.check(task.cells[rows], task.y_codes[rows], self.classes_, task.weights[rows], needed)
        parts = out_of_fold_parts(self.model_, task.X, task.y, task.groups, task.sample_weight, folds, self.n_jobs)
        fresh = self._is_frozen
        problem = self._problem(task.y_codes[rows], task.cells[rows], task.weights[rows], task.promises, fresh)
        # fresh rows for an exact certificate, where the models are not fitted again
        searched = self._searched(problem) if task.promises and fresh else np.ones(len(rows), dtype=bool)
        with tracked("try strengths, offsets and thresholds"):
            self.frontier_ = self._proposed(problem.take(searched), taken(parts, searched), task.strengths, fresh)
        if task.promises:
            with tracked("test the candidates"):
                tested = ~searched if fresh else searched
                points = self._points()
                counted = count_points(self.frontier_, points, problem.take(tested), self._at(taken(parts, tested)))
            self.frontier_ = replace(self.frontier_, candidates=self._candidates(points, *counted, fresh=fresh))
        with tracked("fit on all rows"):
            self.model_.fit(task.X, task.y, sensitive_features=task.groups, sample_weight=task.sample_weight)
        self.classes_ = self.model_.classes_
        return self._choose()

    def _task(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Task:
        """Check settings and rows, learn the groups, and set up the model that is fitted."""
        strengths = self._check_settings()
        X, y, groups, sample_weight = self._check_fit(X, y, sensitive_features, sample_weight)
        self._check_two_classes()
        if isinstance(self.full, FrozenEstimator):
            check_is_fitted(self.full)
            check_classes("full", self.full.classes_, self.classes_, other="y")
        if groups is None:
            raise UserError(
                f"the constraint {self.constraint!r} compares groups",
                do="pass sensitive_features= to fit, or set sensitive_columns=, which reads them from X.",
            )
        y_codes = np.searchsorted(self.classes_, y).astype(np.intp)
        known = self.groups_ = Groupings(
            self.constraint_over, least=self.min_group_size, small=self.small_groups, bins=self.bins
        )
        needed = needed_labels(self.constraint, len(self.classes_), self._pos)
        cells = known.learn(groups, y_codes, needed=needed, weights=sample_weight)
        for note in known.notes():
            warnings.warn(f"{note}.", UserWarning, stacklevel=3)
        if not known.compares:
            warnings.warn(
                f"all rows are in one group, {known.names[0]!r}: there is no gap to bound, only the score counts. "
                "Check sensitive_features.",
                UserWarning,
                stacklevel=3,
            )
        self.model_ = OrthogonalClassifier(
            self.full,
            self.principal,
            prior=self.prior,
            calibration=self.calibration,
            sensitive_columns=self.sensitive_columns,
            principal_columns=self.principal_columns,
            on_violation=self.on_violation,
            groupings=known if known.regroups else None,
        )
        return Task(
            X,
            y,
            None if self.sensitive_columns is not None else groups,
            sample_weight,
            np.ones(len(y)) if sample_weight is None else sample_weight,
            y_codes,
            cells,
            strengths,
            self.confidence is not None and known.compares,
        )

    def _problem(self, y_codes: Any, cells: Any, weights: Any, promises: bool, fresh: bool) -> Problem:
        scoring = scorer_of(self.scoring, self.classes_) if self.costs is None else Costs(**self.costs)
        known = self.groups_
        return Problem(
            y_codes,
            cells,
            self.classes_,
            known.n_cells,
            weights,
            known.gap(gap_of(self.constraint, self.agg, self._pos)),
            scoring,
            upper=known.gap(partial(upper_gaps, **self._compared, **self._tested(fresh))) if promises else None,
        )

    def at(
        self, *, tolerance: float | None = None, index: int | None = None, threshold: float | None = None
    ) -> TunedOrthogonalClassifier:
        """The same fitted model at another point; nothing is fitted again.

        Parameters
        ----------
        tolerance : float, optional
            The point that a fit with this tolerance on the same rows would choose.
        index : int, optional
            That point of ``frontier_``, without a certificate; its gap becomes the copy's `tolerance`.
        threshold : float, optional
            The chosen point with another threshold on the probability of ``classes_[1]``, without a certificate.

        Returns
        -------
        TunedOrthogonalClassifier
            A copy that shares the fitted parts; this one stays as it is.
        """
        check_is_fitted(self)
        given = [
            name
            for name, value in (("tolerance=", tolerance), ("index=", index), ("threshold=", threshold))
            if value is not None
        ]
        if len(given) != 1:
            raise UserError(
                "at() got " + (" and ".join(given) or "nothing"), expected="one of tolerance=, index= and threshold="
            )
        other = copy.copy(self)
        other.model_ = copy.copy(self.model_)
        if threshold is not None:
            other.threshold_ = threshold
            return other
        if index is not None:
            other.tolerance = float(self.frontier_.gap[self.frontier_.at(index).chosen])
            return other._take(index, "searched")
        check_tolerance(tolerance)
        other.tolerance = cast(float, tolerance)
        return other._choose()

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """The corrected probabilities; `predict` applies the threshold to them.

        They are the paper's formula: of the principal classifier at the chosen strength, or of the one that the fitted
        group offsets stand for.
        """
        check_is_fitted(self)
        # a model of version 0.1.0 has none
        offsets = getattr(self, "group_offsets_", None)
        if offsets is None:
            return self.model_.predict_proba(X, sensitive_features=sensitive_features)
        full, _, features = self.model_._parts(X, sensitive_features, features=True)
        log_proba = floored_log(full) - features @ offsets
        log_proba -= log_proba.max(axis=1, keepdims=True)
        proba: Proba = np.exp(log_proba)
        proba /= proba.sum(axis=1, keepdims=True)
        return proba

    def predict_log_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """The log of `predict_proba`."""
        with np.errstate(divide="ignore"):
            log_proba: Proba = np.log(self.predict_proba(X, sensitive_features=sensitive_features))
        return log_proba

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """The class at the chosen strength and threshold."""
        log_proba = self.predict_log_proba(X, sensitive_features=sensitive_features)
        labels: NDArray[Any] = self.classes_[decide(log_proba, self.offsets_)]
        return labels

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "threshold_":
            if len(self.classes_) != 2:
                raise AttributeError(f"a threshold is for 2 classes, here are {len(self.classes_)}: see offsets_.")
            if not 0 < value < 1:
                raise UserError(f"threshold is {value!r}", expected="a probability between 0 and 1")
            self.offsets_ = np.array([0.0, np.log1p(-value) - np.log(value)])
            # another decision than the one that was tested
            self.certificate_: Certificate | None = None
            self.choice_ = "searched"
        super().__setattr__(name, value)

    def _check_settings(self) -> NDArray[np.float64]:
        """Raise for a setting out of its range; return the strengths."""
        check_tolerance(self.tolerance)
        strengths = np.atleast_1d(np.asarray(STRENGTHS if self.strengths is None else self.strengths, dtype=np.float64))
        if strengths.ndim != 1 or len(strengths) == 0 or not ((strengths >= 0) & np.isfinite(strengths)).all():
            raise UserError(f"strengths is {self.strengths!r}", expected="finite numbers >= 0")
        if self.confidence is not None and not 0.5 <= self.confidence < 1:
            raise UserError(f"confidence is {self.confidence!r}", expected="a number from 0.5 to below 1, or None")
        if self.uncertified not in ("warn", "raise"):
            raise UserError(f"uncertified is {self.uncertified!r}", expected="'warn' or 'raise'")
        if self.levelling not in (None, "up"):
            raise UserError(f"levelling is {self.levelling!r}", expected="None or 'up'")
        shares = ("min_lead", "min_rate_ratio", "min_selection_rate", "max_selection_rate", "min_recall")
        for name in shares:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise UserError(f"{name} is {value!r}", expected="a share from 0 to 1")
        if self.costs is not None and (
            {*self.costs} != {"fp", "fn"} or not all(0 < cost < np.inf for cost in self.costs.values())
        ):
            raise UserError(f"costs is {self.costs!r}", expected='two positive numbers, such as {"fp": 1, "fn": 5}')
        return strengths

    @property
    def _pos(self) -> int | None:
        """The code of the favourable label, where it is given."""
        # models of earlier versions lack it
        if getattr(self, "favorable_label", None) is None:
            return None
        found = np.flatnonzero(self.classes_ == self.favorable_label)
        if len(found) == 0:
            raise UserError(
                f"favorable_label is {self.favorable_label!r}, y holds {self.classes_.tolist()}",
                do="name one of these.",
            )
        return int(found[0])

    @property
    def _selected(self) -> int:
        """The code of the class that rates, recalls and floors refer to."""
        return 1 if self._pos is None else self._pos

    def _check_two_classes(self) -> None:
        """Raise where a setting is for two classes, and there are more."""
        names = ("costs", "min_selection_rate", "max_selection_rate", "levelling")
        given = [name for name in names if getattr(self, name) is not None]
        if len(self.classes_) > 2 and given:
            raise UserError(f"{given[0]} is for two classes, y has {len(self.classes_)}", do="leave it away.")

    def _check_rows(self, cells: Any, y_codes: Any, weights: Any) -> None:
        """Warn or raise before any fit where these rows could not certify the tolerance even for equal groups."""
        by_cell = np.zeros((self.groups_.n_cells, len(self.classes_), 1))
        np.add.at(by_cell[..., 0], (cells, y_codes), weights > 0)
        for title, names, counts in self.groups_.each(by_cell):
            self._check_counts(counts[..., 0], names, f" for {title}" if len(self.groups_.titles) > 1 else "")

    def _check_counts(self, counts: Any, names: list[str], where: str) -> None:
        # the rates of a good classifier, and equal groups: the smallest gap that can be hoped for
        rough = np.where(np.eye(len(self.classes_), dtype=bool), 0.9, 0.1 / (len(self.classes_) - 1))
        share = 1 - SEARCH_SHARE if self._is_frozen else 1.0
        fresh = np.round(share * counts[:, :, None] * rough)
        settings: dict[str, Any] = {**self._compared, "confidence": self.confidence}
        smallest = smallest_tolerance(fresh, **settings)
        if smallest <= self.tolerance:
            return
        more = ""
        if self.tolerance >= 0.001:
            needed = rows_needed(fresh, self.tolerance, **settings) / share
            group = int(needed.argmax())
            more = f"about {needed[group]:,.0f} more rows of group {names[group]!r} would be needed: "
        caution = self._caution(
            "few rows", confidence=self.confidence, where=where, smallest=smallest, tolerance=self.tolerance, more=more
        )
        if self.uncertified == "raise":
            raise NotCertified(caution)
        warnings.warn(caution, stacklevel=4)

    def _caution(self, kind: str, **values: Any) -> Caution:
        return Caution(kind, gap=self.constraint.replace("_", " "), **values)

    @property
    def _compared(self) -> dict[str, Any]:
        """What is compared, as the functions of `core.certificate` take it."""
        return {"constraint": self.constraint, "agg": self.agg, "pos": self._pos}

    def _tested(self, fresh: bool) -> dict[str, Any]:
        """The level of the tests of the candidates, and how many times as many rows test as search."""
        alpha = 1 - cast(float, self.confidence)
        if fresh:
            return {"level": alpha / len(STARTS), "times": 1 / SEARCH_SHARE - 1}
        return {"level": alpha / OPTIMISM, "times": 1.0}

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.full, FrozenEstimator)

    def _searched(self, problem: Problem) -> NDArray[np.bool_]:
        """The rows that choose the candidates: the same share of each group and label."""
        shuffled = np.random.default_rng([self.random_state, 1]).permutation(len(problem.y_codes))
        by_cell = shuffled[np.lexsort([problem.y_codes[shuffled], problem.group_codes[shuffled]])]
        searched = np.empty(len(by_cell), dtype=bool)
        searched[by_cell] = np.arange(len(by_cell)) % round(1 / SEARCH_SHARE) == 0
        return searched

    def _proposed(
        self, problem: Problem, parts: list[Parts], strengths: NDArray[np.float64], fresh: bool, *, thin: bool = True
    ) -> Frontier:
        tested = None if problem.upper is None else self._tested(fresh)
        margin = 0.0 if tested is None else -float(ndtri(tested["level"])) / np.sqrt(tested["times"])
        return proposed(self, problem, parts, strengths, margin, thin=thin)

    def _at(self, parts: list[Parts]) -> Callable[[float, int], Proba]:
        """The log-probabilities of rows at a strength and a direction of the frontier."""
        return lambda strength, direction: log_proba_at(
            parts, strength, direction, self.frontier_.directions, self.on_violation
        )

    def _points(self) -> list[int]:
        """The points of the frontier that are worth a test."""
        frontier = self.frontier_
        base, points = frontier.untouched, list(dict.fromkeys(frontier.ladder()))
        upper = cast(Proba, frontier.upper)
        if self._may_leave_alone:
            # nothing is gained by a larger gap than the full classifier's own
            points = [i for i in points if i != base and upper[i] <= upper[base]] + [base]
        return points

    def _candidates(self, points: list[int], tables: Proba, squares: Proba | None, *, fresh: bool) -> Candidates:
        """Points of the frontier with the counts of the rows that test them."""
        upper = cast(Proba, self.frontier_.upper)[points]
        members = self.groups_.members_each
        return Candidates(np.array(points, dtype=np.intp), upper, tables, squares, fresh, members)

    @property
    def _may_leave_alone(self) -> bool:
        """Another score than accuracy asks for another threshold than the full classifier's own."""
        return self.costs is None and self.scoring == "accuracy"

    def _choose(self) -> TunedOrthogonalClassifier:
        """Take the best point for the tolerance and the confidence."""
        candidates = self.frontier_.candidates
        if candidates is None or self.confidence is None:
            return self._take(self.frontier_.best(self.tolerance), "searched")
        settings = (self.tolerance, self.confidence, self.constraint, self.agg, self._pos)
        found = candidates.certified(*settings)
        base = len(candidates.points) - 1 if self._may_leave_alone else None
        certificate = None if base is None else candidates.certificate(base, *settings, certified=False)
        within_noise = base is not None and candidates.may_be_chance(base, *settings[2:])
        if found is not None and (found == base or not within_noise or not self._is_worse(found, candidates)):
            choice = "left alone" if found == base else "certified"
            certified = candidates.certificate(found, *settings, certified=True)
            return self._take(int(candidates.points[found]), choice, certified)
        choice, point = "left alone", base
        if certificate is None or not within_noise:
            choice, point = "not certified", self._likeliest(candidates)
            certificate = candidates.certificate(point, *settings, certified=False)
        caution = self._caution(
            "within noise" if choice == "left alone" else "not certified",
            tolerance=self.tolerance,
            measured=certificate.gap,
            bound=certificate.bound,
            percent=100 * certificate.noise_floor.p_value,
        )
        if self.uncertified == "raise":
            raise NotCertified(caution)
        return self._take(int(candidates.points[point]), choice, certificate, caution)

    def _is_worse(self, candidate: int, candidates: Candidates) -> bool:
        """Whether a candidate costs more accuracy than its standard error, and an uncertified model may be kept."""
        score, base = (self.frontier_.score[candidates.points[i]] for i in (candidate, -1))
        return self.uncertified == "warn" and bool(
            base - score > np.sqrt(base * (1 - base) / candidates.tables[-1].sum())
        )

    def _likeliest(self, candidates: Candidates) -> int:
        """The candidate whose gap is most likely within the tolerance, or a better one that is about as likely."""
        settings = (self.constraint, self.agg, self._pos)
        chances = np.array(
            [candidates.p_value(i, self.tolerance, *settings, exact=False) for i in range(len(candidates.gaps))]
        )
        gap = self.groups_.gap(gap_of(*settings))(candidates.tables)
        likely = np.flatnonzero(chances <= 2 * chances.min()) if chances.min() < 0.5 else [gap.argmin()]
        return int(max(likely, key=lambda i: self.frontier_.score[candidates.points[i]]))

    def _take(
        self, index: int, choice: str, certificate: Certificate | None = None, caution: Caution | None = None
    ) -> TunedOrthogonalClassifier:
        self.frontier_ = self.frontier_.at(index)
        frontier, point = self.frontier_, self.frontier_.chosen
        self.strength_ = float(frontier.strength[point])
        direction = -1 if frontier.direction is None else int(frontier.direction[point])
        fitted = None if direction < 0 or frontier.directions is None else frontier.directions[direction]
        self.group_offsets_ = None if fitted is None else self.strength_ * fitted
        self.model_.strength = self.strength_ if direction < 0 else 0.0
        self.offsets_ = frontier.offsets[point]
        if len(self.classes_) == 2:
            # as it stands in the frontier: assigned, it would move the offsets
            self.__dict__["threshold_"] = float(frontier.threshold[point])
        self.choice_, self.certificate_ = choice, certificate
        cautions = [*([] if caution is None else [caution]), *self._cautions()]
        self.warnings_ = [str(one) for one in cautions]
        for one in cautions:
            warnings.warn(one, stacklevel=4)
        return self

    def _cautions(self) -> list[Caution]:
        """What a user should know of the chosen point before using it."""
        frontier, point, found = self.frontier_, self.frontier_.chosen, []
        gap = float(frontier.gap[point])
        if self.choice_ == "searched" and gap > self.tolerance:
            found.append(self._caution("gap too large", tolerance=self.tolerance, measured=gap))
        if frontier.useful is not None and not frontier.useful[point]:
            found.append(Caution("floors"))
        if frontier.tables is None:
            return found
        before, after = (self.groups_.table(frontier.tables[i]) for i in (frontier.untouched, point))
        found += group_cautions(before, after, self.classes_.tolist(), self._selected)
        highest = max(STRENGTHS if self.strengths is None else np.atleast_1d(self.strengths))
        if self.group_offsets_ is None and self.strength_ == highest > 0:
            found.append(Caution("largest strength", strength=highest))
        return found

    def __sklearn_tags__(self) -> Any:
        return tags_like(self, super().__sklearn_tags__(), self.full)
