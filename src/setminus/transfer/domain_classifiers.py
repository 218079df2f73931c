r"""Classifiers of the image domain: by the whole image, or by one column of labels alone.

``full \ principal`` divides one small probability by another, hence needs both to be accurate far from 1/2: after one
epoch at the paper's constant rate the quotient is off by a tenth. Three things mend that: a learning rate that falls to
zero along a cosine, a moving average of the weights with its own batch statistics, and enough images. Where there are
few, shifts and blends of them take their place.

`DomainByColumn` needs labels of one factor z only. By Bayes' rule a classifier of z gives the density of an image given
z, ``p(x|z) = p(z|x) p(x) / p(z)``, with p(z) the frequencies in its training data. If the domains d differed in this
factor alone, their densities would be

    p_d(x) = sum_z p(z|d) p(x|z) = p(x) * sum_z p(z|x) / p(z) * p(z|d)

so that ``log p_A(x) - log p_B(x)`` is the log density ratio of this factor. It is exact where the image determines z:
there it is ``log p(z|A) / p(z|B)``, bounded because the frequencies p(z|d) are smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import update_bn

from setminus.errors import UserError
from setminus.nn.networks import DigitClassifier, seeded
from setminus.nn.passes import Batches, device_of, in_float32
from setminus.nn.training import Loop, Outcome, Task, TrainingConfig, train
from setminus.transfer.networks import shifted, signed

__all__ = [
    "ClassifierConfig",
    "DomainByColumn",
    "fit_domain_classifier",
    "log_proba",
    "overlap_weights",
    "shares_by_classifier",
    "smoothed_shares",
]

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
    shift : int
        Largest number of pixels by which a training image is shifted, each time anew.
    mixup : bool
        Train on blends of two images (Zhang et al. 2018, with a uniform share). Together with shifts this keeps a
        network from learning few heavily weighted images by heart, and its log odds near the true ones.
    """

    width: int = 64
    epochs: int = 3
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    average: float | None = 0.995
    cosine: bool = True
    shift: int = 0
    mixup: bool = False


class _Fit(Task):
    """Weighted cross entropy at a decaying rate."""

    def __init__(self, network: nn.Module, batches: Batches, config: ClassifierConfig):
        self.modules = {"network": network}
        self.optimizers = {
            "network": torch.optim.SGD(
                network.parameters(), config.rate, momentum=config.momentum, weight_decay=config.weight_decay
            )
        }
        self.batches = batches
        self.config = config
        self.steps = config.epochs * len(batches)

    def step(self, loop: Loop) -> None:
        x, y, weights = loop.batch(self.batches)
        images = shifted(signed(x), self.config.shift)
        if self.config.mixup:
            share, order = torch.rand(()), torch.randperm(len(y))
            logits = self.modules["network"](share * images + (1 - share) * images[order])
            loss = share * _loss(logits, y, weights) + (1 - share) * _loss(logits, y[order], weights[order])
        else:
            loss = _loss(self.modules["network"](images), y, weights)
        loop.update("network", loss)

    def rate(self, step: int) -> float:
        return 0.5 * (1 + math.cos(math.pi * step / self.steps)) if self.config.cosine else 1.0


