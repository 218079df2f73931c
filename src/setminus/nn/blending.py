"""A generator that blends into its input picture, and a discriminator without normalisation: sharp in few steps.

Both differ from CycleGAN's own networks in what normalises their maps. InstanceNorm takes the mean and the scale of
each map away. In a generator it makes noise of flat grounds, most of all in maps of a few pixels; in a discriminator it
hides the strength of noise, which then costs the generator nothing. GroupNorm in the one and a gradient penalty
(`setminus.nn.cyclegan.gradient_penalty`) in place of it in the other leave both visible.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.functional import interpolate, leaky_relu

from setminus.errors import UserError
from setminus.nn.cyclegan import margins, padded
from setminus.nn.networks import check_images

__all__ = ["MIN_SIDE", "BlendingGenerator", "ScaleDiscriminator"]

MIN_SIDE = 16
"""Pixels per side: below this the last map of `ScaleDiscriminator` is empty."""
LEVELS = 3
"""Halvings of the generator: what it sees of a picture of 64 pixels is about all of it."""
WIDEST = 4
"""Channels over `width`, at most: a map of few pixels takes as long as its weights are many."""
START = -3.0
"""Logit of the share before training: a translation begins with the picture as it is, not with noise that must go."""
PER_GROUP = 8
"""Channels in a group of GroupNorm."""
SLOPE = 0.2


class BlendingGenerator(nn.Module):  # type: ignore[misc]
    """Images to images of the same size: ``share * new + (1 - share) * images``.

    The share, from 0 to 1, is a fourth channel of the output: what need not change passes as it is, hence sharp, and
    after few steps of training. Three convolutions of 4 x 4 with stride 2 down, a residual block, three transposed ones
    up, each joined with the features of the same size from the way down, and a last convolution of 3 x 3.

    Parameters
    ----------
    size : int, default=128
        Height and width of the images, 16 or more. Their edges are repeated up to a multiple of 8, and what was added
        is cut off in the end.
    width : int, default=64
        The first level has twice as many channels, the next two four times as many; full size has half.
    channels : int, default=3

    Examples
    --------
    >>> BlendingGenerator(28, width=4)(torch.zeros(2, 3, 28, 28)).shape
    torch.Size([2, 3, 28, 28])
    """

    def __init__(self, size: int = 128, *, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        _check_side(size)
        self.size = size
        self.channels = channels
        self.margins: tuple[int, int] = margins(size, 2**LEVELS)
        widths = [max(1, width // 2), *(width * min(2**level, WIDEST) for level in range(1, LEVELS + 1))]
        self.first: nn.Conv2d = nn.Conv2d(channels, widths[0], 3, padding=1)
        self.down: nn.ModuleList = nn.ModuleList(
            _level(nn.Conv2d(widths[level], widths[level + 1], 4, 2, padding=1)) for level in range(LEVELS)
        )
        bottom = widths[-1]
        self.middle: nn.Sequential = nn.Sequential(
            *_level(nn.Conv2d(bottom, bottom, 3, padding=1)),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(bottom, bottom, 3, padding=1),
        )
        self.up: nn.ModuleList = nn.ModuleList(
            # joined with the way down, except at the bottom
            _level(
                nn.ConvTranspose2d(
                    widths[level + 1] * (1 if level == LEVELS - 1 else 2), widths[level], 4, 2, padding=1
                )
            )
            for level in range(LEVELS)
        )
        self.last: nn.Sequential = nn.Sequential(
            nn.LeakyReLU(SLOPE), nn.Conv2d(2 * widths[0], channels + 1, 3, padding=1)
        )
        with torch.no_grad():
            self.last[1].bias[channels:].fill_(START)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images of the same shape, in [-1, 1] as the input."""
        check_images(images, self.channels, size=self.size)
        made = padded(self._made, images, self.margins)
        share = made[:, self.channels :].sigmoid()
        return share * made[:, : self.channels].tanh() + (1 - share) * images

    def _made(self, images: torch.Tensor) -> torch.Tensor:
        maps = [self.first(images)]
        for down in self.down:
            maps.append(down(maps[-1]))
        made = maps[-1] + self.middle(maps[-1])
        for level in reversed(range(LEVELS)):
            made = torch.cat([self.up[level](made), maps[level]], dim=1)
        return self.last(made)


def _level(convolution: nn.Conv2d | nn.ConvTranspose2d) -> nn.Sequential:
    channels = convolution.out_channels
    groups = math.gcd(max(1, channels // PER_GROUP), channels)
    return nn.Sequential(nn.LeakyReLU(SLOPE), convolution, nn.GroupNorm(groups, channels))


class ScaleDiscriminator(nn.Module):  # type: ignore[misc]
    """Logits of small patches and of large ones: of texture and of shape, each with half of the weight.

    Four convolutions of 4 x 4 with stride 2 and LeakyReLU 0.2, without normalisation: patches of 18 pixels per side are
    judged after the second, patches of 78 after the last.

    Parameters
    ----------
    width : int, default=64
        Channels of the first convolution; the second has twice, the others four times as many.
    channels : int, default=3
        Of the images, whose sides are 16 or more.

    Examples
    --------
    >>> ScaleDiscriminator(width=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 2, 8, 8])
    """

    def __init__(self, *, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        widths = [channels, *(width * min(2**depth, WIDEST) for depth in range(4))]
        self.layers: nn.ModuleList = nn.ModuleList(
            nn.Conv2d(widths[depth], widths[depth + 1], 4, 2, padding=1) for depth in range(4)
        )
        self.small: nn.Conv2d = nn.Conv2d(widths[2], 1, 3, padding=1)
        self.large: nn.Conv2d = nn.Conv2d(widths[4], 1, 3, padding=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, 2, rows, columns): of small patches, and of the large patch around each."""
        check_images(images, self.channels, at_least=MIN_SIDE)
        maps = [images]
        for layer in self.layers:
            maps.append(leaky_relu(layer(maps[-1]), SLOPE))
        small = self.small(maps[2])
        return torch.cat([small, interpolate(self.large(maps[4]), small.shape[-2:])], dim=1)


def _check_side(size: int) -> None:
    if size < MIN_SIDE:
        raise UserError(f"size is {size}", expected=f"{MIN_SIDE} or more; resize the images")
