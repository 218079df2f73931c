"""The search behind a tuned classifier: the scores, gaps and floors of many decisions on out-of-fold probabilities.

Decisions are counted for many thresholds or offsets at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

from setminus.core.gaps import count_table, rates
from setminus.estimators.frontier import MIN_LOG, Frontier, Gap, decide, decide_columns
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin

__all__ = ["Costs", "Floors", "Problem", "count_points", "count_thresholds", "scorer_of", "search"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

ROUNDING = 1e-9
"""A floor is kept up to this."""

THRESHOLDS = 1000
"""Number of quantiles of the score that are tried as thresholds."""

ASKED = 100
"""The same where each one needs a call of a scorer."""

STEPS = np.array([-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0])
"""Steps of one offset in nats, for more than two classes; in rising order."""

CLIMBS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, np.inf)
"""Bounds on the gap for the searches with more than two classes; every second one where each point needs a call of a
scorer. They do not depend on the tolerance, so that `TunedOrthogonalClassifier.at` gives the same point as a fit."""


def _accuracy(confusion: Floats) -> Floats:
    accuracy: Floats = np.trace(confusion, axis1=-2, axis2=-1) / confusion.sum(axis=(-2, -1))
    return accuracy


def _balanced_accuracy(confusion: Floats) -> Floats:
    recall = np.diagonal(confusion, axis1=-2, axis2=-1) / confusion.sum(axis=-1)
    balanced: Floats = recall.mean(axis=-1)
    return balanced


@dataclass(frozen=True)
class Costs:
    """The negative mean cost of a decision between two classes, for confusion tables.

    Examples
    --------
    >>> float(Costs(fp=1, fn=5)(np.array([[6.0, 2.0], [1.0, 1.0]])))
    -0.7
    """

    fp: float
    fn: float

    def __call__(self, confusion: Floats) -> Floats:
        """The score of each table (..., labels, predictions)."""
        cost = self.fp * confusion[..., 0, 1] + self.fn * confusion[..., 1, 0]
        score: Floats = -cost / confusion.sum(axis=(-2, -1))
        return score


COUNTED: dict[Any, Callable[[Floats], Floats]] = {"accuracy": _accuracy, "balanced_accuracy": _balanced_accuracy}
"""Scores of many confusion tables at once, by scikit-learn's name."""


@dataclass(frozen=True)
class ClassScore:
    """F1, precision or recall of one class, or their mean over all, for confusion tables.

    ``hits / (true * rows of the class + false * predictions of the class)``, 0 where that is not defined.

    Examples
    --------
    >>> float(ClassScore(true=0.5, false=0.5, at=1)(np.array([[6.0, 2.0], [1.0, 1.0]])))
    0.4
    """

    true: float
    false: float
    at: int | None = None

    def __call__(self, confusion: Floats) -> Floats:
        """The score of each table (..., labels, predictions)."""
        hits = np.diagonal(confusion, axis1=-2, axis2=-1)
        below = self.true * confusion.sum(axis=-1) + self.false * confusion.sum(axis=-2)
        each: Floats = np.divide(hits, below, out=np.zeros_like(below), where=below > 0)
        return each.mean(axis=-1) if self.at is None else each[..., self.at]


PER_CLASS = {"f1": (0.5, 0.5), "precision": (0.0, 1.0), "recall": (1.0, 0.0)}
"""Weights of `ClassScore` by scikit-learn's name."""


def scorer_of(scoring: Any, classes: NDArray[Any]) -> Any:
    """A score that `Problem` takes: counted where it can be, since a call for each decision takes minutes."""
    name = scoring.removesuffix("_macro") if isinstance(scoring, str) else ""
    if name in PER_CLASS and scoring == f"{name}_macro":
        return ClassScore(*PER_CLASS[name])
    # scikit-learn's names without an average are those of the class 1 of two
    if name in PER_CLASS and scoring == name and len(classes) == 2 and (classes == 1).any():
        return ClassScore(*PER_CLASS[name], at=int(np.flatnonzero(classes == 1)[0]))
    return scoring if isinstance(scoring, str) and scoring in COUNTED else get_scorer(scoring)


