"""What `setminus audit` of a large file costs: against reading the columns it uses, in turns in one run, and in memory.

``python -m benchmarks auditing [--rows 50000000]``. Each turn is a process of its own; seconds begin after the imports.
The ratio is that of the least processor seconds, which others on the machine lengthen less than those of the clock.
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

RECORDS = Path("results/auditing/records.jsonl")
ROWS, GROUP, REPEATS = 50_000_000, 1 << 20, 3
BARS = {"ratio": 1.5, "peak MiB": 1024}
FILES = {
    "scores and decisions": ["sex", "income", "proba_high", "prediction"],
    "scores": ["sex", "income", "proba_high"],
}
"""The columns of each file: decisions as `setminus apply` writes them, or those of the scores."""

CHILD = """
import json, sys, time
from pathlib import Path
import pyarrow.parquet as pq
from setminus.commands.audit import AuditConfig, audit_table
import setminus.commands.streamed_audit
job, path = sys.argv[1:]
start, cpu = time.perf_counter(), time.process_time()
if job == "read":
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group)
else:
    audit_table(AuditConfig(path, "income", ("sex",), positive="high"))
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
# not getrusage: there a child starts at its parent's peak
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps({"seconds": seconds, "cpu seconds": cpu, "peak MiB": int(peak.split()[1]) / 1024}))
"""


def run(rows: int = ROWS, records: Path = RECORDS, repeats: int = REPEATS, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Make each file, read and audit it in turns, print a line for each and append a record."""
    from setminus.records import append_record

    start = time.perf_counter()
    found: dict[str, dict[str, Any]] = {}
    print("| file | rows | reading, CPU s | audit, CPU s | ratio | at most | peak MiB | at most |", flush=True)
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, columns in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "scored.parquet")
            generate(path, rows, columns, seed)
            turns = [{job: _measured(job, path) for job in ("read", "audit")} for _ in range(repeats)]
        reading, audit = (min(turn[job]["cpu seconds"] for turn in turns) for job in ("read", "audit"))
        peak = max(turn["audit"]["peak MiB"] for turn in turns)
        found[name] = {"ratio": audit / reading, "peak MiB": peak, "turns": turns}
        print(
            f"| {name} | {rows:,} | {reading:.2f} | {audit:.2f} | {audit / reading:.2f} | {BARS['ratio']} "
            f"| {peak:.0f} | {BARS['peak MiB']} |",
            flush=True,
        )
    append_record(
        records,
        {
            "name": "auditing",
            "config": {"rows": rows, "row_group": GROUP, "repeats": repeats, "bars": BARS},
            "seed": seed,
            **provenance(f"python -m benchmarks auditing --rows {rows}", "pyarrow"),
            "metrics": found,
            "seconds": round(time.perf_counter() - start, 3),
        },
    )
    return found


def generate(path: Path, rows: int, columns: list[str], seed: int = 0) -> None:
    """A group, a label that depends on it, its exact probability and a decision, a row group at a time."""
    rng = np.random.default_rng(seed)
    kinds = {"proba_high": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            n = min(GROUP, rows - start)
            sex = rng.integers(2, size=n)
            proba = 1 / (1 + np.exp(1 - 1.3 * rng.normal(size=n) - 0.3 * sex))
            everything = {
                "sex": _words(sex, "f", "m"),
                "income": _words(rng.random(n) < proba, "low", "high"),
                "proba_high": pa.array(proba),
                "prediction": _words(proba >= 0.5, "low", "high"),
            }
            writer.write_table(pa.table([everything[name] for name in columns], schema=schema))


def _words(codes: Any, *words: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.asarray(codes, np.int32), list(words)).cast(pa.string())


def _measured(job: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", CHILD, job, str(path)], check=True, capture_output=True, text=True)
    cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return cost
