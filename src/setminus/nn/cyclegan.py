"""CycleGAN (Zhu et al. 2017): networks for digits and for faces, and a step whose adversarial term is left open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import nn
from torch.nn.functional import linear, pad

from setminus.errors import UserError
from setminus.nn.losses import Direction, cycle_loss, gan_discriminator_loss, gan_generator_loss, identity_loss
from setminus.nn.networks import check_images
from setminus.nn.passes import Update, each, frozen, in_float32

__all__ = [
    "AdversarialTerm",
    "CycleGAN",
    "CycleGANWeights",
    "DigitDiscriminator",
    "DigitGenerator",
    "GeneratorLosses",
    "Norm",
    "PatchDiscriminator",
    "UNetGenerator",
    "cyclegan_step",
    "discriminator_losses",
    "generator_losses",
    "gradient_penalty",
    "margins",
    "padded",
    "plain_adversarial",
]

Norm = Literal["batch", "group", "instance"]
"""What normalises the maps of a generator."""

GROUPS = 8
"""Number of groups of GroupNorm; fewer where they do not divide the channels."""

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batch": nn.BatchNorm2d,
    "group": lambda channels: nn.GroupNorm(math.gcd(GROUPS, channels), channels),
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True),
}


class DigitGenerator(nn.Module):  # type: ignore[misc]
    """Images to images of the same size: two layers down, two that stay, two up.

    Convolutions of 4 x 4 with stride 2 to `width` and ``2 * width`` channels, two of 3 x 3, and two transposed ones of
    4 x 4 back. A normalisation and LeakyReLU 0.05 follow each but the last, which ends in tanh.

    Parameters
    ----------
    width : int, default=128
    channels : int, default=3
        Of the images, of 8 x 8 or more. Edges are repeated up to sides that are multiples of 4.
    norm : {"batch", "group", "instance"}, default="batch"
        The paper has BatchNorm, in which images see each other, and which translates otherwise in evaluation mode than
        in training; the other two are the same in both.

    Examples
    --------
    >>> DigitGenerator(width=8)(torch.zeros(2, 3, 28, 28)).shape
    torch.Size([2, 3, 28, 28])
    """

    def __init__(self, *, width: int = 128, channels: int = 3, norm: Norm = "batch") -> None:
        super().__init__()
        if norm not in NORMS:
            raise UserError(f"norm is {norm!r}", expected=f"one of {', '.join(NORMS)}")
        self.channels = channels
        # where a channel's own mean is taken away again, a bias before it would do nothing
        bias = norm == "group"
        self.layers: nn.Sequential = nn.Sequential(
            nn.Conv2d(channels, width, 4, 2, padding=1, bias=bias),
            *_normalised(width, norm),
            nn.Conv2d(width, 2 * width, 4, 2, padding=1, bias=bias),
            *_normalised(2 * width, norm),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=bias),
            *_normalised(2 * width, norm),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=bias),
            *_normalised(2 * width, norm),
            nn.ConvTranspose2d(2 * width, width, 4, 2, padding=1, bias=bias),
            *_normalised(width, norm),
            nn.ConvTranspose2d(width, channels, 4, 2, padding=1),
            nn.Tanh(),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images of the same shape, in [-1, 1]."""
        check_images(images, self.channels, at_least=8)
        return padded(self.layers, images, margins(images.shape[-1], 4), margins(images.shape[-2], 4))


