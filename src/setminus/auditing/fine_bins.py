"""Fine bins of scores, the same for every table, so that rows can be counted part by part.

The bins are 1/2500 wide between 0.02 and 0.98. Below 0.02 there are 128 to each halving of the score, and as many to
each halving of its distance from 1 above 0.98: scores of rare events lie there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["N_BINS", "N_PARTS", "equal_mass_bins", "parts_of_bins", "score_bins"]

Floats = NDArray[np.float64]

N_PARTS = 50
"""Equal parts of 0 to 1, those of the score histograms; each fine bin lies in one of them."""

_FINER = 50
_EDGES = np.linspace(0, 1, N_PARTS * _FINER + 1)
# those of `score_histograms` to the last bit
_EDGES[::_FINER] = np.linspace(0, 1, N_PARTS + 1)
_SHIFT = 52 - 7
_LOWEST, _HIGHEST = np.array([2.0**-24, _EDGES[_FINER]]).view(np.int64) >> _SHIFT
_TAIL = int(_HIGHEST - _LOWEST) + 1

N_BINS = 2 * _TAIL + (N_PARTS - 2) * _FINER
"""Number of fine bins."""


def score_bins(score: Floats) -> NDArray[np.intp]:
    """The bin of each score from 0 to 1; a larger score is in the same bin or in a later one.

    Examples
    --------
    >>> first, second, last = score_bins(np.array([0.0, 0.5, 1.0])).tolist()
    >>> first, second - first == last - second + 1, last == N_BINS - 1
    (0, True, True)
    """
    place = (score * (N_PARTS * _FINER)).astype(np.intp)
    np.minimum(place, N_PARTS * _FINER - 1, out=place)
    # the product is rounded
    place -= score < _EDGES[place]
    place += score >= _EDGES[1:][place]
    low, high = np.flatnonzero(place < _FINER), np.flatnonzero(place >= (N_PARTS - 1) * _FINER)
    place += _TAIL - _FINER
    place[low] = _tail(score[low])
    place[high] = N_BINS - 1 - _tail(1 - score[high])
    return place


def _tail(score: Floats) -> NDArray[np.int64]:
    """The exponent of small numbers and the first 7 bits behind it, from 0."""
    place: NDArray[np.int64] = np.clip((score.view(np.int64) >> _SHIFT) - _LOWEST, 0, _TAIL - 1)
    return place


def parts_of_bins() -> NDArray[np.intp]:
    """Which of the equal parts of `score_histograms` each bin lies in."""
    inner = np.repeat(np.arange(1, N_PARTS - 1), _FINER)
    return np.concatenate([np.zeros(_TAIL, np.intp), inner, np.full(_TAIL, N_PARTS - 1)])


def equal_mass_bins(rows: NDArray[np.integer], n_bins: int) -> NDArray[np.intp]:
    """Which of at most `n_bins` bins of about equal mass each fine bin belongs to, from the number of rows in each.

    A bin ends where a fine bin ends, so that counts suffice. Some numbers may be left out.

    Examples
    --------
    >>> rows = np.zeros(N_BINS, int)
    >>> rows[[100, 700, 1500, 2000]] = 1, 1, 1, 1
    >>> equal_mass_bins(rows, 2)[[100, 700, 1500, 2000]].tolist()
    [0, 0, 1, 1]
    """
    total = rows.cumsum()
    wanted = np.linspace(0, total[-1], n_bins + 1)[1:-1]
    ends = np.unique(np.searchsorted(total, wanted))
    return np.searchsorted(ends, np.arange(N_BINS), side="left")
