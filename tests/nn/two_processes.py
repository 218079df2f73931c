"""A script: trainings in two processes, which Fabric starts by running it once more, for `test_processes.py`."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn.functional import mse_loss

from setminus.nn.passes import Batches
from setminus.nn.training import NotFiniteError, Task, TrainingConfig, train

RANK = int(os.environ.get("LOCAL_RANK", 0))
PLAIN = TrainingConfig(steps=12, seed=3, clip=0.5, ema=0.9, log_every=1)


class Fit(Task):
    """A network without randomness or batch statistics, unless there is dropout."""

    def __init__(self, dropout=0.0, init=0):
        with torch.random.fork_rng():
            torch.manual_seed(init)
            net = torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(8, 1)
            self.modules = {"net": torch.nn.Sequential(*net)}
        self.optimizers = {"net": torch.optim.Adam(self.modules["net"].parameters(), 1e-2, fused=True)}
        x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
        self.batches = Batches(x, x.prod(1, keepdim=True), size=16, seed=1)

    def loss(self, x, y):
        return mse_loss(self.modules["net"](x), y)

    def step(self, loop):
        loop.update("net", self.loss(*loop.batch(self.batches)))


class Root(Fit):
    """A loss whose gradient is computed from its value."""

    def loss(self, x, y):
        return super().loss(x, y).sqrt()


class RootInOne(Root):
    """In one process, what two do: the mean of the losses of both shares."""

    def step(self, loop):
        losses = [self.loss(*self.batches.at(loop.index, (rank, 2))) for rank in (0, 1)]
        loop.update("net", sum(losses) / 2)


class Noise(Fit):
    """Dropout of ones, of each process."""

    def __init__(self):
        super().__init__(dropout=0.5)

    def step(self, loop):
        self.kept = self.modules["net"][2](torch.ones(64))
        super().step(loop)

    def evaluate(self, loop):
        return {"kept": loop.fabric.all_gather(self.kept).tolist()}


class NaN(Fit):
    """NaN in the second process only."""

    def loss(self, x, y):
        return super().loss(x, y) * (float("nan") if RANK == 1 and self.index == 5 else 1.0)

    def step(self, loop):
        self.index = loop.index
        super().step(loop)


def main(folder):
    config = replace(PLAIN, devices=2)

    def run(name, task, folder=folder, **changes):
        train(task, replace(config, **changes), folder=folder / name, resume=True)
        save_file(task.modules["net"].state_dict(), folder / f"{name}-{RANK}.safetensors")

    run("plain", Fit())
    run("root", Root())
    run("init", Fit(init=RANK))
    run("noise", Noise(), steps=1)
    run("whole", Fit(dropout=0.5))
    run("resumed", Fit(dropout=0.5), steps=5)
    run("resumed", Fit(dropout=0.5))
    try:
        run("nan", NaN(), checkpoint_every=2)
    except NotFiniteError as error:
        Path(folder, f"nan-{RANK}.txt").write_text(str(error))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
