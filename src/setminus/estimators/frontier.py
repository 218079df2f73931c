"""Every trade of score against gap that a tuned classifier could make, and the rules that pick one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import index as whole
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.core.gaps import (
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
)
from setminus.errors import MissingExtraError, UserError

__all__ = ["LOG_LEAST", "Constraint", "Frontier", "Gap", "check_tolerance", "gap_of"]

Floats = NDArray[np.float64]
Constraint = Literal["equalized_odds", "demographic_parity", "equal_opportunity"]
Gap = Callable[[Floats], Floats]

LOG_LEAST = float(np.log(np.finfo(np.float64).tiny))
"""What stands for the log of a probability of 0: an offset can then still turn the decision."""


def gap_of(constraint: str, agg: str) -> Gap:
    """The gap to bound, as a function of count tables of shape (..., groups, labels, predictions)."""
    if agg not in ("max", "sum"):
        raise UserError(f"agg is {agg!r}", expected="'max' (Fairlearn's way) or 'sum' (the paper's)")
    gaps: dict[str, Gap] = {
        "equalized_odds": lambda table: equalized_odds_from_table(table, "max" if agg == "max" else "sum"),
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
    """The best trades of score against gap, by out-of-fold predictions, and the one that was chosen.

    Of the points that were tried, those are kept that no other beats in both, and for each strength that of offsets
    0. A point predicts ``argmax(log orthogonal(strength) + offsets)``. With two classes that is a threshold on the
    second one's probability.

    Attributes
    ----------
    strength : ndarray of shape (P,)
    offsets : ndarray of shape (P, C)
        What is added to the log-probabilities; the first class's is 0.
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
        # beyond what certain probabilities have, all rows or none are of the second class, those of 0 and 1 too
        threshold[offset > -LOG_LEAST] = 0
        threshold[offset < LOG_LEAST] = np.nextafter(1, 2)
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
        """The points that no other beats in both score and gap, by rising gap: those that `best` ever takes.

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
        """Without the points that no tolerance chooses, except those of offsets 0: they would be most of a file."""
        kept = np.union1d(self.pareto(), np.flatnonzero((self.offsets == 0).all(axis=1)))
        points = {name: getattr(self, name)[kept] for name in ("strength", "offsets", "score", "gap")}
        return replace(self, **points)

    @property
    def _changes(self) -> tuple[Floats, Floats]:
        """What decides between points of the same score and gap, the last first: as little change as possible."""
        return np.abs(self.offsets).sum(axis=1), self.strength

    def at(self, index: int) -> Frontier:
        """The same points with another one chosen."""
        if not -len(self) <= whole(index) < len(self):
            raise UserError(f"index is {index}, the frontier has {len(self)} points", expected="one of them, from 0")
        return replace(self, chosen=whole(index) % len(self))

    def plot(self, ax: Any = None) -> Any:
        """Score against gap: the best trades, each strength at offsets 0, and the chosen point. Returns the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise MissingExtraError("a plot", "matplotlib", extra="cli") from error
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        best = self.pareto()
        untouched = (self.offsets == 0).all(axis=1)
        ax.scatter(self.gap[untouched], self.score[untouched], s=12, color="0.6", linewidths=0, label="offsets 0")
        ax.plot(self.gap[best], self.score[best], color="#0072B2", marker=".", label="best at its gap")
        mark = {"marker": "*", "s": 180, "color": "#D55E00", "edgecolors": "black", "zorder": 3}
        ax.scatter(self.gap[self.chosen], self.score[self.chosen], **mark, label="chosen")
        # a strength at offsets 0 may be far from the best trades, and those are what the reader looks at
        low, high, reach = self.score[best].min(), self.score[best].max(), self.gap[best].max()
        margin = max(0.1 * (high - low), 1e-3)
        ax.set(xlim=(0, 1.2 * max(reach, 0.01)), ylim=(low - margin, high + 1.5 * margin))
        ax.set_xlabel(self.gap_name.replace("_", " ") + " gap, out of fold")
        ax.set_ylabel(self.score_name.replace("_", " ") + ", out of fold")
        ax.legend(loc="lower right")
        return ax
