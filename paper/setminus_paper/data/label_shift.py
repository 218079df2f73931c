"""Label shift by choice of rows: the classes change their frequency, each class keeps its images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from setminus.datasets.split import Split
from setminus.errors import UserError


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


def keep_classes(split: Split, classes: Sequence[int]) -> Split:
    """Keep the rows of some classes and renumber them: ``classes[k]`` becomes k.

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
