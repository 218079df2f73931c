"""Images as bytes in memory, as numbers in [-1, 1] in a batch: a quarter of the memory of floats throughout."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["image_tensor", "signed"]


def image_tensor(images: NDArray[np.uint8]) -> torch.Tensor:
    """Images of the data layer as a tensor, channels first, without a copy: the memory still has channels last.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width, channels)

    Returns
    -------
    uint8 Tensor of shape (n, channels, height, width)

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


def signed(images: torch.Tensor) -> torch.Tensor:
    """``images / 127.5 - 1`` of bytes; floats are on that scale already and stay as they are.

    Parameters
    ----------
    images : Tensor of uint8, or of floats

    Returns
    -------
    Tensor of floats

    Examples
    --------
    >>> signed(torch.tensor([0, 255], dtype=torch.uint8))
    tensor([-1.,  1.])
    """
    return images.float() / 127.5 - 1 if images.dtype == torch.uint8 else images
