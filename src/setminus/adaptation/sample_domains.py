"""Which rows are of the source, and which of those are held out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.errors import UserError

__all__ = ["held_out_rows", "source_rows"]


def source_rows(sample_domain: ArrayLike, n: int) -> NDArray[np.bool_]:
    """The rows of the source, by skada's convention: positive for the source, negative for the target.

    Parameters
    ----------
    sample_domain : array of int of shape (n,)
        Several sources, or targets, may have several numbers; they count as one.
    n : int
        How many rows there are.

    Returns
    -------
    ndarray of bool of shape (n,)

    Examples
    --------
    >>> source_rows([1, 3, -2], 3)
    array([ True,  True, False])
    """
    domains = np.asarray(sample_domain)
    if domains.shape != (n,) or domains.dtype.kind not in "iuf":
        raise UserError(
            f"sample_domain has shape {domains.shape} of {domains.dtype}, X has {n} rows",
            expected=f"({n},), positive numbers for source rows and negative ones for target rows",
        )
    # `not all` also catches NaN
    if not np.all((domains > 0) | (domains < 0)):
        raise UserError("sample_domain has zeros or NaN", expected="positive for source, negative for target rows")
    of_source: NDArray[np.bool_] = domains > 0
    if not of_source.any():
        raise UserError("the source domain has no rows", do="sample_domain must be positive for labelled rows.")
    return of_source


def held_out_rows(codes: NDArray[np.int64], share: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    """A share of the rows of each class, at least one and never all; none where a class has fewer than three.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Classes from 0, each with rows.
    share : float between 0 and 1
    random : RandomState

    Returns
    -------
    ndarray of bool of shape (n,)

    Examples
    --------
    >>> codes = np.repeat([0, 1], [40, 10])
    >>> np.bincount(codes[held_out_rows(codes, 0.2, np.random.RandomState(0))])
    array([8, 2])
    """
    held = np.zeros(len(codes), dtype=bool)
    counts = np.bincount(codes)
    if counts.min() < 3:
        return held
    for k, count in enumerate(counts):
        rows = random.permutation(np.flatnonzero(codes == k))
        held[rows[: min(max(round(share * count), 1), count - 1)]] = True
    return held
