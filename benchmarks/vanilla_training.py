"""What training the paper's network on Adult costs for each seed: alone, with seeds stacked, and as one would write it.

The reference is a plain loop over a ``DataLoader``: same network, batch size, optimizer and rows.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from setminus_paper.fairness.training import BATCH, BETAS, RATE, FairTask, TabularNetwork
from setminus_paper.fairness.trials import Trials, adult_trials
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.speed import Ratio, in_turns, table
from setminus.nn.networks import seeded
from setminus.nn.training import TrainingConfig, train
from setminus.records import append_record, versions

RECORDS = Path("results/vanilla_training/records.jsonl")
SEEDS = 10
BAR = 1 / 1.5
"""Of the reference's seconds, at most, for one seed alone."""


def run(repeats: int = 5, records: Path = RECORDS, seeds: int = SEEDS) -> list[Ratio]:
    """Time one epoch of each in turns, print a table and append a record."""
    start = time.perf_counter()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = compared(adult_trials([0]), adult_trials(range(seeds)), repeats)
    finally:
        torch.set_num_threads(threads)
    print(table(found))
    record = {
        "name": "vanilla_training",
        "config": {"seeds": seeds, "repeats": repeats, "batch": BATCH, "epochs": 1, "threads": 1, "load_before": load},
        "seed": 0,
        "versions": versions("torch"),
        "metrics": {ratio.name: {**asdict(ratio), "ratio": ratio.ratio, "met": ratio.met} for ratio in found},
        "seconds": round(time.perf_counter() - start, 3),
    }
    append_record(records, record)
    return found


def compared(alone: Trials, together: Trials, repeats: int) -> list[Ratio]:
    """Seconds of an epoch for each seed, against the plain loop."""
    seeds = len(together.seeds)
    one, plain = in_turns(partial(ours, alone), partial(plain_loop, alone), repeats)
    stacked, plain_again = in_turns(partial(ours, together), partial(plain_loop, alone), repeats)
    return [
        Ratio("one seed / plain DataLoader loop", one, plain, BAR),
        # stacked must be quicker still than one seed alone
        Ratio(f"{seeds} seeds stacked, each / plain DataLoader loop", stacked / seeds, plain_again, one / plain),
    ]


def ours(trials: Trials) -> None:
    """One epoch as the tables train it, without the predictions after it."""
    task = _WithoutPredictions(trials)
    train(task, TrainingConfig(steps=len(task.batches), log_every=0))


def plain_loop(trials: Trials) -> None:
    """One epoch as PyTorch's tutorials write it, on the rows of the first seed."""
    rows = trials.train[0]
    x, y = torch.from_numpy(trials.x[rows]).float(), torch.from_numpy(trials.y[rows]).float()
    network = seeded(trials.seeds[0], partial(TabularNetwork, x.shape[1], 1))
    optimizer = torch.optim.Adam(network.parameters(), RATE, betas=BETAS)
    for x_batch, y_batch in DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True):
        loss = binary_cross_entropy_with_logits(network(x_batch).squeeze(-1), y_batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _WithoutPredictions(FairTask):
    """Training alone, which is what the plain loop does."""

    def evaluate(self, loop: object) -> dict[str, float]:
        """Nothing."""
        return {}


if __name__ == "__main__":
    run()
