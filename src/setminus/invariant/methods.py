"""One call for every method: environments and a network in, a principal classifier out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import torch
from torch.optim.swa_utils import update_bn

from setminus.errors import UserError
from setminus.invariant.environments import Environment, EnvironmentConfig, EnvironmentTask, Erm
from setminus.invariant.gradient_matching import Fish, FishConfig, Mldg, MldgConfig
from setminus.invariant.trm import Trm, TrmConfig
from setminus.nn.passes import Batches, device_of, signed
from setminus.nn.training import Outcome, Task, TrainingConfig, train

__all__ = ["METHODS", "Method", "fit_invariant"]

Method = Literal["erm", "mldg", "trm", "fish"]
"""How a network is trained on several environments."""

METHODS: dict[str, tuple[type[EnvironmentTask], type[EnvironmentConfig]]] = {
    "erm": (Erm, EnvironmentConfig),
    "mldg": (Mldg, MldgConfig),
    "trm": (Trm, TrmConfig),
    "fish": (Fish, FishConfig),
}
"""The task of each method, and its config."""


def fit_invariant(
    method: Method,
    environments: Sequence[Environment],
    network: torch.nn.Module,
    config: EnvironmentConfig | None = None,
    *,
    trainer: Callable[[Task, TrainingConfig], Outcome] = train,
) -> torch.nn.Module:
    """Train a network to predict from what is stable across environments.

    Where there is batch normalisation, the statistics of the result are those of all environments together under
    the final weights: during training they are of one environment or another, at weights that are not kept.

    Parameters
    ----------
    method : {"erm", "mldg", "trm", "fish"}
    environments : sequence of (Tensor, Tensor)
        Inputs and int64 labels of each.
    network : Module
        From inputs to logits; for "trm" with the parts `encoder` (or `features`) and `head`. It is trained in place.
    config : EnvironmentConfig, optional
        Of the method's own kind, by default with the paper's values.
    trainer : callable, default=train
        Trains the task; one of your own can choose another device.

    Returns
    -------
    Module
        The network, in evaluation mode.

    Examples
    --------
    >>> from setminus.nn.networks import seeded
    >>> x = torch.tensor([[-1.0], [1.0]]).repeat(20, 1)
    >>> y = torch.tensor([0, 1]).repeat(20)
    >>> network = seeded(0, lambda: torch.nn.Linear(1, 2))
    >>> fitted = fit_invariant("fish", [(x, y), (x, y)], network, FishConfig(steps=50, batch_size=8))
    >>> fitted(torch.tensor([[-1.0], [1.0]])).argmax(dim=1).tolist()
    [0, 1]
    """
    if method not in METHODS:
        raise ValueError(f"no method is called {method!r}; the known ones are {sorted(METHODS)}.")
    task_type, config_type = METHODS[method]
    if config is None:
        config = config_type()
    if type(config) is not config_type:
        raise UserError(f"{method!r} was given a {type(config).__name__}", do=f"give a {config_type.__name__}.")
    network.train()
    task = task_type(environments, network, config)
    trainer(task, TrainingConfig(steps=config.steps, seed=config.seed))
    update_bn(_pooled_batches(environments, config), network, device_of(network))
    return network.eval()


def _pooled_batches(environments: Sequence[Environment], config: EnvironmentConfig) -> Iterator[torch.Tensor]:
    """The inputs of all environments once, mixed."""
    batches = Batches(torch.cat([x for x, _ in environments]), size=1024, seed=config.seed)
    for step in range(len(batches)):
        yield signed(batches.at(step)[0])
