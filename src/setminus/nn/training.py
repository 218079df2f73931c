"""One training loop: what a task is, how it is trained, and how a stopped training resumes to the same bits."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from setminus.errors import UserError
from setminus.nn.checkpoints import has_checkpoint, load_checkpoint, remove_leftovers, save_checkpoint
from setminus.nn.passes import Batches
from setminus.progress import Work, tracked

__all__ = [
    "Loop",
    "NotFiniteError",
    "Observer",
    "Outcome",
    "Task",
    "TrainingConfig",
    "check_weights",
    "restore_state",
    "save_state",
    "train",
    "training_settings",
]


Observer = Callable[[int, Mapping[str, float]], None]
"""Called with the number of finished steps and the values that were logged last."""


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training, independent of the task.

    Parameters
    ----------
    steps : int
    seed : int
        Of everything random inside a step; batches and initial weights have their own seeds.
    clip : float, optional
        Largest norm of the gradient of an update.
    ema : float, optional
        Decay of the exponential moving average of all weights, such as 0.999; none without it. Evaluations then use
        the averages.
    log_every, evaluate_every, checkpoint_every : int
        Steps between two log entries, evaluations, checkpoints; 0 means at the end only.
    precision : "32-true" or "bf16-mixed"
    accelerator : str
        A name of Lightning Fabric: cpu, cuda, mps, auto.
    devices : int
        Processes, one on each device.
    threads : int, optional
        Threads of each process; None does not change them.
    deterministic : bool, optional
        Refuse operations that are not reproducible bit for bit; by default on a CPU, since some operations have no
        reproducible form elsewhere.
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
    deterministic: bool | None = None


class Task:
    """What is trained: named modules, named optimizers of their weights, one step, and an evaluation.

    State that a resumed run needs besides weights must be in buffers of a module.

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
        """Plain values, kept with the number of steps."""
        return {}

    def rate(self, step: int) -> float:
        """The factor of all learning rates at a step."""
        return 1.0


class NotFiniteError(ArithmeticError):
    """A loss or a weight became NaN or infinite."""


class Loop:
    """The training as its task sees it.

    Attributes
    ----------
    index : int
        The number of this step, from 0; in `evaluate` that of the last one.
    device : torch.device
    averaged : dict of str to AveragedModel
        The moving averages of the modules, with ``ema``.
    kept : str
        A sentence about the last good checkpoint.
    """

    def __init__(self, task: Task, config: TrainingConfig, fabric: Fabric):
        self.task = task
        self.config = config
        self.fabric = fabric
        self.device: torch.device = fabric.device
        self.index: int = 0
        # a frozen module, or one of buffers alone, such as counts, has no weights to average
        weighty = {n: m for n, m in task.modules.items() if any(one.requires_grad for one in m.parameters())}
        self.averaged: dict[str, AveragedModel] = (
            {} if config.ema is None else {n: _average(m, config.ema) for n, m in weighty.items()}
        )
        self.kept = "No checkpoint was kept."
        self._rates = {n: [group["lr"] for group in o.param_groups] for n, o in task.optimizers.items()}
        self._logged: dict[str, torch.Tensor | float] = {}

    def begin(self, index: int) -> None:
        """Start a step with an empty log."""
        self.index = index
        self._logged = {}

    def batch(self, batches: Batches) -> Sequence[torch.Tensor]:
        """The rows of this step on this process's device; with several processes, its share of them."""
        share = (self.fabric.global_rank, self.fabric.world_size)
        return [tensor.to(self.device, non_blocking=True) for tensor in batches.at(self.index, share)]

    def update(self, optimizer: str, loss: torch.Tensor) -> None:
        """Minimise a loss by one step: gradients, averaged over processes and clipped to `clip`."""
        mean = self._mean(loss.detach())
        value = mean.item()
        if not math.isfinite(value):
            raise NotFiniteError(
                f"the loss of {optimizer!r} is {value} at step {self.index}. {self.kept} "
                "Lower the learning rate, or clip gradients."
            )
        # not zero_grad: it reports to the profiler, which takes longer than a small network
        for group in self.task.optimizers[optimizer].param_groups:
            for weight in group["params"]:
                weight.grad = None
        loss.backward()
        self.apply(optimizer)
        self.log(**{optimizer: mean})

    def apply(self, optimizer: str) -> None:
        """Take a step with the present gradients: for a task that computes them itself."""
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
        """The logged values of this step, as plain numbers."""
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


