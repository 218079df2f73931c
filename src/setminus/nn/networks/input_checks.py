"""Sizes that a network cannot take, said in words before a layer deep inside says it in numbers."""

from __future__ import annotations

import torch

from setminus.errors import UserError

__all__ = ["check_images", "check_rows"]


def check_rows(rows: torch.Tensor, n_features: int) -> None:
    """Refuse anything but rows of `n_features` numbers.

    Parameters
    ----------
    rows : Tensor
    n_features : int

    Examples
    --------
    >>> check_rows(torch.zeros(5, 3), n_features=4)
    Traceback (most recent call last):
        ...
    setminus.errors.UserError: the input has shape (5, 3): expected (n, 4); build the network with n_features=3, or pass other columns.
    """
    if rows.ndim != 2 or rows.shape[1] != n_features:
        fix = (
            f"build the network with n_features={rows.shape[1]}, or pass other columns"
            if rows.ndim == 2
            else ("flatten each row to numbers")
        )
        raise UserError(f"the input has shape {tuple(rows.shape)}", expected=f"(n, {n_features}); {fix}")


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
    setminus.errors.UserError: the images have shape (2, 28, 28, 3): expected (n, 3, height, width); move the channels to the front...
    """
    shape = tuple(images.shape)
    if images.ndim != 4 or shape[1] != channels:
        fix = (
            "move the channels to the front: images.permute(0, 3, 1, 2)"
            if images.ndim == 4 and shape[3] == channels
            else f"pass a batch of images with {channels} channels, or build the network with the channels that came"
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
