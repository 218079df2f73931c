"""How batches are drawn and passed through networks: in which precision and layout, and with what left unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from setminus.errors import UserError

__all__ = [
    "Batches",
    "Precision",
    "Update",
    "adam",
    "balanced_order",
    "device_of",
    "each",
    "fast_precision",
    "frozen",
    "in_float32",
    "pick_device",
    "prepare",
    "running_statistics_kept",
    "sees_whole_batch",
    "signed",
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
"""Precisions, by the names of Lightning Fabric."""

Placed = TypeVar("Placed", torch.Tensor, torch.nn.Module)


def pick_device(device: str) -> str:
    """The device to train on: for "auto" a GPU where there is one.

    Examples
    --------
    >>> pick_device("cpu")
    'cpu'
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return next(name for name, available in there.items() if available)
    if device not in there:
        raise UserError(f"device is {device!r}", expected=f"one of auto, {', '.join(sorted(there))}")
    if not there[device]:
        raise UserError(f"device is {device!r}, which this machine does not have", do="choose cpu, or auto.")
    return device


def device_of(network: nn.Module) -> torch.device:
    """Where the weights of a network are; the CPU for a network without any.

    Examples
    --------
    >>> device_of(torch.nn.Linear(2, 1)), device_of(torch.nn.ReLU())
    (device(type='cpu'), device(type='cpu'))
    """
    return next((weight.device for weight in network.parameters()), torch.device("cpu"))


