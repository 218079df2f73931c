"""How time and memory grow with the rows: fit, apply and audit on files that double, each in a process of its own.

``python -m benchmarks scaling [--rows 25600000]``
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.provenance import provenance

RECORDS = Path("results/scaling/records.jsonl")
FIRST, MOST = 100_000, 25_600_000
GROUP = 1 << 18
"""Rows of a row group."""

CHILD = """
import json, sys, time
from pathlib import Path
from setminus.commands import build_app
start, cpu = time.perf_counter(), time.process_time()
build_app()(sys.argv[1:], standalone_mode=False)
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
# not getrusage: there a child starts at its parent's peak
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak": int(peak.split()[1]) * 1024}))
"""


def run(most: int = MOST, records: Path = RECORDS, first: int = FIRST, seed: int = 0) -> list[dict[str, Any]]:
    """Double the rows from `first` to `most`; print a line for each command and append a record after each size."""
    from setminus.records import append_record

    found = []
    print("| rows | command | seconds | CPU microseconds a row | peak MiB | peak bytes a row |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    rows = first
    while rows <= most:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as place:
            costs = measure(Path(place), rows, seed)
        for name, cost in costs.items():
            print(
                f"| {rows:,} | {name} | {cost['seconds']:.1f} | {1e6 * cost['cpu_seconds'] / rows:.2f} "
                f"| {cost['peak'] / 2**20:.0f} | {cost['peak'] / rows:.0f} |",
                flush=True,
            )
        record = {
            "name": "scaling",
            "config": {"rows": rows, "row_group": GROUP},
            "seed": seed,
            **provenance(f"python -m benchmarks scaling --rows {most}", "numba", "pyarrow"),
            "metrics": costs,
            "seconds": round(time.perf_counter() - start, 3),
        }
        append_record(records, record)
        found.append(record)
        rows *= 2
    return found


def measure(place: Path, rows: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """Seconds, CPU seconds and peak bytes of each command on a file of so many rows."""
    people, model, scored = (str(place / name) for name in ("people.parquet", "model.skops", "scored.parquet"))
    generate(Path(people), rows, seed)
    task = ["--label", "income", "--ignore", "sex", "--positive", "high"]
    commands = {
        "fit": ["fit", people, *task, "--full", "logistic", "--out", model],
        "apply": ["apply", model, people, "--out", scored],
        "audit": ["audit", scored, *task],
    }
    return {name: _measured([*arguments, "--quiet"]) for name, arguments in commands.items()}


def generate(path: Path, rows: int, seed: int = 0) -> None:
    """Three numbers, a group and a label that depends on both, a row group at a time."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64()), ("c", pa.float64())])
    for name in ("sex", "income"):
        schema = schema.append(pa.field(name, pa.string()))
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            n = min(GROUP, rows - start)
            a, b, c = rng.normal(size=(3, n))
            sex = rng.integers(2, size=n)
            high = rng.random(n) < 1 / (1 + np.exp(1 - a - 0.5 * b - 0.4 * sex))
            columns = [a, b + 0.5 * sex, c, np.array(["f", "m"])[sex], np.array(["low", "high"])[high.astype(int)]]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))


def picture(records: Path, path: Path) -> Path:
    """Draw processor seconds and peak memory against the rows, from the last record of each size."""
    from setminus.charts.chart import Chart, Line
    from setminus.charts.picture import draw
    from setminus.records import read_records

    found = {record["config"]["rows"]: record["metrics"] for record in read_records(records)}
    rows = sorted(found)

    def lines(name: str, unit: float) -> list[Line]:
        return [Line(rows, [found[n][each][name] / unit for n in rows], each) for each in ("fit", "apply", "audit")]

    axis: dict[str, Any] = {"x_scale": "log", "x_range": (0.8 * rows[0], 1.2 * rows[-1])}
    seconds = Chart("Processor seconds", "rows", "seconds", lines("cpu_seconds", 1), y_scale="log", **axis)
    memory = Chart("Peak memory", "rows", "MiB", lines("peak", 2**20), y_range=(0.0, 800.0), **axis)
    draw([seconds, memory], path, columns=2)
    return path


def _measured(arguments: list[str]) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", CHILD, *arguments], check=True, capture_output=True, text=True)
    cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return cost
