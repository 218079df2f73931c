"""L-MIFR (Song, Kalluri, Grover, Zhao and Ermon 2019): a representation that keeps what it may, within a budget.

The number in the tables is the budget, in nats, for the information between representation and group.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from setminus.errors import UserError
from setminus.nn.networks import mlp
from setminus.nn.training import Loop
from setminus_paper.fairness.predictions import Predictions
from setminus_paper.fairness.training import EPOCHS, FairTask, adam, cross_entropy, stacked, trained
from setminus_paper.fairness.trials import Trials

__all__ = ["LmifrTask", "lmifr"]

RATE_BUDGET = 10.0
"""Nats for the information between representation and row."""
ASCENT = 0.1
"""Step of the multipliers."""


class Multipliers(nn.Module):  # type: ignore[misc]
    """The prices of the two budgets, for each seed; in buffers, so that a checkpoint holds them."""

    def __init__(self, seeds: int):
        super().__init__()
        self.register_buffer("rate", torch.ones(seeds))
        self.register_buffer("information", torch.ones(seeds))

    def rise(self, **excess: torch.Tensor) -> None:
        """Dual ascent: dearer where a budget is exceeded, cheaper where it is not, never below 0."""
        for name, over in excess.items():
            getattr(self, name).add_(ASCENT * over.detach()).clamp_(min=0)


class LmifrTask(FairTask):
    """The Lagrangian of a task with two budgets.

    ``min over encoder, head, decoder max over prices, adversary of
    cross entropy + reconstruction + rate_price * (rate - 10) + information_price * (information - budget)``

    with z drawn from a Gaussian whose mean and variance the encoder gives, ``rate = mean KL(q(z | x) || N(0, 1))``,
    which bounds I(z; x), ``information = H(u) + mean log adversary(u | z)``, which is I(z; u) for the best adversary,
    and a decoder that is given the group beside z, so that z need not hold it. The authors' representation knows no
    label; the cross entropy joins here so that encoder and head are those of the other methods.
    """

    def __init__(self, trials: Trials, budget: float):
        super().__init__(trials)
        self.budget = budget
        n_columns, width, n_latent = self.encoder.sizes
        self.encoder = stacked(partial(mlp, (n_columns, width, 2 * n_latent), nn.Softplus), trials.seeds, stream=2)
        self.decoder = stacked(partial(mlp, (n_latent + 1, width, n_columns), nn.Softplus), trials.seeds, stream=3)
        self.adversary = stacked(partial(mlp, (n_latent, width, 1), nn.Softplus), trials.seeds, stream=4)
        self.prices = Multipliers(len(trials.seeds))
        self.modules = {
            "encoder": self.encoder,
            "head": self.head,
            "decoder": self.decoder,
            "adversary": self.adversary,
            "prices": self.prices,
        }
        self.optimizers = {
            "network": adam(self.encoder, self.head, self.decoder),
            "adversary": adam(self.adversary),
        }
        groups = trials.group_counts.sum(axis=2)
        share = groups / groups.sum(axis=1, keepdims=True)
        self.entropy = torch.from_numpy(-(share * np.log(share)).sum(axis=1)).float()
        # one for each seed: what a seed draws must not depend on the others
        self.noise = [torch.Generator().manual_seed(seed) for seed in trials.seeds]

    def step(self, loop: Loop) -> None:
        """The adversary first, then what it plays against, then the prices."""
        x, y, u = loop.batch(self.batches)
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        noise = torch.stack([torch.randn(mean.shape[1:], generator=generator) for generator in self.noise])
        z = mean + (log_variance / 2).exp() * noise.to(mean.device)
        loop.update("adversary", self._surprise(z.detach(), u).sum())
        rate = (mean**2 + log_variance.exp() - log_variance - 1).sum(-1).mean(1) / 2
        information = self.entropy.to(z.device) - self._surprise(z, u)
        rebuilt = self.decoder(torch.cat([z, u[..., None]], dim=-1))
        reconstruction = binary_cross_entropy_with_logits(rebuilt, x, reduction="none").sum(-1).mean(1)
        loss = (
            cross_entropy(self.logits(z), y)
            + reconstruction
            + self.prices.rate * (rate - RATE_BUDGET)
            + self.prices.information * (information - self.budget)
        )
        loop.update("network", loss.sum())
        self.prices.rise(rate=rate - RATE_BUDGET, information=information - self.budget)

    def representation(self, x: torch.Tensor) -> torch.Tensor:
        """The mean of what the encoder would draw."""
        return self.encoder(x).chunk(2, dim=-1)[0]

    def _surprise(self, z: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return cross_entropy(self.adversary(z).squeeze(-1), u)


def lmifr(trials: Trials, *, budget: float, epochs: int = EPOCHS) -> Predictions:
    """Train encoder, head and decoder within the budgets.

    Parameters
    ----------
    trials : Trials
        With columns of 0 and 1, which is what the decoder predicts.
    budget : float
        Nats of I(z; u) that are allowed: less is fairer.
    epochs : int

    Returns
    -------
    Predictions
    """
    if not np.isin(trials.x, (0, 1)).all():
        raise UserError(
            "x holds other numbers than 0 and 1", expected="the one-hot encoding, which the decoder predicts"
        )
    return trained(LmifrTask(trials, budget), epochs)