def fast_precision(device: str | torch.device = "cpu") -> Precision:
    """The fastest precision that a device supports: "bf16-mixed", or else "32-true".

    A CPU has bfloat16 with AMX (Intel, from 2023) or AVX512-BF16 (AMD, from 2022); elsewhere it would be
    emulated, and slow. Weights stay in float32 either way.

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


def in_float32(x: torch.Tensor) -> torch.Tensor:
    """The same numbers with float32's digits or more, for losses: a mean in bfloat16 has three.

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

    Examples
    --------
    >>> prepare(torch.zeros(2, 3, 4, 4)).stride()
    (48, 1, 12, 3)
    """
    return images_or_network.to(memory_format=torch.channels_last)


def signed(images: torch.Tensor) -> torch.Tensor:
    """``images / 127.5 - 1`` of bytes; other tensors are returned unchanged, in [-1, 1] already.

    Examples
    --------
    >>> signed(torch.tensor([0, 255], dtype=torch.uint8))
    tensor([-1.,  1.])
    """
    return images.float() / 127.5 - 1 if images.dtype == torch.uint8 else images


def adam(weights: Iterable[torch.Tensor], lr: float, *, betas: tuple[float, float] = (0.5, 0.999)) -> torch.optim.Adam:
    """Adam as one pass over all weights, where the device can.

    Parameters
    ----------
    weights : iterable of Parameter
        Where they will be trained: on the device, in the layout.
    lr : float
        2e-4 for the paper's GANs, 1e-3 for its adaptation and its tables.
    betas : (float, float), default=(0.5, 0.999)
        The paper's, throughout.

    Examples
    --------
    >>> adam(torch.nn.Linear(2, 1).parameters(), lr=1e-3).defaults["fused"]
    True
    """
    listed = list(weights)
    fused = all(weight.device.type in ("cpu", "cuda") for weight in listed)
    return torch.optim.Adam(listed, lr=lr, betas=betas, fused=fused)


def _cpu_has_bfloat16() -> bool:
    # torch has no public word for these in its older versions
    return any(
        getattr(torch.cpu, name, lambda: False)() for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    )


class Batches:
    """Tensors of equal length, shuffled in each epoch.

    Batch `step` is rows ``order[start : start + size]`` with ``order`` the permutation that (`seed`, epoch) give. A
    last incomplete batch of an epoch is left out.

    Parameters
    ----------
    *tensors : Tensor of shape (n, ...)
        Rows that belong together.
    size : int
        Rows in a batch, over all processes; a set that is smaller than this is one batch.
    seed : int
        Of the permutations.
    balance_by : Tensor of int of shape (n,), optional
        The class of each row: every class then fills the same share of a batch, however rare it is. An epoch has as
        many rows as before; rows of rare classes are repeated.
    weights : Tensor of shape (n,), optional
        Rows are drawn in proportion to them, with replacement.

    Examples
    --------
    >>> batches = Batches(torch.arange(10), size=4, seed=0)
    >>> len(batches), [len(batches.at(step)[0]) for step in range(3)]
    (2, [4, 4, 4])
    >>> torch.equal(batches.at(7)[0], Batches(torch.arange(10), size=4, seed=0).at(7)[0])
    True
    """

    def __init__(
        self,
        *tensors: torch.Tensor,
        size: int,
        seed: int,
        balance_by: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
    ):
        given = (tensor for tensor in (*tensors, balance_by, weights) if tensor is not None)
        lengths = sorted({len(tensor) for tensor in given})
        if len(lengths) != 1 or lengths[0] == 0:
            raise UserError(f"tensors have {lengths} rows", expected="the same number in each, at least one")
        if size < 1:
            raise UserError(f"size is {size}", expected="the rows of a batch, at least 1")
        if balance_by is not None and (balance_by.ndim != 1 or balance_by.is_floating_point()):
            raise UserError(
                f"balance_by has the shape {tuple(balance_by.shape)} and the type {balance_by.dtype}",
                expected="a whole number for each row, its class",
            )
        if balance_by is not None and weights is not None:
            raise UserError("balance_by and weights are both given", expected="one of the two")
        self.tensors = tensors
        self.size: int = min(size, lengths[0])
        self.seed = seed
        self._classes = None if balance_by is None else balance_by.cpu().numpy()
        self._shares = None if weights is None else (weights.double() / weights.double().sum()).cpu().numpy()
        self._order = torch.empty(0, dtype=torch.int64)
        self._epoch = -1

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.tensors[0]) // self.size

    def epoch(self, step: int) -> int:
        """The epoch that a step is in."""
        return step // len(self)

    def rows(self, step: int, share: tuple[int, int] = (0, 1)) -> torch.Tensor:
        """The indices of the rows of one batch, or of one process's share of it.

        Parameters
        ----------
        step : int
        share : (rank, world size)
            This process's number, and how many there are.
        """
        rank, world = share
        if self.size % world:
            raise UserError(
                f"a batch of {self.size} rows cannot be divided among {world} processes",
                do=f"take a multiple of {world}.",
            )
        if self.epoch(step) != self._epoch:
            self._epoch = self.epoch(step)
            rng = np.random.default_rng([self.seed, self._epoch])
            n = len(self.tensors[0])
            if self._shares is not None:
                order = rng.choice(n, n, p=self._shares)
            elif self._classes is not None:
                order = balanced_order(self._classes, rng)
            else:
                order = rng.permutation(n)
            self._order = torch.from_numpy(order)
        start = step % len(self) * self.size
        return self._order[start : start + self.size][rank::world]

    def at(self, step: int, share: tuple[int, int] = (0, 1)) -> Sequence[torch.Tensor]:
        """The rows of one batch of each tensor; see `rows`."""
        rows = self.rows(step, share)
        return [tensor.index_select(0, rows.to(tensor.device)) for tensor in self.tensors]


def balanced_order(classes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """An order of rows in which the classes take turns; a row is repeated only after all others of its class.

    Examples
    --------
    >>> classes = np.array([0, 0, 0, 0, 0, 1])
    >>> order = balanced_order(classes, np.random.default_rng(0))
    >>> classes[order].reshape(3, 2).sum(axis=1), np.sum(order == 5)
    (array([1, 1, 1]), np.int64(3))
    """
    groups = [np.flatnonzero(classes == one) for one in np.unique(classes)]
    rounds = -(-len(classes) // len(groups))
    turns = np.concatenate([rng.permutation(len(groups)) for _ in range(rounds)])[: len(classes)]
    order = np.empty(len(classes), dtype=np.int64)
    for place, rows in enumerate(groups):
        mine = np.flatnonzero(turns == place)
        shuffled = [rng.permutation(rows) for _ in range(-(-len(mine) // len(rows)))]
        order[mine] = np.concatenate(shuffled)[: len(mine)] if shuffled else rows[:0]
    return order
