"""The networks of a translation for pictures of a size, and pictures as tensors."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import pad

from setminus.errors import UserError
from setminus.nn.blending import BlendingGenerator, ScaleDiscriminator
from setminus.nn.cyclegan import (
    CycleGAN,
    DigitDiscriminator,
    DigitGenerator,
    Norm,
    PatchDiscriminator,
    UNetGenerator,
)
from setminus.nn.networks import DigitClassifier, PhotoClassifier, seeded
from setminus.nn.passes import device_of, prepare, signed

__all__ = [
    "MAX_SIZE",
    "MIN_SIZE",
    "Kind",
    "check_width",
    "classifier_for",
    "digit_networks",
    "image_tensor",
    "kind_for",
    "networks_for",
    "photo_networks",
    "shifted",
    "signed",
    "translate",
]

Kind = Literal["blend", "unet", "digit"]
"""Of the generators: `BlendingGenerator`, `UNetGenerator` (models of earlier versions), `DigitGenerator`."""
MIN_SIZE = 12
"""Pixels per side: below this the discriminator's last map is one pixel, which bfloat16 cannot learn from."""
MAX_SIZE = 1024
"""Pixels per side: above this one image takes more memory than most machines have."""
MAX_CHANNELS = 1024
ROWS_AT_ONCE = 256
PIXELS_AT_ONCE = 1 << 20
"""A batch of large pictures is smaller: one of 64 pixels per side is still whole."""
MIN_BLEND = 28
"""Pixels per side from which `BlendingGenerator` is used: the small networks keep less of what must stay."""


def image_tensor(images: NDArray[np.uint8]) -> torch.Tensor:
    """Byte images of shape (n, height, width, channels) as a tensor with channels first, without a copy.

    Examples
    --------
    >>> image_tensor(np.zeros((2, 8, 4, 3), dtype=np.uint8)).shape
    torch.Size([2, 3, 8, 4])
    """
    if images.dtype != np.uint8 or images.ndim != 4:
        raise UserError(
            f"images are {images.dtype} of shape {images.shape}", expected="uint8 of shape (n, height, width, channels)"
        )
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2)


def kind_for(size: int) -> Kind:
    """The kind of network for images of a height and width.

    Examples
    --------
    >>> kind_for(64), kind_for(28), kind_for(16)
    ('blend', 'blend', 'digit')
    >>> kind_for(8)
    Traceback (most recent call last):
    setminus.errors.UserError: size is 8: expected pixels per side, from 12 to 1024, such as 64.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not MIN_SIZE <= size <= MAX_SIZE:
        raise UserError(f"size is {size!r}", expected=f"pixels per side, from {MIN_SIZE} to {MAX_SIZE}, such as 64")
    return "blend" if size >= MIN_BLEND else "digit"


def check_width(width: int) -> None:
    """Check a number of channels.

    Examples
    --------
    >>> check_width(0)
    Traceback (most recent call last):
    setminus.errors.UserError: width is 0: expected the channels of the first layer, 1 to 1024.
    """
    if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= MAX_CHANNELS:
        raise UserError(f"width is {width!r}", expected=f"the channels of the first layer, 1 to {MAX_CHANNELS}")


def networks_for(size: int, width: int, *, seed: int, kind: Kind | None = None) -> CycleGAN:
    """Fresh generators and discriminators.

    Parameters
    ----------
    size : int
        See `kind_for`.
    width : int
        Channels of the first layers.
    seed : int
        Of the initial weights.
    kind : {"blend", "unet", "digit"}, optional
        By default that of `kind_for`.

    Examples
    --------
    >>> type(networks_for(32, 4, seed=0).a_to_b).__name__, type(networks_for(16, 4, seed=0).a_to_b).__name__
    ('BlendingGenerator', 'DigitGenerator')
    """
    check_width(width)
    kind = kind or kind_for(size)
    if kind == "blend":
        return blending_networks(size, width, seed=seed)
    if kind == "unet":
        return photo_networks(size, width, seed=seed, discriminator_width=width)
    # by its running statistics and by those of a batch, a generator with BatchNorm would translate otherwise
    return digit_networks(size, width, seed=seed, norm="group")


def classifier_for(size: int, width: int, *, seed: int, n_classes: int = 2) -> nn.Module:
    """A fresh classifier from images in [-1, 1] to logits, with a field of view for their size."""
    network = DigitClassifier if kind_for(size) == "digit" else PhotoClassifier
    return seeded(seed, lambda: network(n_classes, width=width))


def digit_networks(
    size: int, width: int, *, seed: int, discriminator_width: int = 16, norm: Norm = "batch"
) -> CycleGAN:
    """The paper's networks for colored digits, laid out for speed.

    Parameters
    ----------
    size : int
        Height and width of the images.
    width : int
        Channels of the generators' first layer; the paper has 128.
    seed : int
        Of the initial weights.
    discriminator_width : int
    norm : {"batch", "group", "instance"}
        Of the generators; the paper has BatchNorm.
    """

    def build() -> list[nn.Module]:
        generators = [DigitGenerator(width=width, norm=norm) for _ in range(2)]
        return generators + [DigitDiscriminator(size, width=discriminator_width) for _ in range(2)]

    return CycleGAN(*(prepare(network) for network in seeded(seed, build)))


def blending_networks(size: int, width: int, *, seed: int) -> CycleGAN:
    """`BlendingGenerator` and `ScaleDiscriminator` of twice its width, which costs little, laid out for speed."""

    def build() -> list[nn.Module]:
        generators = [BlendingGenerator(size, width=width) for _ in range(2)]
        return generators + [ScaleDiscriminator(width=2 * width) for _ in range(2)]

    return CycleGAN(*(prepare(network) for network in seeded(seed, build)))


def photo_networks(size: int, width: int, *, seed: int, discriminator_width: int) -> CycleGAN:
    """The paper's networks for faces, UNet and PatchGAN, laid out for speed.

    Parameters
    ----------
    size : int
        Height and width of the images, 24 or more; the paper has 128.
    width, discriminator_width : int
        Channels of the first layers of generators and discriminators; the paper has 64 in both.
    seed : int
        Of the initial weights.
    """

    def build() -> list[nn.Module]:
        generators = [UNetGenerator(size, width=width) for _ in range(2)]
        return generators + [PatchDiscriminator(width=discriminator_width) for _ in range(2)]

    return CycleGAN(*(prepare(network) for network in seeded(seed, build)))


def shifted(images: torch.Tensor, by: int) -> torch.Tensor:
    """Each image shifted by up to so many pixels down and across, with its edges repeated."""
    if by == 0:
        return images
    n, _, height, width = images.shape
    down, across = torch.randint(2 * by + 1, (2, n, 1))
    rows, columns = down + torch.arange(height), across + torch.arange(width)
    padded = pad(images, (by,) * 4, mode="replicate").permute(0, 2, 3, 1)
    return padded[torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


def translate(generator: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Translations in [-1, 1], on the CPU, of images of shape (n, channels, height, width), bytes or in [-1, 1]."""
    device = device_of(generator)
    rows = max(1, min(ROWS_AT_ONCE, PIXELS_AT_ONCE // (images.shape[-1] * images.shape[-2])))
    with torch.no_grad():
        parts = [generator(signed(part).to(device)).float().cpu() for part in images.split(rows)]
    return torch.cat(parts)
