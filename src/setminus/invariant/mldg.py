"""Meta-learning domain generalization (Li, Yang, Song and Hospedales, AAAI 2018, arXiv:1710.03463).

A step on some environments should also help on the one that took no part in it:

    F(theta) + beta * G(theta - inner_rate * grad F(theta))

with F the risk on the meta-train environments and G that on the held-out one. To first order this is
``F + beta * G - beta * inner_rate * <grad F, grad G>``: gradients of different environments are made to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from setminus.invariant.environment_task import Environment, EnvironmentConfig, EnvironmentTask, pooled
from setminus.nn.training import Loop

__all__ = ["Mldg", "MldgConfig", "meta_risk"]


@dataclass(frozen=True)
class MldgConfig(EnvironmentConfig):
    """Also the weight of the meta-test risk, and how far the virtual step goes."""

    beta: float = 1.0
    inner_rate: float = 0.1


class Mldg(EnvironmentTask):
    """Hold out one environment, drawn in each step, and minimise `meta_risk`."""

    config: MldgConfig

    def step(self, loop: Loop) -> None:
        """Go down `meta_risk`, with the gradient through the virtual step."""
        drawn = self.drawn(loop)
        *train, test = [drawn[place] for place in self.order(loop)]
        loop.update("network", meta_risk(self.network, train, test, self.config.inner_rate, self.config.beta))


def meta_risk(
    network: torch.nn.Module, train: Sequence[Environment], test: Environment, inner_rate: float, beta: float
) -> torch.Tensor:
    """``F(theta) + beta * G(theta - inner_rate * grad F(theta))``, to be differentiated in theta.

    Parameters
    ----------
    network : Module
    train : sequence of (Tensor, Tensor)
        The meta-train environments: F is the mean risk on their rows.
    test : (Tensor, Tensor)
        The meta-test environment.
    inner_rate, beta : float

    Returns
    -------
    Tensor
        A number with its graph, second derivatives included.

    Examples
    --------
    >>> network = torch.nn.Linear(2, 2)
    >>> x, y = torch.eye(2), torch.tensor([0, 1])
    >>> meta_risk(network, [(x, y)], (x, y), inner_rate=0.1, beta=1.0).shape
    torch.Size([])
    """
    weights = dict(network.named_parameters())
    x, y = pooled(train)
    meta_train = cross_entropy(network(x), y)
    gradients = torch.autograd.grad(meta_train, list(weights.values()), create_graph=True)
    moved = {name: w - inner_rate * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
    # copies: running statistics of weights that nobody keeps must not reach the network
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    x, y = test
    meta_test = cross_entropy(functional_call(network, {**moved, **buffers}, (x,)), y)
    return meta_train + beta * meta_test