class DigitDiscriminator(nn.Module):  # type: ignore[misc]
    """One logit per image: four convolutions of 3 x 3 with stride 2, then a linear layer.

    LeakyReLU 0.2, Dropout2d and InstanceNorm follow each convolution. Two maps have no InstanceNorm: the first, so that
    the discriminator sees the colors as such, and one of a single pixel, which would be its own mean.

    Parameters
    ----------
    size : int, default=28
        Height and width of the images, 8 or more.
    width : int, default=16
        Channels of the first convolution; each next one has twice as many.
    channels : int, default=3
    dropout : float, default=0.25

    Examples
    --------
    >>> DigitDiscriminator(width=4)(torch.zeros(2, 3, 28, 28)).shape
    torch.Size([2, 1])
    """

    def __init__(self, size: int = 28, *, width: int = 16, channels: int = 3, dropout: float = 0.25) -> None:
        super().__init__()
        if size < 8:
            raise UserError(f"size is {size}", expected="images of 8 x 8 or more; resize them")
        self.size = size
        self.channels = channels
        layers: list[nn.Module] = []
        n_inputs, side = channels, size
        for depth in range(4):
            n_outputs, side = width * 2**depth, (side + 1) // 2
            layers += [nn.Conv2d(n_inputs, n_outputs, 3, 2, padding=1), nn.LeakyReLU(0.2), nn.Dropout2d(dropout)]
            if depth > 0 and side > 1:
                layers.append(nn.InstanceNorm2d(n_outputs))
            n_inputs = n_outputs
        self.layers: nn.Sequential = nn.Sequential(*layers, nn.Flatten(), nn.Linear(n_inputs * side**2, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, 1)."""
        check_images(images, self.channels, size=self.size)
        return self.layers(images)


def _normalised(channels: int, norm: Norm) -> list[nn.Module]:
    return [NORMS[norm](channels), nn.LeakyReLU(0.05)]


MIN_PATCHES = 24
"""Pixels per side: below this the last normalised map of `PatchDiscriminator` is one pixel, which is its own mean."""


def margins(side: int, multiple: int) -> tuple[int, int]:
    """Pixels before and after that make a multiple of a side."""
    missing = -side % multiple
    return missing // 2, missing - missing // 2


def padded(
    layers: Callable[[torch.Tensor], torch.Tensor],
    images: torch.Tensor,
    x: tuple[int, int],
    y: tuple[int, int] | None = None,
) -> torch.Tensor:
    """What layers make of images with margins, without the margins."""
    # not mirrored: the gradient of that is not reproducible on a GPU
    y = y or x
    if not any((*x, *y)):
        return layers(images)
    made = layers(pad(images, (*x, *y), mode="replicate"))
    return made[..., y[0] : y[0] + images.shape[-2], x[0] : x[0] + images.shape[-1]]


class UNetGenerator(nn.Module):  # type: ignore[misc]
    """Images to images of the same size, halved down to one pixel and doubled back, each level with a way across.

    Every level is a convolution of 4 x 4 with stride 2 down and a transposed one up; what enters a level is passed
    across to what leaves it. InstanceNorm normalises each image separately.

    Parameters
    ----------
    size : int, default=128
        Height and width of the images, 24 or more. Their edges are repeated up to a multiple of 16, and what was added
        is cut off in the end. A level halves them as long as their side is even: five levels of 32 pixels.
    width : int, default=64
        Channels of the first level; they double with each level up to ``8 * width``.
    channels : int, default=3

    Examples
    --------
    >>> UNetGenerator(32, width=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 3, 32, 32])
    """

    def __init__(self, size: int = 128, *, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        if size < MIN_PATCHES:
            raise UserError(f"size is {size}", expected=f"{MIN_PATCHES} or more; resize the images")
        self.size = size
        self.channels = channels
        self.margins: tuple[int, int] = margins(size, 16)
        side = size + sum(self.margins)
        n_levels = (side & -side).bit_length() - 1
        widths = [width * min(2**level, 8) for level in range(n_levels)]
        # a map of one pixel, at the bottom of a power of 2, is its own mean: no InstanceNorm there
        inner: nn.Module = nn.Sequential(
            nn.LeakyReLU(0.2), _DownToPixel(widths[-2], widths[-1], 4, 2, padding=1), *_up(widths[-1], widths[-2])
        )
        if side == 2**n_levels:
            inner[3] = _UpFromPixel(widths[-1], widths[-2], 4, 2, padding=1, bias=False)
        for level in range(n_levels - 2, 0, -1):
            above, here = widths[level - 1], widths[level]
            down = [nn.LeakyReLU(0.2), nn.Conv2d(above, here, 4, 2, padding=1, bias=False), nn.InstanceNorm2d(here)]
            inner = nn.Sequential(*down, _Across(inner), *_up(2 * here, above))
        self.layers: nn.Sequential = nn.Sequential(
            nn.Conv2d(channels, width, 4, 2, padding=1),
            _Across(inner),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, channels, 4, 2, padding=1),
            nn.Tanh(),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images of the same shape, in [-1, 1]."""
        check_images(images, self.channels, size=self.size)
        return padded(self.layers, images, self.margins)