@dataclass(frozen=True)
class Floors:
    """What a decision must reach to be useful; with two classes, one of them is selected.

    Attributes
    ----------
    score : float
        The least score.
    balanced_accuracy : float
        The least mean recall of the classes: a constant decision has ``1 / C``.
    predicted : ndarray of shape (C,), optional
        The least share of the rows that each class is predicted for.
    recall : float
        The least recall of the selected one of two classes, or of each of more.
    group_recall : ndarray of shape (G,), optional
        The least recall of the selected class in each group.
    selected : int
        The class that is selected.
    """

    score: float = -np.inf
    balanced_accuracy: float = 0.0
    predicted: Floats | None = None
    recall: float = 0.0
    group_recall: Floats | None = None
    selected: int = 1

    def kept(self, tables: Floats, score: Floats) -> NDArray[np.bool_]:
        """Whether each table (P, groups, labels, predictions) keeps them, up to rounding."""
        confusion = tables.sum(axis=-3)
        recall = np.diagonal(rates(confusion), axis1=-2, axis2=-1)
        judged = recall[..., [self.selected]] if recall.shape[-1] == 2 else recall
        # a class without rows has no recall, and breaks no floor
        fine = (score >= self.score - ROUNDING) & ~(recall.mean(axis=-1) < self.balanced_accuracy - ROUNDING)
        if self.predicted is not None:
            shares = confusion.sum(axis=-2) / confusion.sum(axis=(-2, -1))[..., None]
            fine &= (shares >= self.predicted - ROUNDING).all(axis=-1)
        fine &= (~(judged < self.recall - ROUNDING)).all(axis=-1)
        if self.group_recall is not None:
            by_group = rates(tables)[..., self.selected, self.selected]
            fine &= (~(by_group < self.group_recall - ROUNDING)).all(axis=-1)
        kept: NDArray[np.bool_] = fine
        return kept

    def linear(self, totals: Floats) -> list[tuple[Floats, float]]:
        """The floors, apart from that of the score, as coefficients of the rates (groups, labels, predictions)."""
        n_groups, n_classes = totals.shape
        diagonal = np.eye(n_classes)
        of_label = (totals / np.maximum(totals.sum(axis=0), 1e-300))[:, :, None]
        found = [(of_label * diagonal / n_classes, self.balanced_accuracy)]
        for k, share in enumerate([] if self.predicted is None else self.predicted.tolist()):
            found.append(((totals / totals.sum())[:, :, None] * (np.arange(n_classes) == k), share))
        for k in [self.selected] if n_classes == 2 else range(n_classes):
            found.append((of_label * diagonal * (np.arange(n_classes) == k), self.recall))
        for group, recall in enumerate([] if self.group_recall is None else self.group_recall.tolist()):
            only = np.zeros((n_groups, n_classes, n_classes))
            only[group, self.selected, self.selected] = 1
            found.append((only, recall))
        return found


