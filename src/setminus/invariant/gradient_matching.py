"""Two methods that make the gradients of environments agree: MLDG and Fish.

Meta-learning domain generalization (Li, Yang, Song and Hospedales, AAAI 2018, arXiv:1710.03463): a step on some
environments should also help on the one that took no part in it,

    F(theta) + beta * G(theta - inner_rate * grad F(theta))

with F the risk on the meta-train environments and G the risk on the held-out one. To first order this is
``F + beta * G - beta * inner_rate * <grad F, grad G>``.

Fish (Shi, Seely, Torr, Siddharth, Hannun, Usunier and Synnaeve, ICLR 2022, arXiv:2104.09937): plain gradient steps
through all environments, one after the other, and then a part of the distance that they covered,

    theta_tilde = theta; for each environment: theta_tilde -= inner_rate * grad risk(theta_tilde)
    theta += meta_rate * (theta_tilde - theta)

Over random orders the second-order part is the gradient of the inner products of the environments' gradients, without
any second derivative being computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from setminus.invariant.environments import Environment, EnvironmentConfig, EnvironmentTask, pooled, risk
from setminus.nn.training import Loop

__all__ = ["Fish", "FishConfig", "Mldg", "MldgConfig", "meta_risk", "walk"]


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
        batches = self.environment_batches(loop)
        *train, test = [batches[place] for place in self.order(loop)]
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
    # copies: running statistics of the virtual weights must not reach the network
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    x, y = test
    meta_test = cross_entropy(functional_call(network, {**moved, **buffers}, (x,)), y)
    return meta_train + beta * meta_test


@dataclass(frozen=True)
class FishConfig(EnvironmentConfig):
    """Also the part of the walk that is kept; `rate` is that of the walk, which has no momentum."""

    meta_rate: float = 0.5


class Fish(EnvironmentTask):
    """Walk through the environments in an order that is drawn in each step."""

    config: FishConfig

    def optimizer(self) -> torch.optim.Optimizer:
        """Plain: with the walk's displacement as gradient, its step is Fish's."""
        return torch.optim.SGD(self.network.parameters(), lr=self.config.meta_rate)

    def rate(self, step: int) -> float:
        """Always 1: what decays is the walk's rate."""
        return 1.0

    def step(self, loop: Loop) -> None:
        """Walk, then go `meta_rate` of the way."""
        batches = self.environment_batches(loop)
        inner_rate = self.config.rate * super().rate(loop.index)
        mean = walk(self.network, [batches[k] for k in self.order(loop)], inner_rate, self.config.weight_decay)
        loop.apply("network")
        loop.log(network=mean)


def walk(
    network: torch.nn.Module, environments: Sequence[Environment], inner_rate: float, weight_decay: float = 0.0
) -> torch.Tensor:
    """Set each weight's gradient to ``theta - theta_tilde``, and leave the weight where it was.

    Returns
    -------
    Tensor
        The mean risk along the way.
    """
    weights = list(network.parameters())
    start = [weight.detach().clone() for weight in weights]
    total = torch.zeros((), device=start[0].device)
    for environment in environments:
        loss = risk(network, environment)
        gradients = torch.autograd.grad(loss, weights)
        total += loss.detach()
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= inner_rate * (gradient + weight_decay * weight)
    with torch.no_grad():
        for weight, begin in zip(weights, start, strict=True):
            weight.grad = begin - weight
            weight.copy_(begin)
    return total / len(environments)
