"""Transfer risk minimisation (Xu and Jaakkola, 2021, arXiv:2110.09940).

Features should let the best head of one environment do well on another. With head_q the best head on environment q
for the features, the transfer risk is

    mean over q of  sup over p in the hull of the others of  risk_p(head_q, features)

Its gradient in the features has a direct part, and one through head_q, which by the implicit function theorem is that
of ``-<inverse Hessian_q grad risk_p, grad risk_q>``, gradients in the head. The supremum is approached by
exponentiated gradient ascent on the weights of the environments p.

What is printed above is what `TrmConfig` does by default. Two options go beyond that paper, and are ours:

- `worst_pair` puts a supremum over q in the place of the mean;
- `beyond` lets p leave the hull, as risk extrapolation does (Krueger et al., ICML 2021, arXiv:2003.00688): weights sum
  to 1 and are at least ``-beyond``, and the environment of the head itself takes part.

Where a feature helps in all environments, if unequally, every risk in the hull is lower with some of it: only beyond
the hull there is an environment in which it does not help.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from setminus.errors import UserError
from setminus.invariant.environments import Environment, EnvironmentConfig, EnvironmentTask, pooled, risk
from setminus.nn.training import Loop

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
    worst_pair : bool
        Take the worst q, too, by ascent over all pairs. Not in the method's paper.
    beyond : float
        How far below 0 weights may go; 0 is the hull of the others. Not in the method's paper.
    """

    matching: float = 1e-4
    inner_steps: int = 30
    inner_rate: float = 0.1
    neumann_terms: int = 10
    neumann_rate: float = 0.1
    ascent: float = 0.01
    worst_pair: bool = False
    beyond: float = 0.0


class Trm(EnvironmentTask):
    """Minimise the risk of one head on all environments and the transfer risk of a head for each."""

    config: TrmConfig

    def __init__(self, environments: Sequence[Environment], network: torch.nn.Module, config: TrmConfig):
        super().__init__(environments, network, config)
        self.encoder: torch.nn.Module = encoder_of(network)
        self.transfer: _Transfer = _Transfer(network.head, len(environments), own=config.beyond > 0)
        self.modules: Mapping[str, torch.nn.Module] = {"network": network, "transfer": self.transfer}

    def step(self, loop: Loop) -> None:
        """Fit the heads to the current features, then minimise the surrogate of the transfer risk."""
        c, heads = self.config, self.transfer.heads
        batches = self.environment_batches(loop)
        x, y = pooled(batches)
        # one pass, so that batch statistics are those of all environments
        features = self.encoder(x)
        parts = features.split([len(rows) for rows, _ in batches])
        environments = [(part, labels) for part, (_, labels) in zip(parts, batches, strict=True)]
        fixed = [(part.detach(), labels) for part, labels in environments]
        for head, own in zip(heads, fixed, strict=True):
            fit_head(head, own, c.inner_steps, c.inner_rate)
        risks = torch.stack([torch.stack([risk(head, environment) for environment in environments]) for head in heads])
        transfers = (beyond_hull(self.transfer.weights, c.beyond) * risks).sum(dim=1)
        self.transfer.weights = ascended(self.transfer.weights, risks.detach(), c.ascent, c.worst_pair)
        surrogates = [
            transfer_surrogate(head, transfer, own, rows, c.matching, c.neumann_terms, c.neumann_rate)
            for head, transfer, own, rows in zip(heads, transfers, risks.diagonal(), fixed, strict=True)
        ]
        loop.update("network", cross_entropy(self.network.head(features), y) + torch.stack(surrogates).mean())


class _Transfer(torch.nn.Module):  # type: ignore[misc]
    """A head for each environment, and how much each other environment (or each, with its own) counts for it."""

    def __init__(self, head: torch.nn.Module, n_environments: int, own: bool):
        super().__init__()
        self.heads: torch.nn.ModuleList = torch.nn.ModuleList(copy.deepcopy(head) for _ in range(n_environments))
        counted = torch.ones(n_environments, n_environments) - (0 if own else torch.eye(n_environments))
        self.register_buffer("weights", counted / counted.sum(dim=1))


def ascended(weights: torch.Tensor, risks: torch.Tensor, rate: float, worst_pair: bool) -> torch.Tensor:
    """Exponentiated gradient ascent on weights of shape (n, n): of the environments p, for each head q.

    Each row keeps its sum, 1; with `worst_pair` the whole does, n, so that heads that transfer well lose theirs.

    Examples
    --------
    >>> even, risks = torch.full((2, 2), 0.5), torch.tensor([[1.0, 3.0], [0.0, 0.0]])
    >>> [round(total, 2) for total in ascended(even, risks, 1.0, worst_pair=False).sum(dim=1).tolist()]
    [1.0, 1.0]
    >>> [round(total, 2) for total in ascended(even, risks, 1.0, worst_pair=True).sum(dim=1).tolist()]
    [1.84, 0.16]
    """
    raised = weights * torch.exp(rate * risks)
    return raised * (len(raised) / raised.sum() if worst_pair else 1 / raised.sum(dim=1, keepdim=True))


def beyond_hull(weights: torch.Tensor, beyond: float) -> torch.Tensor:
    """Stretch rows of weights so that none is less than ``-beyond`` and their sums stay.

    Examples
    --------
    >>> beyond_hull(torch.tensor([[0.0, 1.0]]), 2.0).tolist()
    [[-2.0, 3.0]]
    """
    return (1 + weights.shape[1] * beyond) * weights - beyond * weights.sum(dim=1, keepdim=True)


def fit_head(head: torch.nn.Module, fixed: Environment, steps: int, rate: float) -> None:
    """Plain gradient steps of a head on fixed features."""
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
    setminus.errors.UserError: the network is a Linear without `head` and `encoder` or `features`: ...
    """
    for name in ("encoder", "features"):
        if hasattr(network, name) and hasattr(network, "head"):
            return getattr(network, name)
    raise UserError(
        f"the network is a {type(network).__name__} without `head` and `encoder` or `features`",
        do="give it both parts, so that network(x) is head(encoder(x)).",
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
