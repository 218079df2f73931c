r"""What the tables of style transfer share: their rows, and one training with its scores, curves and samples.

A row is a CycleGAN whose generators are trained against its own discriminator, or against that discriminator without
its knowledge of z2, which ``full \ principal`` or importance sampling estimates.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from filelock import FileLock
from torch import nn

from setminus.datasets.images import from_signed_nchw
from setminus.nn.checkpoints import load_checkpoint, save_checkpoint
from setminus.nn.cyclegan import CycleGAN
from setminus.nn.passes import Precision
from setminus.nn.training import Outcome, TrainingConfig
from setminus.transfer.fitting import strip_png
from setminus.transfer.networks import translate
from setminus.transfer.transfer_task import TransferConfig, TransferTask
from setminus_paper.run import steps_here, train_on_machine, train_run
from setminus_paper.transfer.evaluation import TransferJudge

__all__ = ["JOB", "ROWS", "Row", "Source", "Translation", "translated"]

JOB = "style_transfer"

Source = Literal["oracle", "mldg", "trm", "fish"]
LAST = 5
"""Number of last evaluations that a score averages."""
SAMPLES = 8
"""Images of each domain whose translation a record holds."""


@dataclass(frozen=True)
class Row:
    """One row of the tables: the adversarial loss of the generators, and the origin of the principal classifier."""

    label: str
    loss: Literal["plain", "orthogonal", "importance"]
    source: Source | None = None


ROWS: dict[str, Row] = {
    "vanilla": Row("Vanilla", "plain"),
    "orthogonal_mldg": Row("w_x \\ w_1 (MLDG)", "orthogonal", "mldg"),
    "orthogonal_trm": Row("w_x \\ w_1 (TRM)", "orthogonal", "trm"),
    "orthogonal_fish": Row("w_x \\ w_1 (Fish)", "orthogonal", "fish"),
    "importance_oracle": Row("IS (Oracle)", "importance", "oracle"),
    "orthogonal_oracle": Row("w_x \\ w_1 (Oracle)", "orthogonal", "oracle"),
}
"""In the paper's order."""


@dataclass(frozen=True)
class Translation:
    """Number of steps, batch size, steps between evaluations, and Adam's rate."""

    steps: int
    batch_size: int
    evaluate_every: int = 50
    rate: float = 2e-4
    precision: Precision | None = None
    """None is the fastest that the machine has."""


def translated(
    networks: CycleGAN,
    domains: tuple[torch.Tensor, torch.Tensor],
    judge: TransferJudge,
    size: Translation,
    *,
    log_ratio: nn.Module | None,
    seed: int,
    plain_share: float = 0.0,
    shared: str = "",
) -> dict[str, Any]:
    """Train one row on the images of both domains, and score it along the way.

    `log_ratio` is that of z2 in the generators' loss; None is plain CycleGAN, as is a first share of the steps. Rows
    with the same name of what is `shared` have these in common: the first row keeps them for the others. Returns plain
    JSON: `z1`, `z2` and others as means over the last evaluations, `curves` and `losses` by step, `samples` as PNG in
    base64.
    """
    plain_steps = round(plain_share * steps_here(size.steps))
    config = TransferConfig(batch_size=size.batch_size, rate=size.rate, seed=seed, plain_steps=plain_steps)
    task = TransferTask(networks, *domains, config, log_ratio=log_ratio, judge=judge)

    def begin(folder: Path, training: TrainingConfig) -> None:
        plain = folder.parent.parent / shared / str(seed)
        plain.parent.mkdir(parents=True, exist_ok=True)
        # another process may be about to train the same
        with FileLock(f"{plain}.lock"):
            copied = TransferTask(copy.deepcopy(networks), *domains, config, judge=judge)
            train_on_machine(copied, replace(training, steps=plain_steps), folder=plain, resume=True)
        step, state = load_checkpoint(plain)
        if log_ratio is not None:
            state["modules"]["log_ratio"] = dict(log_ratio.state_dict())
        save_checkpoint(folder, step, state)

    outcome, precision = train_run(
        task,
        str(seed),
        steps=size.steps,
        seed=seed,
        log_every=size.evaluate_every,
        evaluate_every=size.evaluate_every,
        precision=size.precision,
        begin=begin if shared and plain_steps else None,
    )
    return {
        **_scores(outcome),
        "precision": precision,
        "losses": {name: [round(entry[name], 4) for entry in outcome.history] for name in outcome.history[0]},
        "seconds_per_step": round(outcome.seconds / outcome.steps, 4),
        "samples": _samples(networks, judge),
    }


def _scores(outcome: Outcome) -> dict[str, Any]:
    """Means over the last evaluations, and the curves of all."""
    found = outcome.evaluations
    curves = {"step": [one["step"] for one in found]}
    if "measured" in found[0]:
        curves["agreement"] = [one["agreement"] for one in found]
    for way, suffix in (("oracle", ""), ("measured", "_measured")):
        for name in ("z1", "z2"):
            if way in found[0]:
                curves[f"{name}{suffix}"] = [round(one[way][name], 4) for one in found]
    last = {name: float(np.mean(values[-LAST:])) for name, values in curves.items() if name != "step"}
    directions = {
        direction: {
            name: float(np.mean([one["oracle"][direction][name] for one in found[-LAST:]])) for name in ("z1", "z2")
        }
        for direction in ("a_to_b", "b_to_a")
    }
    return {**last, **directions, "curves": curves}


def _samples(networks: CycleGAN, judge: TransferJudge) -> dict[str, str]:
    """The first held-out images of each domain and their translations, the same images in every row."""
    strips = {}
    for domain, direction, generator in (("a", "a_to_b", networks.a_to_b), ("b", "b_to_a", networks.b_to_a)):
        images = judge.real[direction][:SAMPLES]
        strips[domain] = strip_png(from_signed_nchw(images.numpy()))
        strips[direction] = strip_png(from_signed_nchw(translate(generator.eval(), images).numpy()))
    return strips
