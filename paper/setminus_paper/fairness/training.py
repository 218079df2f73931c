"""What the trained methods share: the paper's network for each seed, how it learns, what it says after each epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from setminus.nn.networks import seeded
from setminus.nn.training import Loop, Task, TrainingConfig, train
from setminus_paper.fairness.network import TabularNetwork
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.seed_batches import SeedBatches
from setminus_paper.fairness.trials import Codes, Floats, Trials
from setminus_paper.stacked_layers import StackedLayers

__all__ = ["EPOCHS", "FairTask", "adam", "cross_entropy", "stacked", "trained"]

EPOCHS = 30
BATCH = 64
RATE = 1e-3
BETAS = (0.5, 0.999)
ROWS_AT_ONCE = 4096
"""Of one seed, when predicting: what is in between then stays in the processor's cache."""


class FairTask(Task):
    """The paper's network on all seeds at once; by itself it is trained by cross entropy.

    Parameters
    ----------
    trials : Trials
    target : ndarray of int of shape (n,), optional
        What to predict, 0 or 1, for each row of the table; `trials.y` by default.

    Attributes
    ----------
    encoder, head : StackedLayers
        From rows to representations, and from those to one logit.
    predicted : list of (validation, test)
        The probabilities of shape (seeds, rows) after each epoch.
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
        """What the head is given when predicting."""
        return self.encoder(x)

    def evaluate(self, loop: Loop) -> dict[str, float]:
        """Predict the validation and the test rows."""
        self.predicted.append((self._proba(self.trials.validation, loop), self._proba(self.trials.test, loop)))
        return {}

    def _proba(self, rows: Codes, loop: Loop) -> Floats:
        parts = torch.from_numpy(rows).split(ROWS_AT_ONCE, dim=1)
        with torch.no_grad():
            logits = [self.logits(self.representation(self.x[part].to(loop.device))) for part in parts]
        proba: Floats = torch.cat(logits, dim=1).double().sigmoid().cpu().numpy()
        return proba


def stacked(build: Callable[[], nn.Sequential], seeds: tuple[int, ...], stream: int) -> StackedLayers:
    """A network for each seed, apart from those that other streams of the same seeds give."""
    drawn = [int(np.random.SeedSequence([seed, stream]).generate_state(1)[0]) for seed in seeds]
    return StackedLayers([seeded(seed, build) for seed in drawn])


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
    """Train for some epochs and predict after each of them.

    Parameters
    ----------
    task : FairTask
    epochs : int

    Returns
    -------
    Predictions
    """
    start = time.perf_counter()
    per_epoch = len(task.batches)
    train(task, TrainingConfig(steps=epochs * per_epoch, log_every=0, evaluate_every=per_epoch))
    validation, test = (np.stack(epochs, axis=1) for epochs in zip(*task.predicted, strict=True))
    seconds = (time.perf_counter() - start) / len(task.trials.seeds)
    return Predictions(Part.of(validation), Part.of(test), seconds)
