"""Which networks translate images of a size: UNet and PatchGAN where they can, the networks for digits elsewhere."""

from __future__ import annotations

from typing import Literal

from torch import nn

from setminus.errors import UserError
from setminus.nn.cyclegan import CycleGAN
from setminus.nn.networks import DigitClassifier, PhotoClassifier, seeded
from setminus.transfer.transfer_task import digit_networks, photo_networks

__all__ = ["LARGEST", "Kind", "check_width", "classifier_for", "kind_for", "networks_for"]

Kind = Literal["unet", "digit"]

SMALLEST = 12
"""Pixels a side: below this the discriminator's last map is one pixel, which bfloat16 cannot learn from."""
LARGEST = 1024
"""Pixels a side: beyond this one image takes more memory than most machines have."""
MOST_CHANNELS = 1024


def kind_for(size: int) -> Kind:
    """The kind of network for a size; an error names the nearest sizes where there is none.

    Parameters
    ----------
    size : int
        Height and width of the images.

    Returns
    -------
    {"unet", "digit"}

    Examples
    --------
    >>> kind_for(64), kind_for(28)
    ('unet', 'digit')
    >>> kind_for(30)
    Traceback (most recent call last):
    setminus.errors.UserError: size is 30: no network takes such images. The nearest sizes are 28 and 32.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not SMALLEST <= size <= LARGEST:
        raise UserError(f"size is {size!r}", expected=f"a multiple of 4 from {SMALLEST} to {LARGEST}, such as 64")
    if size % 4:
        below = size - size % 4
        raise UserError(
            f"size is {size}", do=f"no network takes such images. The nearest sizes are {below} and {below + 4}."
        )
    return "unet" if size >= 32 and size & (size - 1) == 0 else "digit"


def check_width(width: int) -> None:
    """Refuse what is no number of channels.

    Examples
    --------
    >>> check_width(0)
    Traceback (most recent call last):
    setminus.errors.UserError: width is 0: expected the channels of the first layer, 1 to 1024.
    """
    if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= MOST_CHANNELS:
        raise UserError(f"width is {width!r}", expected=f"the channels of the first layer, 1 to {MOST_CHANNELS}")


def networks_for(size: int, width: int, *, seed: int) -> CycleGAN:
    """Fresh generators and discriminators.

    Parameters
    ----------
    size : int
        See `kind_for`.
    width : int
        Channels of the first layers.
    seed : int
        Of the initial weights.

    Returns
    -------
    CycleGAN

    Examples
    --------
    >>> type(networks_for(32, 4, seed=0).a_to_b).__name__, type(networks_for(16, 4, seed=0).a_to_b).__name__
    ('UNetGenerator', 'DigitGenerator')
    """
    check_width(width)
    if kind_for(size) == "unet":
        return photo_networks(size, width, seed=seed, discriminator_width=width)
    # by its running statistics and by those of a batch, a generator with BatchNorm would translate otherwise
    return digit_networks(size, width, seed=seed, norm="group")


def classifier_for(size: int, width: int, *, seed: int) -> nn.Module:
    """A fresh classifier of two classes that sees as much of an image as it should.

    Parameters
    ----------
    size, width, seed : int
        See `networks_for`.

    Returns
    -------
    Module
        From images in [-1, 1] to logits of shape (n, 2).
    """
    network = PhotoClassifier if kind_for(size) == "unet" else DigitClassifier
    return seeded(seed, lambda: network(width=width))
