"""The test that a rate of one group exceeds that of another by less than a margin.

The statistic is Farrington and Manning's score: the observed difference minus the margin, over its standard error where
the true difference is the margin (Statistics in Medicine 9, 1990). Its normal approximation is quick and works on
arrays. The exact p-value is the largest probability of a statistic as small as the observed one, over the rates that
the data leave possible (Berger and Boos, JASA 89, 1994): it holds for any number of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, gammaln, ndtr, xlog1py, xlogy

__all__ = [
    "EXACT_ROWS",
    "UNCLEAR",
    "exact_p_value",
    "largest_exact_p_value",
    "largest_p_values",
    "score_p_value",
    "score_statistic",
]

Floats = NDArray[np.float64]

EXACT_ROWS = 4000
"""The smaller group's rows up to which p-values are exact; with more, the normal approximation is."""
UNCLEAR = 0.3
"""A comparison this unclear is certified at no confidence in use: the approximation is reported."""
_CLEAR = 1e-4
"""Below this approximate p-value no exact test is needed: with 3 rows the true size is 0.003."""
_CLEARER = 25
"""Nor where it is so many times smaller than another comparison's: with 3 rows it is 9 times too small at most."""
_OUTSIDE = 1e-3
"""Probability that the rate lies outside the range that is searched; it is added to the p-value."""
_RATES = 33
"""Rates that are tried for groups of few rows; the probability is smoother in the rate where there are more."""
_DEVIATIONS = 6
"""Standard deviations around its expectation within which a count is enumerated; 1e-9 lies beyond."""


