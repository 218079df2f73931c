"""Calibration errors, reliability curves and score histograms, of rows or of rows counted in fine bins.

The expected calibration error of one class, over bins of equal mass::

    ece = sum over bins of  weight(bin) * | mean label - mean probability |

is above zero even for exact probabilities, and larger the fewer rows there are. It is therefore compared with the
same error on labels drawn from the probabilities themselves, which gives a p-value.

Bins of equal mass end where fine bins end, which are the same for every table: a file of any size is counted in them
part by part, and its error is that of its rows in memory. Fine bins are 1/2500 wide between 0.02 and 0.98. Below 0.02
there are 128 to each halving of the score, and as many to each halving of its distance from 1 above 0.98: scores of
rare events lie there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.rates import Scored

__all__ = [
    "N_BINS",
    "BinnedScores",
    "Calibration",
    "CalibrationError",
    "ReliabilityCurve",
    "ScoreHistogram",
    "calibration",
    "calibration_error",
    "reliability_curve",
    "score_bins",
    "score_histograms",
]

Floats = NDArray[np.float64]

_PARTS = 50
"""Equal parts of the scores from 0 to 1, in histograms; each fine bin is within one part."""

_FINER = 50
_ROUNDING = 1e-9
"""Fine bins end this share of their width early: a score such as 0.06 begins a bin, however its product is rounded."""
_SHIFT = 52 - 7
_LOWEST, _HIGHEST = np.array([2.0**-24, 1 / _PARTS]).view(np.int64) >> _SHIFT
_TAIL = int(_HIGHEST - _LOWEST) + 1

N_BINS = 2 * _TAIL + (_PARTS - 2) * _FINER
"""Number of fine bins."""


@dataclass(frozen=True)
class ReliabilityCurve:
    """Mean probability and observed frequency of one class, by bins of equal mass; group None is all rows."""

    group: Any
    label: Any
    predicted: Floats
    observed: Floats
    count: NDArray[np.intp]


@dataclass(frozen=True)
class CalibrationError:
    """The calibration error, next to that of exact probabilities on as many rows.

    Attributes
    ----------
    group : label
        The group; None is all rows.
    ece : float
        Mean over classes (the second class only, where there are two).
    expected : float
        Mean of `ece` over labels drawn from the probabilities.
    p_value : float
        Share of such draws whose error is at least as large.
    n : int
        Number of rows.
    """

    group: Any
    ece: float
    expected: float
    p_value: float
    n: int

    @property
    def excess(self) -> float:
        """The part of the error above its expected value, `ece - expected`, at least 0."""
        return max(self.ece - self.expected, 0.0)


@dataclass(frozen=True)
class Calibration:
    """Calibration of all rows and of each group.

    Attributes
    ----------
    overall : CalibrationError
    groups : tuple of CalibrationError
    curves : tuple of ReliabilityCurve
        For all rows (group None), then for each group; one for each judged class.
    """

    overall: CalibrationError
    groups: tuple[CalibrationError, ...]
    curves: tuple[ReliabilityCurve, ...]


def calibration(rows: Scored, *, n_bins: int = 10, n_simulations: int = 200, random_state: int = 0) -> Calibration:
    """Calibration errors and reliability curves of scored rows, for all rows and for each group.

    Parameters
    ----------
    rows : Scored
    n_bins : int
        Bins of equal mass; fewer where there would be less than 20 rows in a bin.
    n_simulations : int
        Draws of labels from the probabilities, behind `expected` and `p_value`.
    random_state : int

    Examples
    --------
    >>> from setminus.auditing.rates import read_scored
    >>> rng = np.random.default_rng(1)
    >>> p, group = rng.uniform(size=2000), rng.integers(2, size=2000)
    >>> y = rng.uniform(size=2000) < p
    >>> honest = calibration(read_scored(y, p, group)).overall
    >>> overconfident = calibration(read_scored(y, p**3 / (p**3 + (1 - p) ** 3), group)).overall
    >>> overconfident.p_value < 0.05 < honest.p_value, honest.excess < 0.02 < overconfident.excess
    (True, True)
    """
    errors, curves = [], []
    for code, group in [(None, None), *enumerate(rows.groups)]:
        held = np.ones(len(rows.y), dtype=bool) if code is None else rows.group == code
        y, proba = rows.y[held], rows.proba[held]
        weight = None if rows.weight is None else rows.weight[held]
        bins = max(1, min(n_bins, len(y) // 20))
        errors.append(
            calibration_error(
                y,
                proba,
                group=group,
                weight=weight,
                n_bins=bins,
                n_simulations=n_simulations,
                random_state=random_state,
            )
        )
        curves += [
            ReliabilityCurve(group, rows.classes[c], *reliability_curve(y == c, proba[:, c], weight, n_bins=bins))
            for c in _judged(proba)
        ]
    return Calibration(errors[0], tuple(errors[1:]), tuple(curves))


def calibration_error(
    y: NDArray[np.intp],
    proba: Floats,
    *,
    group: Any = None,
    weight: Floats | None = None,
    n_bins: int = 10,
    n_simulations: int = 200,
    random_state: int = 0,
) -> CalibrationError:
    """The calibration error of (n, n_classes) probabilities, and its distribution if they were exact.

    Examples
    --------
    >>> proba = np.tile([0.5, 0.5], (100, 1))
    >>> round(calibration_error(np.ones(100, dtype=int), proba, n_bins=1).ece, 12)
    0.5
    """
    rng = np.random.default_rng(random_state)
    n = len(y)
    w = np.full(n, 1 / n) if weight is None or weight.sum() == 0 else weight / weight.sum()
    judged = _judged(proba)
    bins = {c: _codes(proba[:, c], n_bins) for c in judged}
    cumulative = proba.cumsum(axis=1)[:, :-1]

    def error(labels: NDArray[np.intp]) -> float:
        total = 0.0
        for c in judged:
            # weight(bin) * (mean label - mean probability) is one weighted sum over the bin's rows
            total += float(np.abs(np.bincount(bins[c], weights=w * ((labels == c) - proba[:, c]))).sum())
        return total / len(judged)

    observed = error(y)
    null = np.array(
        [error((rng.uniform(size=(n, 1)) > cumulative).sum(axis=1, dtype=np.intp)) for _ in range(n_simulations)]
    )
    reached = int((null >= observed - 1e-12).sum())
    return CalibrationError(group, observed, float(null.mean()), (1 + reached) / (1 + n_simulations), n)


def reliability_curve(
    hit: NDArray[np.bool_], score: Floats, weight: Floats | None = None, *, n_bins: int = 10
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Mean score, frequency of hits and number of rows, by bins of equal mass.

    Examples
    --------
    >>> hit, score = np.array([False, False, True, True]), np.array([0.1, 0.3, 0.7, 0.9])
    >>> [part.round(6).tolist() for part in reliability_curve(hit, score, n_bins=2)]
    [[0.2, 0.8], [0.0, 1.0], [2, 2]]
    """
    bins = _codes(score, n_bins)
    w = np.ones(len(score)) if weight is None else weight
    mass = np.bincount(bins, weights=w)
    held = mass > 0
    predicted = np.bincount(bins, weights=w * score)[held] / mass[held]
    observed = np.bincount(bins, weights=w * hit)[held] / mass[held]
    return predicted, observed, np.bincount(bins)[held].astype(np.intp)


