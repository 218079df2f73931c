"""Images with two known binary factors: their four groups, and the sets that oracles and environments are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.split import Split, random_split
from setminus.errors import UserError

__all__ = [
    "environments",
    "even_groups",
    "group_weights",
    "groups_of",
    "oracle_orthogonal",
    "oracle_principal",
    "split_groups",
]


def split_groups(split: Split, fractions: Sequence[float], seed: int) -> tuple[Split, ...]:
    """Deal faces at random into parts, each with its share of all groups of (z1, z2), also of the small ones.

    Parameters
    ----------
    split : Split
        With `z1` and `z2` of 0 and 1.
    fractions : sequence of float
        The share of each part; the paper has (0.8, 0.2) for training and test.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    tuple of Split
        One per fraction.
    """
    rows = Split(x=np.arange(len(split)), y=groups_of(split))
    return tuple(split.take(part.x) for part in random_split(rows, fractions, seed))


def groups_of(split: Split) -> NDArray[np.int64]:
    """The group of each row, ``2 * z1 + z2``.

    Parameters
    ----------
    split : Split
        With `z1` and `z2` of 0 and 1.

    Returns
    -------
    int array of shape (n,)
    """
    z1, z2 = _factors(split)
    return np.asarray(2 * z1 + z2)


def group_weights(split: Split) -> NDArray[np.float64]:
    """Weights under which the groups of (z1, z2) that are there weigh the same; their mean is 1.

    ``weight = n / (number of groups * size of the row's group)``: then neither factor tells the other where all
    four groups are there.

    Parameters
    ----------
    split : Split
        With `z1` and `z2` of 0 and 1.

    Returns
    -------
    float array of shape (n,)
        One weight per row.

    Examples
    --------
    >>> z1, z2 = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])
    >>> group_weights(Split(x=np.zeros(4), y=z1, z1=z1, z2=z2)).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    _, group, sizes = np.unique(groups_of(split), return_inverse=True, return_counts=True)
    return np.asarray(len(split) / (len(sizes) * sizes[group]))


def even_groups(split: Split, seed: int) -> Split:
    """The same faces, those of small groups of (z1, z2) several times, so that groups are equally large.

    For what cannot weigh rows; where it can, `group_weights` says the same without copies.

    Parameters
    ----------
    split : Split
        With `z1` and `z2` of 0 and 1.
    seed : int
        Of the order of rows, and of which faces come once more than others.

    Returns
    -------
    Split

    Examples
    --------
    >>> z1, z2 = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])
    >>> even_groups(Split(x=np.zeros(4), y=z1, z1=z1, z2=z2), seed=0).y.mean()
    np.float64(0.5)
    """
    rng = np.random.default_rng(seed)
    group = groups_of(split)
    members = [rng.permutation(np.flatnonzero(group == one)) for one in np.unique(group)]
    largest = max(map(len, members))
    return split.take(rng.permutation(np.concatenate([np.resize(rows, largest) for rows in members])))


def oracle_principal(split: Split) -> Split:
    """The faces `split`, of all four groups, with ``y = z1``: under `group_weights` only `z1` tells the class."""
    return _all_groups(replace(split, y=_factors(split)[0]))


def oracle_orthogonal(split: Split) -> Split:
    """The faces `split`, of all four groups, with ``y = z2``: under `group_weights` only `z2` tells the class."""
    return _all_groups(replace(split, y=_factors(split)[1]))


def environments(split: Split) -> list[Split]:
    """The paper's two environments, between which only p(y|z1) stays.

    In the first both factors tell the class: it has the two groups in which ``z1 == z2``. The second has all four.
    In both ``y = z1``, and groups weigh the same under `group_weights`.

    Parameters
    ----------
    split : Split
        From `load_celeba`, with faces in all groups.

    Returns
    -------
    list of Split
        Two.
    """
    everything = oracle_principal(split)
    z1, z2 = _factors(split)
    return [everything.take(z1 == z2), everything]


def _factors(split: Split) -> tuple[NDArray[Any], NDArray[Any]]:
    if split.z1 is None or split.z2 is None:
        raise UserError("the split has no z1 or no z2", do="both factors are needed, as from load_celeba.")
    return split.z1, split.z2


def _all_groups(split: Split) -> Split:
    sizes = np.bincount(groups_of(split), minlength=4)
    if not sizes.all():
        raise UserError(
            f"the groups (z1, z2) = 00, 01, 10, 11 have {sizes.tolist()} rows",
            do="where one is empty the two factors cannot be told apart. Choose other attributes or more faces.",
        )
    return split
