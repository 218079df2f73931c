"""The search behind a tuned classifier: strengths and thresholds, their scores and gaps, and the best of them.

Decisions on out-of-fold probabilities are counted for many thresholds or offsets at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import index as whole
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from setminus.core import Agg, Constraint
from setminus.core.gaps import (
    count_table,
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
)
from setminus.errors import UserError

if TYPE_CHECKING:
    from setminus.charts.picture import Plot

__all__ = [
    "COUNTED",
    "MIN_LOG",
    "Frontier",
    "Gap",
    "Problem",
    "check_tolerance",
    "decide",
    "gap_of",
    "search",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Gap = Callable[[Floats], Floats]

MIN_LOG = float(np.log(np.finfo(np.float64).tiny))
"""Replaces the log of a probability of 0, so that an offset can still change the decision."""

THRESHOLDS = 1000
"""Number of quantiles of the score that are tried as thresholds."""

ASKED = 100
"""The same where each one needs a call of a scorer."""

STEPS = np.array([-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0])
"""Steps of one offset in nats, for more than two classes; in rising order."""

CLIMBS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, np.inf)
"""Bounds on the gap for the searches with more than two classes; every second one where each point needs a call of a
scorer. They do not depend on the tolerance, so that `TunedOrthogonalClassifier.at` gives the same point as a fit."""


def gap_of(constraint: Constraint, agg: Agg) -> Gap:
    """The gap to bound, as a function of count tables of shape (..., groups, labels, predictions)."""
    if agg not in get_args(Agg):
        raise UserError(f"agg is {agg!r}", expected="'max' (Fairlearn's way) or 'sum' (the paper's)")
    gaps: dict[str, Gap] = {
        "equalized_odds": lambda table: equalized_odds_from_table(table, agg),
        "demographic_parity": demographic_parity_from_table,
        "equal_opportunity": equal_opportunity_from_table,
    }
    if constraint not in gaps:
        raise UserError(f"constraint is {constraint!r}", expected=f"one of {', '.join(gaps)}")
    return gaps[constraint]


def check_tolerance(tolerance: Any) -> None:
    """Raise unless the tolerance is a finite number >= 0.

    Examples
    --------
    >>> check_tolerance(0.05)
    """
    number = isinstance(tolerance, int | float | np.integer | np.floating) and not isinstance(tolerance, bool)
    if not number or not 0 <= tolerance < np.inf:
        raise UserError(f"tolerance is {tolerance!r}", expected="a finite number >= 0, the gap to keep, such as 0.05")


@dataclass(frozen=True)
class Frontier:
    """The trade-off between score and gap on out-of-fold predictions, and the point that was chosen.

    It holds the points that no other point beats in both score and gap, and the point with offsets 0 of each strength.
    A point predicts ``argmax(log orthogonal(strength) + offsets)``. With two classes that is a threshold on the
    second one's probability.

    Attributes
    ----------
    strength : ndarray of shape (P,)
    offsets : ndarray of shape (P, C)
        Added to the log-probabilities; 0 for the first class.
    score : ndarray of shape (P,)
        What is maximised.
    gap : ndarray of shape (P,)
        What is bounded.
    chosen : int
        The point in use.
    score_name, gap_name : str
        For axes and messages.
    n_tried : int
        How many points were tried.
    """

    strength: Floats
    offsets: Floats
    score: Floats
    gap: Floats
    chosen: int = -1
    score_name: str = "score"
    gap_name: str = "gap"
    n_tried: int = 0

    def __len__(self) -> int:
        return len(self.strength)

    @property
    def threshold(self) -> Floats:
        """Probability of the second of two classes from which it is predicted, for each point."""
        if self.offsets.shape[1] != 2:
            raise AttributeError(f"a threshold is for 2 classes, here are {self.offsets.shape[1]}: see offsets.")
        offset = self.offsets[:, 1]
        threshold: Floats = 1 / (1 + np.exp(offset))
        # beyond these offsets all rows are decided alike, even those with probabilities of 0 and 1
        threshold[offset > -MIN_LOG] = 0
        threshold[offset < MIN_LOG] = np.nextafter(1, 2)
        return threshold

    def best(self, tolerance: float) -> int:
        """The point of the highest score among those with ``gap <= tolerance``.

        Ties go to the smaller gap, then to the smaller strength, then to the offsets nearest 0. Where no point
        keeps the tolerance, the one of the smallest gap is taken.
        """
        feasible = self.gap <= tolerance
        if not feasible.any():
            feasible = self.gap <= np.nanmin(self.gap)
        order = np.lexsort((*self._changes, self.gap, -self.score))
        return int(order[feasible[order]][0])

    def pareto(self) -> NDArray[np.intp]:
        """The points that no other beats in both score and gap, by rising gap: `best` takes no other.

        Examples
        --------
        >>> frontier = Frontier(np.zeros(3), np.zeros((3, 2)), np.array([0.8, 0.7, 0.9]), np.array([0.1, 0.2, 0.3]))
        >>> frontier.pareto().tolist()
        [0, 2]
        """
        order = np.lexsort((*self._changes, -self.score, self.gap))
        score = np.nan_to_num(self.score[order], nan=-np.inf)
        before = np.concatenate([[-np.inf], np.maximum.accumulate(score)[:-1]])
        return order[(score > before) & ~np.isnan(self.gap[order])].astype(np.intp)

    def thinned(self) -> Frontier:
        """Without dominated points, except those with offsets 0: they would fill most of a model file."""
        kept = np.union1d(self.pareto(), np.flatnonzero((self.offsets == 0).all(axis=1)))
        points = {name: getattr(self, name)[kept] for name in ("strength", "offsets", "score", "gap")}
        return replace(self, **points)

    @property
    def _changes(self) -> tuple[Floats, Floats]:
        """The order of points with equal score and gap, the last key first: the smallest change wins."""
        return np.abs(self.offsets).sum(axis=1), self.strength

    def at(self, index: int) -> Frontier:
        """The same points with another one chosen."""
        if not -len(self) <= whole(index) < len(self):
            raise UserError(f"index is {index}, the frontier has {len(self)} points", expected="one of them, from 0")
        return replace(self, chosen=whole(index) % len(self))

    def plot(self) -> Plot:
        """Score against gap: the best trades, each strength at offsets 0, and the chosen point.

        A notebook shows it; ``frontier.plot().save("frontier.png")`` writes a PNG or SVG file; needs the extra `cli`.
        """
        from setminus.charts.chart import Chart, Line, Points
        from setminus.charts.picture import plot

        best, untouched = self.pareto(), np.flatnonzero((self.offsets == 0).all(axis=1))
        gaps, scores = self.gap[best], self.score[best]
        # a strength at offsets 0 may be far from the best trades, and those are what the reader looks at
        low, high = float(scores.min()), float(scores.max())
        margin = max(0.1 * (high - low), 1e-3)
        score = self.score_name.replace("_", " ")
        chart = Chart(
            f"{score.capitalize()} against gap, out of fold",
            self.gap_name.replace("_", " "),
            score,
            [
                Points(self.gap[untouched].tolist(), self.score[untouched].tolist(), "offsets 0", role="reference"),
                Line(gaps.tolist(), scores.tolist(), "best trades"),
                Points([float(self.gap[self.chosen])], [float(self.score[self.chosen])], "chosen", role="chosen"),
            ],
            x_range=(0.0, 1.2 * max(float(gaps.max()), 0.01)),
            y_range=(low - margin, high + margin),
        )
        # the second sign: blue, which stands out from the chosen point
        return plot([chart], widths=[460], signs={"best trades": 1})


def _accuracy(confusion: Floats) -> Floats:
    accuracy: Floats = np.trace(confusion, axis1=-2, axis2=-1) / confusion.sum(axis=(-2, -1))
    return accuracy


def _balanced_accuracy(confusion: Floats) -> Floats:
    recall = np.diagonal(confusion, axis1=-2, axis2=-1) / confusion.sum(axis=-1)
    balanced: Floats = recall.mean(axis=-1)
    return balanced


COUNTED: dict[Any, Callable[[Floats], Floats]] = {"accuracy": _accuracy, "balanced_accuracy": _balanced_accuracy}
"""Scores of many confusion tables at once, by scikit-learn's name."""


