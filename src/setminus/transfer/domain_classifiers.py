r"""Classifiers of the image domain whose probabilities can be divided.

``full \ principal`` divides one small probability by another, hence needs both to be right far from 1/2: after an
epoch at the paper's constant rate the quotient is off by a tenth. Three things mend that: a rate that falls to zero
along a cosine, a moving average of the weights with batch statistics of its own, and enough images.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import update_bn

from setminus.nn.batches import Batches
from setminus.nn.networks import DigitClassifier, seeded
from setminus.nn.training import Loop, Task, TrainingConfig, train
from setminus.transfer.pixels import signed

__all__ = ["ClassifierConfig", "fit_domain_classifier", "log_proba"]

ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class ClassifierConfig:
    """How a classifier of the domain is trained.

    Parameters
    ----------
    width : int
        Channels of its first layer; the paper has 64.
    epochs : int
    rate, momentum, weight_decay : float
        Of stochastic gradient descent; the rate is the first one.
    batch_size : int
    average : float, optional
        Decay of the moving average of the weights; None keeps the last ones.
    cosine : bool
        Whether the rate falls to zero along a cosine, or stays.
    """

    width: int = 64
    epochs: int = 3
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    average: float | None = 0.995
    cosine: bool = True


class _Fit(Task):
    """Cross-entropy of weighted rows, at a rate that falls."""

    def __init__(self, network: nn.Module, batches: Batches, config: ClassifierConfig):
        self.modules = {"network": network}
        self.optimizers = {
            "network": torch.optim.SGD(
                network.parameters(), config.rate, momentum=config.momentum, weight_decay=config.weight_decay
            )
        }
        self.batches = batches
        self.cosine = config.cosine
        self.steps = config.epochs * len(batches)

    def step(self, loop: Loop) -> None:
        x, y, weights = loop.batch(self.batches)
        losses = cross_entropy(self.modules["network"](signed(x)), y, reduction="none")
        loop.update("network", (weights * losses).mean())

    def rate(self, step: int) -> float:
        return 0.5 * (1 + math.cos(math.pi * step / self.steps)) if self.cosine else 1.0


def fit_domain_classifier(
    x: torch.Tensor,
    y: torch.Tensor,
    config: ClassifierConfig,
    *,
    seed: int,
    weights: torch.Tensor | None = None,
    network: nn.Module | None = None,
) -> nn.Module:
    """Train the paper's classifier of images on the domains they come from.

    Parameters
    ----------
    x : Tensor of shape (n, channels, height, width)
        As bytes, or in [-1, 1].
    y : Tensor of shape (n,), int64
        0 for domain A, 1 for domain B.
    config : ClassifierConfig
    seed : int
        Of the initial weights and of the batches.
    weights : Tensor of shape (n,), optional
        Of the rows, such as `importance_weights`: the classifier is then w_2 by importance sampling.

    network : Module, optional
        Another one than the paper's for digits, from images in [-1, 1] to logits; trained in place.

    Returns
    -------
    Module
        From images to logits of shape (n, 2), in evaluation mode.

    Examples
    --------
    >>> x = torch.rand(64, 3, 8, 8)
    >>> y = (x.mean((1, 2, 3)) > 0.5).long()
    >>> network = fit_domain_classifier(x, y, ClassifierConfig(width=4, epochs=1, batch_size=16), seed=0)
    >>> log_proba(network, x).shape
    torch.Size([64, 2])
    """
    if network is None:
        network = seeded(seed, lambda: DigitClassifier(width=config.width, channels=x.shape[1]))
    network.to(memory_format=torch.channels_last)
    rows = torch.ones(len(x)) if weights is None else weights
    batches = Batches(x, y, rows, size=config.batch_size, seed=seed)
    task = _Fit(network, batches, config)
    outcome = train(task, TrainingConfig(steps=task.steps, seed=seed, ema=config.average, log_every=0))
    fitted: nn.Module = outcome.averaged.get("network", network)
    # of a training's last steps they would be those of other weights; seeded, since a network may have noise of its own
    seeded(seed, lambda: update_bn(map(signed, _mixed(x)), fitted))
    return fitted.eval()


def _mixed(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """Parts of about one size with every n-th row each: of rows sorted by domain, others would be of one domain."""
    n_parts = -(-len(x) // ROWS_AT_ONCE)
    return (x[part::n_parts] for part in range(n_parts))


def log_proba(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the domains, of shape (n, 2), in float64: their differences need the digits.

    Parameters
    ----------
    network : Module
        From images to logits.
    x : Tensor of shape (n, channels, height, width)

    Returns
    -------
    Tensor
    """
    with torch.no_grad():
        return torch.cat([network(signed(part)) for part in x.split(ROWS_AT_ONCE)]).double().log_softmax(-1)
