"""The CycleGAN step (Zhu et al. 2017), with the adversarial term of its generators left open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from setminus.errors import UserError
from setminus.nn.losses import Direction, cycle_loss, gan_discriminator_loss, gan_generator_loss, identity_loss
from setminus.nn.passes import Update, each, frozen, in_float32

__all__ = [
    "AdversarialTerm",
    "CycleGAN",
    "CycleGANWeights",
    "GeneratorLosses",
    "cyclegan_step",
    "discriminator_losses",
    "generator_losses",
    "plain_adversarial",
]

AdversarialTerm = Callable[[torch.Tensor, torch.Tensor, Direction], torch.Tensor]
"""From the discriminator's logits of generated images, those images, and the direction, to a generator's loss."""


@dataclass(frozen=True)
class CycleGAN:
    """Two generators and two discriminators.

    Parameters
    ----------
    a_to_b, b_to_a : Module
        From images of one domain to images of the other, of the same shape.
    discriminator_a, discriminator_b : Module
        From images to logits of being real ones of the domain, of any shape (n, ...).
    """

    a_to_b: torch.nn.Module
    b_to_a: torch.nn.Module
    discriminator_a: torch.nn.Module
    discriminator_b: torch.nn.Module

    @property
    def generators(self) -> torch.nn.ModuleList:
        """Both, for one optimizer."""
        return torch.nn.ModuleList([self.a_to_b, self.b_to_a])

    @property
    def discriminators(self) -> torch.nn.ModuleList:
        """Both, for one optimizer."""
        return torch.nn.ModuleList([self.discriminator_a, self.discriminator_b])


@dataclass(frozen=True)
class CycleGANWeights:
    """Weights of the consistency losses; the adversarial losses have weight 1.

    Parameters
    ----------
    cycle : float, default=10.0
    identity : float, default=5.0
        With 0, its two passes are skipped.
    """

    cycle: float = 10.0
    identity: float = 5.0

    def __post_init__(self) -> None:
        if not (self.cycle >= 0 and self.identity >= 0):
            raise UserError(f"cycle is {self.cycle}, identity is {self.identity}", expected="weights of 0 or more")


@dataclass(frozen=True)
class GeneratorLosses:
    """The generated images of a batch, and the generators' losses.

    Parameters
    ----------
    total : Tensor of shape ()
        ``a_to_b + b_to_a + weights.cycle * cycle + weights.identity * identity``
    terms : dict of str to Tensor of shape ()
        Each loss before its weight: "a_to_b", "b_to_a", "cycle", "identity".
    fake_a, fake_b : Tensor
        ``b_to_a(real_b)`` and ``a_to_b(real_a)``.
    """

    total: torch.Tensor
    terms: dict[str, torch.Tensor]
    fake_a: torch.Tensor = field(repr=False)
    fake_b: torch.Tensor = field(repr=False)


def plain_adversarial(fake_logits: torch.Tensor, fakes: torch.Tensor, direction: Direction) -> torch.Tensor:
    """The plain GAN term ``-mean(log D(fake))``; see `AdversarialTerm`."""
    return gan_generator_loss(fake_logits)


def generator_losses(
    networks: CycleGAN,
    real_a: torch.Tensor,
    real_b: torch.Tensor,
    weights: CycleGANWeights | None = None,
    adversarial: AdversarialTerm = plain_adversarial,
) -> GeneratorLosses:
    """The generators' side: adversarial, cycle and identity losses.

    Parameters
    ----------
    networks : CycleGAN
        The discriminators pass gradients to the generators but get none themselves.
    real_a, real_b : Tensor of shape (n, channels, height, width)
        Images of each domain.
    weights : CycleGANWeights, optional
    adversarial : callable, optional
        See `AdversarialTerm`. An orthogonal one is
        ``lambda logits, fakes, direction: orthogonal_generator_loss(logits, log_ratio(fakes), direction)``.

    Returns
    -------
    GeneratorLosses

    Examples
    --------
    >>> from setminus.nn.translation_networks import DigitDiscriminator, DigitGenerator
    >>> networks = CycleGAN(
    ...     DigitGenerator(width=4), DigitGenerator(width=4), DigitDiscriminator(width=4), DigitDiscriminator(width=4)
    ... )
    >>> losses = generator_losses(networks, torch.zeros(2, 3, 28, 28), torch.zeros(2, 3, 28, 28))
    >>> list(losses.terms)
    ['a_to_b', 'b_to_a', 'cycle', 'identity']
    """
    weights = weights or CycleGANWeights()
    if weights.identity:
        fake_b, b_from_b = _images(networks.a_to_b, real_a, real_b)
        fake_a, a_from_a = _images(networks.b_to_a, real_b, real_a)
    else:
        (fake_b,), (fake_a,) = _images(networks.a_to_b, real_a), _images(networks.b_to_a, real_b)
    (b_again,), (a_again,) = _images(networks.a_to_b, fake_a), _images(networks.b_to_a, fake_b)
    with frozen(networks.discriminator_a, networks.discriminator_b):
        logits_a = in_float32(networks.discriminator_a(fake_a))
        logits_b = in_float32(networks.discriminator_b(fake_b))
    terms = {
        "a_to_b": adversarial(logits_b, fake_b, "a_to_b"),
        "b_to_a": adversarial(logits_a, fake_a, "b_to_a"),
        "cycle": cycle_loss(real_a, a_again, real_b, b_again),
    }
    total = terms["a_to_b"] + terms["b_to_a"] + weights.cycle * terms["cycle"]
    if weights.identity:
        terms["identity"] = identity_loss(real_a, a_from_a, real_b, b_from_b)
        total = total + weights.identity * terms["identity"]
    return GeneratorLosses(total, terms, fake_a, fake_b)


def discriminator_losses(
    networks: CycleGAN, real_a: torch.Tensor, real_b: torch.Tensor, fake_a: torch.Tensor, fake_b: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The discriminators' side: classify images as real or generated, in each domain.

    Parameters
    ----------
    networks : CycleGAN
    real_a, real_b : Tensor of shape (n, channels, height, width)
    fake_a, fake_b : Tensor of shape (n, channels, height, width)
        As `generator_losses` made them: no gradient passes to the generators.

    Returns
    -------
    dict of str to Tensor of shape ()
        "discriminator_a" and "discriminator_b"; their sum is the loss.
    """
    losses = {}
    for domain, network, real, fake in (
        ("a", networks.discriminator_a, real_a, fake_a),
        ("b", networks.discriminator_b, real_b, fake_b),
    ):
        real_logits, fake_logits = each(network, real, fake.detach())
        losses[f"discriminator_{domain}"] = gan_discriminator_loss(in_float32(real_logits), in_float32(fake_logits))
    return losses


def cyclegan_step(
    networks: CycleGAN,
    real_a: torch.Tensor,
    real_b: torch.Tensor,
    update: Update,
    *,
    weights: CycleGANWeights | None = None,
    adversarial: AdversarialTerm = plain_adversarial,
) -> dict[str, torch.Tensor]:
    """One step of both players: the generators first, then the discriminators on the images just made.

    Parameters
    ----------
    networks, real_a, real_b, weights, adversarial
        See `generator_losses`.
    update : callable
        Called as ``update("generators", loss)``, then ``update("discriminators", loss)``.

    Returns
    -------
    dict of str to Tensor of shape ()
        Every term of both sides, without gradients, to be logged.
    """
    made = generator_losses(networks, real_a, real_b, weights, adversarial)
    update("generators", made.total)
    discriminated = discriminator_losses(networks, real_a, real_b, made.fake_a, made.fake_b)
    update("discriminators", discriminated["discriminator_a"] + discriminated["discriminator_b"])
    return {name: loss.detach() for name, loss in {**made.terms, **discriminated}.items()}


def _images(generator: torch.nn.Module, *batches: torch.Tensor) -> list[torch.Tensor]:
    return [in_float32(images) for images in each(generator, *batches)]
