"""CycleGAN as a task of the training loop, plain or against the orthogonal discriminator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.batches import Batches
from setminus.nn.cyclegan import AdversarialTerm, CycleGAN, CycleGANWeights, cyclegan_step, plain_adversarial
from setminus.nn.losses import Direction, orthogonal_generator_loss
from setminus.nn.networks import seeded
from setminus.nn.passes import adam, prepare
from setminus.nn.training import Loop, Task
from setminus.nn.translation_networks import DigitDiscriminator, DigitGenerator, Norm, PatchDiscriminator, UNetGenerator
from setminus.transfer.pixels import signed

__all__ = ["Judge", "TransferConfig", "TransferTask", "digit_networks", "orthogonal_adversarial", "photo_networks"]

Judge = Callable[[CycleGAN], dict[str, Any]]
"""From the networks, in evaluation mode, to plain values."""


@dataclass(frozen=True)
class TransferConfig:
    """How a translation is trained; the defaults are the paper's for digits.

    Parameters
    ----------
    batch_size : int
        Images of each domain.
    rate : float
        Of Adam, for both players.
    weights : CycleGANWeights
    seed : int
        Of the batches.
    plain_steps : int
        Steps of plain CycleGAN before the orthogonal loss begins; half of all in the paper's runs on faces.
    rest_at : int, optional
        The step at which the rate has fallen to zero, from half of it on: what is kept are the last weights, and two
        players at a full rate do not stand still. By default the rate stays, as in the paper.
    """

    batch_size: int = 128
    rate: float = 2e-4
    weights: CycleGANWeights = field(default_factory=CycleGANWeights)
    seed: int = 0
    plain_steps: int = 0
    rest_at: int | None = None


class TransferTask(Task):
    """Translate images of domain A to domain B and back.

    Parameters
    ----------
    networks : CycleGAN
        Trained in place.
    a, b : Tensor of shape (n, channels, height, width)
        Images of each domain, as bytes (see `image_tensor`) or on the scale of [-1, 1].
    config : TransferConfig
    log_ratio : Module, optional
        From images to log r = log P(z2) / Q(z2), such as `PairRatio`; with it the generators play against the
        orthogonal discriminator. Without it this is plain CycleGAN.
    judge : callable, optional
        What is kept of the networks at each evaluation.

    Examples
    --------
    >>> from setminus.nn.training import TrainingConfig, train
    >>> task = TransferTask(digit_networks(8, 4, seed=0), *torch.rand(2, 6, 3, 8, 8), TransferConfig(batch_size=2))
    >>> outcome = train(task, TrainingConfig(steps=2))
    >>> sorted(outcome.history[-1])[:4]
    ['a_to_b', 'b_to_a', 'cycle', 'discriminator_a']
    """

    def __init__(
        self,
        networks: CycleGAN,
        a: torch.Tensor,
        b: torch.Tensor,
        config: TransferConfig | None = None,
        *,
        log_ratio: nn.Module | None = None,
        judge: Judge | None = None,
    ):
        config = config or TransferConfig()
        if a.shape[1:] != b.shape[1:]:
            raise UserError(
                f"images of A have the shape {tuple(a.shape[1:])}, those of B {tuple(b.shape[1:])}",
                do="resize them alike.",
            )
        self.networks = networks
        self.weights = config.weights
        self.plain_steps = config.plain_steps
        self.rest_at = config.rest_at
        self.judge = judge
        self.modules = {
            "a_to_b": networks.a_to_b,
            "b_to_a": networks.b_to_a,
            "discriminator_a": networks.discriminator_a,
            "discriminator_b": networks.discriminator_b,
        }
        if log_ratio is not None:
            # among the modules, so that it goes to the device where the images are
            self.modules["log_ratio"] = log_ratio
        self.optimizers = {
            "generators": adam(networks.generators.parameters(), config.rate),
            "discriminators": adam(networks.discriminators.parameters(), config.rate),
        }
        self.adversarial = plain_adversarial if log_ratio is None else orthogonal_adversarial(log_ratio)
        self.batches = [Batches(x, size=config.batch_size, seed=2 * config.seed + k) for k, x in enumerate((a, b))]

    def step(self, loop: Loop) -> None:
        """One step of both players."""
        real_a, real_b = (signed(loop.batch(batches)[0]) for batches in self.batches)
        adversarial = plain_adversarial if loop.index < self.plain_steps else self.adversarial
        terms = cyclegan_step(self.networks, real_a, real_b, loop.update, weights=self.weights, adversarial=adversarial)
        loop.log(**terms)

    def rate(self, step: int) -> float:
        """What part of the rate is left."""
        return 1.0 if self.rest_at is None else min(1.0, 2 * (1 - step / self.rest_at))

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        """What the judge says of the networks in evaluation mode."""
        if self.judge is None:
            return {}
        for network in self.modules.values():
            network.eval()
        return self.judge(self.networks)


def orthogonal_adversarial(log_ratio: Callable[[torch.Tensor], torch.Tensor]) -> AdversarialTerm:
    """The generators' adversarial term against the orthogonal discriminator, ``logit D + log r`` from A to B.

    Parameters
    ----------
    log_ratio : callable
        From generated images to log P(z2) / Q(z2) of shape (n,), differentiable.

    Returns
    -------
    AdversarialTerm
    """

    def term(fake_logits: torch.Tensor, fakes: torch.Tensor, direction: Direction) -> torch.Tensor:
        return orthogonal_generator_loss(fake_logits, log_ratio(fakes), direction)

    return term


def digit_networks(
    size: int, width: int, *, seed: int, discriminator_width: int = 16, norm: Norm = "batch"
) -> CycleGAN:
    """The paper's networks for colored digits, laid out for speed.

    Parameters
    ----------
    size : int
        Height and width of the images, a multiple of 4.
    width : int
        Channels of the generators' first layer; the paper has 128.
    seed : int
        Of the initial weights.
    discriminator_width : int
    norm : {"batch", "group", "instance"}
        Of the generators; the paper has BatchNorm.

    Returns
    -------
    CycleGAN
    """

    def build() -> list[nn.Module]:
        generators = [DigitGenerator(width=width, norm=norm) for _ in range(2)]
        return generators + [DigitDiscriminator(size, width=discriminator_width) for _ in range(2)]

    return CycleGAN(*(prepare(network) for network in seeded(seed, build)))


def photo_networks(size: int, width: int, *, seed: int, discriminator_width: int) -> CycleGAN:
    """The paper's networks for faces, UNet and PatchGAN, laid out for speed.

    Parameters
    ----------
    size : int
        Height and width of the images, a power of 2 from 32 on; the paper has 128.
    width, discriminator_width : int
        Channels of the first layers of generators and discriminators; the paper has 64 in both.
    seed : int
        Of the initial weights.

    Returns
    -------
    CycleGAN
    """

    def build() -> list[nn.Module]:
        generators = [UNetGenerator(size, width=width) for _ in range(2)]
        return generators + [PatchDiscriminator(width=discriminator_width) for _ in range(2)]

    return CycleGAN(*(prepare(network) for network in seeded(seed, build)))
