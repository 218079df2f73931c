"""How a step uses its networks: several batches beside each other, running statistics or weights left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

__all__ = ["Update", "each", "frozen", "running_statistics_kept", "sees_whole_batch"]

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
