"""The images of two folders, dealt into those to learn from and those to judge by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.errors import UserError
from setminus.transfer.pixels import image_tensor

__all__ = ["Part", "deal_out"]

Ints = NDArray[np.int64]


# eq=False: comparing arrays field by field has no single truth value
@dataclass(frozen=True, eq=False)
class Part:
    """Some of the images.

    Parameters
    ----------
    x : uint8 Tensor of shape (n, 3, size, size)
    y : int array of shape (n,)
        0 in folder A, 1 in B, -1 in neither.
    z : int array of shape (n,)
        The column's value, 0 or 1; -1 where there is no label.
    """

    x: torch.Tensor
    y: Ints
    z: Ints

    def take(self, rows: NDArray[np.bool_]) -> Part:
        """Those of a mask."""
        return Part(self.x[torch.from_numpy(rows)], self.y[rows], self.z[rows])

    @property
    def a(self) -> torch.Tensor:
        """The images of folder A."""
        return self.take(self.y == 0).x

    @property
    def b(self) -> torch.Tensor:
        """The images of folder B."""
        return self.take(self.y == 1).x

    @property
    def labelled(self) -> Part:
        """Those with a label, wherever they are."""
        return self.take(self.z != UNLABELLED)

    @property
    def in_folders(self) -> Part:
        """Those of A and B, labelled or not."""
        return self.take(self.y != UNLABELLED)


def deal_out(images: LabelledImages, share: float, seed: int) -> tuple[Part, Part]:
    """Hold out a share of the images of each folder and value, at random.

    Parameters
    ----------
    images : LabelledImages
    share : float in (0, 1)
    seed : int

    Returns
    -------
    train, held_out : Part
        Both have images of A and of B; a value with two images in a place is in both.

    Examples
    --------
    >>> y, z = np.repeat([0, 1], 10), np.tile([0, 1], 10)
    >>> images = LabelledImages(np.zeros((20, 2, 2, 3), np.uint8), y, z, ("dark", "fair"), ())
    >>> [len(part.y) for part in deal_out(images, 0.2, seed=0)]
    [16, 4]
    """
    if not 0 < share < 1:
        raise UserError(f"the share of held-out images is {share}", expected="a number between 0 and 1, such as 0.2")
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(images.y), dtype=bool)
    for place in np.unique(images.y):
        for value in np.unique(images.z):
            rows = rng.permutation(np.flatnonzero((images.y == place) & (images.z == value)))
            # at least one, where one is left to learn from
            held_out[rows[: min(max(1, round(share * len(rows))), len(rows) - 1)]] = True
        rows = np.flatnonzero(images.y == place)
        if place != UNLABELLED and not held_out[rows].any():
            held_out[rows[-1]] = True
    whole = Part(image_tensor(images.x), images.y, images.z)
    return whole.take(~held_out), whole.take(held_out)
