"""What the formula costs, as ratios: both sides are timed in turns in one run, so that a busy machine slows both."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from setminus import orthogonalize
from setminus.core import orthogonalize as one_pass
from setminus.records import append_record, versions

RECORDS = Path("results/speed/records.jsonl")
ROWS = 5_000_000
AGREEMENT = 1e-12
"""The largest difference between two ways to the same probabilities."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """One comparison: ours takes `ratio` times as long as the reference, and should take `bar` times at most."""

    name: str
    ours_seconds: float
    reference_seconds: float
    bar: float
    difference: float | None = None

    @property
    def ratio(self) -> float:
        """Ours over the reference."""
        return self.ours_seconds / self.reference_seconds

    @property
    def met(self) -> bool:
        """Whether ours is quick enough, and right."""
        return self.ratio <= self.bar and (self.difference is None or self.difference <= AGREEMENT)


def run(repeats: int = 9, records: Path = RECORDS, rows: int = ROWS) -> list[Ratio]:
    """Time everything, print a table and append a record."""
    start = time.perf_counter()
    # the formula uses every core, np.add one: other work on the machine is to our disadvantage, so it is recorded
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    found: list[Ratio] = []
    for classes in (2, 10):
        print(f"timing {rows:,} rows of {classes} classes", flush=True)
        found += formula(rows, classes, repeats)
    print("timing the command", flush=True)
    found += command(repeats)
    print(table(found))
    record = {
        "name": "speed",
        "config": {"rows": rows, "repeats": repeats, "statistic": "median", "dtype": "float64", "load_before": load},
        "seed": 0,
        "versions": versions("numba"),
        "metrics": {r.name: {**asdict(r), "ratio": r.ratio, "met": r.met} for r in found},
        "seconds": round(time.perf_counter() - start, 3),
    }
    append_record(records, record)
    return found


def formula(rows: int, classes: int, repeats: int, seed: int = 0) -> list[Ratio]:
    """The formula, compiled and not, against one addition of arrays and against what one would write in numpy."""
    rng = np.random.default_rng(seed)
    full, principal = _distributions(rng, rows, classes), _distributions(rng, rows, classes)
    prior = np.arange(1.0, classes + 1) / np.arange(1.0, classes + 1).sum()
    out = np.empty_like(full)

    orthogonalize(full, principal, prior, out=out)
    expected = _naive(full, principal, prior)
    difference = _difference(out, expected)
    pass_seconds, add_seconds = in_turns(
        lambda: orthogonalize(full, principal, prior, out=out), lambda: np.add(full, principal, out=out), repeats
    )
    with without_numba():
        orthogonalize(full, principal, prior, out=out)
        blocked_difference = _difference(out, expected)
        del expected
        blocked_seconds, naive_seconds = in_turns(
            lambda: orthogonalize(full, principal, prior, out=out), lambda: _naive(full, principal, prior), repeats
        )
    return [
        Ratio(f"{classes} classes: formula / np.add", pass_seconds, add_seconds, 1.5, difference),
        Ratio(
            f"{classes} classes: formula without numba / plain numpy",
            blocked_seconds,
            naive_seconds,
            1 / 1.25,
            blocked_difference,
        ),
    ]


def command(repeats: int) -> list[Ratio]:
    """The first words of the command against the import that everything else would wait for."""
    ours, reference = in_turns(
        lambda: _quietly(["-c", "from setminus.commands import main; main()", "--help"]),
        lambda: _quietly(["-c", "import sklearn.base"]),
        repeats,
    )
    return [Ratio("setminus --help / import sklearn.base", ours, reference, 1.0)]


def in_turns(ours: Callable[[], object], reference: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of both, timed one after the other."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, taken in zip((ours, reference), seconds, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return median(seconds[0]), median(seconds[1])


@contextmanager
def without_numba() -> Iterator[None]:
    """The way that is taken where numba is not installed."""
    compiled = one_pass._compiled
    one_pass._compiled = lambda n_classes, easy: None
    try:
        yield
    finally:
        one_pass._compiled = compiled


def table(ratios: list[Ratio]) -> str:
    """Markdown, one row for each comparison."""
    lines = [
        "| comparison | ours | reference | ratio | at most | largest difference | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in ratios:
        difference = "" if r.difference is None else f"{r.difference:.0e}"
        seconds = f"{1000 * r.ours_seconds:.0f} ms | {1000 * r.reference_seconds:.0f} ms"
        met = "yes" if r.met else "no"
        lines.append(f"| {r.name} | {seconds} | {r.ratio:.2f} | {r.bar:.2f} | {difference} | {met} |")
    return "\n".join(lines)


def _distributions(rng: np.random.Generator, rows: int, classes: int) -> Floats:
    proba = rng.random((rows, classes))
    # away from 0, where answers would differ by more than rounding
    proba += 0.01
    proba /= proba.sum(axis=1, keepdims=True)
    return proba


def _naive(full: Floats, principal: Floats, prior: Floats) -> Floats:
    ratio = prior * full / principal
    normalised: Floats = ratio / ratio.sum(axis=1, keepdims=True)
    return normalised


def _difference(a: Floats, b: Floats) -> float:
    # in parts: the whole would need another array of that size
    return max(float(abs(x - y).max()) for x, y in zip(np.array_split(a, 50), np.array_split(b, 50), strict=True))


def _quietly(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
