"""The networks of domain adaptation, after Shu et al. (2018): encoder and head, and the discriminator of domains."""

from __future__ import annotations

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.networks.input_checks import check_images
from setminus.nn.networks.mlp import mlp

__all__ = ["AdaptationNetwork", "DomainDiscriminator", "GaussianNoise"]


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
        """`x` with noise of its own for each entry."""
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
        self.n_features = width * (size // 4) ** 2
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
        self.n_features = n_features
        self.layers = mlp((n_features, width, 1))

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
    """Layers that look at their images first."""

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
