"""Weights that can be had again, without a word to the global generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

__all__ = ["seeded"]

Built = TypeVar("Built")


def seeded(seed: int, build: Callable[[], Built]) -> Built:
    """What `build` makes when torch's generator starts from `seed`; the generator is left as it was before.

    Networks keep PyTorch's own initialisation: each layer draws from the global generator of the CPU as it is made.

    Parameters
    ----------
    seed : int
    build : callable without arguments
        Makes one network, or several. They are made on the CPU, hence the same for every device: move them later.
        Under ``torch.device("meta")`` they have shapes and no weights.

    Returns
    -------
    Whatever `build` returns.

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
