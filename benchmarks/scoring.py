"""What scoring a large file costs: against reading and writing it again, in turns in one run, and in memory.

``python -m benchmarks.scoring [--rows 50000000]``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.provenance import provenance

RECORDS = Path("results/scoring/records.jsonl")
ROWS = 50_000_000
GROUP = 1 << 20
"""Rows of a row group: as many as pyarrow puts into one by itself."""

PRIOR = (0.3, 0.7)
SLOWEST = 3.0
MAX_MEMORY = 1 << 30
AGREEMENT = 1e-12


@dataclass(frozen=True)
class Cost:
    """What one process took: seconds of work, and bytes of memory at its peak."""

    seconds: float
    peak: int


@dataclass(frozen=True)
class Result:
    """Scoring beside rewriting, and how far the scores are from the formula written out."""

    scoring: Cost
    rewriting: Cost
    difference: float

    @property
    def ratio(self) -> float:
        """Scoring over rewriting."""
        return self.scoring.seconds / self.rewriting.seconds

    @property
    def met(self) -> bool:
        """Whether scoring is quick, small and right enough."""
        return self.ratio <= SLOWEST and self.scoring.peak <= MAX_MEMORY and self.difference <= AGREEMENT


def run(rows: int = ROWS, repeats: int = 3, records: Path | None = RECORDS, folder: Path | None = None) -> Result:
    """Make a file, score and rewrite it in turns, print a table and append a record."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        source, scored, rewritten = (Path(place, f"{name}.parquet") for name in ("source", "scored", "rewritten"))
        print(f"making {rows:,} rows", flush=True)
        generate(source, rows)
        costs: dict[str, list[Cost]] = {"score": [], "rewrite": []}
        for repeat in range(repeats):
            for job, target in (("rewrite", rewritten), ("score", scored)):
                # a fresh file each time, so that neither pays for the removal of its last one
                target.unlink(missing_ok=True)
                costs[job].append(_measured(job, source, target))
                print(f"{repeat + 1}/{repeats} {job}: {costs[job][-1].seconds:.1f} s", flush=True)
        result = Result(_middle(costs["score"]), _middle(costs["rewrite"]), difference(scored))
    print(table(result, rows))
    if records is not None:
        from setminus.records import append_record

        record = {
            "name": "scoring",
            "config": {"rows": rows, "row_group": GROUP, "repeats": repeats, "statistic": "median", "classes": 2},
            "seed": 0,
            **provenance("python -m benchmarks scoring", "numba", "pyarrow"),
            "metrics": {**asdict(result), "ratio": result.ratio, "met": result.met},
            "seconds": round(time.perf_counter() - start, 3),
        }
        append_record(records, record)
    return result


def generate(path: Path, rows: int, seed: int = 0) -> None:
    """Full and principal probabilities of two classes, a row group at a time."""
    rng = np.random.default_rng(seed)
    names = ["full_0", "full_1", "principal_0", "principal_1"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            full, principal = rng.uniform(0.01, 0.99, (2, min(GROUP, rows - start)))
            writer.write_table(pa.table([1 - full, full, 1 - principal, principal], schema=schema))


def rewrite(source: Path, target: Path) -> None:
    """What pyarrow alone does: the same compression, the same row groups."""
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for index in range(file.num_row_groups):
            writer.write_table(file.read_row_group(index))


def score(source: Path, target: Path) -> None:
    """What the library does."""
    from setminus.scale.scorers import ProbabilityScorer
    from setminus.scale.scoring import score_file

    score_file(source, target, ProbabilityScorer(["full_0", "full_1"], ["principal_0", "principal_1"], PRIOR))


def difference(scored: Path) -> float:
    """The largest distance of a score from the formula written out."""
    worst = 0.0
    with pq.ParquetFile(scored) as file:
        for index in range(file.num_row_groups):
            rows = file.read_row_group(index)
            full, principal, found = (
                np.column_stack([rows[f"{name}_{k}"].to_numpy() for k in (0, 1)])
                for name in ("full", "principal", "orthogonal")
            )
            expected = np.array(PRIOR) * full / principal
            expected /= expected.sum(axis=1, keepdims=True)
            worst = max(worst, float(abs(found - expected).max()))
    return worst


def table(result: Result, rows: int) -> str:
    """Markdown."""
    return "\n".join(
        [
            "| rows | rewriting | scoring | ratio | at most | peak memory | at most | largest difference | met |",
            "|---|---|---|---|---|---|---|---|---|",
            f"| {rows:,} | {result.rewriting.seconds:.1f} s | {result.scoring.seconds:.1f} s | {result.ratio:.2f} "
            f"| {SLOWEST:.2f} | {result.scoring.peak / 2**20:.0f} MiB | {MAX_MEMORY / 2**20:.0f} MiB "
            f"| {result.difference:.0e} | {'yes' if result.met else 'no'} |",
        ]
    )


def _measured(job: str, source: Path, target: Path) -> Cost:
    command = [sys.executable, "-m", "benchmarks.scoring", "--child", job, str(source), str(target)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout))


def _child(job: str, source: str, target: str) -> None:
    work = {"score": score, "rewrite": rewrite}[job]
    start = time.perf_counter()
    work(Path(source), Path(target))
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": _peak()}))


def _peak() -> int:
    # not getrusage: there a child starts at its parent's peak
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel does not tell the peak of a process's memory")


def _middle(costs: list[Cost]) -> Cost:
    # the time of the middle run, the memory of the worst
    return Cost(median(cost.seconds for cost in costs), max(cost.peak for cost in costs))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoring", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of the file (default: {ROWS})")
    parser.add_argument("--repeats", type=int, default=3, help="turns (default: 3)")
    parser.add_argument("--records", type=Path, default=RECORDS, help=f"where records go (default: {RECORDS})")
    parser.add_argument("--folder", type=Path, help="where the files are made (default: the temporary folder)")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    if given.child:
        _child(*given.child)
    else:
        run(given.rows, given.repeats, given.records, given.folder)
