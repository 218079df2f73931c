"""Are predicted probabilities calibrated? Reliability curves, a calibration error with a test, score histograms.

The expected calibration error of one class, over bins of equal mass::

    ece = sum over bins of  weight(bin) * | mean label - mean probability |

is above zero even for exact probabilities, and larger the fewer rows there are. It is therefore compared with the
same error on labels drawn from the probabilities themselves, which gives a p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.rates import Scored

__all__ = [
    "Calibration",
    "CalibrationError",
    "ReliabilityCurve",
    "ScoreHistogram",
    "calibration",
    "calibration_error",
    "reliability_curve",
    "score_histograms",
]

Floats = NDArray[np.float64]


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

    Returns
    -------
    Calibration

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
    bins = {c: _bins(proba[:, c], n_bins) for c in judged}
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
    bins = _bins(score, n_bins)
    w = np.ones(len(score)) if weight is None else weight
    mass = np.bincount(bins, weights=w)
    held = mass > 0
    predicted = np.bincount(bins, weights=w * score)[held] / mass[held]
    observed = np.bincount(bins, weights=w * hit)[held] / mass[held]
    return predicted, observed, np.bincount(bins)[held].astype(np.intp)


def _bins(score: Floats, n_bins: int) -> NDArray[np.intp]:
    edges = np.unique(np.quantile(score, np.linspace(0, 1, n_bins + 1)[1:-1]))
    codes = np.unique(np.searchsorted(edges, score, side="left"), return_inverse=True)[1]
    return codes.astype(np.intp)


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


def score_histograms(rows: Scored, *, n_bins: int = 50) -> tuple[ScoreHistogram, ...]:
    """Histograms by group and label; a cell without rows has none.

    Parameters
    ----------
    rows : Scored
    n_bins : int

    Returns
    -------
    tuple of ScoreHistogram

    Examples
    --------
    >>> from setminus.auditing.rates import read_scored
    >>> rows = read_scored([0, 1, 1], [0.1, 0.2, 0.9], ["f", "m", "m"])
    >>> score_histograms(rows, n_bins=2)[1].share.tolist()
    [0.5, 0.5]
    """
    edges = np.linspace(0, 1, n_bins + 1)
    histograms = []
    for c, label in enumerate(rows.classes):
        score = rows.proba[:, 1 if len(rows.classes) == 2 else c]
        for g, group in enumerate(rows.groups):
            held = (rows.y == c) & (rows.group == g)
            weight = None if rows.weight is None else rows.weight[held]
            # a probability may leave [0, 1] by a rounding error
            counts = np.histogram(np.clip(score[held], 0, 1), bins=edges, weights=weight)[0]
            if counts.sum() > 0:
                histograms.append(ScoreHistogram(group, label, edges, counts / counts.sum()))
    return tuple(histograms)
