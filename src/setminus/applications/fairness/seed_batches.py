"""Batches of all seeds together: what makes ten seeds cost little more than one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

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

    def __len__(self) -> int:
        """Batches in an epoch, the last one perhaps smaller."""
        full, left = divmod(len(self.tensors[0]), self.size)
        return full + (left >= LEAST)

    def rows(self, step: int, share: tuple[int, int] = (0, 1)) -> torch.Tensor:
        """The rows of the table of one batch, of shape (seeds, size), or of one process's share of it."""
        rank, world = share
        if self.size % world:
            raise ValueError(
                f"a batch of {self.size} rows cannot be dealt to {world} processes: take a multiple of {world}."
            )
        if self.epoch(step) != self._epoch:
            self._epoch = self.epoch(step)
            orders = [
                rows[torch.from_numpy(np.random.default_rng([seed, self._epoch]).permutation(len(rows)))]
                for seed, rows in zip(self.seeds, self.tensors[0].T, strict=True)
            ]
            self._order = torch.stack(orders)
        start = step % len(self) * self.size
        return self._order[:, start : start + self.size][:, rank::world]

    def at(self, step: int, share: tuple[int, int] = (0, 1)) -> Sequence[torch.Tensor]:
        """The rows of one batch of each tensor, of shape (seeds, size, ...)."""
        rows = self.rows(step, share)
        flat = rows.reshape(-1)
        # one flat index: half the time of a square one
        return [table.index_select(0, flat).view(*rows.shape, *table.shape[1:]) for table in self.table]
