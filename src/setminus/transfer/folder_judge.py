"""What became of held-out images: by the verdicts of classifiers that no generator has seen, and to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from setminus.datasets.images import Bytes, from_signed_nchw
from setminus.nn.cyclegan import CycleGAN
from setminus.transfer.evaluation import translate
from setminus.transfer.folder_classifiers import FolderClassifiers
from setminus.transfer.pixels import signed

__all__ = ["FolderJudge"]

DIRECTIONS = ("a_to_b", "b_to_a")


class FolderJudge:
    """Shares of translated images whose verdict is another one than before.

    Parameters
    ----------
    classifiers : FolderClassifiers
    a, b : Tensor of shape (n, 3, size, size)
        Held-out images of each folder.
    shown : int
        Images of each folder that are shown.
    """

    def __init__(self, classifiers: FolderClassifiers, a: torch.Tensor, b: torch.Tensor, shown: int = 8):
        self.classifiers = classifiers
        self.real = {"a_to_b": signed(a), "b_to_a": signed(b)}
        self.before = {direction: classifiers.verdicts(images) for direction, images in self.real.items()}
        self.shown = shown

    def __call__(self, networks: CycleGAN) -> dict[str, Any]:
        """Translate, and compare.

        Parameters
        ----------
        networks : CycleGAN
            In evaluation mode.

        Returns
        -------
        dict
            Of "a_to_b", "b_to_a" and "both" the shares that changed: "domain", "column" and "rest".
        """
        changed = {}
        for direction in DIRECTIONS:
            after = self.classifiers.verdicts(translate(getattr(networks, direction), self.real[direction]))
            changed[direction] = {name: after[name] != told for name, told in self.before[direction].items()}
        names = list(changed["a_to_b"])
        both = {name: np.concatenate([changed[direction][name] for direction in DIRECTIONS]) for name in names}
        return {
            group: {name: round(float(one.mean()), 4) for name, one in shares.items()}
            for group, shares in {**changed, "both": both}.items()
        }

    def strips(self, networks: CycleGAN) -> dict[str, Bytes]:
        """The first images of each folder, and what became of them.

        Returns
        -------
        dict of str to uint8 array of shape (n, size, size, 3)
            "a", "a_to_b", "b", "b_to_a", in this order.
        """
        rows = {}
        for folder, direction in zip("ab", DIRECTIONS, strict=True):
            images = self.real[direction][: self.shown]
            rows[folder] = from_signed_nchw(images.numpy())
            rows[direction] = from_signed_nchw(translate(getattr(networks, direction), images).numpy())
        return rows

    def grid(self, networks: CycleGAN) -> Bytes:
        """The strips below each other, as one image.

        Returns
        -------
        uint8 array of shape (4 * size, n * size, 3)
        """
        strips = [np.concatenate(list(images), axis=1) for images in self.strips(networks).values()]
        widest = max(strip.shape[1] for strip in strips)
        # a folder may have fewer held-out images than the other
        white = [np.full((strip.shape[0], widest - strip.shape[1], 3), 255, np.uint8) for strip in strips]
        return np.concatenate([np.concatenate(pair, axis=1) for pair in zip(strips, white, strict=True)])
