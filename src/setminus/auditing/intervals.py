"""Intervals for rates and gaps that hold where they are most needed: at rates of 0 and 1, and at no gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from setminus.core.gaps import count_table, rates

__all__ = ["Interval", "bootstrap_tables", "gap_interval", "rate_interval"]

Floats = NDArray[np.float64]

# half a row of each prediction, as in Jeffreys' prior: a cell where all rows agree would never vary otherwise
_PSEUDO_ROWS = 0.5


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence limits.

    Examples
    --------
    >>> print(Interval(0.5, 0.41, 0.6))
    0.500 [0.410, 0.600]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return "undefined" if np.isnan(self.value) else f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def rate_interval(rate: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval for a share of n rows; with weights, n is their effective sample size.

    Examples
    --------
    >>> print(rate_interval(0.0, 5))
    0.000 [0.000, 0.434]
    """
    if np.isnan(rate) or not n > 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    z = float(ndtri((1 + confidence) / 2))
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    # rounding must not push the estimate out of its own interval
    return Interval(rate, max(min(float(centre - half), rate), 0.0), min(max(float(centre + half), rate), 1.0))


def bootstrap_tables(
    groups: NDArray[np.intp],
    labels: NDArray[np.intp],
    predictions: NDArray[np.intp],
    shape: tuple[int, int, int],
    *,
    weights: Floats | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> tuple[Floats, Floats]:
    """The table that is resampled, and the count tables of resampled rows.

    Rows of one cell are alike, so that resampling rows is drawing the cells' counts from a multinomial,
    whatever the number of rows. Rows with weights are not alike, and are drawn one by one.

    Parameters
    ----------
    groups, labels, predictions : ndarray of int of shape (n,)
        Codes from 0.
    shape : (n_groups, n_labels, n_classes)
    weights : ndarray of shape (n,), optional
    n_bootstrap : int
    random_state : int

    Returns
    -------
    centre : ndarray of the given shape
        The counts, with half a row of each prediction added wherever the group has rows of the label.
    draws : ndarray of shape (n_bootstrap, n_groups, n_labels, n_classes)

    Examples
    --------
    >>> codes = np.array([0, 1, 1])
    >>> centre, draws = bootstrap_tables(codes, codes, codes, (2, 2, 2), n_bootstrap=5)
    >>> centre.sum(), draws.sum(axis=(1, 2, 3)).tolist()
    (np.float64(5.0), [3.0, 3.0, 3.0, 3.0, 3.0])
    """
    rng = np.random.default_rng(random_state)
    n = len(groups)
    table = count_table(groups, labels, predictions, shape, weights)
    pseudo = np.where(table.sum(axis=-1, keepdims=True) > 0, _PSEUDO_ROWS * table.sum() / n, np.zeros(shape))
    centre = table + pseudo
    if weights is None:
        draws = rng.multinomial(n, (centre / centre.sum()).ravel(), size=n_bootstrap)
        return centre, draws.astype(np.float64).reshape(n_bootstrap, *shape)
    cells = np.concatenate([np.ravel_multi_index((groups, labels, predictions), shape), np.flatnonzero(pseudo)])
    mass = np.concatenate([weights, pseudo[pseudo > 0]])
    drawn = np.empty((n_bootstrap, centre.size))
    for draw in drawn:
        rows = rng.integers(len(cells), size=n)
        draw[:] = np.bincount(cells[rows], weights=mass[rows], minlength=centre.size)
    return centre, drawn.reshape(n_bootstrap, *shape)


def gap_interval(
    gap: Callable[[Floats], Floats],
    table: Floats,
    centre: Floats,
    draws: Floats,
    *,
    confidence: float = 0.95,
    limit: float = 1.0,
) -> Interval:
    """Limits for a gap, at a distance that the gap of the sampling error seldom exceeds.

    A gap is a seminorm of the rates: ``|gap(estimate) - gap(truth)| <= gap(estimate - truth)``. The right-hand
    side is bootstrapped, and its quantile is the reach of the interval on both sides. The percentiles of
    resampled gaps would not do: these are never negative and lie above a small gap, so that an interval from
    them excludes a true gap of zero, always.

    Parameters
    ----------
    gap : callable
        From rates, with leading axes, to gaps; a `..._from_rates` function.
    table : ndarray of shape (..., n_classes)
        The counts.
    centre, draws : ndarray
        From `bootstrap_tables`, summed over labels where the gap does not look at them.
    confidence : float
    limit : float
        The largest value that the gap can have.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from setminus.core.gaps import demographic_parity_from_rates
    >>> table = np.array([[30.0, 10.0], [20.0, 20.0]])
    >>> draws = np.random.default_rng(0).multinomial(40, [[0.75, 0.25], [0.5, 0.5]], size=(1000, 2))
    >>> print(gap_interval(demographic_parity_from_rates, table, table, draws))
    0.250 [0.050, 0.450]
    """
    value = float(gap(rates(table)))
    errors = gap(rates(draws) - rates(centre))
    errors = errors[~np.isnan(errors)]
    if np.isnan(value) or len(errors) == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    reach = float(np.quantile(errors, confidence))
    return Interval(value, max(value - reach, 0.0), max(min(value + reach, limit), value))
