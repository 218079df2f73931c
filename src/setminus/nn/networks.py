"""Networks that classify rows, images and domains; each width is an argument."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import torch
from torch import nn

from setminus.errors import UserError

__all__ = [
    "AdaptationNetwork",
    "DigitClassifier",
    "DomainDiscriminator",
    "GaussianNoise",
    "PhotoClassifier",
    "check_images",
    "mlp",
    "seeded",
]

Built = TypeVar("Built")


def seeded(seed: int, build: Callable[[], Built]) -> Built:
    """What `build` makes when torch's generator starts from `seed`; the generator is left as it was before.

    Networks keep PyTorch's own initialisation: each layer draws from the global generator of the CPU as it is made.

    Parameters
    ----------
    seed : int
    build : callable without arguments
        Makes one network, or several, on the CPU, so that weights do not depend on the device; move them afterwards.
        Under ``torch.device("meta")`` they have shapes and no weights.

    Examples
    --------
    >>> one, same = (seeded(3, lambda: torch.nn.Linear(2, 1)) for _ in range(2))
    >>> torch.equal(one.weight, same.weight)
    True
    """
    device = "meta" if torch.get_default_device().type == "meta" else "cpu"
    # `torch.manual_seed` would seed every other device too, which this does not put back
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.default_generator.manual_seed(seed)
        return build()


def check_images(
    images: torch.Tensor, channels: int, *, size: int | None = None, multiple_of: int = 1, at_least: int = 1
) -> None:
    """Refuse images of other channels or sizes.

    Parameters
    ----------
    images : Tensor
        Expected as (n, channels, height, width).
    channels : int
    size : int, optional
        The only height and width there may be.
    multiple_of, at_least : int, default=1
        What height and width must be otherwise.

    Examples
    --------
    >>> check_images(torch.zeros(2, 28, 28, 3), channels=3)
    Traceback (most recent call last):
        ...
    setminus.errors.UserError: the images have shape (2, 28, 28, 3): expected (n, 3, height, width); ...
    """
    shape = tuple(images.shape)
    if images.ndim != 4 or shape[1] != channels:
        fix = (
            "move the channels to the front: images.permute(0, 3, 1, 2)"
            if images.ndim == 4 and shape[3] == channels
            else f"pass a batch of images with {channels} channels, or build the network for these channels"
        )
        raise UserError(f"the images have shape {shape}", expected=f"(n, {channels}, height, width); {fix}")
    sides = shape[2:]
    if size is not None and sides != (size, size):
        raise UserError(
            f"the images are {sides[0]} x {sides[1]}",
            expected=f"{size} x {size}; resize them, or build the network for their size",
        )
    if any(side % multiple_of or side < at_least for side in sides):
        raise UserError(
            f"the images are {sides[0]} x {sides[1]}",
            expected=f"sides of {at_least} or more that are multiples of {multiple_of}; resize or pad them",
        )


def mlp(sizes: Sequence[int], activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with an activation between each two: ``Linear(sizes[0], sizes[1])``, activation, and so on.

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden layers, outputs: two numbers or more.
    activation : callable, default=torch.nn.ReLU
        Makes the module between two layers. There is none after the last.

    Examples
    --------
    >>> mlp((2, 64, 64, 3))(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """
    if len(sizes) < 2 or min(sizes) < 1:
        raise UserError(
            f"sizes are {tuple(sizes)}", expected="two or more positive numbers, inputs first, outputs last"
        )
    layers: list[nn.Module] = []
    for n_inputs, n_outputs in pairwise(sizes):
        layers += [nn.Linear(n_inputs, n_outputs), activation()]
    return nn.Sequential(*layers[:-1])


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

    head: nn.Linear

    def __init__(self, n_classes: int = 2, *, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        self.features: nn.Sequential = nn.Sequential(
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
    """Four convolutions that each halve the image, an average over the remaining pixels, and a linear layer.

    The convolutions are 3 x 3, with ReLU and BatchNorm after each, to `width`, twice, four times and eight times
    `width` channels: each feature depends on half of a photograph of 64 x 64, and in `DigitClassifier` on a small spot.

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

    head: nn.Linear

    def __init__(self, n_classes: int = 2, *, width: int = 32, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        sizes = [channels, *(width * 2**level for level in range(4))]
        blocks = [_block(n_inputs, n_outputs, stride=2) for n_inputs, n_outputs in itertools.pairwise(sizes)]
        self.features: nn.Sequential = nn.Sequential(*itertools.chain(*blocks), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(sizes[-1], n_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_classes)."""
        check_images(images, self.channels, at_least=16)
        return self.head(self.features(images))


def _block(n_inputs: int, n_outputs: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(n_inputs, n_outputs, 3, stride, padding=1), nn.ReLU(), nn.BatchNorm2d(n_outputs)]


class GaussianNoise(nn.Module):  # type: ignore[misc]
    """Adds normal noise while training, from torch's generator, and nothing afterwards.

    Parameters
    ----------
    scale : float, default=1.0
        Its standard deviation.

    Examples
    --------
    >>> GaussianNoise().eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        if not scale >= 0:
            raise UserError(f"scale is {scale}", expected="a standard deviation, 0 or more")
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x` with independent noise in each entry."""
        if not (self.training and self.scale):
            return x
        # not randn_like: in the layout of channels_last a CPU draws five times slower, and other values
        return x + self.scale * torch.randn(x.shape, device=x.device).to(x.dtype)

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return f"scale={self.scale}"


class AdaptationNetwork(nn.Module):  # type: ignore[misc]
    """The paper's classifier for adaptation: ``head(encoder(images))``.

    The encoder is InstanceNorm, then twice: three convolutions of 3 x 3 with BatchNorm and LeakyReLU 0.1, a pool to
    half the size, dropout and Gaussian noise. The head is three more convolutions, an average over the image, and a
    convolution of 1 x 1 to logits.

    Parameters
    ----------
    n_classes : int
    width : int, default=64
        Channels of every convolution; the paper has 64 for digits and signs, 192 for CIFAR and STL.
    size : int, default=32
        Height and width of the images, a multiple of 4.
    channels : int, default=3
    dropout : float, default=0.5
    noise : float, default=1.0
        Standard deviation of the Gaussian noise.

    Attributes
    ----------
    encoder, head : torch.nn.Module
        From images to features of shape (n, width, size / 4, size / 4), and from those to logits.
    n_features : int
        How many features an image has: what `DomainDiscriminator` needs.

    Examples
    --------
    >>> network = AdaptationNetwork(10, width=8)
    >>> network(torch.zeros(2, 3, 32, 32)).shape, network.n_features
    (torch.Size([2, 10]), 512)
    """

    encoder: nn.Module
    head: nn.Sequential

    def __init__(
        self,
        n_classes: int,
        *,
        width: int = 64,
        size: int = 32,
        channels: int = 3,
        dropout: float = 0.5,
        noise: float = 1.0,
    ) -> None:
        super().__init__()
        if size < 4 or size % 4:
            raise UserError(f"size is {size}", expected="a multiple of 4, such as 32; resize or pad the images")
        self.n_features: int = width * (size // 4) ** 2
        self.encoder = _ImageEncoder(
            size,
            channels,
            nn.InstanceNorm2d(channels),
            *_convolutions(channels, width),
            *_shrink(dropout, noise),
            *_convolutions(width, width),
            *_shrink(dropout, noise),
        )
        self.head = nn.Sequential(
            *_convolutions(width, width), nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, n_classes, 1), nn.Flatten()
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_classes)."""
        return self.head(self.encoder(images))


class DomainDiscriminator(nn.Module):  # type: ignore[misc]
    """Source or target, from features: one hidden layer of ReLU units.

    Parameters
    ----------
    n_features : int
        Numbers per row after flattening.
    width : int, default=100

    Examples
    --------
    >>> network = AdaptationNetwork(10, width=8)
    >>> DomainDiscriminator(network.n_features)(network.encoder(torch.zeros(2, 3, 32, 32))).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, *, width: int = 100) -> None:
        super().__init__()
        self.n_features: int = n_features
        self.layers: nn.Sequential = mlp((n_features, width, 1))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n,): the log odds of source."""
        rows = features.flatten(1)
        if rows.shape[1] != self.n_features:
            raise UserError(
                f"the features have shape {tuple(features.shape)}, {rows.shape[1]} numbers a row",
                expected=f"{self.n_features}; build the discriminator with the encoder's n_features",
            )
        return self.layers(rows).squeeze(1)


class _ImageEncoder(nn.Sequential):  # type: ignore[misc]
    """Layers that check the shape of their images first."""

    def __init__(self, size: int, channels: int, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.size = size
        self.channels = channels

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        check_images(images, self.channels, size=self.size)
        return super().forward(images)


def _convolutions(n_inputs: int, width: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for channels in (n_inputs, width, width):
        # BatchNorm takes the mean away again: a bias before it would do nothing
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.LeakyReLU(0.1)]
    return layers


def _shrink(dropout: float, noise: float) -> list[nn.Module]:
    return [nn.MaxPool2d(2), nn.Dropout(dropout), GaussianNoise(noise)]
