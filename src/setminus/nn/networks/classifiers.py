"""Classifiers of images: the paper's for colored digits, a deeper one for photographs."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from setminus.nn.networks.input_checks import check_images

__all__ = ["DigitClassifier", "PhotoClassifier"]


class DigitClassifier(nn.Module):  # type: ignore[misc]
    """Three convolutions, an average over the image, and a linear layer.

    The convolutions are 3 x 3, with ReLU and BatchNorm after each: `width` channels, then twice as many at half the
    resolution, then as many again.

    Parameters
    ----------
    n_classes : int, default=2
    width : int, default=64
    channels : int, default=3
        Of the images; any height and width will do.

    Attributes
    ----------
    features : torch.nn.Module
        From images to ``2 * width`` numbers each.
    head : torch.nn.Linear
        From those to logits.

    Examples
    --------
    >>> DigitClassifier(width=8)(torch.zeros(4, 3, 28, 28)).shape
    torch.Size([4, 2])
    """

    def __init__(self, n_classes: int = 2, *, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        self.features = nn.Sequential(
            *_block(channels, width, stride=1),
            *_block(width, 2 * width, stride=2),
            *_block(2 * width, 2 * width, stride=1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(2 * width, n_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_classes)."""
        check_images(images, self.channels, at_least=2)
        return self.head(self.features(images))


class PhotoClassifier(nn.Module):  # type: ignore[misc]
    """Four convolutions that each halve the image, an average over what is left, and a linear layer.

    The convolutions are 3 x 3, with ReLU and BatchNorm after each, to `width`, twice, four times and eight times
    `width` channels: what they see of a photograph of 64 x 64 is half of it, where `DigitClassifier` sees a spot.

    Parameters
    ----------
    n_classes : int, default=2
    width : int, default=32
    channels : int, default=3
        Of the images, whose sides are 16 or more.

    Attributes
    ----------
    features : torch.nn.Module
        From images to ``8 * width`` numbers each.
    head : torch.nn.Linear
        From those to logits.

    Examples
    --------
    >>> PhotoClassifier(width=4)(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 2])
    """

    def __init__(self, n_classes: int = 2, *, width: int = 32, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        sizes = [channels, *(width * 2**level for level in range(4))]
        blocks = [_block(n_inputs, n_outputs, stride=2) for n_inputs, n_outputs in itertools.pairwise(sizes)]
        self.features = nn.Sequential(*itertools.chain(*blocks), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(sizes[-1], n_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_classes)."""
        check_images(images, self.channels, at_least=16)
        return self.head(self.features(images))


def _block(n_inputs: int, n_outputs: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(n_inputs, n_outputs, 3, stride, padding=1), nn.ReLU(), nn.BatchNorm2d(n_outputs)]