@dataclass
class Outcome:
    """The results of a training, besides the task's modules.

    Attributes
    ----------
    steps : int
    seconds : float
        Including the time before a resume.
    history : list of dict
        The logged values, with the number of finished steps.
    evaluations : list of dict
        The values of the task's `evaluate`, likewise.
    averaged : dict of str to Module
        The moving averages of the modules, with ``ema``.
    """

    steps: int
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    averaged: dict[str, torch.nn.Module] = field(default_factory=dict)


def save_state(folder: Path, loop: Loop, outcome: Outcome) -> None:
    """Write a checkpoint of everything that the next step depends on, unless a weight is NaN."""
    check_weights(loop)
    randoms = {"cpu": loop.fabric.all_gather(torch.get_rng_state())}
    if loop.device.type == "cuda":
        randoms["cuda"] = loop.fabric.all_gather(torch.cuda.get_rng_state(loop.device))
    if loop.fabric.is_global_zero:
        state = {
            "config": asdict(loop.config),
            "modules": {name: dict(module.state_dict()) for name, module in loop.task.modules.items()},
            "averaged": {name: dict(module.state_dict()) for name, module in loop.averaged.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in loop.task.optimizers.items()},
            "randoms": randoms,
            "outcome": {"history": outcome.history, "evaluations": outcome.evaluations, "seconds": outcome.seconds},
        }
        save_checkpoint(folder, outcome.steps, state)
    loop.fabric.barrier()
    loop.kept = _kept(folder, outcome.steps)


def restore_state(folder: Path, loop: Loop, outcome: Outcome) -> None:
    """Restore the checkpoint of the same training."""
    step, state = load_checkpoint(folder)
    _check_config(folder, state["config"], asdict(loop.config))
    if step > loop.config.steps:
        raise UserError(
            f"the checkpoint in {folder} is of step {step}, this training ends at step {loop.config.steps}",
            do="ask for as many steps, or use another folder.",
        )
    for name, module in loop.task.modules.items():
        module.load_state_dict(state["modules"][name])
    for name, average in loop.averaged.items():
        average.load_state_dict(state["averaged"][name])
    for name, optimizer in loop.task.optimizers.items():
        optimizer.load_state_dict(_laid_out(state["optimizers"][name], optimizer))
    for device, setter in (("cpu", torch.set_rng_state), ("cuda", torch.cuda.set_rng_state)):
        if device in state["randoms"]:
            saved = state["randoms"][device]
            # a copy: torch reads a generator's state from the start of the memory, not from where a row begins
            setter((saved[loop.fabric.global_rank] if saved.ndim > 1 else saved).clone())
    outcome.steps, outcome.seconds = step, state["outcome"]["seconds"]
    outcome.history, outcome.evaluations = state["outcome"]["history"], state["outcome"]["evaluations"]
    loop.kept = _kept(folder, step)


