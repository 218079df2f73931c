"""CPU seconds of a training step of `OrthogonalTranslator`, beside the step that it had before these networks.

The earlier step: UNet and PatchGAN with InstanceNorm (`photo_networks`), cycle and identity losses of every picture,
``logit D + log r``. Both take turns in one process on one thread, so that a busy machine slows both alike; the ratio is
that of the means. Equal settings have the same width and batch; defaults are those of each.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.provenance import provenance
from setminus.nn.cyclegan import CycleGAN
from setminus.nn.passes import fast_precision
from setminus.nn.training import TrainingConfig, train
from setminus.records import append_record, run_record
from setminus.transfer import fitting
from setminus.transfer.networks import classifier_for, networks_for, photo_networks
from setminus.transfer.transfer_task import OrthogonalRatio, TransferConfig, TransferTask

SIZES = (32, 64)
EARLIER = (16, 32)
"""Batch size and width that were the defaults."""
ROUNDS, STEPS = 2, 8
"""Of eight steps one has the gradient penalty."""
N_PICTURES = 64


def _task(size: int, batch: int, networks: CycleGAN, config: TransferConfig) -> TransferTask:
    drawn = torch.Generator().manual_seed(0)
    a, b = torch.randint(256, (2, N_PICTURES, 3, size, size), generator=drawn).to(torch.uint8)
    return TransferTask(networks, a, b, config, log_ratio=OrthogonalRatio(classifier_for(size, 16, seed=0)))


def _tasks(size: int) -> dict[str, TransferTask]:
    batch, width = EARLIER
    now = {"equal": EARLIER, "default": (fitting.DEFAULT_BATCH, fitting.DEFAULT_WIDTH)}
    earlier = photo_networks(size, width, seed=0, discriminator_width=width)
    tasks = {"earlier": _task(size, batch, earlier, TransferConfig(batch_size=batch))}
    for name, (one_batch, one_width) in now.items():
        config = fitting.transfer_config(batch_size=one_batch, rate=fitting.DEFAULT_RATE, seed=0, steps=1000)
        tasks[name] = _task(size, one_batch, networks_for(size, one_width, seed=0), config)
    return tasks


def _seconds(task: TransferTask) -> list[float]:
    """CPU seconds of a few steps, less the first, which makes room."""
    times: list[float] = []
    training = TrainingConfig(
        steps=STEPS + 1, clip=fitting.CLIP, ema=fitting.AVERAGE, log_every=1, precision=fast_precision("cpu")
    )
    train(task, training, observers=[lambda step, values: times.append(time.process_time())])
    return [after - before for before, after in pairwise(times)]


def run(records: Path) -> None:
    """Append a record with the seconds of each step and the ratios."""
    metrics: dict[str, Any] = {}
    for size in SIZES:
        tasks = _tasks(size)
        seconds: dict[str, list[float]] = {name: [] for name in tasks}
        for _ in range(ROUNDS):
            for name, task in tasks.items():
                seconds[name] += _seconds(task)
        means = {name: statistics.mean(values) for name, values in seconds.items()}
        metrics[str(size)] = {
            "cpu_seconds": {name: round(value, 4) for name, value in means.items()},
            "times_as_fast": {name: round(means["earlier"] / means[name], 2) for name in ("equal", "default")},
        }
        print(size, metrics[str(size)], flush=True)
    record = run_record(
        "translator_speed",
        "benchmark",
        {"sizes": list(SIZES), "earlier": list(EARLIER), "rounds": ROUNDS, "precision": fast_precision("cpu")},
        command="python -m benchmarks translator_speed",
        task={"source": "steps", "data": "random pictures"},
        metrics=metrics,
        steps={},
        packages=("torch",),
        seed=0,
    )
    records.parent.mkdir(parents=True, exist_ok=True)
    append_record(records, record | provenance("python -m benchmarks translator_speed", "torch"))
