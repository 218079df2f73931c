r"""Two ways to the orthogonal classifier, trained side by side where p(y | z2) is known.

Importance sampling fits a network on rows weighted with ``phi = p(y) / w_1(y | x)``; the formula fits the same network
on plain rows and takes ``full \ principal``. Both start from the same weights, see the same batches and are given the
exact principal classifier, so that nothing else differs. They are evaluated where z1 is independent of y and
otherwise as it was: there ``-L_IS(w) = E[-sum_y p(y | z2) log w(x)_y]`` is the test loss, and its excess over that of
p(y | z2) is ``E[KL(p(y | z2) || w(x))]``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.core.importance import (
    chi_square_divergence,
    effective_sample_size,
    importance_variance,
    importance_weights,
)
from setminus.core.orthogonalize import log_setminus
from setminus.datasets.colored_digits import ColoredDigits
from setminus.datasets.images import resize, to_signed_nchw
from setminus.datasets.split import Split
from setminus.datasets.synthetic import GaussianModel
from setminus.nn.networks import DigitClassifier, mlp, seeded
from setminus.nn.passes import Batches, device_of
from setminus.nn.training import Loop, Task, TrainingConfig
from setminus.progress import tracked
from setminus_paper.data.images import load_images
from setminus_paper.run import train_on_machine
from setminus_paper.stacked import StackedLayers

__all__ = [
    "DigitSize",
    "Schedule",
    "digit_figures",
    "gaussian_figures",
    "gaussian_model",
    "measure_digits",
    "measure_gaussians",
]

Floats = NDArray[np.float64]

PRIOR = np.full(2, 0.5)
TEST_ROWS = 10_000
VARIANCE_ROWS = 200_000
"""Rows behind a measured variance: heavy weights are rare, and few rows would miss them."""
OTHER = 1_000_000
"""Difference between the seed of the rows to learn from and those of other draws."""


@dataclass(frozen=True)
class Schedule:
    """How both networks are trained: stochastic gradient descent at one rate."""

    rows: int
    steps: int
    batch: int
    rate: float
    momentum: float = 0.9


@dataclass(frozen=True)
class DigitSize:
    """Images of `pixels` x `pixels`, a network of `width`, and `test_rows` test images."""

    pixels: int = 16
    width: int = 8
    test_rows: int = 2000


class Rows(NamedTuple):
    """Rows of one sample, with what is known exactly of each: logarithms of p(y | z1) and p(y | z2)."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    log_principal: Floats
    log_orthogonal: Floats

    def for_training(self) -> tuple[torch.Tensor, ...]:
        """`x`, `y`, and the weight phi of each row."""
        phi = importance_weights(self.y, np.exp(self.log_principal), PRIOR)
        return torch.from_numpy(self.x), torch.from_numpy(self.y), torch.from_numpy(phi.astype(np.float32))


class SideBySide(Task):
    """A network on weighted rows and one on plain rows; `importance` and `full` are their names.

    Logits are of shape (n, 2), or (n, seeds, 2), where each seed's networks have a separate loss.
    """

    def __init__(self, build: Callable[[], torch.nn.Module], rows: Sequence[torch.Tensor], schedule: Schedule):
        # built twice from the same seeds: both start from the same weights
        self.modules = {name: build() for name in ("importance", "full")}
        self.optimizers = {
            name: torch.optim.SGD(module.parameters(), schedule.rate, momentum=schedule.momentum)
            for name, module in self.modules.items()
        }
        self.batches = Batches(*rows, size=schedule.batch, seed=0)

    def step(self, loop: Loop) -> None:
        """Go down both losses on one batch."""
        x, y, phi = loop.batch(self.batches)
        for name, weights in (("importance", phi), ("full", torch.ones_like(phi))):
            surprise = -self.modules[name](x).log_softmax(-1).gather(-1, y[..., None])[..., 0]
            loop.update(name, (weights * surprise).mean(0).sum())


