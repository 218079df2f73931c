"""What a search found: decisions with their scores and gaps, the best of them, and those that a certificate covers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import index as whole
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from setminus.core import Agg, Constraint
from setminus.core.certificate import Certificate, certify, noise_floor, p_value
from setminus.core.gaps import (
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
    grouped_table,
)
from setminus.errors import UserError

if TYPE_CHECKING:
    from setminus.charts.picture import Plot

__all__ = [
    "MIN_LOG",
    "OPTIMISM",
    "STARTS",
    "Candidates",
    "Frontier",
    "Gap",
    "check_tolerance",
    "decide",
    "decide_columns",
    "gap_of",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Gap = Callable[[Floats], Floats]

MIN_LOG = float(np.log(np.finfo(np.float64).tiny))
"""Replaces the log of a probability of 0, so that an offset can still change the decision."""

BY_POINT = ("strength", "offsets", "score", "gap", "upper", "direction", "tables", "useful")
"""Attributes of a frontier with one entry for each point."""

STARTS = (0.6, 0.8, 1.0)
"""Shares of the tolerance at which tests begin: a smaller gap costs more than it adds to the chance to pass."""

OPTIMISM = 5.0
"""P-values are multiplied by this where the rows of the search test its own choice.

Chosen on one split of the development sets of ``benchmarks peers`` at seven tolerances: the gap on test rows was above
a certified tolerance in 2 of 42 cases, and in 5 of 47 with 2 in its place. The cases share rows: weak evidence.
"""

LADDER = (*(0.005 * i for i in range(2, 20)), *(0.01 * i for i in range(10, 20)), 0.2, 0.25, 0.3, 0.4, 0.5, np.inf)
"""Bounds on the upper end of the gap; the best useful point within each is a candidate for the certificate."""


def gap_of(constraint: Constraint, agg: Agg, pos: int | None = None) -> Gap:
    """The gap to bound, as a function of count tables of shape (..., groups, labels, predictions).

    `pos` is the class whose recall equal opportunity compares, see `equal_opportunity_from_table`.
    """
    if agg not in get_args(Agg):
        raise UserError(f"agg is {agg!r}", expected="'max' (Fairlearn's way) or 'sum' (the paper's)")
    gaps: dict[str, Gap] = {
        "equalized_odds": lambda table: equalized_odds_from_table(table, agg),
        "demographic_parity": demographic_parity_from_table,
        "equal_opportunity": lambda table: equal_opportunity_from_table(table, pos),
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
class Candidates:
    """A few points of a frontier in the order in which a certificate is sought for them.

    The order does not depend on fresh rows, so the points may be tested one after the other, without a correction for
    their number, until the first that fails (fixed-sequence testing). The tests begin at several places, each with its
    share of the level: one point that fails by chance does not end them all.

    Attributes
    ----------
    points : ndarray of int of shape (L,)
        From the smallest of `gaps` to the largest; the last is the full classifier where it may be left as it is.
    gaps : ndarray of shape (L,)
        The upper ends of their gaps on the rows of the search: what they are likely to certify.
    tables : ndarray of shape (L, G, C, C)
        The rows that test the point, by (group, label, prediction).
    squares : ndarray of shape (L, G, C, C), optional
        The same of squared weights, where the rows have weights.
    fresh : bool
        Whether the rows had no part in the search. Otherwise there is one place to begin, the level of the tests is
        divided by `OPTIMISM`, which pays for the choice on the same rows, and the certificate is approximate.
    members : list of ndarray of bool, optional
        Where G are cells: the cells of each group, for each grouping. A certificate must hold for every grouping, so
        each is tested at the full level.
    """

    points: Codes
    gaps: Floats
    tables: Floats
    squares: Floats | None = None
    fresh: bool = True
    members: list[NDArray[np.bool_]] | None = None

    def _starts(self, tolerance: float) -> list[int]:
        """Where the tests begin: at the best point within a share of the tolerance, or at the smallest gap."""
        within = [np.flatnonzero(self.gaps <= share * tolerance) for share in (STARTS if self.fresh else STARTS[:1])]
        return list(dict.fromkeys(int(points[-1]) if len(points) else 0 for points in within))

    def _level(self, tolerance: float, confidence: float) -> float:
        return (1 - confidence) / (len(self._starts(tolerance)) if self.fresh else OPTIMISM)

    def counts(self, i: int) -> list[tuple[Floats, Floats | None]]:
        """The counts of one point and those of squared weights, for each grouping."""
        table, squares = self.tables[i], None if self.squares is None else self.squares[i]
        if self.members is None:
            return [(table, squares)]
        return [
            (grouped_table(table, cells), None if squares is None else grouped_table(squares, cells))
            for cells in self.members
        ]

    def p_value(
        self, i: int, tolerance: float, constraint: Constraint, agg: Agg, pos: int | None = None, **options: Any
    ) -> float:
        """Of "gap >= tolerance" at one point, the largest over the groupings; options: see `certificate.p_value`."""
        return max(
            p_value(table, tolerance, constraint=constraint, agg=agg, pos=pos, squares=squares, **options)
            for table, squares in self.counts(i)
        )

    def may_be_chance(self, i: int, constraint: Constraint, agg: Agg, pos: int | None = None) -> bool:
        """Whether equal groups of these sizes differ as much as at one point in 5 % of samples or more."""
        p_values = [
            noise_floor(table, constraint=constraint, agg=agg, pos=pos, squares=squares).p_value
            for table, squares in self.counts(i)
        ]
        return min(p_values) * len(p_values) > 0.05

    def certified(
        self, tolerance: float, confidence: float, constraint: Constraint, agg: Agg, pos: int | None = None
    ) -> int | None:
        """The last candidate whose "gap <= tolerance" is certified, or None.

        With fresh rows, the chance that its gap is above the tolerance is at most ``1 - confidence``.
        """
        passed, level = None, self._level(tolerance, confidence)
        # above the level it need not be exact
        enough = float(np.nextafter(level, 1))
        for start in self._starts(tolerance):
            for i in range(start, len(self.points)):
                if not self.p_value(i, tolerance, constraint, agg, pos, enough=enough) <= level:
                    break
                passed = i if passed is None else max(passed, i)
        return passed

    def certificate(
        self,
        i: int,
        tolerance: float,
        confidence: float,
        constraint: Constraint,
        agg: Agg,
        pos: int | None = None,
        *,
        certified: bool,
    ) -> Certificate:
        """The certificate of one point, or its refusal where the tests did not reach it.

        Of several groupings it is that of the largest bound.
        """
        level = self._level(tolerance, confidence)
        settings: dict[str, Any] = {"constraint": constraint, "agg": agg, "pos": pos}
        each = [
            certify(table, tolerance=tolerance, confidence=1 - level, squares=squares, **settings)
            for table, squares in self.counts(i)
        ]
        found = max(each, key=lambda one: one.bound)
        method = found.method if self.fresh else "approximate, rows of the search"
        return replace(found, confidence=confidence, method=method, certified=certified)


@dataclass(frozen=True)
class Frontier:
    """The trade-off between score and gap on out-of-fold predictions, and the point that was chosen.

    It holds the useful points that no other useful point beats in both score and gap, and the point with offsets 0 of
    each strength. A point predicts ``argmax(log_proba + offsets)``; with two classes that is a threshold on the second
    one's probability. The log-probabilities are those of the paper's formula with the point's strength, or those of the
    full classifier corrected by fitted offsets for what is known of the group (`direction`).

    Attributes
    ----------
    strength : ndarray of shape (P,)
        How much of the correction is applied: 0 is the full classifier.
    offsets : ndarray of shape (P, C)
        Added to the log-probabilities; 0 for the first class.
    score : ndarray of shape (P,)
        What is maximised.
    gap : ndarray of shape (P,)
        What is bounded.
    upper : ndarray of shape (P,), optional
        The gap with a margin for the rows that will test it (`setminus.core.certificate.upper_gaps`).
    chosen : int
        The point in use.
    score_name, gap_name : str
        For axes and messages.
    n_tried : int
        How many points were tried.
    direction : ndarray of int of shape (P,), optional
        -1 for the paper's formula, otherwise the index in `directions`.
    directions : ndarray of shape (D, M, C), optional
        Offsets for the M features of a row's group, subtracted from the log-probabilities.
    tables : ndarray of shape (P, G, C, C), optional
        The rows of the search by (group, label, prediction).
    useful : ndarray of bool of shape (P,), optional
        Whether the point keeps the floors of the search; all do where it is missing.
    candidates : Candidates, optional
        The points for which a certificate is sought.
    """

    strength: Floats
    offsets: Floats
    score: Floats
    gap: Floats
    chosen: int = -1
    score_name: str = "score"
    gap_name: str = "gap"
    n_tried: int = 0
    direction: Codes | None = None
    directions: Floats | None = None
    tables: Floats | None = None
    useful: NDArray[np.bool_] | None = None
    upper: Floats | None = None
    candidates: Candidates | None = None

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
        """The useful point of the highest score among those with ``gap <= tolerance``.

        Ties go to the smaller gap, then to the smaller strength, then to the offsets nearest 0. Where no point
        keeps the tolerance, the one of the smallest gap is taken.
        """
        gap = np.where(self._useful, self.gap, np.nan)
        feasible = gap <= tolerance
        if not feasible.any():
            feasible = gap <= np.nanmin(gap)
        order = np.lexsort((*self._changes, self.gap, -self.score))
        return int(order[feasible[order]][0])

    @property
    def untouched(self) -> int:
        """The full classifier as it is."""
        return int(np.flatnonzero((self.strength == 0) & (self.offsets == 0).all(axis=1))[0])

    def ladder(self) -> list[int]:
        """The best useful point within each bound of `LADDER` on the upper end of the gap."""
        upper = self if self.upper is None else replace(self, gap=self.upper)
        return [upper.best(bound) for bound in LADDER]

    @property
    def _useful(self) -> NDArray[np.bool_]:
        if self.useful is None:
            return np.ones(len(self), dtype=bool)
        some = self.useful & np.isfinite(self.score) & ~np.isnan(self.gap)
        # the full classifier keeps its own floors, so some point does, unless a user's floors are beyond all
        return some if some.any() else np.ones(len(self), dtype=bool)

    def pareto(self) -> NDArray[np.intp]:
        """The points that no other beats in both score and gap, by rising gap: `best` takes no other.

        Examples
        --------
        >>> frontier = Frontier(np.zeros(3), np.zeros((3, 2)), np.array([0.8, 0.7, 0.9]), np.array([0.1, 0.2, 0.3]))
        >>> frontier.pareto().tolist()
        [0, 2]
        """
        order = np.lexsort((*self._changes, -self.score, self.gap))
        order = order[self._useful[order]]
        score = np.nan_to_num(self.score[order], nan=-np.inf)
        before = np.concatenate([[-np.inf], np.maximum.accumulate(score)[:-1]])
        return order[(score > before) & ~np.isnan(self.gap[order])].astype(np.intp)

    def thinned(self) -> Frontier:
        """Without dominated points, except those with offsets 0: they would fill most of a model file."""
        kept = np.union1d(self.pareto(), np.flatnonzero((self.offsets == 0).all(axis=1)))
        if self.upper is not None:
            kept = np.union1d(kept, replace(self, gap=self.upper).pareto())
        return self.take(kept)

    def take(self, kept: Codes) -> Frontier:
        """These points alone."""
        points = {name: getattr(self, name)[kept] for name in BY_POINT if getattr(self, name) is not None}
        return replace(self, **points)

    def tries(self) -> dict[tuple[float, int], Codes]:
        """The points of each strength and direction."""
        direction = np.full(len(self), -1) if self.direction is None else self.direction
        order = np.lexsort([self.strength, direction])
        changed = (np.diff(self.strength[order]) != 0) | (np.diff(direction[order]) != 0)
        parts = np.split(order, np.flatnonzero(changed) + 1)
        return {(float(self.strength[part[0]]), int(direction[part[0]])): part for part in parts}

    @staticmethod
    def joined(parts: list[Frontier]) -> Frontier:
        """The points of several searches."""
        points: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in BY_POINT
            if getattr(parts[0], name) is not None
        }
        return replace(parts[0], **points, n_tried=sum(part.n_tried for part in parts))

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


def decide(log_proba: Floats, offsets: Floats) -> Codes:
    """The class of each row: ``argmax(log_proba + offsets)``, the later class at a tie."""
    return decide_columns(np.maximum(log_proba, MIN_LOG).T, offsets)


def decide_columns(columns: Floats, offsets: Floats) -> Codes:
    """The same for log-probabilities of at least `MIN_LOG`, of shape (C, n)."""
    if len(columns) == 2:
        return np.asarray(columns[1] + offsets[1] >= columns[0] + offsets[0], dtype=np.intp)
    shifted = (columns + offsets[:, None])[::-1]
    last: Codes = len(columns) - 1 - np.argmax(shifted, axis=0)
    return last
