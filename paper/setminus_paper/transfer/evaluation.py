"""How well a translation changes z1 and keeps z2: by oracle classifiers, and by looking at the colors themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.datasets.colored_digits import NEITHER, ColoredDigits
from setminus.datasets.images import from_signed_nchw
from setminus.errors import UserError
from setminus.nn.cyclegan import CycleGAN
from setminus.nn.passes import device_of
from setminus.transfer.networks import signed, translate

__all__ = ["Latents", "TransferJudge", "TransferScores", "measured_latents", "oracle_latents", "score"]

ROWS_AT_ONCE = 256

Ints = NDArray[np.int64]
Latents = tuple[Ints, Ints]
"""z1 and z2 of some images; -1 where they are unknown."""


@dataclass(frozen=True)
class TransferScores:
    """Shares of translated images: whose z1 changed (the paper's Z1 accuracy), and whose z2 stayed (Z2 accuracy)."""

    z1: float
    z2: float


def score(before: Latents, after: Latents) -> TransferScores:
    """Compare the latents of images before and after translation; an unknown one has neither changed nor stayed.

    Examples
    --------
    >>> z = np.array([0, 0, 1, 1])
    >>> score((z, z), (1 - z, z))
    TransferScores(z1=1.0, z2=1.0)
    >>> score((z, z), (np.array([1, 0, 0, -1]), np.array([0, 1, 1, -1])))
    TransferScores(z1=0.5, z2=0.5)
    """
    (z1, z2), (z1_after, z2_after) = before, after
    if len({len(z) for z in (z1, z2, z1_after, z2_after)}) != 1 or len(z1) == 0:
        raise UserError(
            f"before has {len(z1)} and {len(z2)} images, after {len(z1_after)} and {len(z2_after)}",
            expected="the same ones, at least one",
        )
    changed = (z1_after != z1) & (z1_after != NEITHER)
    kept = (z2_after == z2) & (z2_after != NEITHER)
    return TransferScores(float(changed.mean()), float(kept.mean()))


def oracle_latents(principal: nn.Module, orthogonal: nn.Module) -> Callable[[torch.Tensor], Latents]:
    """The latents of images in [-1, 1] by the decisions of two oracle classifiers, as in the paper.

    Both map images to logits of shape (n, 2), and were trained where z1, or z2, alone predicts the domain.
    """

    def latents(images: torch.Tensor) -> Latents:
        return _decisions(principal, images), _decisions(orthogonal, images)

    return latents


def measured_latents(images: torch.Tensor) -> Latents:
    """The latents of colored digits in [-1, 1] by the colors of their pixels: nothing is learned."""
    return ColoredDigits.measure_colors(from_signed_nchw(images.float().cpu().numpy()))


class TransferJudge:
    """Scores of a CycleGAN on held-out images `a` and `b` of each domain.

    Each of `ways` maps images in [-1, 1] to `Latents`, such as ``oracle=oracle_latents(...)``. Called with the
    networks, it returns ``{way: {"z1", "z2", "a_to_b": {"z1", "z2"}, "b_to_a": ...}, "agreement": share}``: the scores
    over both domains and of each direction, and the share of translated images on which all ways agree in both latents.
    """

    def __init__(self, a: torch.Tensor, b: torch.Tensor, **ways: Callable[[torch.Tensor], Latents]):
        if not ways:
            raise UserError(
                "no way to find the latents was given", do="give at least one, such as measured=measured_latents."
            )
        self.real = {"a_to_b": signed(a), "b_to_a": signed(b)}
        self.ways = ways
        self.before = {way: {d: find(x) for d, x in self.real.items()} for way, find in ways.items()}

    def __call__(self, networks: CycleGAN) -> dict[str, object]:
        """Translate, and compare."""
        return self.judge(
            {
                "a_to_b": translate(networks.a_to_b, self.real["a_to_b"]),
                "b_to_a": translate(networks.b_to_a, self.real["b_to_a"]),
            }
        )

    def judge(self, translated: dict[str, torch.Tensor]) -> dict[str, object]:
        """Compare images with their translations "a_to_b" and "b_to_a", which are in the order of the originals."""
        after = {way: {d: find(x) for d, x in translated.items()} for way, find in self.ways.items()}
        scores: dict[str, object] = {}
        for way in self.ways:
            both = score(_joined(self.before[way]), _joined(after[way]))
            each = {d: asdict(score(self.before[way][d], after[way][d])) for d in translated}
            scores[way] = {**asdict(both), **each}
        # of shape (ways, z1 and z2, images)
        found = np.array([_joined(latents) for latents in after.values()])
        scores["agreement"] = float((found == found[0]).all(axis=(0, 1)).mean())
        return scores


def _decisions(network: nn.Module, images: torch.Tensor) -> Ints:
    device = device_of(network)
    with torch.no_grad():
        decisions = torch.cat([network(part.to(device)).argmax(1) for part in images.split(ROWS_AT_ONCE)])
    return np.asarray(decisions.cpu().numpy())


def _joined(latents: dict[str, Latents]) -> Latents:
    z1, z2 = zip(*latents.values(), strict=True)
    return np.concatenate(z1), np.concatenate(z2)
