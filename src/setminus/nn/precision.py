"""What makes a training step quick on the machine that it runs on, without another result than rounding."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar

import torch

from setminus.errors import UserError

__all__ = ["Precision", "adam", "autocast", "fast_precision", "in_float32", "prepare"]

Precision = Literal["32-true", "bf16-mixed"]
"""By the names of Lightning Fabric."""

Placed = TypeVar("Placed", torch.Tensor, torch.nn.Module)


def fast_precision(device: str | torch.device = "cpu") -> Precision:
    """The quickest precision that a device computes by itself: "bf16-mixed", or else "32-true".

    A CPU has bfloat16 where it knows AMX (Intel, from 2023) or AVX512-BF16 (AMD, from 2022); elsewhere it would be
    emulated, and slow. Weights stay in float32 either way.

    Parameters
    ----------
    device : str or torch.device, default="cpu"

    Returns
    -------
    {"bf16-mixed", "32-true"}

    Examples
    --------
    >>> fast_precision("meta")
    '32-true'
    """
    kind = torch.device(device).type
    if kind == "cpu":
        native = _cpu_has_bfloat16()
    elif kind == "cuda":
        native = torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = False
    return "bf16-mixed" if native else "32-true"


def autocast(precision: Precision, device: str | torch.device = "cpu") -> AbstractContextManager[Any]:
    """The context in which passes through networks have a precision; take updates outside of it.

    Within one such context torch keeps the bfloat16 copies of weights that it made, hence does not see an update.

    Parameters
    ----------
    precision : {"bf16-mixed", "32-true"}
    device : str or torch.device, default="cpu"

    Returns
    -------
    context manager

    Examples
    --------
    >>> with autocast("bf16-mixed"):
    ...     torch.nn.Linear(2, 1)(torch.zeros(1, 2)).dtype
    torch.bfloat16
    """
    if precision not in ("32-true", "bf16-mixed"):
        raise UserError(f"precision is {precision!r}", expected="'32-true' or 'bf16-mixed'")
    if precision == "32-true":
        return nullcontext()
    context: AbstractContextManager[Any] = torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
    return context


def in_float32(x: torch.Tensor) -> torch.Tensor:
    """The same numbers with float32's digits or more, for losses: a mean in bfloat16 has three.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Examples
    --------
    >>> in_float32(torch.zeros(1, dtype=torch.bfloat16)).dtype, in_float32(torch.zeros(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return x.to(torch.promote_types(x.dtype, torch.float32))


def prepare(images_or_network: Placed) -> Placed:
    """Put the channels of images, or of a network's convolutions, last in memory, where convolutions want them.

    Shapes and values stay as they are. A network that is prepared takes images of either layout.

    Parameters
    ----------
    images_or_network : Tensor of shape (n, channels, height, width) or Module

    Returns
    -------
    The same module, or a tensor.

    Examples
    --------
    >>> prepare(torch.zeros(2, 3, 4, 4)).stride()
    (48, 1, 12, 3)
    """
    return images_or_network.to(memory_format=torch.channels_last)


def adam(
    weights: Iterable[torch.Tensor], lr: float, *, betas: tuple[float, float] = (0.5, 0.999), weight_decay: float = 0.0
) -> torch.optim.Adam:
    """Adam as one pass over all weights, where the device can.

    Parameters
    ----------
    weights : iterable of Parameter
        Where they will be trained: on the device, in the layout.
    lr : float
        2e-4 for the paper's GANs, 1e-3 for its adaptation and its tables.
    betas : (float, float), default=(0.5, 0.999)
        The paper's, throughout.
    weight_decay : float, default=0.0

    Returns
    -------
    torch.optim.Adam

    Examples
    --------
    >>> adam(torch.nn.Linear(2, 1).parameters(), lr=1e-3).defaults["fused"]
    True
    """
    listed = list(weights)
    fused = all(weight.device.type in ("cpu", "cuda") for weight in listed)
    return torch.optim.Adam(listed, lr=lr, betas=betas, weight_decay=weight_decay, fused=fused)


def _cpu_has_bfloat16() -> bool:
    # torch has no public word for these in its older versions
    return any(
        getattr(torch.cpu, name, lambda: False)() for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    )