def _codes(score: Floats, n_bins: int) -> NDArray[np.intp]:
    # a probability may leave [0, 1] by a rounding error
    fine = score_bins(np.clip(score, 0.0, 1.0, dtype=np.float64))
    codes = _equal_mass_bins(np.bincount(fine, minlength=N_BINS), n_bins)[fine]
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)


def _judged(proba: Floats) -> range:
    """The classes whose calibration is measured: of two, the second; the first has the same errors."""
    return range(1, 2) if proba.shape[1] == 2 else range(proba.shape[1])


@dataclass(frozen=True)
class ScoreHistogram:
    """Share of a group's rows of one label in each score bin.

    The score is P(second class) for two classes, and the probability of the row's own label for more.
    """

    group: Any
    label: Any
    edges: NDArray[np.float64]
    share: NDArray[np.float64]


def score_histograms(rows: Scored) -> tuple[ScoreHistogram, ...]:
    """Histograms by group and label, in 50 bins; a cell without rows has none.

    Examples
    --------
    >>> from setminus.auditing.rates import read_scored
    >>> rows = read_scored([0, 1, 1], [0.1, 0.2, 0.9], ["f", "m", "m"])
    >>> share = score_histograms(rows)[1].share
    >>> share.nonzero()[0].tolist(), share[share > 0].tolist()
    ([10, 45], [0.5, 0.5])
    """
    edges, parts = np.linspace(0, 1, _PARTS + 1), _parts()
    histograms = []
    for c, label in enumerate(rows.classes):
        score = rows.proba[:, 1 if len(rows.classes) == 2 else c]
        for g, group in enumerate(rows.groups):
            held = (rows.y == c) & (rows.group == g)
            weight = None if rows.weight is None else rows.weight[held]
            # a probability may leave [0, 1] by a rounding error
            counts = np.bincount(parts[score_bins(np.clip(score[held], 0, 1))], weight, _PARTS)
            if counts.sum() > 0:
                histograms.append(ScoreHistogram(group, label, edges, counts / counts.sum()))
    return tuple(histograms)


def score_bins(score: Floats) -> NDArray[np.intp]:
    """The bin of each score from 0 to 1; a larger score is in the same bin or in a later one.

    Examples
    --------
    >>> first, second, last = score_bins(np.array([0.0, 0.5, 1.0])).tolist()
    >>> first, second - first == last - second + 1, last == N_BINS - 1
    (0, True, True)
    """
    # in 32 bits: processors convert several numbers at once
    short = (score * (_PARTS * _FINER) + _ROUNDING).astype(np.int32)
    place = np.minimum(short, _PARTS * _FINER - 1, dtype=np.intp)
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


def _equal_mass_bins(rows: NDArray[np.integer], n_bins: int) -> NDArray[np.intp]:
    """Which of at most `n_bins` bins of about equal mass each fine bin belongs to, from the number of rows in each.

    A bin ends where a fine bin ends, so that counts suffice. Some numbers may be left out.

    Examples
    --------
    >>> rows = np.zeros(N_BINS, int)
    >>> rows[[100, 700, 1500, 2000]] = 1, 1, 1, 1
    >>> _equal_mass_bins(rows, 2)[[100, 700, 1500, 2000]].tolist()
    [0, 0, 1, 1]
    """
    total = rows.cumsum()
    wanted = np.linspace(0, total[-1], n_bins + 1)[1:-1]
    ends = np.unique(np.searchsorted(total, wanted))
    return np.searchsorted(ends, np.arange(N_BINS), side="left")


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
        """As `calibration`, where the entries are those of `by_cell`.

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
    bins = _equal_mass_bins(rows, max(1, min(n_bins, n // 20)))
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
