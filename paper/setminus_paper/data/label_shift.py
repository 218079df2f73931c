"""Label shift by choice of rows: the classes change their frequency, each class keeps its images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.datasets.split import Split
from setminus.errors import UserError

Ints = NDArray[np.int64]


def shift_by_halves(
    split: Split, first: float = 0.7, second: float = 0.3, *, seed: int, n_classes: int | None = None
) -> Split:
    """Make the first half of the classes more frequent than the second: the paper's label shift.

    The classes below ``n_classes // 2`` are the first half. Both halves are trimmed to the size of the smaller
    one; of what stays, the shares `first` and `second` are kept. The paper's source domain has (0.7, 0.3), its
    target domain (0.3, 0.7).

    Parameters
    ----------
    split : Split
        Labels `y` are integers from 0.
    first, second : float in [0, 1]
        The share of each half that is kept.
    seed : int
        Seed of the choice.
    n_classes : int, optional
        How many classes there are; by default one more than the highest label.

    Returns
    -------
    Split
        The rows kept, in their order.

    Examples
    --------
    >>> digits = Split(x=np.zeros((200, 1)), y=np.arange(200) % 10)
    >>> shifted = shift_by_halves(digits, seed=0)
    >>> int(np.sum(shifted.y < 5)), int(np.sum(shifted.y >= 5))
    (70, 30)
    """
    for name, share in {"first": first, "second": second}.items():
        if not 0 <= share <= 1:
            raise UserError(f"{name} is {share}", do="it is a share and must be in [0, 1].")
    n_classes = _n_classes(split, n_classes)
    if n_classes < 2:
        raise UserError(f"there is {n_classes} class", do="two halves need at least two classes.")
    lower = split.y < n_classes // 2
    rng = np.random.default_rng(seed)
    size = min(np.sum(lower), np.sum(~lower))
    if size == 0:
        raise UserError(
            f"all {len(split)} rows are in one half of the {n_classes} classes", do="the other needs rows, too."
        )
    kept = [
        rng.choice(np.flatnonzero(half), size=round(share * size), replace=False)
        for half, share in ((lower, first), (~lower, second))
    ]
    return split.take(np.sort(np.concatenate(kept)))


def shift_to(split: Split, proportions: ArrayLike, *, seed: int) -> Split:
    """Keep as many rows as possible such that the classes have these proportions.

    ``n = floor(min(rows of class k / proportions[k]))`` rows are kept, ``n * proportions[k]`` of class k; fractions
    are rounded such that the sum stays n.

    Parameters
    ----------
    split : Split
        Labels `y` are integers from 0.
    proportions : array of shape (n_classes,)
        Not negative, sum 1; 0 drops a class.
    seed : int
        Seed of the choice.

    Returns
    -------
    Split
        The rows kept, in their order.

    Examples
    --------
    >>> split = Split(x=np.zeros((60, 1)), y=np.arange(60) % 3)
    >>> np.bincount(shift_to(split, [0.2, 0.5, 0.3], seed=0).y).tolist()
    [8, 20, 12]
    """
    shares = np.asarray(proportions, dtype=float)
    n_classes = _n_classes(split, None)
    if shares.ndim != 1 or len(shares) < n_classes:
        raise UserError(f"proportions have shape {shares.shape}", do=f"give one for each of the {n_classes} classes.")
    if not np.all(shares >= 0):
        raise UserError(f"proportions are {shares.tolist()}", do="none may be negative.")
    if abs(shares.sum() - 1) > 1e-9:
        raise UserError(f"proportions are {shares.tolist()} with sum {shares.sum():g}", do="they must sum to 1.")
    present = np.bincount(split.y, minlength=len(shares))
    absent = np.flatnonzero((present == 0) & (shares > 0))
    if len(absent):
        raise UserError(f"classes {absent.tolist()} have no rows", do="their proportions must be 0, or rows be added.")
    wanted = shares > 0
    # rounded: 0.7 of 10 rows must not become 6.999...
    total = int(np.floor(np.round(np.min(present[wanted] / shares[wanted]), 6)))
    counts = _largest_remainders(total * shares)
    rng = np.random.default_rng(seed)
    kept = [rng.choice(np.flatnonzero(split.y == k), size=count, replace=False) for k, count in enumerate(counts)]
    return split.take(np.sort(np.concatenate(kept)))


def keep_classes(split: Split, classes: Sequence[int]) -> Split:
    """Keep some classes and count them anew, so that two sets speak of the same ones by the same labels.

    Parameters
    ----------
    split : Split
        Labels `y` are integers from 0.
    classes : sequence of int
        The labels to keep; ``classes[k]`` becomes k.

    Returns
    -------
    Split
        The rows of these classes, in their order.

    Examples
    --------
    >>> keep_classes(Split(x=np.zeros((4, 1)), y=np.array([0, 1, 2, 3])), [3, 0, 1]).y.tolist()
    [1, 2, 0]
    """
    chosen = np.asarray(classes)
    n_classes = _n_classes(split, None)
    if len(np.unique(chosen)) != len(chosen) or not np.all((chosen >= 0) & (chosen < n_classes)):
        raise UserError(
            f"classes are {list(classes)}", do=f"they must be different labels between 0 and {n_classes - 1}."
        )
    renamed = np.full(n_classes, -1)
    renamed[chosen] = np.arange(len(chosen))
    kept = split.take(np.isin(split.y, chosen))
    return replace(kept, y=renamed[kept.y])


def _n_classes(split: Split, given: int | None) -> int:
    if len(split) == 0 or not np.issubdtype(split.y.dtype, np.integer) or split.y.min() < 0:
        raise UserError(f"y has {len(split)} rows of {split.y.dtype}", do="label shift needs integer labels from 0.")
    seen = int(split.y.max()) + 1
    if given is not None and given < seen:
        raise UserError(f"n_classes is {given}, but y has the label {seen - 1}", do=f"give at least {seen}.")
    return seen if given is None else given


def _largest_remainders(shares: NDArray[np.float64]) -> Ints:
    """Round to integers with the same sum: down, then up again where most was lost."""
    floors = np.floor(np.round(shares, 6)).astype(np.int64)
    missing = round(shares.sum()) - floors.sum()
    floors[np.argsort(floors - shares, kind="stable")[:missing]] += 1
    return floors