def _loss(logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (weights * cross_entropy(logits, y, reduction="none")).mean()


def fit_domain_classifier(
    x: torch.Tensor,
    y: torch.Tensor,
    config: ClassifierConfig,
    *,
    seed: int,
    weights: torch.Tensor | None = None,
    network: nn.Module | None = None,
    trainer: Callable[[Task, TrainingConfig], Outcome] = train,
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
        From images in [-1, 1] to logits, trained in place; by default the paper's for digits.
    trainer : callable, default=train
        Trains the task; one of your own can choose another device.

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
    outcome = trainer(task, TrainingConfig(steps=task.steps, seed=seed, ema=config.average, log_every=0))
    fitted: nn.Module = outcome.averaged.get("network", network)
    # batch statistics of the averaged weights; seeded, since a network may have noise of its own
    seeded(seed, lambda: update_bn(map(signed, _mixed(x)), fitted, device_of(fitted)))
    return fitted.eval()


def _mixed(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """Parts with every n-th row each, since rows may be sorted by domain."""
    n_parts = -(-len(x) // ROWS_AT_ONCE)
    return (x[part::n_parts] for part in range(n_parts))


def log_proba(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the domains, of shape (n, 2), in float64 on the CPU: their differences need the digits."""
    device = device_of(network)
    with torch.no_grad():
        logits = [network(signed(part).to(device)).cpu() for part in x.split(ROWS_AT_ONCE)]
    return torch.cat(logits).double().log_softmax(-1)


Floats = NDArray[np.float64]

EM_STEPS = 200
"""More than enough for a few classes."""


class DomainByColumn(nn.Module):  # type: ignore[misc]
    """A classifier of the domain by one column of labels alone.

    ``logit_d = log sum_z p(z|x) / p(z) * p(z|d)``; their softmax is p(d|z), for domains that are equally frequent.

    Parameters
    ----------
    column : Module
        From images to logits of shape (n, K), of the K values of the column.
    column_prior : K numbers
        p(z), the shares of the values in the data that it was trained on, all positive.
    given_a, given_b : K numbers
        p(z|A) and p(z|B).

    Examples
    --------
    >>> sees_0 = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> _ = nn.init.zeros_(sees_0[1].weight), sees_0[1].bias.data.copy_(torch.tensor([30.0, 0.0]))
    >>> by_column = DomainByColumn(sees_0, column_prior=(0.5, 0.5), given_a=(0.9, 0.1), given_b=(0.3, 0.7))
    >>> by_column(torch.rand(1, 3, 2, 2)).softmax(1).detach().numpy().round(3).tolist()
    [[0.75, 0.25]]
    """

    def __init__(self, column: nn.Module, *, column_prior: ArrayLike, given_a: ArrayLike, given_b: ArrayLike) -> None:
        super().__init__()
        prior, *given = (np.asarray(shares, dtype=float) for shares in (column_prior, given_a, given_b))
        same_shape = prior.ndim == 1 and all(shares.shape == prior.shape for shares in given)
        if (
            not same_shape
            or not np.all(prior > 0)
            or not np.all(np.array(given) >= 0)
            or not np.allclose([shares.sum() for shares in (prior, *given)], 1)
        ):
            raise UserError(
                f"column_prior is {column_prior!r}, given_a {given_a!r}, given_b {given_b!r}",
                expected="a share for each value in all three, none negative, none 0 in the first, with the sum 1",
            )
        self.column = column
        # of shape (domain, value); -inf for a value that a domain lacks adds nothing to its sum
        with np.errstate(divide="ignore"):
            factors = np.log(np.array(given)) - np.log(prior)
        self.register_buffer("log_factors", torch.from_numpy(factors).float().to(device_of(column)))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, 2): domain A, domain B."""
        log_z = in_float32(self.column(images)).log_softmax(-1)
        return torch.logsumexp(log_z[:, None] + self.log_factors, dim=2)


def smoothed_shares(z: ArrayLike, n_values: int = 2) -> Floats:
    """The frequencies of 0, 1, ... among labels, with half a label added to each: none is 0.

    Examples
    --------
    >>> smoothed_shares([0, 0, 0, 0]).tolist()
    [0.9, 0.1]
    """
    counts = np.bincount(np.asarray(z, dtype=np.int64), minlength=n_values) + 0.5
    return np.asarray(counts / counts.sum())


def shares_by_classifier(proba: ArrayLike, prior: ArrayLike) -> Floats:
    """Maximum likelihood frequencies of the values among images without labels, from p(z|x) of shape (n, K).

    Expectation maximisation of ``sum_x log sum_z p(z|x) / prior(z) * share(z)``, smoothed as `smoothed_shares`; `prior`
    has the frequencies in the data that the classifier was trained on.

    Examples
    --------
    >>> shares_by_classifier([[0.999, 0.001]] * 30 + [[0.001, 0.999]] * 10, (0.5, 0.5)).round(2).tolist()
    [0.74, 0.26]
    """
    likelihood = np.asarray(proba, dtype=float) / np.asarray(prior, dtype=float)
    shares = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(EM_STEPS):
        joint = likelihood * shares
        counts = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + 0.5
        shares = counts / counts.sum()
    return np.asarray(shares)


def overlap_weights(y: ArrayLike, z: ArrayLike) -> Floats:
    """Weights of labelled images that make the column independent of the place (folder A, folder B, neither).

    Whatever else differs between the folders is correlated with the column across folders, not within one. So all
    values of a place get the same weight within it, and a place with one value only gets none:
    ``weight = n(place) / (n_values(place) * n(place, value))``.

    Parameters
    ----------
    y : array of shape (n,)
        The place of each image: 0 in domain A, 1 in B, -1 in neither.
    z : array of shape (n,)
        Its value: 0, 1, ...

    Returns
    -------
    float array of shape (n,)

    Raises
    ------
    ValueError
        If no place has two values.

    Examples
    --------
    >>> overlap_weights([0, 0, 0, 1, -1, -1], [0, 0, 1, 1, 0, 1]).tolist()
    [0.75, 0.75, 1.5, 0.0, 1.0, 1.0]
    """
    places, values = np.asarray(y), np.asarray(z)
    weights = np.zeros(len(places))
    for place in np.unique(places):
        here = places == place
        found, codes, counts = np.unique(values[here], return_inverse=True, return_counts=True)
        if len(found) > 1:
            weights[here] = here.sum() / (len(found) * counts[codes])
    if not np.any(weights):
        raise UserError(
            "neither folder A nor folder B nor the other labelled images have two values of the column",
            do="label images of both values in one of the three, so that it can be separated from other differences.",
        )
    return weights