@dataclass(frozen=True)
class Problem:
    """The input of the search: label, group and weight of each row, the gap and the score.

    `scoring` is a name in `COUNTED`, or a scorer. A scorer of labels is called on the cells of the confusion table, one
    of probabilities once for each strength, any other one (or one without `sample_weight`) on all rows, unweighted.
    """

    y_codes: Codes
    group_codes: Codes
    classes: NDArray[Any]
    n_groups: int
    weights: Floats
    gap: Gap
    scoring: Any = "accuracy"

    def table(self, predictions: Codes) -> Floats:
        """Weights by (group, label, prediction)."""
        size = len(self.classes)
        return count_table(self.group_codes, self.y_codes, predictions, (self.n_groups, size, size), self.weights)

    def score(self, tables: Floats, predictions: Callable[[int], Codes], log_proba: Floats) -> Floats:
        """The score of each table (P, groups, labels, predictions); predictions(i) are those behind table i."""
        confusion = tables.sum(axis=-3)
        if self.scoring in COUNTED:
            return COUNTED[self.scoring](confusion)
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
        return self.scoring in COUNTED or getattr(self.scoring, "_response_method", "predict") == "predict"

    def _ask(self, scorer: Any, y_codes: Codes, predictions: Codes, proba: Any, weights: Any = None) -> float:
        answer = _Answer(self.classes, self.classes[predictions], proba)
        rows = np.arange(len(y_codes))[:, None]
        keywords = {} if weights is None else {"sample_weight": weights}
        return float(scorer(answer, rows, self.classes[y_codes], **keywords))


