"""Score histograms and calibration from the counts of scores in fine bins: exact for any number of rows in one pass.

The bins are 1/2500 wide between 0.02 and 0.98. Below 0.02 there are 128 to each halving of the score, and as many to
each halving of its distance from 1 above 0.98: scores of rare events lie there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.diagnosis import Calibration, CalibrationError, ReliabilityCurve, ScoreHistogram

__all__ = ["N_BINS", "BinnedScores", "score_bins"]

Floats = NDArray[np.float64]

_PARTS, _FINER = 50, 50
_EDGES = np.linspace(0, 1, _PARTS * _FINER + 1)
# those of `score_histograms` to the last bit
_EDGES[::_FINER] = np.linspace(0, 1, _PARTS + 1)
_SHIFT = 52 - 7
_LOWEST, _HIGHEST = np.array([2.0**-24, _EDGES[_FINER]]).view(np.int64) >> _SHIFT
_TAIL = int(_HIGHEST - _LOWEST) + 1

N_BINS = 2 * _TAIL + (_PARTS - 2) * _FINER


def score_bins(score: Floats) -> NDArray[np.intp]:
    """The bin of each score from 0 to 1; a larger score is in the same bin or in a later one.

    Examples
    --------
    >>> first, second, last = score_bins(np.array([0.0, 0.5, 1.0])).tolist()
    >>> first, second - first == last - second + 1, last == N_BINS - 1
    (0, True, True)
    """
    place = (score * (_PARTS * _FINER)).astype(np.intp)
    np.minimum(place, _PARTS * _FINER - 1, out=place)
    # the product is rounded
    place -= score < _EDGES[place]
    place += score >= _EDGES[1:][place]
    low, high = np.flatnonzero(place < _FINER), np.flatnonzero(place >= (_PARTS - 1) * _FINER)
    place += _TAIL - _FINER
    place[low] = _tail(score[low])
    place[high] = N_BINS - 1 - _tail(1 - score[high])
    return place


def _tail(score: Floats) -> NDArray[np.int64]:
    """The exponent of small numbers and the first 7 bits behind it, from 0."""
    place: NDArray[np.int64] = np.clip((score.view(np.int64) >> _SHIFT) - _LOWEST, 0, _TAIL - 1)
    return place


def _parts() -> NDArray[np.intp]:
    """Which of the equal parts of `score_histograms` each bin lies in."""
    inner = np.repeat(np.arange(1, _PARTS - 1), _FINER)
    return np.concatenate([np.zeros(_TAIL, np.intp), inner, np.full(_TAIL, _PARTS - 1)])


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
        counts = np.add.reduceat(self.counts, np.flatnonzero(np.diff(_parts(), prepend=-1)), axis=1)
        counts = counts.reshape(len(groups), len(classes), _PARTS)
        edges = np.linspace(0, 1, _PARTS + 1)
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

        The bins of equal mass end where fine bins end. A sum of labels drawn from the probabilities is drawn as a
        normal number of the same mean and variance.
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
    wanted = np.linspace(0, n, max(1, min(n_bins, n // 20)) + 1)[1:-1]
    ends = np.unique(np.searchsorted(rows.cumsum(), wanted))
    bins = np.searchsorted(ends, np.arange(N_BINS), side="left")
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
