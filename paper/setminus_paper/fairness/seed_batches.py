"""Batches of all seeds together: what makes ten seeds cost little more than one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from setminus.errors import UserError
from setminus.nn.batches import Batches

__all__ = ["SeedBatches"]

LEAST = 4
"""Rows of a batch."""


class SeedBatches(Batches):
    """Batches of shape (seeds, size, ...): each seed goes through its own rows in its own order.

    A last part of an epoch that does not fill a batch is kept, as PyTorch's loader does and hence the paper did: what
    is predicted after an epoch depends on the small batch before it. Fewer rows than 4 are left out, of which HSIC
    cannot be estimated.

    Parameters
    ----------
    *tensors : Tensor of shape (n, ...)
        The table that all seeds share.
    rows : Tensor of int64 of shape (seeds, rows)
        Which rows of the table each seed learns from.
    size : int
        Rows of a batch of each seed.
    seeds : sequence of int
        Of the permutations; a seed deals its rows the same way whichever others are there.

    Examples
    --------
    >>> batches = SeedBatches(torch.arange(10), rows=torch.tensor([[0, 1, 2, 3], [6, 7, 8, 9]]), size=2, seeds=(0, 1))
    >>> len(batches), torch.stack([batches.at(step)[0] for step in range(2)]).flatten().sort().values.tolist()
    (2, [0, 1, 2, 3, 6, 7, 8, 9])
    """

    def __init__(self, *tensors: torch.Tensor, rows: torch.Tensor, size: int, seeds: Sequence[int]):
        super().__init__(rows.T, size=size, seed=0)
        self.table = tensors
        self.seeds = seeds
        self._dealt: list[torch.Tensor] = []

    def __len__(self) -> int:
        """Batches in an epoch, the last one perhaps smaller."""
        full, left = divmod(len(self.tensors[0]), self.size)
        return full + (left >= LEAST)

    def rows(self, step: int, share: tuple[int, int] = (0, 1)) -> torch.Tensor:
        """The rows of the table of one batch, of shape (seeds, size), or of one process's share of it."""
        self._deal(self.epoch(step))
        return self._part(self._order, step, share)

    def at(self, step: int, share: tuple[int, int] = (0, 1)) -> Sequence[torch.Tensor]:
        """The rows of one batch of each tensor, of shape (seeds, size, ...)."""
        self._deal(self.epoch(step))
        return [self._part(dealt, step, share) for dealt in self._dealt]

    def _deal(self, epoch: int) -> None:
        """Put all rows of an epoch in its order: a batch is then a part of memory, and nothing to look up."""
        if epoch == self._epoch:
            return
        self._epoch = epoch
        orders = [
            rows[torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(len(rows)))]
            for seed, rows in zip(self.seeds, self.tensors[0].T, strict=True)
        ]
        self._order = torch.stack(orders)
        flat = self._order.reshape(-1)
        self._dealt = [table.index_select(0, flat).view(*self._order.shape, *table.shape[1:]) for table in self.table]

    def _part(self, dealt: torch.Tensor, step: int, share: tuple[int, int]) -> torch.Tensor:
        rank, world = share
        if self.size % world:
            raise UserError(
                f"a batch of {self.size} rows cannot be dealt to {world} processes", do=f"take a multiple of {world}."
            )
        start = step % len(self) * self.size
        return dealt[:, start : start + self.size][:, rank::world]
