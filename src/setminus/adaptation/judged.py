"""Answers on target rows that have a label: the one thing that can prove an adaptation right or wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from setminus.adaptation.label_shift import class_frequencies, mix_distance

__all__ = ["Judged"]

DRAWS = 2_000


@dataclass(frozen=True)
class Judged:
    """Two models on labelled target rows.

    Attributes
    ----------
    n : int
        Rows with a label; one of a class that the source lacks is never right.
    strangers : int
        How many are of such classes.
    before, after : int
        How many are right without and with adaptation.
    gained, lost : int
        How many only the second gets right, and only the first.
    mix : tuple of float
        The frequencies of the source's classes among the other rows.
    """

    n: int
    strangers: int
    before: int
    after: int
    gained: int
    lost: int
    mix: tuple[float, ...]

    @classmethod
    def of(cls, labels: ArrayLike, before: ArrayLike, after: ArrayLike, n_classes: int) -> Judged:
        """Count the answers of two models.

        Parameters
        ----------
        labels : array of int of shape (n,)
            Classes from 0, and -1 for one that the source lacks; some must be the source's.
        before, after : array of int of shape (n,)
        n_classes : int

        Examples
        --------
        >>> Judged.of([0, 1, 1, 1, -1], before=[0, 0, 0, 0, 0], after=[1, 1, 0, 1, 0], n_classes=2)
        Judged(n=5, strangers=1, before=1, after=2, gained=2, lost=1, mix=(0.25, 0.75))
        """
        truth = np.asarray(labels)
        known = truth >= 0
        first, second = np.asarray(before) == truth, np.asarray(after) == truth
        return cls(
            n=len(truth),
            strangers=int((~known).sum()),
            before=int(first.sum()),
            after=int(second.sum()),
            gained=int((second & ~first).sum()),
            lost=int((first & ~second).sum()),
            mix=tuple(class_frequencies(truth[known], n_classes).tolist()),
        )

    @property
    def most_frequent(self) -> int:
        """How many would be right if all rows were given the class that most of them have."""
        return round(max(self.mix) * (self.n - self.strangers))

    @property
    def p_value(self) -> float:
        """Of so many gained and lost, if neither model were better: a sign test."""
        differ = self.gained + self.lost
        return float(binomtest(self.gained, differ).pvalue) if differ else 1.0

    def chance_distance(self, mix: ArrayLike, confidence: float = 0.95) -> float:
        """How far the frequencies of so many rows are from those that they are drawn by, at most times.

        Examples
        --------
        >>> few, many = (Judged(n, 0, 0, 0, 0, 0, mix=(0.5, 0.5)) for n in (10, 1_000))
        >>> round(few.chance_distance([0.5, 0.5]), 2), round(many.chance_distance([0.5, 0.5]), 2)
        (0.3, 0.03)
        """
        rng = np.random.default_rng(0)
        shares = np.asarray(mix, dtype=np.float64)
        rows = self.n - self.strangers
        drawn = rng.multinomial(rows, shares / shares.sum(), size=DRAWS) / rows
        return float(np.quantile([mix_distance(one, shares) for one in drawn], confidence))
