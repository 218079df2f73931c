"""The state of a training, into a checkpoint and out of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from setminus.errors import UserError
from setminus.nn.checkpoints import load_checkpoint, save_checkpoint
from setminus.nn.task import Loop, NotFiniteError

__all__ = ["Outcome", "check_weights", "restore_state", "save_state"]


@dataclass
class Outcome:
    """What is left of a training, besides the task's modules.

    Attributes
    ----------
    steps : int
    seconds : float
        Of all parts of a training that was resumed.
    history : list of dict
        What was logged, with the number of steps that were done.
    evaluations : list of dict
        What the task's `evaluate` gave, likewise.
    averaged : dict of str to Module
        The moving averages of the modules, where they were asked for.
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
    """Take over the checkpoint of the same training."""
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
    # a training may be made longer, and looked at more often
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
