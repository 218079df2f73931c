"""Batches of data in memory as a function of the step alone: nothing to save, nothing to wind forward on resume."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["Batches", "balanced_order"]


class Batches:
    """Tensors of equal length, shuffled in each epoch.

    Batch `step` is rows ``order[start : start + size]`` with ``order`` the permutation that (`seed`, epoch) give. A
    last incomplete batch of an epoch is left out.

    Parameters
    ----------
    *tensors : Tensor of shape (n, ...)
        Rows that belong together.
    size : int
        Rows in a batch, over all processes; a set that is smaller than this is one batch.
    seed : int
        Of the permutations.
    balance_by : Tensor of int of shape (n,), optional
        The class of each row: every class then fills the same share of a batch, however rare it is. An epoch has as
        many rows as before; rows of rare classes are repeated.

    Examples
    --------
    >>> batches = Batches(torch.arange(10), size=4, seed=0)
    >>> len(batches), [len(batches.at(step)[0]) for step in range(3)]
    (2, [4, 4, 4])
    >>> torch.equal(batches.at(7)[0], Batches(torch.arange(10), size=4, seed=0).at(7)[0])
    True
    """

    def __init__(self, *tensors: torch.Tensor, size: int, seed: int, balance_by: torch.Tensor | None = None):
        lengths = sorted({len(tensor) for tensor in (*tensors, *(() if balance_by is None else (balance_by,)))})
        if len(lengths) != 1 or lengths[0] == 0:
            raise UserError(f"tensors have {lengths} rows", expected="the same number in each, at least one")
        if size < 1:
            raise UserError(f"size is {size}", expected="the rows of a batch, at least 1")
        if balance_by is not None and (balance_by.ndim != 1 or balance_by.is_floating_point()):
            raise UserError(
                f"balance_by has the shape {tuple(balance_by.shape)} and the type {balance_by.dtype}",
                expected="a whole number for each row, its class",
            )
        self.tensors = tensors
        self.size: int = min(size, lengths[0])
        self.seed = seed
        self._classes = None if balance_by is None else balance_by.cpu().numpy()
        self._order = torch.empty(0, dtype=torch.int64)
        self._epoch = -1

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.tensors[0]) // self.size

    def epoch(self, step: int) -> int:
        """The epoch that a step is in."""
        return step // len(self)

    def rows(self, step: int, share: tuple[int, int] = (0, 1)) -> torch.Tensor:
        """The indices of the rows of one batch, or of one process's share of it.

        Parameters
        ----------
        step : int
        share : (rank, world size)
            This process's number, and how many there are.

        Returns
        -------
        Tensor of int64
        """
        rank, world = share
        if self.size % world:
            raise UserError(
                f"a batch of {self.size} rows cannot be divided among {world} processes",
                do=f"take a multiple of {world}.",
            )
        if self.epoch(step) != self._epoch:
            self._epoch = self.epoch(step)
            rng = np.random.default_rng([self.seed, self._epoch])
            classes, n = self._classes, len(self.tensors[0])
            self._order = torch.from_numpy(rng.permutation(n) if classes is None else balanced_order(classes, rng))
        start = step % len(self) * self.size
        return self._order[start : start + self.size][rank::world]

    def at(self, step: int, share: tuple[int, int] = (0, 1)) -> Sequence[torch.Tensor]:
        """The rows of one batch of each tensor; see `rows`."""
        rows = self.rows(step, share)
        return [tensor[rows.to(tensor.device)] for tensor in self.tensors]


def balanced_order(classes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """An order of rows in which the classes take turns; a row is repeated only after all others of its class.

    Examples
    --------
    >>> classes = np.array([0, 0, 0, 0, 0, 1])
    >>> order = balanced_order(classes, np.random.default_rng(0))
    >>> classes[order].reshape(3, 2).sum(axis=1), np.sum(order == 5)
    (array([1, 1, 1]), np.int64(3))
    """
    groups = [np.flatnonzero(classes == one) for one in np.unique(classes)]
    rounds = -(-len(classes) // len(groups))
    turns = np.concatenate([rng.permutation(len(groups)) for _ in range(rounds)])[: len(classes)]
    order = np.empty(len(classes), dtype=np.int64)
    for place, rows in enumerate(groups):
        mine = np.flatnonzero(turns == place)
        shuffled = [rng.permutation(rows) for _ in range(-(-len(mine) // len(rows)))]
        order[mine] = np.concatenate(shuffled)[: len(mine)] if shuffled else rows[:0]
    return order