def score_statistic(x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, margin: ArrayLike) -> Floats:
    """The score statistic of ``p1 - p2 - margin``: about standard normal where the difference is the margin.

    Parameters
    ----------
    x1, n1, x2, n2 : array-like
        Counts of events and of rows in the two groups, with ``n1, n2 > 0``.
    margin : array-like
        From 0 to 1.

    Returns
    -------
    ndarray
        Of the broadcast shape; negative where the observed difference is below the margin.

    Examples
    --------
    >>> round(float(score_statistic(40, 100, 40, 100, 0.1)), 3)
    -1.45
    """
    x1, n1, x2, n2, m = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (x1, n1, x2, n2, margin)))
    p1, p2, ratio = x1 / n1, x2 / n2, n2 / n1
    # the likelihood's maximum on the line p1 - p2 = margin is a root of a cubic
    a = 1 + ratio
    b = -(1 + ratio + p1 + ratio * p2 + m * (ratio + 2))
    c = m**2 + m * (2 * p1 + ratio + 1) + p1 + ratio * p2
    d = -p1 * m * (1 + m)
    v = (b / (3 * a)) ** 3 - b * c / (6 * a**2) + d / (2 * a)
    u = np.where(v < 0, -1.0, 1.0) * np.sqrt(np.maximum((b / (3 * a)) ** 2 - c / (3 * a), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arccos(np.clip(np.where(u != 0, v / u**3, 0.0), -1, 1))
        rate1 = np.clip(2 * u * np.cos((np.pi + angle) / 3) - b / (3 * a), m, 1)
        rate2 = np.clip(rate1 - m, 0, 1)
        error = np.sqrt(rate1 * (1 - rate1) / n1 + rate2 * (1 - rate2) / n2)
        statistic = (p1 - p2 - m) / error
    found: Floats = np.where(error > 1e-12, statistic, np.where(p1 - p2 < m, -np.inf, np.inf))
    return found


def score_p_value(x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, margin: ArrayLike) -> Floats:
    """P-value of ``p1 - p2 >= margin`` by the normal approximation; the parameters are those of `score_statistic`.

    Examples
    --------
    >>> round(float(score_p_value(40, 100, 40, 100, 0.1)), 3)
    0.074
    """
    found: Floats = ndtr(score_statistic(x1, n1, x2, n2, margin))
    return found


def exact_p_value(x1: int, n1: int, x2: int, n2: int, margin: float) -> float:
    """P-value of ``p1 - p2 >= margin`` that holds for any number of rows.

    Parameters
    ----------
    x1, n1, x2, n2 : int
        Counts of events and of rows in the two groups.
    margin : float
        Between 0 and 1.

    Returns
    -------
    float
        At least 0.001, and 1 where the observed difference is not below the margin.

    Examples
    --------
    >>> round(exact_p_value(40, 100, 40, 100, 0.1), 3)
    0.079
    """
    if n1 < n2:
        # 1 - p2 and 1 - p1 have the same difference: the smaller group's counts are enumerated
        x1, n1, x2, n2 = n2 - x2, n2, n1 - x1, n1
    statistic = float(score_statistic(x1, n1, x2, n2, margin))
    if statistic >= 0:
        return 1.0
    low = 0.0 if x1 == 0 else float(betaincinv(x1, n1 - x1 + 1, _OUTSIDE / 2))
    high = 1.0 if x1 == n1 else float(betaincinv(x1 + 1, n1 - x1, 1 - _OUTSIDE / 2))
    if high < margin:
        # no rate of the larger group leaves room for the margin below it
        return _OUTSIDE
    rate1 = np.linspace(max(low, margin), high, _RATES if n2 < 200 else 1 + _RATES // 3)
    rate2 = np.maximum(rate1 - margin, 0)
    first, last = _likely_counts(n2, float(rate2[0]), float(rate2[-1]))
    count2 = np.arange(first, last + 1.0)
    # the statistic grows with x1: the largest x1 that is as clear as the observed table, for each x2
    below, above = np.full(len(count2), -1.0), np.full(len(count2), float(n1))
    while np.any(above > below):
        middle = np.ceil((below + above) / 2)
        as_clear = score_statistic(middle, n1, count2, n2, margin) <= statistic + 1e-9
        below, above = np.where(as_clear, middle, below), np.where(as_clear, above, middle - 1)
    possible = below >= 0
    as_small = bdtr(below[possible, None], n1, rate1)
    largest = (_binomial(count2[possible, None], n2, rate2) * as_small).sum(axis=0).max(initial=0.0)
    return float(min(largest + _OUTSIDE, 1.0))


def largest_exact_p_value(of_label: Floats, margin: float, enough: float = UNCLEAR) -> float:
    """The largest p-value of "difference >= margin" over all groups and sets of predictions of one label.

    `of_label` has the counts by (group, prediction). From `enough` on the p-value need not be exact.
    """
    comparisons = _comparisons(of_label)
    found = score_p_value(*comparisons, margin)
    largest = float(found.max())
    if largest < _CLEAR:
        return largest
    # of two groups' sets of predictions the least clear one, as the numbers of rows are the same
    least_clear = found.argmax(axis=1)
    for pair in np.argsort(-found.max(axis=1)):
        k = (pair, least_clear[pair])
        if largest >= enough or found[k] * _CLEARER < largest:
            break
        x1, n1, x2, n2 = (int(part[k]) for part in comparisons)
        if min(n1, n2) <= EXACT_ROWS:
            largest = max(largest, exact_p_value(x1, n1, x2, n2, margin))
    return largest


def largest_p_values(of_label: Floats, margins: Floats) -> Floats:
    """The same by the normal approximation, for several margins."""
    found: Floats = score_p_value(*_comparisons(of_label), margins[:, None, None]).max(axis=(1, 2))
    return found


def _comparisons(of_label: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Counts and rows of both groups, by ordered pair of groups and set of predictions."""
    n_groups, n_classes = of_label.shape
    # a set and its complement have the same difference, up to the order of the groups: those without the first class
    sets = (np.arange(1, 2 ** (n_classes - 1))[:, None] >> np.arange(n_classes - 1)) & 1
    counts, rows = of_label[:, 1:] @ sets.T, of_label.sum(axis=1)
    one, other = (~np.eye(n_groups, dtype=bool)).nonzero()
    n1, n2 = np.broadcast_arrays(rows[one, None], rows[other, None], counts[one])[:2]
    return counts[one], n1, counts[other], n2


def _likely_counts(n: int, low: float, high: float) -> tuple[int, int]:
    """The counts that a rate from `low` to `high` makes likely."""
    # the constant covers small rates, where the tail is Poisson's
    below = n * low - _DEVIATIONS * np.sqrt(n * low * (1 - low)) - 20
    above = n * high + _DEVIATIONS * np.sqrt(n * high * (1 - high)) + 20
    return max(int(below), 0), min(int(above), n)


def _binomial(k: Floats, n: int, rate: Floats) -> Floats:
    chosen = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    probability: Floats = np.exp(chosen + xlogy(k, rate) + xlog1py(n - k, -rate))
    return probability