@dataclass(frozen=True)
class Problem:
    """The input of the search: label, group and weight of each row, the gap and its upper end, the score, the floors.

    `scoring` comes from `scorer_of`, or is `Costs`. A scorer of labels is called on the cells of the confusion
    table, one of probabilities once for each strength, any other one (or one without `sample_weight`) on all rows,
    unweighted.
    """

    y_codes: Codes
    group_codes: Codes
    classes: NDArray[Any]
    n_groups: int
    weights: Floats
    gap: Gap
    scoring: Any = "accuracy"
    floors: Floors = field(default_factory=Floors)
    upper: Gap | None = None

    @property
    def counted(self) -> Callable[[Floats], Floats] | None:
        """The score as a function of confusion tables, where it is one."""
        return self.scoring if isinstance(self.scoring, Costs | ClassScore) else COUNTED.get(self.scoring)

    @property
    def takes_weights(self) -> bool:
        """Whether the score heeds the weights of the rows."""
        return self.counted is not None or _takes_weights(self.scoring)

    def take(self, rows: NDArray[np.bool_]) -> Problem:
        """The same for some of the rows."""
        parts = {name: getattr(self, name)[rows] for name in ("y_codes", "group_codes", "weights")}
        return replace(self, **parts)

    def sample(self, most: int, seed: int) -> tuple[NDArray[np.bool_], Problem]:
        """About `most` rows, and the same for them: small cells of group and label are kept whole.

        The rows of the other cells have larger weights, so that every rate and share is estimated without bias.
        """
        if len(self.y_codes) <= most:
            return np.ones(len(self.y_codes), dtype=bool), self
        cells = self.group_codes * len(self.classes) + self.y_codes
        sizes = np.bincount(cells)
        rising = np.sort(sizes[sizes > 0])
        # each cell may have as many rows; those that have fewer leave the others more
        room = (most - np.concatenate([[0], np.cumsum(rising)[:-1]])) / np.arange(len(rising), 0, -1)
        limit = int(room[int(np.argmax(rising >= room))])
        shuffled = np.random.default_rng(seed).permutation(len(cells))
        by_cell = shuffled[np.argsort(cells[shuffled], kind="stable")]
        place = np.arange(len(cells)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept = np.zeros(len(cells), dtype=bool)
        kept[by_cell[place < limit]] = True
        larger = np.maximum(sizes / max(limit, 1), 1)[cells[kept]]
        taken = self.take(kept)
        return kept, replace(taken, weights=taken.weights * larger)

    def table(self, predictions: Codes) -> Floats:
        """Weights by (group, label, prediction)."""
        size = len(self.classes)
        return count_table(self.group_codes, self.y_codes, predictions, (self.n_groups, size, size), self.weights)

    def score(self, tables: Floats, predictions: Callable[[int], Codes], log_proba: Floats) -> Floats:
        """The score of each table (P, groups, labels, predictions); predictions(i) are those behind table i."""
        confusion = tables.sum(axis=-3)
        if self.counted is not None:
            return self.counted(confusion)
        scorer, proba = self.scoring, np.exp(log_proba)
        response = getattr(scorer, "_response_method", "unknown")
        weighted = _takes_weights(scorer)
        if response == "predict" and weighted:
            # a metric of labels is a function of the confusion table
            labels, predicted = np.indices(confusion.shape[1:]).reshape(2, -1)
            return np.array([self._ask(scorer, labels, predicted, None, counts.ravel()) for counts in confusion])
        if response in ("predict", "unknown"):
            return np.array([self._ask(scorer, self.y_codes, predictions(i), proba) for i in range(len(tables))])
        # a metric of probabilities does not depend on the threshold
        weights = self.weights if weighted else None
        return np.full(len(tables), self._ask(scorer, self.y_codes, predictions(0), proba, weights))

    @property
    def sees_decisions(self) -> bool:
        """Whether the score depends on the offsets; a score of probabilities leaves them at 0."""
        return self.counted is not None or getattr(self.scoring, "_response_method", "predict") == "predict"

    def _ask(self, scorer: Any, y_codes: Codes, predictions: Codes, proba: Any, weights: Any = None) -> float:
        answer = _Answer(self.classes, self.classes[predictions], proba)
        rows = np.arange(len(y_codes))[:, None]
        keywords = {} if weights is None else {"sample_weight": weights}
        return float(scorer(answer, rows, self.classes[y_codes], **keywords))


def _takes_weights(scorer: Any) -> bool:
    """Whether the metric of a scorer takes `sample_weight`; a user's own metric often does not."""
    parameters = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


class _Answer(ClassifierMixin, BaseEstimator):
    """Given predictions as a fitted classifier, which is what a scorer takes."""

    def __init__(self, classes: Any, predictions: Any, proba: Any):
        self.classes, self.predictions, self.proba = classes, predictions, proba
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> _Answer:
        return self

    def predict(self, X: Any) -> Any:
        return self.predictions

    def predict_proba(self, X: Any) -> Any:
        return self.proba


def search(problem: Problem, strength: float, log_proba: Floats, direction: int = -1) -> Frontier:
    """The decisions tried at one strength, with their score and gap.

    Two classes: a threshold at each quantile of the score, counted in one pass. More classes: coordinate ascent of the
    offsets from 0, to the highest score within each bound of `CLIMBS`; fitted offsets are left as they are. Nothing
    depends on the tolerance.

    Parameters
    ----------
    problem : Problem
    strength : float
    log_proba : ndarray of shape (n, C)
        The out-of-fold log-probabilities of the classifier of that strength.
    direction : int, default=-1
        The index of the fitted offsets, -1 for the paper's formula.
    """
    log_proba = np.maximum(log_proba, MIN_LOG)
    if len(problem.classes) == 2:
        offsets, score, tables = _thresholds(problem, log_proba)
    else:
        offsets, score, tables = _climb(problem, log_proba) if direction < 0 else _as_it_is(problem, log_proba)
    size = len(score)
    return Frontier(
        np.full(size, float(strength)),
        offsets,
        score,
        problem.gap(tables),
        n_tried=size,
        direction=np.full(size, direction, dtype=np.intp),
        tables=tables,
        useful=problem.floors.kept(tables, score),
        upper=None if problem.upper is None else problem.upper(tables),
    )


def count_points(
    frontier: Frontier, points: Sequence[int], problem: Problem, log_proba: Callable[[float, int], Floats]
) -> tuple[Floats, Floats | None]:
    """The tables (P, groups, labels, predictions) of some points on the rows of a problem, and of squared weights.

    `log_proba` gives the log-probabilities of the rows at a strength and a direction, once for all points there.
    """
    size = len(problem.classes)
    shape = (problem.n_groups, size, size)
    tables, squares = np.zeros((2, len(points), *shape))
    weights = None if (problem.weights == 1).all() else problem.weights
    # a table is counted for each point: what is the same for all is computed once
    before = (problem.group_codes * size + problem.y_codes) * size
    for (strength, direction), here in frontier.take(np.asarray(points, np.intp)).tries().items():
        columns = np.ascontiguousarray(np.maximum(log_proba(strength, direction), MIN_LOG).T)
        for place in here.tolist():
            at = before + decide_columns(columns, frontier.offsets[points[place]])
            tables[place] = np.bincount(at, weights, tables[place].size).reshape(shape)
            if weights is not None:
                squares[place] = np.bincount(at, weights**2, tables[place].size).reshape(shape)
    return tables, None if weights is None else squares


def count_thresholds(frontier: Frontier, problem: Problem, log_proba: Callable[[float, int], Floats]) -> Floats:
    """The tables of all points, for two classes: by one sort of the rows at each strength and direction.

    A row that lies on a threshold, up to rounding, may be counted on either side of it.
    """
    tables = np.empty((len(frontier), problem.n_groups, 2, 2))
    for (strength, direction), here in frontier.tries().items():
        cuts = -frontier.offsets[here, 1]
        rising = np.argsort(cuts)
        tables[here[rising]] = _tables_above(problem, _odds(log_proba(strength, direction)), cuts[rising])
    return tables


Found = tuple[Floats, Floats, Floats]
"""Offsets, score and count table of each point."""


def _as_it_is(problem: Problem, log_proba: Floats) -> Found:
    """The one point with offsets 0."""
    predictions = decide(log_proba, np.zeros(log_proba.shape[1]))
    tables = problem.table(predictions)[None]
    score = problem.score(tables, lambda _: predictions, log_proba)
    return np.zeros((1, log_proba.shape[1])), score, tables


def _odds(log_proba: Floats) -> Floats:
    floored = np.maximum(log_proba, MIN_LOG)
    odds: Floats = floored[:, 1] - floored[:, 0]
    return odds


def _thresholds(problem: Problem, log_proba: Floats) -> Found:
    odds = _odds(log_proba)
    tries = THRESHOLDS if problem.counted is not None else ASKED
    ranked = np.sort(odds)
    at = np.unique(ranked[np.round(np.linspace(0, len(ranked) - 1, tries)).astype(np.intp)])
    # between two rows, never on one: rounding cannot change a decision
    cuts = np.unique(np.concatenate([[at[0] - 1], (at[:-1] + at[1:]) / 2, [at[-1] + 1], [0.0]]))
    cuts = cuts[np.isfinite(cuts)] if problem.sees_decisions else np.zeros(1)
    tables = _tables_above(problem, odds, cuts)
    offsets = np.column_stack([np.zeros(len(cuts)), -cuts])
    score = problem.score(tables, lambda i: (odds >= cuts[i]).astype(np.intp), log_proba)
    return offsets, score, tables


def _tables_above(problem: Problem, odds: Floats, cuts: Floats) -> Floats:
    """The tables of the decisions "odds >= cut", for rising cuts."""
    order = np.argsort(odds)
    # how many cuts a row lies above, in the order of the rows' odds
    ends = np.concatenate([[0], np.searchsorted(odds[order], cuts), [len(odds)]])
    above = np.repeat(np.arange(len(cuts) + 1), np.diff(ends))
    shape = (len(cuts) + 1, problem.n_groups, 2)
    cells = np.ravel_multi_index((above, problem.group_codes[order], problem.y_codes[order]), shape)
    counts = np.bincount(cells, problem.weights[order], minlength=int(np.prod(shape))).reshape(shape)
    positive = counts[::-1].cumsum(axis=0)[::-1][1:]  # rows above cut i are those above more than i cuts
    # summed, not subtracted: the rounding error of a difference would show as a gap
    tables: Floats = np.stack([counts.cumsum(axis=0)[:-1], positive], axis=-1)
    return tables


def _climb(problem: Problem, log_proba: Floats) -> Found:
    tried: dict[tuple[float, ...], tuple[float, float, bool, Floats]] = {}

    def look(points: list[tuple[float, ...]], tables: Floats) -> None:
        score = problem.score(tables, lambda i: decide(log_proba, np.array(points[i])), log_proba)
        # an undefined score, such as precision without a positive prediction, ranks last
        useful = problem.floors.kept(tables, score)
        score = np.where(np.isnan(score), -np.inf, score)
        found = zip(score.tolist(), problem.gap(tables).tolist(), useful.tolist(), tables, strict=True)
        tried.update(zip(points, found, strict=True))

    def climb(start: tuple[float, ...] | None, bound: float) -> None:
        def worth(point: tuple[float, ...]) -> tuple[float, bool, float]:
            # first within the bound, then useful, then the score
            score, gap, useful, _ = tried[point]
            return min(bound - gap, 0.0), useful, score

        here = max(tried, key=worth) if start is None else start
        for _ in range(10):
            before = here
            for k in range(1, len(here)):
                steps = [(*here[:k], round(here[k] + step, 6), *here[k + 1 :]) for step in STEPS.tolist()]
                new = [i for i, point in enumerate(steps) if point not in tried]
                if new:
                    tables = _tables_along(problem, log_proba, np.array(here), k, np.array(steps)[:, k])
                    look([steps[i] for i in new], tables[new])
                here = max([here, *steps], key=worth)
            if here == before:
                break

    zeros = (0.0,) * log_proba.shape[1]
    look([zeros], problem.table(decide(log_proba, np.array(zeros)))[None])
    climbs = CLIMBS if problem.counted is not None else CLIMBS[::2]
    for bound in climbs if problem.sees_decisions else ():
        # from 0, and from the best point so far
        climb(zeros, bound)
        climb(None, bound)
    score, _, _, tables = (np.array(values) for values in zip(*tried.values(), strict=True))
    return np.array(list(tried)), score, tables


def _tables_along(problem: Problem, log_proba: Floats, offsets: Floats, k: int, values: Floats) -> Floats:
    """The tables of `decide` with each of the rising `values` as the offset of class k, counted in one pass."""
    others = log_proba + offsets
    others[:, k] = -np.inf
    rival = others.shape[1] - 1 - np.argmax(others[:, ::-1], axis=1)
    level = np.take_along_axis(others, rival[:, None], axis=1)[:, 0]
    # the number of values at which the row stays with its rival; at a tie the later class wins
    short = np.zeros(len(level), dtype=np.intp)
    for value in values:
        own = log_proba[:, k] + value
        short += (own < level) | ((own == level) & (rival > k))
    size = len(problem.classes)
    shape = (problem.n_groups, size, size)
    cells = np.ravel_multi_index((short, problem.group_codes, problem.y_codes, rival), (len(values) + 1, *shape))
    counts = np.bincount(cells, problem.weights, minlength=(len(values) + 1) * int(np.prod(shape)))
    counts = counts.reshape(-1, *shape)
    tables = counts[::-1].cumsum(axis=0)[::-1][1:]  # at value i the rows with short > i stay with their rival
    tables[..., k] = counts.sum(axis=-1).cumsum(axis=0)[:-1]
    return tables
