"""One loop for everything that is trained here: devices, precision, processes, averages, checkpoints, resume."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from lightning_fabric import Fabric

from setminus.errors import UserError
from setminus.nn.checkpoints import has_checkpoint, remove_leftovers
from setminus.nn.observers import Observer
from setminus.nn.resume import Outcome, check_weights, restore_state, save_state
from setminus.nn.task import Loop, Task, TrainingConfig

__all__ = ["train"]


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
        Fresh, also where a checkpoint is resumed, whose state it then takes over.
    config : TrainingConfig
    folder : Path, optional
        For checkpoints; none are written without it.
    resume : bool
        Go on from the folder's checkpoint, where there is one.
    observers : sequence of Observer
        See `setminus.nn.observers`.

    Returns
    -------
    Outcome

    Raises
    ------
    NotFiniteError
        With the number of the step and the last good checkpoint.
    """
    if folder is not None and has_checkpoint(folder) and not resume:
        raise UserError(f"{folder} holds a checkpoint", do="resume from it, remove it, or choose another folder.")
    strategy = "ddp" if config.devices > 1 else "auto"
    fabric = Fabric(
        accelerator=config.accelerator, strategy=strategy, devices=config.devices, precision=config.precision
    )
    fabric.launch()
    with _settings(config, fabric.global_rank):
        for module in task.modules.values():
            module.to(fabric.device)
            _share_weights(module, fabric)
        outcome = Outcome(0)
        loop = Loop(task, config, fabric)
        if folder is not None and has_checkpoint(folder):
            restore_state(folder, loop, outcome)
        if folder is not None and fabric.is_global_zero:
            remove_leftovers(folder)
        _run(loop, outcome, folder, observers if fabric.is_global_zero else ())
    outcome.averaged = {name: average.module for name, average in loop.averaged.items()}
    return outcome


def _run(loop: Loop, outcome: Outcome, folder: Path | None, observers: Sequence[Observer]) -> None:
    task, config = loop.task, loop.config
    started = time.perf_counter() - outcome.seconds

    def due(every: int) -> bool:
        return outcome.steps == config.steps or (every > 0 and outcome.steps % every == 0)

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
        if due(config.evaluate_every):
            with _unchanged(task):
                outcome.evaluations.append({"step": outcome.steps, **task.evaluate(loop)})
        if folder is not None and due(config.checkpoint_every):
            save_state(folder, loop, outcome)
    check_weights(loop)


def _share_weights(module: torch.nn.Module, fabric: Fabric) -> None:
    """Start all processes from the first one's weights, as they only ever exchange gradients."""
    if fabric.world_size > 1:
        for tensor in module.state_dict().values():
            first = tensor.detach().clone(memory_format=torch.contiguous_format)
            torch.distributed.broadcast(first, 0)
            tensor.copy_(first)


@contextmanager
def _unchanged(task: Task) -> Iterator[None]:
    """Whoever looks at a training may draw random numbers and switch modules to eval: it goes on as if nobody had."""
    modes = {part: part.training for module in task.modules.values() for part in module.modules()}
    with torch.random.fork_rng():
        yield
    for part, training in modes.items():
        part.training = training


@contextmanager
def _settings(config: TrainingConfig, rank: int) -> Iterator[None]:
    """The process's settings for the time of a training, and a generator that is its own."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    try:
        torch.set_num_threads(config.threads or threads)
        torch.use_deterministic_algorithms(config.deterministic)
        # it would fill all memory that nothing is written to yet, a tenth of the time of a step; nothing here reads it
        torch.utils.deterministic.fill_uninitialized_memory = False
        with torch.random.fork_rng():
            # dropout and noise of two processes must differ
            torch.manual_seed(config.seed * config.devices + rank)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = filled
