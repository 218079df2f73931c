"""Environments in batches, one network, and empirical risk minimisation, with which the other methods are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from setminus.errors import UserError
from setminus.nn.passes import Batches, signed
from setminus.nn.training import Loop, Task

__all__ = ["Environment", "EnvironmentConfig", "EnvironmentTask", "Erm", "check_environments"]

Environment = tuple[torch.Tensor, torch.Tensor]
"""Inputs of shape (n, ...) and labels of shape (n,), int64. Images may be bytes: batches of them are in [-1, 1]."""


@dataclass(frozen=True)
class EnvironmentConfig:
    """Settings of every method; the defaults are the paper's for digits.

    Parameters
    ----------
    steps : int
    batch_size : int
        Rows of each environment in a step.
    rate, momentum, weight_decay : float
        Of stochastic gradient descent.
    decay_at : int
        From this step on all rates are a tenth.
    seed : int
        Of the batches and of the order of environments.
    """

    steps: int = 2_000
    batch_size: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    decay_at: int = 1_000
    seed: int = 0


class EnvironmentTask(Task):
    """A network that is trained on several environments; each method defines its step.

    Parameters
    ----------
    environments : sequence of (Tensor, Tensor)
        Inputs and labels of each.
    network : Module
        From inputs to logits. It is trained in place.
    config : EnvironmentConfig

    Attributes
    ----------
    network : Module
    batches : list of Batches
        One for each environment, each with its own seed.
    """

    min_environments = 2
    """Environments that the method needs."""

    def __init__(self, environments: Sequence[Environment], network: torch.nn.Module, config: EnvironmentConfig):
        check_environments(environments, self.min_environments)
        self.network = network
        self.config = config
        self.modules: Mapping[str, torch.nn.Module] = {"network": network}
        self.optimizers: Mapping[str, torch.optim.Optimizer] = {"network": self.optimizer()}
        self.batches: list[Batches] = [
            Batches(*environment, size=config.batch_size, seed=config.seed * len(environments) + place)
            for place, environment in enumerate(environments)
        ]

    def optimizer(self) -> torch.optim.Optimizer:
        """The optimizer of the network's weights."""
        c = self.config
        return torch.optim.SGD(self.network.parameters(), lr=c.rate, momentum=c.momentum, weight_decay=c.weight_decay)

    def rate(self, step: int) -> float:
        """A tenth from `decay_at` on."""
        return 1.0 if step < self.config.decay_at else 0.1

    def environment_batches(self, loop: Loop) -> list[Environment]:
        """The batch of each environment in a step."""
        return [(signed(x), y) for x, y in (loop.batch(batches) for batches in self.batches)]

    def order(self, loop: Loop) -> list[int]:
        """A random order of the environments, from the seed and the number of the step."""
        return [int(k) for k in np.random.default_rng([self.config.seed, loop.index]).permutation(len(self.batches))]


def pooled(environments: Sequence[Environment]) -> Environment:
    """The rows of all environments in one batch."""
    xs, ys = zip(*environments, strict=True)
    return torch.cat(xs), torch.cat(ys)


def risk(network: torch.nn.Module, environment: Environment) -> torch.Tensor:
    """Mean cross-entropy of a network on an environment."""
    x, y = environment
    return cross_entropy(network(x), y)


def check_environments(environments: Sequence[Environment], min_environments: int) -> None:
    """Check the number of environments, their labels and their shapes.

    Examples
    --------
    >>> x, y = torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64)
    >>> check_environments([(x, y)], min_environments=2)
    Traceback (most recent call last):
        ...
    setminus.errors.UserError: 1 environment was given: this method compares environments and needs 2 or more; ...
    """
    if len(environments) < min_environments:
        raise UserError(
            f"{len(environments)} environment was given",
            do=f'this method compares environments and needs {min_environments} or more; use "erm" for one.',
        )
    for place, (x, y) in enumerate(environments):
        if y.ndim != 1 or y.dtype != torch.int64 or len(x) != len(y):
            raise UserError(
                f"environment {place} has inputs of shape {tuple(x.shape)} and labels of {y.dtype} and shape "
                f"{tuple(y.shape)}",
                expected="one int64 label for each input",
            )
    shapes = {tuple(x.shape[1:]) for x, _ in environments}
    if len(shapes) > 1:
        raise UserError(f"inputs have the shapes {sorted(shapes)}", expected="the same in all environments")


class Erm(EnvironmentTask):
    """Empirical risk minimisation: the mean risk over the rows of all environments.

    On data where only z1 predicts the label this gives the oracle's principal classifier, p(y|z1). On pooled
    environments it uses whatever predicts on average, and is the baseline of the other methods.
    """

    min_environments = 1

    def step(self, loop: Loop) -> None:
        """Go down ``risk(network, pooled rows)``."""
        loop.update("network", risk(self.network, pooled(self.environment_batches(loop))))
