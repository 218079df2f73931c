"""One sample with its roles: features `x`, label `y`, what to ignore `z1`, what should remain `z2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.errors import UserError

Array = NDArray[Any]

UNLABELLED = -1
"""The label of a row that has none."""


# eq=False: comparing arrays field by field has no single truth value
@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a data set with the role of each array.

    Parameters
    ----------
    x : array of shape (n, ...)
        What the full classifier sees.
    y : array of shape (n,)
        What the classifiers predict.
    z1 : array of shape (n, ...), optional
        What the principal classifier knows: a sensitive attribute, a style, a class label.
    z2 : array of shape (n, ...), optional
        What remains, where it is known.
    feature_names : sequence of str
        One name per column of `x`, or empty.
    categorical : sequence of str
        Which of `feature_names` hold category codes rather than quantities.
    categories : mapping of str to sequence of str
        For each categorical column, what the codes 0, 1, 2, ... stand for.

    Examples
    --------
    >>> import numpy as np
    >>> split = Split(x=np.eye(3), y=np.array([0, 1, 1]), z1=np.array(["a", "b", "a"]))
    >>> len(split), split.take(split.y == 1).z1.tolist()
    (3, ['b', 'a'])
    """

    x: Array
    y: Array
    z1: Array | None = None
    z2: Array | None = None
    feature_names: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("y", "z1", "z2"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise UserError(
                    f"{name} has {len(values)} rows, x has {len(self.x)}", do="give one entry per row of x."
                )
        if self.feature_names and (self.x.ndim != 2 or len(self.feature_names) != self.x.shape[1]):
            raise UserError(
                f"feature_names has {len(self.feature_names)} names, x has shape {self.x.shape}",
                do="give one name per column, or none.",
            )
        unknown = sorted({*self.categorical, *self.categories} - {*self.feature_names})
        if unknown:
            raise UserError(
                f"{unknown} are called categorical but are not among the feature_names {self.feature_names}",
                do="give names of features.",
            )

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: ArrayLike | slice) -> Split:
        """Keep these rows, in this order.

        Parameters
        ----------
        rows : array of int or of bool, or slice
            What numpy accepts between the brackets of ``x[rows]``.

        Returns
        -------
        Split
            The same columns and names, fewer rows.
        """
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        return replace(
            self,
            x=self.x[index],
            y=self.y[index],
            z1=None if self.z1 is None else self.z1[index],
            z2=None if self.z2 is None else self.z2[index],
        )


def random_split(split: Split, fractions: Sequence[float], seed: int) -> tuple[Split, ...]:
    """Deal the rows at random into disjoint parts, each with the share of every class of `y`, to within one row.

    Parameters
    ----------
    split : Split
        What to divide.
    fractions : sequence of float
        The share of each part; positive, sum 1.
    seed : int
        Seed of the shuffle; the same seed gives the same parts.

    Returns
    -------
    tuple of Split
        One per fraction, rows shuffled.

    Examples
    --------
    >>> import numpy as np
    >>> whole = Split(x=np.arange(10)[:, None], y=np.array([0] * 8 + [1] * 2))
    >>> [(len(part), int(part.y.sum())) for part in random_split(whole, (0.5, 0.5), seed=0)]
    [(5, 1), (5, 1)]
    """
    shares = np.asarray(fractions, dtype=float)
    if shares.ndim != 1 or not np.all(shares > 0) or abs(shares.sum() - 1) > 1e-9:
        raise UserError(f"fractions are {list(fractions)}", do="they must be positive and sum to 1.")
    order = np.random.default_rng(seed).permutation(len(split))
    classes = split.y[order]
    position = np.empty(len(split))
    for one in np.unique(classes):
        members = np.flatnonzero(classes == one)
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
    # the last edge is left out: its rounding must not push the last row past the last part
    part = np.searchsorted(np.cumsum(shares)[:-1], position, side="right")
    return tuple(split.take(order[part == k]) for k in range(len(shares)))
