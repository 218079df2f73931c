"""How often `setminus monitor` sounds an alarm: without any drift, and with drift of a known size.

``python -m benchmarks monitoring``. Scored rows are drawn again and again; 5,000 of them are the reference. The new
rows have no labels. Drift is the total variation distance of the group shares or of the class mix, or the largest
distance of the distribution functions of the scores.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import ndtr

from benchmarks.provenance import provenance
from setminus.commands.monitor import MonitorConfig
from setminus.commands.monitored import MonitoredRows, find_drift
from setminus.records import append_record

RECORDS = Path("results/monitoring/records.jsonl")
REFERENCE, SIZES, DRIFTS = 5000, (200, 1000, 5000), (0.05, 0.1, 0.15, 0.2, 0.3)
KINDS = ("scores", "group shares", "class mix")
SIMULATIONS, MORE = 40, 5
"""For each drift, and how many times as many without one: false alarms are rare."""

SIGNAL = 1.5
"""Distance of the classes' log-odds from 0, in standard deviations."""


def run(records: Path = RECORDS, simulations: int = SIMULATIONS, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> None:
    """Simulate for each number of new rows, print the shares of alarms and append a record."""
    settings = [("none", 0.0), *((kind, drift) for kind in KINDS for drift in DRIFTS)]
    for n in sizes:
        start = time.perf_counter()
        found: dict[str, float] = {}
        for number, (kind, drift) in enumerate(settings):
            draws = simulations * (MORE if kind == "none" else 1)
            alarms = [alarm(kind, drift, n, [seed, n, number, one]) for one in range(draws)]
            found[f"{kind} {drift:g}"] = float(np.mean(alarms))
        print(n, found, flush=True)
        record = {
            "name": "monitoring",
            "config": {
                "rows": n,
                "reference": REFERENCE,
                "simulations": {"none": simulations * MORE, "drift": simulations},
                "max_drift": MonitorConfig("", "", ()).max_drift,
            },
            "seed": seed,
            **provenance("python -m benchmarks monitoring", "pyarrow"),
            "metrics": found,
            "seconds": round(time.perf_counter() - start, 3),
        }
        append_record(records, record)


def alarm(kind: str, drift: float, n: int, seed: list[int]) -> bool:
    """Whether new rows that differ so much are reported."""
    rng = np.random.default_rng(seed)
    config = MonitorConfig("", "", ("sex",), label="income", seed=seed[-1])
    drift_found, _ = find_drift(draw(REFERENCE, rng), draw(n, rng, kind, drift, labelled=False), config)
    return any(one["above"] for one in drift_found)


def draw(
    n: int, rng: np.random.Generator, kind: str = "none", drift: float = 0.0, labelled: bool = True
) -> MonitoredRows:
    """Scored rows of two classes and two groups, each half of the rows; `drift` is added to one of their shares."""
    y = rng.random(n) < 0.5 + drift * (kind == "class mix")
    men = rng.random(n) < 0.5 + drift * (kind == "group shares")
    shift = move(drift) if kind == "scores" else 0.0
    odds = 2 * SIGNAL * ((2 * y - 1) * SIGNAL + rng.normal(size=n) + shift)
    proba = 1 / (1 + np.exp(-odds))
    words = np.array(["low", "high"], dtype=object)
    sex = pa.chunked_array([pa.array(np.where(men, "m", "f"))])
    return MonitoredRows(
        name="rows.parquet",
        X=pa.table({"sex": sex}),
        groups=pa.table({"sex": sex}),
        proba=np.column_stack([proba, 1 - proba]),
        decisions=words[(proba >= 0.5).astype(int)],
        words=words[y.astype(int)] if labelled else None,
        values=("high", "low"),
        classes=["high", "low"],
        taken={"sex"},
    )


def move(drift: float) -> float:
    """The shift of the scores at which their distribution functions differ by `drift`."""
    points = np.linspace(-6, 6, 2001)

    def distance(shift: float) -> float:
        parts = [(ndtr(points - side) - ndtr(points - side - shift)) / 2 for side in (-SIGNAL, SIGNAL)]
        return float(np.max(np.sum(parts, axis=0)))

    return 0.0 if drift == 0 else float(brentq(lambda shift: distance(shift) - drift, 0.0, 5.0))