def _laid_out(state: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Moments in the memory layout of their weights: a fused step walks through both as they lie in memory."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for place, moments in state["state"].items():
        for name, moment in moments.items():
            if isinstance(moment, torch.Tensor) and moment.shape == weights[place].shape:
                moments[name] = torch.empty_like(weights[place], dtype=moment.dtype).copy_(moment)
    return state


def _check_config(folder: Path, saved: dict[str, Any], config: dict[str, Any]) -> None:
    # a training may be made longer and evaluated more often
    free = {"steps", "log_every", "evaluate_every", "checkpoint_every"}
    other = {key: saved.get(key) for key in config if key not in free and saved.get(key) != config[key]}
    if other:
        now = {key: config[key] for key in other}
        raise UserError(
            f"the checkpoint in {folder} is of a training with {other}, this one has {now}",
            do="use the same settings, or another folder.",
        )


def check_weights(loop: Loop) -> None:
    """Raise NotFiniteError where a weight is NaN or infinite."""
    for name, module in loop.task.modules.items():
        if not all(torch.isfinite(weight).all() for weight in module.parameters()):
            raise NotFiniteError(
                f"the weights of {name!r} are no longer finite after step {loop.index}. {loop.kept} "
                "Lower the learning rate, or clip gradients."
            )


def _kept(folder: Path, step: int) -> str:
    return f"The last good checkpoint is that of step {step} in {folder}."


def train(
    task: Task,
    config: TrainingConfig,
    *,
    folder: Path | None = None,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> Outcome:
    """Train the task's modules in place.

    Two trainings with the same task and config give the same bits on one machine with ``threads=1``, also where one
    of them was killed at any moment and resumed.

    Parameters
    ----------
    task : Task
        A fresh one, also on resume; the state of the checkpoint is loaded into it.
    config : TrainingConfig
    folder : Path, optional
        For checkpoints; none are written without it.
    resume : bool
        Continue from the folder's checkpoint, if there is one.
    observers : sequence of Observer
        Called after each logged step.

    Raises
    ------
    NotFiniteError
        With the number of the step and the last good checkpoint.
    """
    if folder is not None and has_checkpoint(folder) and not resume:
        raise UserError(f"{folder} holds a checkpoint", do="resume from it, remove it, or choose another folder.")
    strategy = "ddp" if config.devices > 1 else "auto"
    with _quiet():
        fabric = Fabric(
            accelerator=config.accelerator, strategy=strategy, devices=config.devices, precision=config.precision
        )
    fabric.launch()
    with training_settings(config, fabric.global_rank):
        for module in task.modules.values():
            module.to(fabric.device)
            _share_weights(module, fabric)
        outcome = Outcome(0)
        loop = Loop(task, config, fabric)
        if folder is not None and has_checkpoint(folder):
            restore_state(folder, loop, outcome)
        if folder is not None and fabric.is_global_zero:
            remove_leftovers(folder)
        with tracked("train", total=config.steps, unit="steps") as progress:
            progress.advance(outcome.steps)
            _run(loop, outcome, folder, observers if fabric.is_global_zero else (), progress)
    outcome.averaged = {name: average.module for name, average in loop.averaged.items()}
    return outcome


def _run(loop: Loop, outcome: Outcome, folder: Path | None, observers: Sequence[Observer], progress: Work) -> None:
    task, config = loop.task, loop.config
    started = time.perf_counter() - outcome.seconds

    def due(every: int) -> bool:
        return outcome.steps == config.steps or (every > 0 and outcome.steps % every == 0)

    losses = ""
    while outcome.steps < config.steps:
        loop.begin(outcome.steps)
        with loop.fabric.autocast():
            task.step(loop)
        for name, average in loop.averaged.items():
            average.update_parameters(task.modules[name])
        outcome.steps += 1
        outcome.seconds = time.perf_counter() - started
        if due(config.log_every):
            outcome.history.append({"step": outcome.steps, **loop.logged()})
            for observe in observers:
                observe(outcome.steps, loop.logged())
            losses = "  ".join(f"{name} {value:.3g}" for name, value in loop.logged().items())
        progress.advance(detail=losses)
        if due(config.evaluate_every):
            with _unchanged(task), _averages_in_use(loop):
                outcome.evaluations.append({"step": outcome.steps, **task.evaluate(loop)})
        if folder is not None and due(config.checkpoint_every):
            save_state(folder, loop, outcome)
    check_weights(loop)


def _share_weights(module: torch.nn.Module, fabric: Fabric) -> None:
    """Start all processes from the first one's weights, as they only ever exchange gradients."""
    if fabric.world_size > 1:
        for tensor in module.state_dict().values():
            # a copy where the processes talk to each other: some modules stay on the CPU
            first = tensor.detach().to(fabric.device).clone(memory_format=torch.contiguous_format)
            torch.distributed.broadcast(first, 0)
            tensor.copy_(first)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Fabric's line on its precision, which it prints for each of many trainings."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.WARNING)
    yield
    logger.setLevel(level)


@contextmanager
def _unchanged(task: Task) -> Iterator[None]:
    """Restore random state and module modes after an evaluation, so that it does not change the training."""
    modes = {part: part.training for module in task.modules.values() for part in module.modules()}
    with torch.random.fork_rng():
        yield
    for part, training in modes.items():
        part.training = training


@contextmanager
def _averages_in_use(loop: Loop) -> Iterator[None]:
    """Within it, modules have the moving averages of their weights, where there are any."""
    modules = {name: loop.task.modules[name] for name in loop.averaged}
    kept = {name: {key: value.clone() for key, value in one.state_dict().items()} for name, one in modules.items()}
    for name, module in modules.items():
        module.load_state_dict(loop.averaged[name].module.state_dict())
    yield
    for name, module in modules.items():
        module.load_state_dict(kept[name])


@contextmanager
def training_settings(config: TrainingConfig, rank: int = 0) -> Iterator[None]:
    """The process's settings and random generator during a training."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    try:
        torch.set_num_threads(config.threads or threads)
        by_default = config.accelerator == "cpu"
        torch.use_deterministic_algorithms(by_default if config.deterministic is None else config.deterministic)
        # filling uninitialised memory takes a tenth of the time of a step; nothing here reads it
        torch.utils.deterministic.fill_uninitialized_memory = False
        with torch.random.fork_rng():
            # dropout and noise of two processes must differ
            torch.manual_seed(config.seed * config.devices + rank)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = filled
