"""How far translated images are from real ones of the domain they should be in: the Frechet distance of features."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.passes import device_of
from setminus.transfer.networks import signed

__all__ = ["ClassifierFeatures", "Inception", "frechet_distance"]

ROWS_AT_ONCE = 256
WEIGHTS = "images/inception/pt_inception-2015-12-05-6726825d.pth"
"""Weights of the published FID, by torch-fidelity's name, in the folder ``SETMINUS_DATA``."""


class ClassifierFeatures(nn.Module):  # type: ignore[misc]
    """The `features` of a classifier of images in [-1, 1], such as `PhotoClassifier`: its values before the last layer.

    Examples
    --------
    >>> from setminus.nn.networks import PhotoClassifier
    >>> ClassifierFeatures(PhotoClassifier(width=2))(torch.zeros(4, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([4, 16])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.features = network.features
        self.eval().requires_grad_(False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features of shape (n, d) of images as bytes."""
        return self.features(signed(images).to(device_of(self.features))).cpu()


class Inception(nn.Module):  # type: ignore[misc]
    """The features of the published FID, of shape (n, 2048), of images as bytes.

    Their weights are `WEIGHTS` of the folder ``SETMINUS_DATA``, or what the package torch-fidelity downloads. Without
    either this is an error: better before a training than after it.
    """

    def __init__(self) -> None:
        super().__init__()
        from torchmetrics.image.fid import FrechetInceptionDistance

        given = Path(os.environ.get("SETMINUS_DATA", ""), WEIGHTS)
        advice = f"pip install torch-fidelity, and put its weights at {WEIGHTS} in the folder of SETMINUS_DATA."
        try:
            whole = FrechetInceptionDistance(
                2048, feature_extractor_weights_path=str(given) if given.exists() else None
            )
        except ModuleNotFoundError as error:
            raise UserError(
                "the features of Inception come with torch-fidelity, which is not here", do=advice
            ) from error
        # no network, or a file that is none of weights
        except (OSError, RuntimeError) as error:
            raise UserError(f"the weights of Inception could not be found or fetched ({error})", do=advice) from error
        self.network: nn.Module = whole.inception

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features, on the CPU."""
        return self.network(images.to(device_of(self.network))).cpu()


def frechet_distance(real: torch.Tensor, fake: torch.Tensor, features: nn.Module) -> float:
    """``|mean_r - mean_f|^2 + trace(cov_r + cov_f - 2 sqrt(cov_r cov_f))`` of the features of two sets of images.

    Images are bytes or in [-1, 1], better many more than there are features. `features` maps images as bytes to
    features of shape (n, d), such as `Inception`, the network of the published FID. Distances
    by different features, or from different numbers of images, cannot be compared.

    Examples
    --------
    >>> class Brightness(nn.Module):
    ...     def forward(self, images):
    ...         return images.float().mean((2, 3))
    >>> light = torch.rand(50, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    >>> dark = light - 0.5
    >>> frechet_distance(dark, dark, Brightness()) < 1e-3 < frechet_distance(dark, light, Brightness())
    True
    """
    for name, images in (("real", real), ("fake", fake)):
        if images.ndim != 4 or len(images) < 2:
            raise UserError(f"{name} has the shape {tuple(images.shape)}", expected="2 or more images as (n, 3, h, w)")
    from torchmetrics.image.fid import FrechetInceptionDistance

    distance = FrechetInceptionDistance(features, input_img_size=tuple(real.shape[1:]))
    for images, is_real in ((real, True), (fake, False)):
        for part in images.split(ROWS_AT_ONCE):
            distance.update(_as_bytes(part), real=is_real)
    return float(distance.compute())


def _as_bytes(images: torch.Tensor) -> torch.Tensor:
    if images.dtype == torch.uint8:
        return images
    return ((images + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
