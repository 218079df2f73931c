"""What is trained, how, and what a step may do: the contract between a training and its loop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from setminus.nn.batches import Batches

__all__ = ["Loop", "NotFiniteError", "Task", "TrainingConfig"]


@dataclass(frozen=True)
class TrainingConfig:
    """How something is trained, whatever it is.

    Parameters
    ----------
    steps : int
    seed : int
        Of everything that is random inside a step; batches and initial weights have seeds of their own.
    clip : float, optional
        Largest norm of the gradient of an update.
    ema : float, optional
        Decay of the exponential moving average of all weights, such as 0.999; none without it.
    log_every, evaluate_every, checkpoint_every : int
        Steps between two entries, evaluations, checkpoints; 0 is at the end only.
    precision : "32-true" or "bf16-mixed"
    accelerator : str
        As Fabric has it: cpu, cuda, mps, auto.
    devices : int
        Processes, one on each device.
    threads : int, optional
        Threads of each process; None leaves them as they are.
    deterministic : bool
        Refuse operations that give other bits in another run.
    """

    steps: int
    seed: int = 0
    clip: float | None = None
    ema: float | None = None
    log_every: int = 10
    evaluate_every: int = 0
    checkpoint_every: int = 0
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    accelerator: str = "cpu"
    devices: int = 1
    threads: int | None = 1
    deterministic: bool = True


class Task:
    """What is trained: named modules, named optimizers of their weights, one step, and how to judge the result.

    What a resumed run must know beyond weights belongs in buffers of a module.

    Attributes
    ----------
    modules : dict of str to Module
    optimizers : dict of str to Optimizer
    """

    modules: Mapping[str, torch.nn.Module]
    optimizers: Mapping[str, torch.optim.Optimizer]

    def step(self, loop: Loop) -> None:
        """Take batches with `loop.batch`, compute losses, and call `loop.update` for each optimizer."""
        raise NotImplementedError

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        """Plain values to keep with the number of steps."""
        return {}

    def rate(self, step: int) -> float:
        """The factor of all learning rates at a step."""
        return 1.0


class NotFiniteError(ArithmeticError):
    """A loss or a weight became NaN or infinite."""


class Loop:
    """What a task sees of its training.

    Attributes
    ----------
    index : int
        The number of this step, from 0; in `evaluate` that of the last one.
    device : torch.device
    averaged : dict of str to AveragedModel
        The moving averages of the modules, where they were asked for.
    kept : str
        A sentence on the last good checkpoint.
    """

    def __init__(self, task: Task, config: TrainingConfig, fabric: Fabric):
        self.task = task
        self.config = config
        self.fabric = fabric
        self.device = fabric.device
        self.index = 0
        self.averaged = {} if config.ema is None else {n: _average(m, config.ema) for n, m in task.modules.items()}
        self.kept = "No checkpoint was kept."
        self._rates = {n: [group["lr"] for group in o.param_groups] for n, o in task.optimizers.items()}
        self._logged: dict[str, torch.Tensor | float] = {}

    def begin(self, index: int) -> None:
        """Go to a step, of which nothing is logged yet."""
        self.index = index
        self._logged = {}

    def batch(self, batches: Batches) -> Sequence[torch.Tensor]:
        """Give the rows of this step, on this process's device: its share of them, where there are several."""
        share = (self.fabric.global_rank, self.fabric.world_size)
        return [tensor.to(self.device, non_blocking=True) for tensor in batches.at(self.index, share)]

    def update(self, optimizer: str, loss: torch.Tensor) -> None:
        """Go down a loss: gradients anew, their mean over processes, at most `clip` long, one step."""
        mean = self._mean(loss.detach())
        value = mean.item()
        if not math.isfinite(value):
            raise NotFiniteError(
                f"the loss of {optimizer!r} is {value} at step {self.index}. {self.kept} "
                "Lower the learning rate, or clip gradients."
            )
        # by hand: the optimizer's own zero_grad reports to the profiler, which takes longer than a small network
        for group in self.task.optimizers[optimizer].param_groups:
            for weight in group["params"]:
                weight.grad = None
        loss.backward()
        self.apply(optimizer)
        self.log(**{optimizer: mean})

    def apply(self, optimizer: str) -> None:
        """Take a step with the gradients that are there already: for a task that computes them by hand."""
        groups = self.task.optimizers[optimizer].param_groups
        weights = [weight for group in groups for weight in group["params"] if weight.grad is not None]
        self._average_gradients(weights)
        if self.config.clip is not None:
            torch.nn.utils.clip_grad_norm_(weights, self.config.clip)
        factor = self.task.rate(self.index)
        for group, rate in zip(groups, self._rates[optimizer], strict=True):
            group["lr"] = rate * factor
        self.task.optimizers[optimizer].step()
        # autocast keeps the weights it has cast: a second update within the step would see the old ones
        torch.clear_autocast_cache()

    def log(self, **values: torch.Tensor | float) -> None:
        """Keep values of this step for the history and the observers."""
        self._logged.update(values)

    def logged(self) -> dict[str, float]:
        """What was logged in this step, as plain numbers."""
        return {name: float(value) for name, value in self._logged.items()}

    def _mean(self, value: torch.Tensor) -> torch.Tensor:
        """Over the processes."""
        if self.fabric.world_size == 1:
            return value
        # a copy: the mean is taken in place, and the backward pass may need the loss of this process
        return self.fabric.all_reduce(value.clone(), reduce_op="mean")

    def _average_gradients(self, weights: Sequence[torch.Tensor]) -> None:
        # by hand and not by DistributedDataParallel, which knows neither two forward passes before a backward pass
        # nor gradients of gradients; both are what GANs and meta-learning are made of
        if self.fabric.world_size > 1 and weights:
            flat = torch.cat([weight.grad.reshape(-1) for weight in weights])
            mean = self.fabric.all_reduce(flat, reduce_op="mean").split([weight.numel() for weight in weights])
            for weight, part in zip(weights, mean, strict=True):
                weight.grad.copy_(part.view(weight.shape))


def _average(module: torch.nn.Module, decay: float) -> AveragedModel:
    return AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
