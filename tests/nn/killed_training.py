"""A script: one training left alone and one killed by the system again and again, for `test_resume.py`.

The trainings are forks of one process, so that no restart waits for imports; they are killed with SIGKILL.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from setminus.nn.passes import Batches
from setminus.nn.training import Task, TrainingConfig, train

KILLS = 4
CONFIG = TrainingConfig(steps=20, seed=3, clip=1.0, ema=0.9, log_every=1, evaluate_every=5, checkpoint_every=2)


class Fit(Task):
    """Everything whose state could be lost: batch statistics, dropout, moments, averages, a layout of memory."""

    def __init__(self):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            features = torch.nn.Conv2d(3, 24, 3), torch.nn.BatchNorm2d(24), torch.nn.ReLU(), torch.nn.Conv2d(24, 24, 3)
            head = torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(384, 512)
            net = torch.nn.Sequential(*features, *head, torch.nn.Linear(512, 4)).to(memory_format=torch.channels_last)
            x = torch.randn(96, 3, 12, 12).to(memory_format=torch.channels_last)
            y = torch.randint(4, (96,))
        self.modules = {"net": net}
        self.optimizers = {"net": torch.optim.Adam(net.parameters(), 1e-3, fused=True)}
        self.batches = Batches(x, y, size=32, seed=1)

    def step(self, loop):
        x, y = loop.batch(self.batches)
        loop.update("net", cross_entropy(self.modules["net"](x), y))

    def evaluate(self, loop):
        # both would change the training, were it not kept as it is: random numbers are drawn, and the mode is left
        with torch.no_grad():
            logits = self.modules["net"].eval()(self.batches.tensors[0][:8])
        return {"first": float(logits[0, 0]), "noise": float(torch.rand(()))}

    def rate(self, step):
        return 0.99**step


def start(folder):
    """A training in a process of its own."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        train(Fit(), CONFIG, folder=folder, resume=True)
        status = 0
    finally:
        os._exit(status)


def kill_at(folder, step, moment):
    """Kill once the checkpoint of a step is there: after some seconds, or as soon as the next one is being written."""
    before = partials(folder)
    pid = start(folder)
    while step > max((int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.safetensors")), default=0):
        assert os.waitpid(pid, os.WNOHANG)[0] == 0, "the training ended early"
        time.sleep(0.0005)
    if moment is not None:
        time.sleep(moment)
    else:
        while not partials(folder) - before:
            assert os.waitpid(pid, os.WNOHANG)[0] == 0, "the training ended early"
    os.kill(pid, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL, "the training had ended before"
    return bool(partials(folder) - before)


def partials(folder):
    """What is being written, or was when its writer was killed."""
    return set(folder.glob(".setminus-*.part"))


def main(folder):
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    assert os.waitpid(start(folder / "whole"), 0)[1] == 0
    seconds = time.perf_counter() - started
    # not at the end, where it would be luck if a training were still there to be killed
    steps = np.linspace(0, 0.7 * CONFIG.steps, KILLS).astype(int)
    moments = [None if k % 2 else rng.uniform(0, 4 * seconds / CONFIG.steps) for k in range(KILLS)]
    killed = folder / "killed"
    writing = [kill_at(killed, step, moment) for step, moment in zip(steps.tolist(), moments, strict=True)]
    assert os.waitpid(start(killed), 0)[1] == 0
    print(json.dumps({"kills": len(writing), "while_writing": sum(writing), "seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
