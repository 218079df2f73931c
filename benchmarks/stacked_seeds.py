"""What a seed costs: one run after another, or all seeds of a process stacked in one network.

``python -m benchmarks.stacked_seeds`` trains the network of the fairness experiments on made-up rows in three ways,
each for the same seeds and steps and with one thread in a process: two processes that train one seed at a time, one
process with all seeds stacked, and two processes with half of them stacked in each. It gives the elapsed seconds and
the processor's, which other work on the machine lengthens less.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from statistics import median

import torch
from setminus_paper.stacked import StackedLayers
from torch.nn.functional import cross_entropy

from benchmarks.speed import Ratio, table
from setminus.nn.networks import mlp, seeded
from setminus.nn.passes import Batches
from setminus.nn.training import Loop, Task, TrainingConfig, train

FEATURES = 102
ROWS = 4096
BATCH = 64
Weights = dict[int, list[float]]
"""Of each seed."""

ONE_BY_ONE, STACKED, HALVES = "2 processes, one by one", "1 process, stacked", "2 processes, stacked"
WAYS = (ONE_BY_ONE, STACKED, HALVES)


class Seeds(Task):
    """The networks of some seeds, each with batches of its own: stacked where there are several."""

    def __init__(self, seeds: list[int]):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(ROWS, FEATURES, generator=generator)
        y = (x[:, 0] + torch.randn(ROWS, generator=generator) > 0).long()
        self.batches = [Batches(x, y, size=BATCH, seed=seed) for seed in seeds]
        networks = [_network(seed) for seed in seeds]
        net = networks[0] if len(networks) == 1 else StackedLayers(networks)
        self.modules = {"net": net}
        self.optimizers = {"net": torch.optim.Adam(net.parameters(), 1e-3, fused=True)}

    def step(self, loop: Loop) -> None:
        """Go down the sum of the networks' losses."""
        parts = [loop.batch(batches) for batches in self.batches]
        if len(parts) == 1:
            ((x, y),) = parts
        else:
            x, y = (torch.stack(part) for part in zip(*parts, strict=True))
        logits = self.modules["net"](x)
        loop.update("net", cross_entropy(logits.reshape(-1, 2), y.reshape(-1)) * len(parts))

    def weights(self) -> list[list[float]]:
        """All weights of each network."""
        net = self.modules["net"]
        networks = [net] if isinstance(net, torch.nn.Sequential) else net.unstacked()
        return [torch.nn.utils.parameters_to_vector(network.parameters()).tolist() for network in networks]


def run(seeds: int = 10, steps: int = 300, repeats: int = 5) -> list[Ratio]:
    """Time the three ways in turns, print what they cost for each seed, and say which one is quickest."""
    passed: dict[str, list[float]] = {name: [] for name in WAYS}
    worked: dict[str, list[float]] = {name: [] for name in WAYS}
    everyone = list(range(seeds))
    halves = [everyone[0::2], everyone[1::2]]
    found: dict[str, Weights] = {}
    with ExitStack() as stack:
        one, two = (stack.enter_context(_processes(number)) for number in (1, 2))
        ways: dict[str, Callable[[], tuple[Weights, float]]] = {
            ONE_BY_ONE: lambda: _train_all(two, [[seed] for seed in everyone], steps),
            STACKED: lambda: _train_all(one, [everyone], steps),
            HALVES: lambda: _train_all(two, halves, steps),
        }
        for way in ways.values():
            # the first time includes imports
            way()
        for _ in range(repeats):
            for name, way in ways.items():
                start = time.perf_counter()
                found[name], work = way()
                passed[name].append((time.perf_counter() - start) / seeds)
                worked[name].append(work / seeds)
    ratios = []
    for kind, seconds in (("a seed", passed), ("a seed, work of processors", worked)):
        for ours, reference in itertools.combinations((HALVES, STACKED, ONE_BY_ONE), 2):
            cost = median(seconds[ours]), median(seconds[reference])
            ratios.append(Ratio(f"{ours} / {reference}: {kind}", *cost, bar=1.0))
    print(table(ratios))
    for name in (STACKED, HALVES):
        print(f"largest difference of a weight, {name}: {difference(found[name], found[ONE_BY_ONE]):.0e}")
    print(f"quickest for {seeds} seeds of {steps} steps: {min(passed, key=lambda name: median(passed[name]))}")
    return ratios


def difference(a: Weights, b: Weights) -> float:
    """The largest one between the weights of the same seeds."""
    return max(abs(x - y) for seed in a for x, y in zip(a[seed], b[seed], strict=True))


def train_seeds(seeds: list[int], steps: int) -> tuple[Weights, float]:
    """The weights that each seed ends with, and the seconds that the processor worked."""
    start = time.process_time()
    task = Seeds(seeds)
    train(task, TrainingConfig(steps=steps, log_every=0))
    work = time.process_time() - start
    return dict(zip(seeds, task.weights(), strict=True)), work


def _train_all(pool: ProcessPoolExecutor, groups: list[list[int]], steps: int) -> tuple[Weights, float]:
    parts = list(pool.map(train_seeds, groups, [steps] * len(groups)))
    return {seed: weights for part, _ in parts for seed, weights in part.items()}, sum(work for _, work in parts)


def _processes(number: int) -> ProcessPoolExecutor:
    # not forked: threads that torch has started here would be missing there
    return ProcessPoolExecutor(number, get_context("spawn"), torch.set_num_threads, (1,))


def _network(seed: int) -> torch.nn.Sequential:
    """The layers of the paper's network for tables."""
    return seeded(seed, lambda: mlp((FEATURES, 50, 10, 50, 2), torch.nn.Softplus))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stacked_seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    run(**vars(parser.parse_args()))