class _OneNetworkEach(torch.nn.Module):  # type: ignore[misc]
    """`StackedLayers` on rows of shape (n, seeds, d), so that a batch is a choice along the first axis."""

    def __init__(self, networks: list[torch.nn.Module]):
        super().__init__()
        self.stacked = StackedLayers(networks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.stacked(x.transpose(0, 1)).transpose(0, 1)


def gaussian_model(divergence: float, distance: float = 2.0) -> GaussianModel:
    """Two classes of unit Gaussians whose z1 has this expected divergence; seen turned by 45 degrees.

    With d the distance of the means of z1, Pearson's ``D(p(z1) || p(z1 | y))`` is ``(exp(d^2) - 1) / 4`` for either y.

    Examples
    --------
    >>> z1_means = gaussian_model(divergence=(np.exp(4) - 1) / 4).means[:, 0]
    >>> float(z1_means[1] - z1_means[0])
    2.0
    """
    means = np.array([[-0.5], [0.5]]) * np.array([math.sqrt(math.log1p(4 * divergence)), distance])
    turned = np.array([[1.0, -1.0], [1.0, 1.0]]) / math.sqrt(2)
    return GaussianModel(PRIOR, means, np.stack([np.eye(2)] * 2), n_z1=1, mixing=turned)


def gaussian_figures(model: GaussianModel) -> dict[str, float]:
    """The expected divergence of z1 and the variance of the importance-sampling objective at p(y | z2), exactly.

    Examples
    --------
    >>> known = gaussian_figures(gaussian_model(divergence=3.0))
    >>> round(known["divergence"], 9), round(known["variance_exact"], 3)
    (3.0, 1.649)
    """
    divergence = math.expm1(float(model.means[1, 0] - model.means[0, 0]) ** 2) / 4
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    # both classes are equal by symmetry: one of them is the expectation over y
    log_own = model.log_orthogonal(model.means[1, 1] + nodes[:, None])[:, 1]
    objective, square = (float(weights @ log_own**power / weights.sum()) for power in (1, 2))
    return {"divergence": divergence, "variance_exact": (divergence + 1) * square - objective**2}


def digit_figures(model: ColoredDigits) -> dict[str, float]:
    """The same for colored digits.

    Examples
    --------
    >>> known = digit_figures(ColoredDigits(lambda_digit=0.9))
    >>> round(known["divergence"], 4), round(known["variance_exact"], 4)
    (4.2632, 2.7374)
    """
    # both colors and both labels are equally frequent, hence p(z | y) = p(y | z)
    z1_given_y, z2_given_y = model.principal([0, 1]).T, model.orthogonal([0, 1]).T
    return {
        "divergence": float(PRIOR @ [chi_square_divergence(PRIOR, given) for given in z1_given_y]),
        "variance_exact": importance_variance(PRIOR, z1_given_y, z2_given_y),
    }


def measure_gaussians(
    seeds: tuple[int, ...], *, divergence: float, schedule: Schedule, width: int = 32
) -> Iterator[dict[str, Any]]:
    """Train the networks of all seeds together, and evaluate them one by one."""
    model = gaussian_model(divergence)
    with tracked(f"gaussians, divergence {divergence:g}, rate {schedule.rate:g}"):
        samples = [_gaussian_rows(model, schedule.rows, seed).for_training() for seed in seeds]
        rows = [torch.stack(parts, dim=1) for parts in zip(*samples, strict=True)]
        networks = [seeded(seed, lambda: mlp((2, width, 2))) for seed in seeds]
        task = SideBySide(lambda: _OneNetworkEach(networks), rows, schedule)
        train_on_machine(task, TrainingConfig(steps=schedule.steps, log_every=0))
    apart = {name: module.stacked.unstacked() for name, module in task.modules.items()}
    for place, seed in enumerate(seeds):
        test = _gaussian_rows(model, TEST_ROWS, seed + OTHER, z1_of_other_rows=True)
        yield {
            **gaussian_figures(model),
            **_variance(_gaussian_rows(model, VARIANCE_ROWS, seed + 2 * OTHER)),
            **_losses({name: networks[place] for name, networks in apart.items()}, test),
        }


def measure_digits(
    seeds: tuple[int, ...], *, lambda_digit: float, schedule: Schedule, size: DigitSize
) -> Iterator[dict[str, Any]]:
    """Train and evaluate two classifiers of colored digits for each seed."""
    model = ColoredDigits(lambda_digit=lambda_digit)
    for seed in seeds:
        with tracked(f"colored digits, z1 at {lambda_digit:g}, rate {schedule.rate:g}, seed {seed}"):
            digits = np.random.default_rng(seed).permutation(_digits(size.pixels))[: schedule.rows + size.test_rows]
            train_digits, test_digits = np.split(digits, [schedule.rows])
            rows = _digit_rows(model, model.paint(train_digits, seed)).for_training()
            test = _digit_rows(model, model.oracle_orthogonal().paint(test_digits, seed + OTHER))
            network = seeded(seed, partial(DigitClassifier, width=size.width))
            task = SideBySide(partial(copy.deepcopy, network), rows, schedule)
            train_on_machine(task, TrainingConfig(steps=schedule.steps, log_every=0))
        # a variance needs labels and colors only: images of one pixel
        points = model.paint(np.full((VARIANCE_ROWS, 1, 1), 255, dtype=np.uint8), seed + 2 * OTHER)
        yield {
            **digit_figures(model),
            **_variance(_digit_rows(model, points)),
            **_losses(task.modules, test),
        }


def _gaussian_rows(model: GaussianModel, n: int, seed: int, *, z1_of_other_rows: bool = False) -> Rows:
    split = model.sample(n, seed)
    z1, z2 = np.asarray(split.z1), np.asarray(split.z2)
    if z1_of_other_rows:
        # as frequent as it was, and without a word on y
        z1 = np.random.default_rng(seed).permutation(z1)
    x = np.hstack([z1, z2]) @ np.asarray(model.mixing).T
    return Rows(x.astype(np.float32), split.y, model.log_principal(z1), model.log_orthogonal(z2))


def _digit_rows(model: ColoredDigits, split: Split) -> Rows:
    principal, orthogonal = model.principal(np.asarray(split.z1)), model.orthogonal(np.asarray(split.z2))
    return Rows(to_signed_nchw(split.x), split.y, np.log(principal), np.log(orthogonal))


@cache
def _digits(pixels: int) -> NDArray[np.uint8]:
    """All of MNIST at this size, ink or none: a pixel that is a little grey would count as ink."""
    return np.where(resize(load_images("mnist").x, pixels) > 64, 255, 0).astype(np.uint8)


def _variance(rows: Rows) -> dict[str, float]:
    phi = importance_weights(rows.y, np.exp(rows.log_principal), PRIOR)
    log_own = np.take_along_axis(rows.log_orthogonal, rows.y[:, None], axis=1)[:, 0]
    return {"variance": float(np.var(phi * log_own)), "effective_share": effective_sample_size(phi) / len(phi)}


def _losses(networks: Mapping[str, torch.nn.Module], test: Rows) -> dict[str, float]:
    log_proba = {name: _log_proba(network, test.x) for name, network in networks.items()}
    answers = {
        "importance": log_proba["importance"],
        "orthogonal": log_setminus(log_proba["full"], test.log_principal, np.log(PRIOR)),
    }
    truth = np.exp(test.log_orthogonal)
    losses = {name: -float((truth * answer).sum(axis=1).mean()) for name, answer in answers.items()}
    least = -float((truth * test.log_orthogonal).sum(axis=1).mean())
    return {
        "loss_exact": least,
        **{f"{name}_loss": loss for name, loss in losses.items()},
        **{f"{name}_excess": loss - least for name, loss in losses.items()},
    }


def _log_proba(network: torch.nn.Module, x: NDArray[np.float32]) -> Floats:
    network.eval()
    device = device_of(network)
    with torch.no_grad():
        logits = torch.cat([network(part.to(device)).cpu() for part in torch.from_numpy(x).split(1000)])
    return np.asarray(logits.double().log_softmax(-1).numpy())