class PatchDiscriminator(nn.Module):  # type: ignore[misc]
    """One logit for each of many overlapping patches of 70 x 70 pixels.

    Convolutions of 4 x 4: three with stride 2, two without, to `width`, twice, four times, eight times `width`
    channels, then 1; LeakyReLU 0.2 after each but the last, InstanceNorm between.

    Parameters
    ----------
    width : int, default=64
    channels : int, default=3
        Of the images, whose sides are 24 or more.

    Examples
    --------
    >>> PatchDiscriminator(width=4)(torch.zeros(2, 3, 128, 128)).shape
    torch.Size([2, 1, 14, 14])
    """

    def __init__(self, *, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 4, 2, padding=1), nn.LeakyReLU(0.2)]
        for n_inputs, stride in ((width, 2), (2 * width, 2), (4 * width, 1)):
            layers += [
                nn.Conv2d(n_inputs, 2 * n_inputs, 4, stride, padding=1, bias=False),
                nn.InstanceNorm2d(2 * n_inputs),
                nn.LeakyReLU(0.2),
            ]
        self.layers: nn.Sequential = nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, padding=1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, 1, rows of patches, columns of patches)."""
        check_images(images, self.channels, at_least=MIN_PATCHES)
        return self.layers(images)


class _Across(nn.Module):  # type: ignore[misc]
    """The input and the output of the inner levels, side by side."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.inner(x)], dim=1)


MIDDLE = (..., slice(1, 3), slice(1, 3))
"""The part of a 4 x 4 kernel that covers 2 x 2 pixels; the other part covers only their padding."""


class _DownToPixel(nn.Conv2d):  # type: ignore[misc]
    """The same convolution, of 2 x 2 pixels as one product of matrices: five times as fast."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-2:] != (2, 2):
            return super().forward(x)
        return linear(x.flatten(1), self.weight[MIDDLE].flatten(1), self.bias)[..., None, None]


class _UpFromPixel(nn.ConvTranspose2d):  # type: ignore[misc]
    """The same transposed convolution of one pixel, likewise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) @ self.weight[MIDDLE].flatten(1)).view(len(x), -1, 2, 2)


def _up(n_inputs: int, n_outputs: int) -> list[nn.Module]:
    return [
        nn.ReLU(),
        nn.ConvTranspose2d(n_inputs, n_outputs, 4, 2, padding=1, bias=False),
        nn.InstanceNorm2d(n_outputs),
    ]


