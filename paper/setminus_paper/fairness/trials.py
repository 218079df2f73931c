"""One table, dealt into training, validation and test rows once for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.split import Split, random_split
from setminus.datasets.tabular import Encoding, load_adult, load_german
from setminus.errors import UserError

__all__ = ["Trials", "adult_trials", "german_trials"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

VALIDATION = 0.25
"""The share of the rows outside the test part that picks the epoch, and nothing else."""
GERMAN_TEST = 0.2


# eq=False: compared and hashed as an object, so that what was trained on it can be found again
@dataclass(frozen=True, eq=False)
class Trials:
    """Rows of a table with two labels and two groups, and which of them each seed uses for what.

    Attributes
    ----------
    x : ndarray of shape (n, d)
    y, u : ndarray of int of shape (n,)
        The label and the group, 0 or 1.
    seeds : tuple of int
        Of the deal, the networks, the batches and the noise.
    train, validation, test : ndarray of int of shape (seeds, rows)
        The rows of each part, for each seed.
    categorical : tuple of int
        Columns of `x` that hold category codes.
    """

    x: Floats
    y: Codes
    u: Codes
    seeds: tuple[int, ...]
    train: Codes
    validation: Codes
    test: Codes
    categorical: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("y", "u"):
            found = np.unique(getattr(self, name)).tolist()
            if found != [0, 1]:
                raise UserError(f"{name} holds {found}", expected="the codes 0 and 1, both of them")
        for name in ("train", "validation", "test"):
            rows = getattr(self, name)
            if rows.ndim != 2 or len(rows) != len(self.seeds):
                raise UserError(
                    f"{name} has shape {rows.shape}", expected=f"({len(self.seeds)}, rows), one for each seed"
                )

    @property
    def group_counts(self) -> Floats:
        """Training rows of each seed by group and label, of shape (seeds, 2, 2)."""
        cells = 2 * self.u[self.train] + self.y[self.train]
        return np.stack([(cells == cell).sum(axis=1) for cell in range(4)], axis=1).reshape(-1, 2, 2).astype(float)

    def learning_from_all(self) -> Trials:
        """The same with the validation rows among the training rows, as where nothing is held out to pick an epoch."""
        return replace(self, train=np.concatenate([self.train, self.validation], axis=1))

    @classmethod
    def dealt(cls, split: Split, seeds: Sequence[int], test: Split | None = None) -> Trials:
        """Deal a table anew for each seed.

        Parameters
        ----------
        split : Split
            `y` and `z1` with two values each.
        seeds : sequence of int
        test : Split, optional
            The test rows of all seeds; without it each seed holds out its own fifth of `split`.

        Returns
        -------
        Trials

        Examples
        --------
        >>> rows = Split(x=np.zeros((100, 3)), y=np.arange(100) % 2, z1=np.arange(100) // 50)
        >>> trials = Trials.dealt(rows, seeds=(0, 1))
        >>> trials.train.shape, trials.validation.shape, trials.test.shape
        ((2, 60), (2, 20), (2, 20))
        """
        held_out = GERMAN_TEST if test is None else 0.0
        shares = [(1 - held_out) * (1 - VALIDATION), (1 - held_out) * VALIDATION, *([held_out] if held_out else [])]
        # the split's own rows are dealt by number, so that all seeds share one table
        numbers = Split(x=np.arange(len(split))[:, None], y=split.y)
        by_seed = [[part.x[:, 0] for part in random_split(numbers, shares, seed)] for seed in seeds]
        parts = [np.stack(rows) for rows in zip(*by_seed, strict=True)]
        tables = [split]
        if test is not None:
            tables.append(test)
            parts.append(np.tile(len(split) + np.arange(len(test)), (len(seeds), 1)))
        train_rows, validation_rows, test_rows = parts
        columns = tuple(split.feature_names.index(name) for name in split.categorical)
        groups = np.concatenate([table.z1 for table in tables if table.z1 is not None])
        return cls(
            np.concatenate([table.x for table in tables]).astype(np.float64),
            np.concatenate([table.y for table in tables]).astype(np.intp),
            np.unique(groups, return_inverse=True)[1].astype(np.intp),
            tuple(seeds),
            train_rows,
            validation_rows,
            test_rows,
            columns,
        )


def adult_trials(seeds: Sequence[int], encoding: Encoding = "onehot") -> Trials:
    """Adult: the test file for every seed; a quarter of the training file, its own for each seed, validates.

    Parameters
    ----------
    seeds : sequence of int
    encoding : {"onehot", "raw"}
        See `load_adult`; the paper's is "onehot". Group 1 is "Male".
    """
    train, test = load_adult(encoding=encoding)
    return Trials.dealt(train, seeds, test)


def german_trials(seeds: Sequence[int], encoding: Encoding = "onehot") -> Trials:
    """German: 600 rows to learn from, 200 to validate and 200 to test on, dealt anew for each seed.

    Parameters
    ----------
    seeds : sequence of int
    encoding : {"onehot", "raw"}
        See `load_german`; the paper's is "onehot". Group 1 is those older than the median.
    """
    return Trials.dealt(load_german(encoding=encoding, seed=None), seeds)
