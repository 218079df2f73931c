"""How a step passes batches through networks: in which precision and layout, and with what left unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from setminus.errors import UserError

__all__ = [
    "Precision",
    "Update",
    "adam",
    "autocast",
    "each",
    "fast_precision",
    "frozen",
    "in_float32",
    "prepare",
    "running_statistics_kept",
    "sees_whole_batch",
]

Update = Callable[[str, torch.Tensor], None]
"""What a step does with a loss: go down it with the optimizer of that name, as ``loop.update`` of a training."""


def each(network: nn.Module, *batches: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """``network(batch)`` for each of the batches: in one pass where that is the same, which is quicker.

    Batches whose rows see each other, in the batch statistics of BatchNorm, go one after the other.

    Parameters
    ----------
    network : Module
        From a tensor of n rows to one of n rows.
    *batches : Tensor of shape (n, ...)
        Alike but for n.

    Returns
    -------
    tuple of Tensor
        One for each batch.

    Examples
    --------
    >>> one, two = each(torch.nn.Linear(3, 2), torch.zeros(4, 3), torch.zeros(5, 3))
    >>> one.shape, two.shape
    (torch.Size([4, 2]), torch.Size([5, 2]))
    """
    if len(batches) == 1 or sees_whole_batch(network):
        return tuple(network(batch) for batch in batches)
    together: tuple[torch.Tensor, ...] = network(torch.cat(batches)).split([len(batch) for batch in batches])
    return together


def sees_whole_batch(network: nn.Module) -> bool:
    """Whether a row's answer, or what the network keeps, depends on the rows next to it.

    That is where one of torch's own normalisations takes statistics over the batch, or keeps running ones.

    Parameters
    ----------
    network : Module

    Returns
    -------
    bool

    Examples
    --------
    >>> sees_whole_batch(torch.nn.BatchNorm2d(3)), sees_whole_batch(torch.nn.BatchNorm2d(3).eval())
    (True, False)
    >>> sees_whole_batch(torch.nn.InstanceNorm2d(3))
    False
    """
    return any(_takes_batch_statistics(module) for module in network.modules() if isinstance(module, _NormBase))


@contextmanager
def running_statistics_kept(*networks: nn.Module) -> Iterator[None]:
    """Within it, normalisations use the statistics of their batch as before, but do not remember them.

    Parameters
    ----------
    *networks : Module

    Examples
    --------
    >>> norm = torch.nn.BatchNorm1d(1)
    >>> with running_statistics_kept(norm):
    ...     _ = norm(torch.tensor([[8.0], [10.0]]))
    >>> norm.running_mean
    tensor([0.])
    """
    norms = [
        module
        for network in networks
        for module in network.modules()
        if isinstance(module, _NormBase) and module.track_running_stats and module.training
    ]
    try:
        for norm in norms:
            norm.track_running_stats = False
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


@contextmanager
def frozen(*networks: nn.Module) -> Iterator[None]:
    """What is computed within it has gradients through these networks, but none for their weights.

    A player's loss does not need the gradients of the other player's weights, nor the time that they take.

    Parameters
    ----------
    *networks : Module

    Examples
    --------
    >>> network, x = torch.nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)
    >>> with frozen(network):
    ...     network(x).sum().backward()
    >>> network.weight.grad is None, x.grad is None
    (True, False)
    """
    weights = [weight for network in networks for weight in network.parameters() if weight.requires_grad]
    try:
        for weight in weights:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


def _takes_batch_statistics(norm: _NormBase) -> bool:
    if isinstance(norm, nn.modules.instancenorm._InstanceNorm):
        return bool(norm.training and norm.track_running_stats)
    return bool(norm.training or norm.running_mean is None)


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
