"""Fish, gradient matching (Shi, Seely, Torr, Siddharth, Hannun, Usunier and Synnaeve, ICLR 2022, arXiv:2104.09937).

A walk of plain gradient steps through all environments, one after the other, and then a part of the way that it went:

    theta_tilde = theta; for each environment: theta_tilde -= inner_rate * grad risk(theta_tilde)
    theta += meta_rate * (theta_tilde - theta)

Over random orders the second-order part of the walk is the gradient of the inner products of the environments'
gradients, which thereby grow: no second derivative is ever computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from setminus.invariant.environment_task import Environment, EnvironmentConfig, EnvironmentTask, risk
from setminus.nn.training import Loop

__all__ = ["Fish", "FishConfig", "walk"]


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
        drawn = self.drawn(loop)
        inner_rate = self.config.rate * super().rate(loop.index)
        mean = walk(self.network, [drawn[k] for k in self.order(loop)], inner_rate, self.config.weight_decay)
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
