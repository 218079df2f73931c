"""What the trained methods share: a network per seed, all seeds trained together, predictions after each epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from setminus.errors import UserError
from setminus.nn.networks import mlp, seeded
from setminus.nn.passes import Batches
from setminus.nn.training import Loop, Task
from setminus_paper.fairness.trials import Codes, Floats, Part, Predictions, Trials
from setminus_paper.run import train_run
from setminus_paper.stacked import StackedLayers

__all__ = [
    "EPOCHS",
    "FairTask",
    "SeedBatches",
    "TabularNetwork",
    "adam",
    "cross_entropy",
    "stacked",
    "trained",
    "vanilla",
]

EPOCHS = 30
BATCH = 64
RATE = 1e-3
BETAS = (0.5, 0.999)
MIN_BATCH = 4
"""HSIC cannot be estimated from fewer rows."""
ROWS_AT_ONCE = 4096
"""Rows of one seed predicted at a time: intermediate results then stay in the processor's cache."""


class TabularNetwork(nn.Module):  # type: ignore[misc]
    """The paper's network for tables: ``head(encoder(x))``, both with one hidden layer of softplus units.

    Examples
    --------
    >>> network = TabularNetwork(102, 2)
    >>> network(torch.zeros(4, 102)).shape, network.encoder(torch.zeros(4, 102)).shape
    (torch.Size([4, 2]), torch.Size([4, 10]))
    """

    def __init__(self, n_features: int, n_logits: int, *, width: int = 50, n_latent: int = 10) -> None:
        super().__init__()
        self.encoder = mlp((n_features, width, n_latent), nn.Softplus)
        self.head = mlp((n_latent, width, n_logits), nn.Softplus)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_logits)."""
        return self.head(self.encoder(x))


class SeedBatches(Batches):
    """Batches of shape (seeds, size, ...): each seed goes through its own rows in its own order.

    `rows`, of shape (seeds, rows), has the row numbers that each seed learns from. The order of a seed's rows does not
    depend on the other seeds. An incomplete last batch is kept, as in PyTorch's loader and hence in the paper, unless
    it has fewer than `MIN_BATCH` rows.

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
        self._shuffled: list[torch.Tensor] = []

    def __len__(self) -> int:
        """Batches in an epoch, the last one perhaps smaller."""
        full, left = divmod(len(self.tensors[0]), self.size)
        return full + (left >= MIN_BATCH)

    def rows(self, step: int, share: tuple[int, int] = (0, 1)) -> torch.Tensor:
        """Row numbers of one batch, of shape (seeds, size), or of one process's share of it."""
        self._shuffle(self.epoch(step))
        return self._part(self._order, step, share)

    def at(self, step: int, share: tuple[int, int] = (0, 1)) -> Sequence[torch.Tensor]:
        """The rows of one batch of each tensor, of shape (seeds, size, ...)."""
        self._shuffle(self.epoch(step))
        return [self._part(shuffled, step, share) for shuffled in self._shuffled]

    def _shuffle(self, epoch: int) -> None:
        """Copy all rows of an epoch in its order: a batch is then a slice, without a lookup."""
        if epoch == self._epoch:
            return
        self._epoch = epoch
        orders = [
            rows[torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(len(rows)))]
            for seed, rows in zip(self.seeds, self.tensors[0].T, strict=True)
        ]
        self._order = torch.stack(orders)
        flat = self._order.reshape(-1)
        self._shuffled = [one.index_select(0, flat).view(*self._order.shape, *one.shape[1:]) for one in self.table]

    def _part(self, shuffled: torch.Tensor, step: int, share: tuple[int, int]) -> torch.Tensor:
        rank, world = share
        if self.size % world:
            raise UserError(
                f"a batch of {self.size} rows cannot be dealt to {world} processes", do=f"take a multiple of {world}."
            )
        start = step % len(self) * self.size
        return shuffled[:, start : start + self.size][:, rank::world]