AdversarialTerm = Callable[[torch.Tensor, torch.Tensor, Direction], torch.Tensor]
"""A generator's loss from the discriminator's logits of generated images, these images, and the direction."""


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
    cycle_part, identity_part : int, default=1
        Each loss is taken of one in so many images of a batch: either's passes are a third of the generators'.
    change : float, default=0.0
        Of the distance between each picture and its translation, ``mean|a_to_b(a) - a| + mean|b_to_a(b) - b|``: of all
        translations that the discriminators accept it prefers the one that changes least. CycleGAN has none.
    """

    cycle: float = 10.0
    identity: float = 5.0
    cycle_part: int = 1
    identity_part: int = 1
    change: float = 0.0

    def __post_init__(self) -> None:
        weights = (self.cycle, self.identity, self.change)
        if not (all(weight >= 0 for weight in weights) and min(self.cycle_part, self.identity_part) >= 1):
            raise UserError(
                f"cycle is {self.cycle}, identity is {self.identity}, change is {self.change}, cycle_part is "
                f"{self.cycle_part}, identity_part is {self.identity_part}",
                expected="weights of 0 or more, parts of 1 or more",
            )


@dataclass(frozen=True)
class GeneratorLosses:
    """The generated images of a batch, and the generators' losses.

    Parameters
    ----------
    total : Tensor of shape ()
        ``a_to_b + b_to_a + weights.cycle * cycle + weights.identity * identity + weights.change * change``
    terms : dict of str to Tensor of shape ()
        Each loss before its weight: "a_to_b", "b_to_a", "cycle", "identity", "change"; those of weight 0 are left out.
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

    Examples
    --------
    >>> from setminus.nn.cyclegan import DigitDiscriminator, DigitGenerator
    >>> networks = CycleGAN(
    ...     DigitGenerator(width=4), DigitGenerator(width=4), DigitDiscriminator(width=4), DigitDiscriminator(width=4)
    ... )
    >>> losses = generator_losses(networks, torch.zeros(2, 3, 28, 28), torch.zeros(2, 3, 28, 28))
    >>> list(losses.terms)
    ['a_to_b', 'b_to_a', 'cycle', 'identity']
    """
    weights = weights or CycleGANWeights()
    if weights.identity:
        some_a, some_b = (real[:: weights.identity_part] for real in (real_a, real_b))
        fake_b, b_from_b = _images(networks.a_to_b, real_a, some_b)
        fake_a, a_from_a = _images(networks.b_to_a, real_b, some_a)
    else:
        (fake_b,), (fake_a,) = _images(networks.a_to_b, real_a), _images(networks.b_to_a, real_b)
    part = slice(None, None, weights.cycle_part)
    (b_again,), (a_again,) = _images(networks.a_to_b, fake_a[part]), _images(networks.b_to_a, fake_b[part])
    with frozen(networks.discriminator_a, networks.discriminator_b):
        logits_a = in_float32(networks.discriminator_a(fake_a))
        logits_b = in_float32(networks.discriminator_b(fake_b))
    terms = {
        "a_to_b": adversarial(logits_b, fake_b, "a_to_b"),
        "b_to_a": adversarial(logits_a, fake_a, "b_to_a"),
        "cycle": cycle_loss(real_a[part], a_again, real_b[part], b_again),
    }
    total = terms["a_to_b"] + terms["b_to_a"] + weights.cycle * terms["cycle"]
    if weights.change:
        # the same distances, of the pictures that are to change
        terms["change"] = identity_loss(real_a, fake_b, real_b, fake_a)
        total = total + weights.change * terms["change"]
    if weights.identity:
        terms["identity"] = identity_loss(some_a, a_from_a, some_b, b_from_b)
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


def gradient_penalty(network: nn.Module, real: torch.Tensor) -> torch.Tensor:
    """The R1 penalty (Mescheder et al. 2018): the squared gradient of a discriminator's mean logit, per real image.

    It keeps a discriminator from being surer than few images allow, and its gradients smooth, which are all that a
    generator learns from.

    Parameters
    ----------
    network : Module
        From images to logits of shape (n, ...).
    real : Tensor of shape (n, channels, height, width)

    Examples
    --------
    >>> linear = nn.Sequential(nn.Flatten(), nn.Linear(12, 1))
    >>> penalty = gradient_penalty(linear, torch.rand(5, 3, 2, 2))
    >>> torch.allclose(penalty, linear[1].weight.square().sum())
    True
    """
    # in float32: squares of small gradients are lost in bfloat16
    with torch.autocast(real.device.type, enabled=False):
        inputs = real.detach().requires_grad_()
        total = network(inputs).flatten(1).mean(1).sum()
        (slope,) = torch.autograd.grad(total, inputs, create_graph=True)
    return slope.square().flatten(1).sum(1).mean()


def cyclegan_step(
    networks: CycleGAN,
    real_a: torch.Tensor,
    real_b: torch.Tensor,
    update: Update,
    *,
    weights: CycleGANWeights | None = None,
    adversarial: AdversarialTerm = plain_adversarial,
    penalty: float = 0.0,
) -> dict[str, torch.Tensor]:
    """One step of both players: the generators first, then the discriminators on the images just made.

    Parameters
    ----------
    networks, real_a, real_b, weights, adversarial
        See `generator_losses`.
    update : callable
        Called as ``update("generators", loss)``, then ``update("discriminators", loss)``.
    penalty : float
        Weight of `gradient_penalty` in the discriminators' loss.

    Returns
    -------
    dict of str to Tensor of shape ()
        Every term of both sides, without gradients, to be logged.
    """
    made = generator_losses(networks, real_a, real_b, weights, adversarial)
    update("generators", made.total)
    discriminated = discriminator_losses(networks, real_a, real_b, made.fake_a, made.fake_b)
    loss = discriminated["discriminator_a"] + discriminated["discriminator_b"]
    if penalty:
        pairs = ((networks.discriminator_a, real_a), (networks.discriminator_b, real_b))
        loss = loss + penalty * torch.stack([gradient_penalty(*pair) for pair in pairs]).sum()
    update("discriminators", loss)
    return {name: loss.detach() for name, loss in {**made.terms, **discriminated}.items()}


def _images(generator: torch.nn.Module, *batches: torch.Tensor) -> list[torch.Tensor]:
    return [in_float32(images) for images in each(generator, *batches)]
