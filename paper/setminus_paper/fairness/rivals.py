"""The paper's rivals that train a fair representation: LAFTR, L-MIFR and ReBias."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from setminus.errors import UserError
from setminus.nn.networks import mlp
from setminus.nn.training import Loop
from setminus_paper.fairness.training import EPOCHS, FairTask, adam, cross_entropy, stacked, trained
from setminus_paper.fairness.trials import Predictions, Trials

__all__ = ["LaftrTask", "LmifrTask", "RebiasTask", "hsic", "laftr", "lmifr", "rebias", "sum_of_cell_means"]

RATE_BUDGET = 10.0
"""Nats allowed for the information between representation and row (L-MIFR)."""
ASCENT = 0.1
"""Step size of the multipliers (L-MIFR)."""
BANDWIDTH = 1.0
"""Bandwidth of HSIC. With the median distance, the representation on German collapses to the majority class."""


class LaftrTask(FairTask):
    """LAFTR (Madras, Creager, Pitassi and Zemel 2018): an adversary tries to predict the group from the representation.

    ``min over encoder, head max over adversary of cross entropy - gamma * distance(adversary(z, y), u)``

    The distance is the sum over groups and labels of the mean |adversary(z, y) - u| over the rows of that cell.
    The adversary also gets the label: its success is then bounded by the equalized odds gap.
    """

    def __init__(self, trials: Trials, gamma: float):
        super().__init__(trials)
        self.gamma = gamma
        n_latent, width, _ = self.head.sizes
        self.adversary = stacked(partial(mlp, (n_latent + 1, width, 1), nn.Softplus), trials.seeds, stream=1)
        self.modules["adversary"] = self.adversary
        self.optimizers["adversary"] = adam(self.adversary)
        counts = torch.from_numpy(trials.group_counts).float()
        self.share = counts / counts.sum((1, 2), keepdim=True)

    def step(self, loop: Loop) -> None:
        """Update the adversary first, then encoder and head."""
        x, y, u = loop.batch(self.batches)
        z = self.encoder(x)
        # cross entropy, not the distance: an adversary trained by the distance is soon certain of every row, its
        # gradient vanishes, and at gamma 0.5 the gap on Adult returned to that of no adversary
        entropy = binary_cross_entropy_with_logits(self._guess(z.detach(), y), u, reduction="none")
        loop.update("adversary", self._cell_means(entropy, y, u).sum())
        distance = self._cell_means((self._guess(z, y).sigmoid() - u).abs(), y, u)
        loop.update("network", (cross_entropy(self.logits(z), y) - self.gamma * distance).sum())

    def _guess(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.adversary(torch.cat([z, y[..., None]], dim=-1)).squeeze(-1)

    def _cell_means(self, values: torch.Tensor, y: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return sum_of_cell_means(values, y, u, self.share.to(values.device))


def sum_of_cell_means(values: torch.Tensor, y: torch.Tensor, u: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """``sum over (u, y) of the mean of values over the rows of that group and label``, for each seed (first axis).

    The means divide by the expected number of such rows in a batch, because the actual number may be 0; `share`, of
    shape (seeds, 2, 2), has the share of all rows in each group and label. For an adversary's distance |guess - u| the
    sum is 2 where the guess is always 0.5, and 0 where it is perfect.

    Examples
    --------
    >>> u, y = torch.tensor([[0.0, 0, 1, 1]]), torch.tensor([[0.0, 1, 0, 1]])
    >>> sum_of_cell_means((torch.full((1, 4), 0.5) - u).abs(), y, u, torch.full((1, 2, 2), 0.25))
    tensor([2.])
    """
    cells = (2 * u + y).long()
    expected = share.flatten(1).gather(1, cells) * values.shape[1]
    return (values / expected).sum(1)


def laftr(trials: Trials, *, gamma: float, epochs: int = EPOCHS) -> Predictions:
    """Train against the adversary; a larger `gamma`, its weight beside the cross entropy, is fairer."""
    return trained(LaftrTask(trials, gamma), epochs)


class Multipliers(nn.Module):  # type: ignore[misc]
    """The prices of the two budgets, for each seed; in buffers, so that a checkpoint holds them."""

    def __init__(self, seeds: int):
        super().__init__()
        self.register_buffer("rate", torch.ones(seeds))
        self.register_buffer("information", torch.ones(seeds))

    def rise(self, **excess: torch.Tensor) -> None:
        """Dual ascent: a price rises where its budget is exceeded, falls where it is not, and stays at least 0."""
        for name, over in excess.items():
            getattr(self, name).add_(ASCENT * over.detach()).clamp_(min=0)


class LmifrTask(FairTask):
    """L-MIFR (Song, Kalluri, Grover, Zhao and Ermon 2019): a representation within a budget of group information.

    ``min over encoder, head, decoder max over prices, adversary of
    cross entropy + reconstruction + rate_price * (rate - 10) + information_price * (information - budget)``

    z is sampled from a Gaussian whose mean and variance the encoder gives, ``rate = mean KL(q(z | x) || N(0, 1))``
    bounds I(z; x), ``information = H(u) + mean log adversary(u | z)`` is I(z; u) for the best adversary, and the
    decoder gets the group beside z, so that z need not hold it. The authors' representation uses no label. In
    `two_stages` it does not here either: the head learns from sampled z and predicts from them, and its cross entropy
    has no gradient for the encoder. Otherwise the cross entropy trains encoder and head together, as in the other
    methods, and the head predicts from the mean.
    """

    def __init__(self, trials: Trials, budget: float, *, two_stages: bool = False):
        super().__init__(trials)
        self.budget = budget
        self.two_stages = two_stages
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
        # one for each seed: a seed's noise must not depend on the other seeds
        self.noise = [torch.Generator().manual_seed(seed) for seed in trials.seeds]

    def step(self, loop: Loop) -> None:
        """Update the adversary first, then the networks, then the prices."""
        x, y, u = loop.batch(self.batches)
        z, mean, log_variance = self._sampled(x, self.noise)
        loop.update("adversary", self._adversary_loss(z.detach(), u).sum())
        rate = (mean**2 + log_variance.exp() - log_variance - 1).sum(-1).mean(1) / 2
        information = self.entropy.to(z.device) - self._adversary_loss(z, u)
        rebuilt = self.decoder(torch.cat([z, u[..., None]], dim=-1))
        reconstruction = binary_cross_entropy_with_logits(rebuilt, x, reduction="none").sum(-1).mean(1)
        loss = (
            cross_entropy(self.logits(z.detach() if self.two_stages else z), y)
            + reconstruction
            + self.prices.rate * (rate - RATE_BUDGET)
            + self.prices.information * (information - self.budget)
        )
        loop.update("network", loss.sum())
        self.prices.rise(rate=rate - RATE_BUDGET, information=information - self.budget)

    def representation(self, x: torch.Tensor) -> torch.Tensor:
        """The mean of the encoder's Gaussian, or a sample, always with the same noise."""
        if self.two_stages:
            return self._sampled(x, [torch.Generator().manual_seed(seed) for seed in self.trials.seeds])[0]
        return self.encoder(x).chunk(2, dim=-1)[0]

    def _sampled(self, x: torch.Tensor, noise: list[torch.Generator]) -> tuple[torch.Tensor, ...]:
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        drawn = torch.stack([torch.randn(mean.shape[1:], generator=generator) for generator in noise])
        return mean + (log_variance / 2).exp() * drawn.to(mean.device), mean, log_variance

    def _adversary_loss(self, z: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return cross_entropy(self.adversary(z).squeeze(-1), u)


def lmifr(trials: Trials, *, budget: float, two_stages: bool = False, epochs: int = EPOCHS) -> Predictions:
    """Train within the budgets; a smaller `budget`, nats of I(z; u) that are allowed, is fairer."""
    if not np.isin(trials.x, (0, 1)).all():
        raise UserError(
            "x holds other numbers than 0 and 1", expected="the one-hot encoding, which the decoder predicts"
        )
    return trained(LmifrTask(trials, budget, two_stages=two_stages), epochs)


class RebiasTask(FairTask):
    """ReBias as the paper uses it (Bahng et al. 2020): a representation that is independent of the group by HSIC.

    ``min over encoder, head of cross entropy + gamma * hsic(z, u)``

    The original compares with representations of biased networks; here the bias is known, it is the group.
    """

    def __init__(self, trials: Trials, gamma: float):
        super().__init__(trials)
        self.gamma = gamma

    def step(self, loop: Loop) -> None:
        """Both terms on the same batch."""
        x, y, u = loop.batch(self.batches)
        z = self.encoder(x)
        dependence = torch.vmap(hsic)(z, u)
        loop.update("network", (cross_entropy(self.logits(z), y) + self.gamma * dependence).sum())


def hsic(x: torch.Tensor, y: torch.Tensor, bandwidth: float = BANDWIDTH) -> torch.Tensor:
    """How dependent two paired samples of 4 or more rows are: the unbiased estimate of HSIC by Song et al. (2012).

    ``(trace(K_x K_y) + sum(K_x) sum(K_y) / ((n - 1)(n - 2)) - 2 sum(K_x K_y) / (n - 2)) / (n (n - 3))``

    where ``K_x[i, j] = exp(-|x_i - x_j|^2 / (2 bandwidth^2))`` off the diagonal and 0 on it, K_y likewise, and the
    sums run over all entries. Its mean is 0 where x and y are independent, hence it is often negative there.

    Examples
    --------
    >>> x = torch.arange(6.0)
    >>> hsic(x, x) > hsic(x, torch.tensor([3.0, 0.0, 4.0, 5.0, 1.0, 2.0]))
    tensor(True)
    """
    n = len(x)
    if n < 4 or len(y) != n:
        raise UserError(f"x has {n} rows and y {len(y)}", expected="the same number for both, 4 or more")
    k_x, k_y = _gaussian_kernel(x, bandwidth), _gaussian_kernel(y, bandwidth)
    trace = (k_x * k_y).sum()
    sum_of_product = (k_x.sum(0) * k_y.sum(0)).sum()
    return (trace + k_x.sum() * k_y.sum() / ((n - 1) * (n - 2)) - 2 * sum_of_product / (n - 2)) / (n * (n - 3))


def _gaussian_kernel(x: torch.Tensor, bandwidth: float) -> torch.Tensor:
    """exp(-distance^2 / (2 bandwidth^2)) of each pair, with the diagonal zeroed."""
    rows = x.reshape(len(x), -1)
    # without the matrix product: it cancels for near pairs in float32
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    kernel = torch.exp(-(distances**2) / (2 * bandwidth**2))
    return kernel - torch.diag(kernel.diagonal())


def rebias(trials: Trials, *, gamma: float, epochs: int = EPOCHS) -> Predictions:
    """Train with the dependence as a penalty; a larger `gamma`, its weight, is fairer."""
    return trained(RebiasTask(trials, gamma), epochs)