class FairTask(Task):
    """The paper's network for all seeds at once, trained by cross entropy to predict `target`, by default `trials.y`.

    `encoder` maps rows to representations, `head` those to one logit. `predicted` has the probabilities of the
    validation and the test rows, of shape (seeds, rows), after each epoch.
    """

    def __init__(self, trials: Trials, target: Codes | None = None):
        self.trials = trials
        networks = [seeded(seed, partial(TabularNetwork, trials.x.shape[1], 1)) for seed in trials.seeds]
        self.encoder: nn.Module = StackedLayers([network.encoder for network in networks])
        self.head: nn.Module = StackedLayers([network.head for network in networks])
        self.modules: dict[str, nn.Module] = {"encoder": self.encoder, "head": self.head}
        self.optimizers: dict[str, torch.optim.Optimizer] = {"network": adam(self.encoder, self.head)}
        self.x = torch.from_numpy(trials.x).float()
        y = torch.from_numpy(trials.y if target is None else target).float()
        u = torch.from_numpy(trials.u).float()
        rows = torch.from_numpy(trials.train)
        self.batches = SeedBatches(self.x, y, u, rows=rows, size=BATCH, seeds=trials.seeds)
        self.predicted: list[tuple[Floats, Floats]] = []

    def step(self, loop: Loop) -> None:
        """Cross entropy, each seed on its own batch."""
        x, y, _ = loop.batch(self.batches)
        loop.update("network", cross_entropy(self.logits(self.encoder(x)), y).sum())

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        """The head's log odds of label 1, of shape (seeds, n)."""
        return self.head(z).squeeze(-1)

    def representation(self, x: torch.Tensor) -> torch.Tensor:
        """The input of the head when predicting."""
        return self.encoder(x)

    def evaluate(self, loop: Loop) -> dict[str, float]:
        """Predict the validation and the test rows."""
        self.predicted.append((self._proba(self.trials.validation, loop), self._proba(self.trials.test, loop)))
        return {}

    def _proba(self, rows: Codes, loop: Loop) -> Floats:
        parts = torch.from_numpy(rows).split(ROWS_AT_ONCE, dim=1)
        with torch.no_grad():
            logits = [self.logits(self.representation(self.x[part].to(loop.device))) for part in parts]
        proba: Floats = torch.cat(logits, dim=1).cpu().double().sigmoid().numpy()
        return proba


def stacked(build: Callable[[], nn.Sequential], seeds: tuple[int, ...], stream: int) -> StackedLayers:
    """A network for each seed, different from those that other streams of the same seeds give."""
    own = [int(np.random.SeedSequence([seed, stream]).generate_state(1)[0]) for seed in seeds]
    return StackedLayers([seeded(seed, build) for seed in own])


def adam(*modules: nn.Module) -> torch.optim.Optimizer:
    """The paper's optimizer of these modules together."""
    weights = [weight for module in modules for weight in module.parameters()]
    return torch.optim.Adam(weights, RATE, betas=BETAS, fused=True)


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean over the batch of each seed, of shape (seeds,).

    Examples
    --------
    >>> cross_entropy(torch.zeros(2, 4), torch.ones(2, 4)).exp()
    tensor([2., 2.])
    """
    return binary_cross_entropy_with_logits(logits, target, reduction="none").mean(1)


def trained(task: FairTask, epochs: int = EPOCHS) -> Predictions:
    """Train for some epochs and predict after each of them."""
    start = time.perf_counter()
    per_epoch = len(task.batches)
    train_run(task, steps=epochs * per_epoch, log_every=0, evaluate_every=per_epoch)
    validation, test = (np.stack(epochs, axis=1) for epochs in zip(*task.predicted, strict=True))
    seconds = (time.perf_counter() - start) / len(task.trials.seeds)
    return Predictions(Part.of(validation), Part.of(test), seconds)


def vanilla(trials: Trials, *, epochs: int = EPOCHS) -> Predictions:
    """The full classifier w_x: the paper's network on cross entropy, without any regard to fairness."""
    return _vanilla(trials, epochs)


# every method that trains no network starts from it
@lru_cache(maxsize=2)
def _vanilla(trials: Trials, epochs: int) -> Predictions:
    return trained(FairTask(trials), epochs)
