"""The generator of six layers and the discriminator of five that translate colored digits."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.networks.input_checks import check_images

__all__ = ["DigitDiscriminator", "DigitGenerator", "Norm"]

Norm = Literal["batch", "group", "instance"]
GROUPS = 8
"""Of GroupNorm; fewer where they do not divide the channels."""


class DigitGenerator(nn.Module):  # type: ignore[misc]
    """Images to images of the same size: two layers down, two that stay, two up.

    Convolutions of 4 x 4 with stride 2 to `width` and ``2 * width`` channels, two of 3 x 3, and two transposed ones of
    4 x 4 back. A normalisation and LeakyReLU 0.05 follow each but the last, which ends in tanh.

    Parameters
    ----------
    width : int, default=128
    channels : int, default=3
        Of the images, whose sides are multiples of 4: 16, 28, 32.
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
        self.layers = nn.Sequential(
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
        """Images of the shape that came, in [-1, 1]."""
        check_images(images, self.channels, multiple_of=4, at_least=8)
        return self.layers(images)


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
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(n_inputs * side**2, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, 1)."""
        check_images(images, self.channels, size=self.size)
        return self.layers(images)


NORMS = {
    "batch": nn.BatchNorm2d,
    "group": lambda channels: nn.GroupNorm(math.gcd(GROUPS, channels), channels),
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True),
}


def _normalised(channels: int, norm: Norm) -> list[nn.Module]:
    return [NORMS[norm](channels), nn.LeakyReLU(0.05)]
