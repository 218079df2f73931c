"""What the formula costs, as ratios: both sides are timed in turns in one run, so that a busy machine slows both."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.provenance import provenance
from setminus import orthogonalize
from setminus.core import orthogonalize as one_pass
from setminus.records import append_record

RECORDS = Path("results/speed/records.jsonl")
SHAPES = ((5_000_000, 2), (2_000_000, 10), (200_000, 100))
STRENGTHS = {1.0: 1.5, 0.3: 3.0}
"""The strengths, and how many additions of the two arrays each may take."""

BLOCKED_BAR = 6.0
"""The same without numba, at any strength."""

AGREEMENT = {"float64": 1e-14, "float32": 1e-6}
"""The largest difference from the probabilities in extended precision."""

Floats = NDArray[Any]


@dataclass(frozen=True)
class Ratio:
    """One comparison: ours takes `ratio` times as long as the reference, and should take `bar` times at most."""

    name: str
    ours_seconds: float
    reference_seconds: float
    bar: float
    difference: float | None = None
    agreement: float = AGREEMENT["float64"]

    @property
    def ratio(self) -> float:
        """Ours over the reference."""
        return self.ours_seconds / self.reference_seconds

    @property
    def met(self) -> bool:
        """Whether ours is quick enough, and right."""
        return self.ratio <= self.bar and (self.difference is None or self.difference <= self.agreement)


def run(repeats: int = 9, records: Path = RECORDS, shapes: Sequence[tuple[int, int]] = SHAPES) -> list[Ratio]:
    """Time everything, print a table and append a record."""
    start = time.perf_counter()
    # the formula uses every core, np.add one: other work on the machine is to our disadvantage, so it is recorded
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    found: list[Ratio] = []
    for rows, classes in shapes:
        for dtype in AGREEMENT:
            print(f"timing {rows:,} rows of {classes} classes in {dtype}", flush=True)
            found += formula(rows, classes, repeats, dtype)
    print("timing the command", flush=True)
    found += command(repeats)
    print(table(found))
    record = {
        "name": "speed",
        "config": {"shapes": shapes, "repeats": repeats, "statistic": "minimum", "load_before": load},
        "seed": 0,
        **provenance("python -m benchmarks speed", "numba"),
        "metrics": {r.name: {**asdict(r), "ratio": r.ratio, "met": r.met} for r in found},
        "seconds": round(time.perf_counter() - start, 3),
    }
    append_record(records, record)
    return found


def formula(rows: int, classes: int, repeats: int, dtype: str = "float64", seed: int = 0) -> list[Ratio]:
    """The formula, compiled and not, against one addition of the two arrays."""
    rng = np.random.default_rng(seed)
    full, principal = _distributions(rng, rows, classes, dtype), _distributions(rng, rows, classes, dtype)
    prior = (np.arange(1.0, classes + 1) / np.arange(1.0, classes + 1).sum()).astype(dtype)
    out = np.empty_like(full)
    found = []
    for strength, bar in STRENGTHS.items():

        def ours(strength: float = strength) -> None:
            orthogonalize(full, principal, prior, strength=strength, out=out)

        def add() -> None:
            np.add(full, principal, out=out)

        def timed(name: str, bar: float, ours: Callable[[], None], strength: float = strength) -> Ratio:
            ours()
            difference = _difference(full, principal, prior, strength, out)
            return Ratio(name, *in_turns(ours, add, repeats), bar, difference, AGREEMENT[dtype])

        name = f"{rows:,} x {classes}, {dtype}, strength {strength:g}"
        found.append(timed(f"{name}: formula / np.add", bar, ours))
        with without_numba():
            found.append(timed(f"{name}: without numba / np.add", BLOCKED_BAR, ours))
    return found


def command(repeats: int) -> list[Ratio]:
    """The first words of the command against the import that everything else would wait for."""
    ours, reference = in_turns(
        lambda: _quietly(["-c", "from setminus.commands import main; main()", "--help"]),
        lambda: _quietly(["-c", "import sklearn.base"]),
        repeats,
    )
    return [Ratio("setminus --help / import sklearn.base", ours, reference, 1.0)]


def in_turns(ours: Callable[[], object], reference: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The fewest seconds of both, timed one after the other: other work on the machine only adds to them."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, taken in zip((ours, reference), seconds, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return min(seconds[0]), min(seconds[1])


@contextmanager
def without_numba() -> Iterator[None]:
    """The way that is taken where numba is not installed."""
    compiled = one_pass._compiled
    one_pass._compiled = lambda n_classes, power, shared: None
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


def _distributions(rng: np.random.Generator, rows: int, classes: int, dtype: str) -> Floats:
    proba = rng.random((rows, classes))
    # away from 0, where answers would differ by more than rounding
    proba += 0.01
    proba /= proba.sum(axis=1, keepdims=True)
    return proba.astype(dtype)


def _difference(full: Floats, principal: Floats, prior: Floats, strength: float, out: Floats) -> float:
    """The largest difference from the formula in extended precision, on the first, last and some rows between."""
    rows = np.unique(np.linspace(0, len(full) - 1, 100_000).astype(int))
    wide = [np.asarray(a, np.longdouble) for a in (full[rows], principal[rows], prior)]
    expected = wide[0] * (wide[2] / wide[1]) ** np.longdouble(strength)
    return float(abs(out[rows] - expected / expected.sum(axis=1, keepdims=True)).max())


def _quietly(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
