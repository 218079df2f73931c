"""Transfer risk minimisation (Xu and Jaakkola, 2021, arXiv:2110.09940).

Features should let the best head of one environment do well on another. With head_q the best head on environment q
for the features, the transfer risk is

    mean over q of  sup over p in the hull of the others of  risk_p(head_q, features)

Its gradient in the features has a direct part, and one through head_q, which by the implicit function theorem is that
of ``-<inverse Hessian_q grad risk_p, grad risk_q>``, gradients in the head. The supremum is approached by
exponentiated gradient ascent on the weights of the environments p.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from setminus.invariant.environment_task import Environment, EnvironmentConfig, EnvironmentTask, pooled, risk
from setminus.nn.task import Loop

__all__ = ["Trm", "TrmConfig", "encoder_of", "transfer_surrogate"]


@dataclass(frozen=True)
class TrmConfig(EnvironmentConfig):
    """Also the weight of the gradient-matching part, and how heads, inverse Hessians and the supremum are found.

    Parameters
    ----------
    matching : float
        Weight of the part through the heads; 1 is the gradient of the transfer risk itself.
    inner_steps, inner_rate : int, float
        Of the heads in each step.
    neumann_terms, neumann_rate : int, float
        Of the series ``rate * sum (1 - rate * Hessian)^k`` for the inverse Hessian.
    ascent : float
        Rate of the ascent on the weights of the environments.
    """

    matching: float = 1e-4
    inner_steps: int = 30
    inner_rate: float = 0.1
    neumann_terms: int = 10
    neumann_rate: float = 0.1
    ascent: float = 0.01


class Trm(EnvironmentTask):
    """Minimise the risk of one head on all environments and the transfer risk of a head for each."""

    config: TrmConfig

    def __init__(self, environments: Sequence[Environment], network: torch.nn.Module, config: TrmConfig):
        super().__init__(environments, network, config)
        self.encoder = encoder_of(network)
        self.transfer = _Transfer(network.head, len(environments))
        self.modules = {"network": network, "transfer": self.transfer}

    def step(self, loop: Loop) -> None:
        """Find the heads for the features as they are, then go down the surrogate of the transfer risk."""
        drawn = self.drawn(loop)
        x, y = pooled(drawn)
        # one pass, so that batch statistics are those of all environments
        features = self.encoder(x)
        parts = features.split([len(rows) for rows, _ in drawn])
        environments = [(part, labels) for part, (_, labels) in zip(parts, drawn, strict=True)]
        fixed = [(part.detach(), labels) for part, labels in environments]
        for head, own in zip(self.transfer.heads, fixed, strict=True):
            fit_head(head, own, self.config.inner_steps, self.config.inner_rate)
        transfer = torch.stack([self.transferred(k, environments, fixed[k]) for k in range(len(drawn))])
        loop.update("network", cross_entropy(self.network.head(features), y) + transfer.mean())

    def transferred(self, place: int, environments: Sequence[Environment], fixed: Environment) -> torch.Tensor:
        """The surrogate for the head of one environment, at the current weights of the others, which then ascend."""
        c = self.config
        head = self.transfer.heads[place]
        risks = torch.stack([risk(head, environment) for environment in environments])
        weights = self.transfer.weights[place].clone()
        ascended = weights * torch.exp(c.ascent * risks.detach())
        self.transfer.weights[place] = ascended / ascended.sum()
        return transfer_surrogate(
            head, weights @ risks, risks[place], fixed, c.matching, c.neumann_terms, c.neumann_rate
        )


class _Transfer(torch.nn.Module):  # type: ignore[misc]
    """A head for each environment, and how much each other environment counts for it."""

    def __init__(self, head: torch.nn.Module, n_environments: int):
        super().__init__()
        self.heads = torch.nn.ModuleList(copy.deepcopy(head) for _ in range(n_environments))
        self.register_buffer("weights", (1 - torch.eye(n_environments)) / (n_environments - 1))


def fit_head(head: torch.nn.Module, fixed: Environment, steps: int, rate: float) -> None:
    """Plain gradient steps of a head on features that stay as they are."""
    weights = list(head.parameters())
    for _ in range(steps):
        gradients = torch.autograd.grad(risk(head, fixed), weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= rate * gradient


def encoder_of(network: torch.nn.Module) -> torch.nn.Module:
    """The part of a network before its `head`: its `encoder`, or its `features`.

    Examples
    --------
    >>> encoder_of(torch.nn.Linear(2, 2))
    Traceback (most recent call last):
        ...
    ValueError: the network is a Linear without `head` and `encoder` or `features`: give it both parts, so that ...
    """
    for name in ("encoder", "features"):
        if hasattr(network, name) and hasattr(network, "head"):
            return getattr(network, name)
    raise ValueError(
        f"the network is a {type(network).__name__} without `head` and `encoder` or `features`: give it both parts, "
        "so that network(x) is head(encoder(x))."
    )


def transfer_surrogate(
    head: torch.nn.Module,
    transfer: torch.Tensor,
    own: torch.Tensor,
    fixed: Environment,
    matching: float,
    neumann_terms: int,
    neumann_rate: float,
) -> torch.Tensor:
    """A number with the gradient of the transfer risk in the features, though the head is held fixed.

    ``transfer - matching * <inverse Hessian of own . grad transfer, grad own>``, where the inner product's first
    factor is a constant, and gradients are in the head.

    Parameters
    ----------
    head : Module
        At the minimum of its own risk.
    transfer, own : Tensor
        Its risk on the other environments and on its own, with the graph of the features.
    fixed : (Tensor, Tensor)
        Features, without graph, and labels of its own environment.
    matching : float
    neumann_terms, neumann_rate : int, float
        See `TrmConfig`.

    Returns
    -------
    Tensor
    """
    if matching == 0:
        return transfer
    weights = list(head.parameters())
    gradient = torch.autograd.grad(transfer, weights, retain_graph=True)
    direction = _inverse_hessian_product(head, fixed, gradient, neumann_terms, neumann_rate)
    match = torch.autograd.grad(own, weights, create_graph=True)
    return transfer - matching * sum((v * g).sum() for v, g in zip(direction, match, strict=True))


def _inverse_hessian_product(
    head: torch.nn.Module, fixed: Environment, vector: Sequence[torch.Tensor], terms: int, rate: float
) -> list[torch.Tensor]:
    weights = list(head.parameters())
    gradient = torch.autograd.grad(risk(head, fixed), weights, create_graph=True)
    term = [v.detach() for v in vector]
    total = [v.clone() for v in term]
    for _ in range(terms):
        product = torch.autograd.grad(gradient, weights, term, retain_graph=True)
        term = [t - rate * p for t, p in zip(term, product, strict=True)]
        total = [s + t for s, t in zip(total, term, strict=True)]
    return [rate * s for s in total]
