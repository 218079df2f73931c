"""Every trade of score against gap that a tuned classifier could make, and the rules that pick one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.core.gap_tables import (
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
)

__all__ = ["Constraint", "Frontier", "Gap", "gap_of"]

Floats = NDArray[np.float64]
Constraint = Literal["equalized_odds", "demographic_parity", "equal_opportunity"]
Gap = Callable[[Floats], Floats]


def gap_of(constraint: str, agg: str) -> Gap:
    """The gap to bound, as a function of count tables of shape (..., groups, labels, predictions)."""
    if agg not in ("max", "sum"):
        raise ValueError(f"agg is {agg!r}: expected 'max' (Fairlearn's way) or 'sum' (the paper's).")
    gaps: dict[str, Gap] = {
        "equalized_odds": lambda table: equalized_odds_from_table(table, "max" if agg == "max" else "sum"),
        "demographic_parity": demographic_parity_from_table,
        "equal_opportunity": equal_opportunity_from_table,
    }
    if constraint not in gaps:
        raise ValueError(f"constraint is {constraint!r}: expected one of {', '.join(gaps)}.")
    return gaps[constraint]


@dataclass(frozen=True)
class Frontier:
    """The points that were searched, by out-of-fold predictions, and the one that was chosen.

    A point predicts ``argmax(log orthogonal(strength) + offsets)``. With two classes that is a threshold on the
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
    """

    strength: Floats
    offsets: Floats
    score: Floats
    gap: Floats
    chosen: int = -1
    score_name: str = "score"
    gap_name: str = "gap"

    def __len__(self) -> int:
        return len(self.strength)

    @property
    def threshold(self) -> Floats:
        """Probability of the second of two classes from which it is predicted, for each point."""
        if self.offsets.shape[1] != 2:
            raise AttributeError(f"a threshold is for 2 classes, here are {self.offsets.shape[1]}: see offsets.")
        threshold: Floats = 1 / (1 + np.exp(self.offsets[:, 1]))
        return threshold

    def best(self, tolerance: float) -> int:
        """The point of the highest score among those with ``gap <= tolerance``.

        Ties go to the smaller gap, then to the smaller strength, then to the offsets nearest 0. Where no point
        keeps the tolerance, the one of the smallest gap is taken.
        """
        feasible = self.gap <= tolerance
        if not feasible.any():
            feasible = self.gap <= np.nanmin(self.gap)
        size = np.abs(self.offsets).sum(axis=1)
        order = np.lexsort((size, self.strength, self.gap, -self.score))
        return int(order[feasible[order]][0])

    def pareto(self) -> NDArray[np.intp]:
        """The points that no other beats in both score and gap, by rising gap.

        Examples
        --------
        >>> frontier = Frontier(np.zeros(3), np.zeros((3, 2)), np.array([0.8, 0.7, 0.9]), np.array([0.1, 0.2, 0.3]))
        >>> frontier.pareto().tolist()
        [0, 2]
        """
        order = np.lexsort((-self.score, self.gap))
        score = np.nan_to_num(self.score[order], nan=-np.inf)
        before = np.concatenate([[-np.inf], np.maximum.accumulate(score)[:-1]])
        return order[(score > before) & ~np.isnan(self.gap[order])].astype(np.intp)

    def at(self, index: int) -> Frontier:
        """The same points with another one chosen."""
        if not -len(self) <= index < len(self):
            raise ValueError(f"index is {index}, the frontier has {len(self)} points.")
        return replace(self, chosen=int(index) % len(self))

    def plot(self, ax: Any = None) -> Any:
        """Score against gap: all points, those that no other beats, and the chosen one. Returns the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError('plots need matplotlib: pip install "setminus[cli]"') from error
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        best = self.pareto()
        ax.scatter(self.gap, self.score, s=6, color="0.75", linewidths=0, label="searched", rasterized=True)
        ax.plot(self.gap[best], self.score[best], color="#0072B2", marker=".", label="best at its gap")
        mark = {"marker": "*", "s": 180, "color": "#D55E00", "edgecolors": "black", "zorder": 3}
        ax.scatter(self.gap[self.chosen], self.score[self.chosen], **mark, label="chosen")
        # the searched points reach down to guessing; the reader looks at the best ones
        low, high, reach = self.score[best].min(), self.score[best].max(), self.gap[best].max()
        margin = max(0.1 * (high - low), 1e-3)
        ax.set(xlim=(0, 1.2 * max(reach, 0.01)), ylim=(low - margin, high + 1.5 * margin))
        ax.set_xlabel(self.gap_name.replace("_", " ") + " gap, out of fold")
        ax.set_ylabel(self.score_name.replace("_", " ") + ", out of fold")
        ax.legend(loc="lower right")
        return ax
