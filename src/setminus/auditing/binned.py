"""Score histograms and calibration from the counts of scores in fine bins: exact for any number of rows in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.diagnosis import Calibration, CalibrationError, ReliabilityCurve, ScoreHistogram
from setminus.auditing.fine_bins import N_BINS, N_PARTS, equal_mass_bins, parts_of_bins

__all__ = ["BinnedScores"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BinnedScores:
    """Scores of two classes in fine bins.

    Attributes
    ----------
    counts : ndarray of int of shape (n, N_BINS)
        Rows, for each of n entries: those of one group and label, for example.
    sums : ndarray of float of shape (n, N_BINS)
        Sums of the scores of these rows.
    """

    counts: NDArray[np.int64]
    sums: Floats

    def take(self, entries: NDArray[np.bool_]) -> BinnedScores:
        """Some of the entries."""
        return BinnedScores(self.counts[entries], self.sums[entries])

    def plus(self, other: BinnedScores, at: NDArray[np.intp], size: int) -> BinnedScores:
        """With the entries of another added at distinct places, among `size` in all."""
        counts, sums = np.zeros((size, N_BINS), np.int64), np.zeros((size, N_BINS))
        for whole, own, new in ((counts, self.counts, other.counts), (sums, self.sums, other.sums)):
            whole[: len(own)] = own
            whole[at] += new
        return BinnedScores(counts, sums)

    def by_cell(self, group: NDArray[np.intp], y: NDArray[np.intp], shape: tuple[int, int]) -> BinnedScores:
        """The same for each group and label, in this order, from the codes of the entries' groups and labels."""
        cells = group * shape[1] + y
        counts = np.zeros((shape[0] * shape[1], N_BINS), np.int64)
        sums = np.zeros(counts.shape)
        np.add.at(counts, cells, self.counts)
        np.add.at(sums, cells, self.sums)
        return BinnedScores(counts, sums)

    def histograms(self, groups: Sequence[Any], classes: Sequence[Any]) -> tuple[ScoreHistogram, ...]:
        """As `score_histograms`, where the entries are those of `by_cell`."""
        counts = np.add.reduceat(self.counts, np.flatnonzero(np.diff(parts_of_bins(), prepend=-1)), axis=1)
        counts = counts.reshape(len(groups), len(classes), N_PARTS)
        edges = np.linspace(0, 1, N_PARTS + 1)
        return tuple(
            ScoreHistogram(group, label, edges, counts[g, c] / counts[g, c].sum())
            for c, label in enumerate(classes)
            for g, group in enumerate(groups)
            if counts[g, c].any()
        )

    def calibration(
        self,
        groups: Sequence[Any],
        classes: Sequence[Any],
        *,
        n_bins: int = 10,
        n_simulations: int = 200,
        random_state: int = 0,
    ) -> Calibration:
        """As `diagnosis.calibration`, where the entries are those of `by_cell`.

        Errors and curves are the same; a sum of labels drawn from the probabilities is drawn as a normal number of the
        same mean and variance, which changes `expected` and `p_value` as another seed would.
        """
        shape = (len(groups), 2, N_BINS)
        counts, sums = self.counts.reshape(shape), self.sums.reshape(shape).sum(axis=1)
        rows, hits = counts.sum(axis=1), counts[:, 1]
        each = [
            (None, rows.sum(axis=0), hits.sum(axis=0), sums.sum(axis=0)),
            *zip(groups, rows, hits, sums, strict=True),
        ]
        found = [_calibration(*one, classes[1], n_bins, n_simulations, random_state) for one in each]
        errors, curves = zip(*found, strict=True)
        return Calibration(errors[0], tuple(errors[1:]), tuple(curves))


def _calibration(
    group: Any,
    rows: NDArray[np.int64],
    hits: NDArray[np.int64],
    sums: Floats,
    label: Any,
    n_bins: int,
    n_simulations: int,
    random_state: int,
) -> tuple[CalibrationError, ReliabilityCurve]:
    """Error and curve of one group from its rows, its rows of the class and its sums of scores, by fine bin."""
    n = int(rows.sum())
    bins = equal_mass_bins(rows, max(1, min(n_bins, n // 20)))
    mean = sums / np.maximum(rows, 1)
    mass, observed, predicted, variance = (
        np.bincount(bins, weights=one) for one in (rows, hits, sums, rows * mean * (1 - mean))
    )
    error = float(np.abs(observed - predicted).sum() / n)
    drawn = np.random.default_rng(random_state).normal(size=(n_simulations, len(mass))) * np.sqrt(variance)
    null = np.abs(drawn).sum(axis=1) / n
    p_value = (1 + int((null >= error - 1e-12).sum())) / (1 + n_simulations)
    held = mass > 0
    curve = ReliabilityCurve(
        group, label, predicted[held] / mass[held], observed[held] / mass[held], mass[held].astype(np.intp)
    )
    return CalibrationError(group, error, float(null.mean()), p_value, n), curve