def _takes_weights(scorer: Any) -> bool:
    """Whether the metric of a scorer takes `sample_weight`; a user's own metric often does not."""
    parameters = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


class _Answer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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


def decide(log_proba: Floats, offsets: Floats) -> Codes:
    """The class of each row: ``argmax(log_proba + offsets)``, the later class at a tie."""
    shifted = (np.maximum(log_proba, MIN_LOG) + offsets)[:, ::-1]
    last: Codes = shifted.shape[1] - 1 - np.argmax(shifted, axis=1)
    return last


def search(problem: Problem, strength: float, log_proba: Floats) -> Frontier:
    """The best decisions at one strength, with their score and gap.

    Two classes: a threshold at each quantile of the score, counted in one pass. More classes: coordinate ascent of the
    offsets from 0, to the highest score within each bound of `CLIMBS`. Neither depends on the tolerance.

    Parameters
    ----------
    problem : Problem
    strength : float
    log_proba : ndarray of shape (n, C)
        The out-of-fold log-probabilities of the orthogonal classifier of that strength.
    """
    binary = len(problem.classes) == 2
    offsets, score, gap = (_thresholds if binary else _climb)(problem, np.maximum(log_proba, MIN_LOG))
    return Frontier(np.full(len(score), float(strength)), offsets, score, gap, n_tried=len(score)).thinned()


def _thresholds(problem: Problem, log_proba: Floats) -> tuple[Floats, Floats, Floats]:
    odds = log_proba[:, 1] - log_proba[:, 0]
    tries = THRESHOLDS if problem.scoring in COUNTED else ASKED
    at = np.unique(np.quantile(odds, np.linspace(0, 1, tries), method="nearest"))
    # between two rows, never on one: rounding cannot change a decision
    cuts = np.unique(np.concatenate([[at[0] - 1], (at[:-1] + at[1:]) / 2, [at[-1] + 1], [0.0]]))
    cuts = cuts[np.isfinite(cuts)] if problem.sees_decisions else np.zeros(1)
    above = np.searchsorted(cuts, odds, side="right")  # how many cuts a row lies above
    shape = (len(cuts) + 1, problem.n_groups, 2)
    cells = np.ravel_multi_index((above, problem.group_codes, problem.y_codes), shape)
    counts = np.bincount(cells, problem.weights, minlength=int(np.prod(shape))).reshape(shape)
    positive = counts[::-1].cumsum(axis=0)[::-1][1:]  # rows above cut i are those above more than i cuts
    # summed, not subtracted: the rounding error of a difference would show as a gap
    tables = np.stack([counts.cumsum(axis=0)[:-1], positive], axis=-1)
    offsets = np.column_stack([np.zeros(len(cuts)), -cuts])
    score = problem.score(tables, lambda i: (odds >= cuts[i]).astype(np.intp), log_proba)
    return offsets, score, problem.gap(tables)


def _climb(problem: Problem, log_proba: Floats) -> tuple[Floats, Floats, Floats]:
    tried: dict[tuple[float, ...], tuple[float, float]] = {}

    def look(points: list[tuple[float, ...]], tables: Floats) -> None:
        score = problem.score(tables, lambda i: decide(log_proba, np.array(points[i])), log_proba)
        # an undefined score, such as precision without a positive prediction, ranks last
        found = zip(np.where(np.isnan(score), -np.inf, score).tolist(), problem.gap(tables).tolist(), strict=True)
        tried.update(zip(points, found, strict=True))

    def climb(start: tuple[float, ...] | None, bound: float) -> None:
        def worth(point: tuple[float, ...]) -> tuple[float, float]:
            # first within the bound, then the score
            score, gap = tried[point]
            return min(bound - gap, 0.0), score

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
    climbs = CLIMBS if problem.scoring in COUNTED else CLIMBS[::2]
    for bound in climbs if problem.sees_decisions else ():
        # from 0, and from the best point so far
        climb(zeros, bound)
        climb(None, bound)
    values = np.array(list(tried.values()))
    return np.array(list(tried)), values[:, 0], values[:, 1]


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
