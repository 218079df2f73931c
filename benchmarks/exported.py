"""An exported model against Python: equal answers on Adult, and the seconds for 1,000,000 rows as a ratio.

``python -m benchmarks exported``. Both sides have one thread and score the same blocks of rows in turns; the seconds
are those of the processor, which others on the machine do not lengthen. Python is given text as dictionary codes, which
is its quickest form.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from benchmarks.provenance import provenance
from setminus import export_onnx, onnx_inputs
from setminus.commands.fit import FitConfig, PrincipalKind
from setminus.commands.fitting import fit_table
from setminus.datasets.tabular import adult_table
from setminus.export.onnx import sample_rows
from setminus.records import append_record
from setminus.tables.columns import coded_text

ROWS, BLOCK, RANDOM_ROWS = 1_000_000, 100_000, 10_000
BARS = {"ratio": 1.0, "difference": 1e-5, "other decisions": 0}
PRINCIPALS: tuple[PrincipalKind, ...] = ("proxy", "group")


def run(records: Path, rows: int = ROWS) -> dict[str, dict[str, float]]:
    """Measure a model with an unknown and one with a known group, print and append a record."""
    start = time.perf_counter()
    train, test = (_adult(part) for part in ("train", "test"))
    found = {}
    for principal in PRINCIPALS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "adult.parquet")
            pq.write_table(train, path)
            model, _ = fit_table(FitConfig(str(path), "income", ("sex",), principal=principal))
            export_onnx(model, Path(folder, "model.onnx"), train.select(list(model.feature_names_in_)))
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(Path(folder, "model.onnx"), options, ["CPUExecutionProvider"])
        found[principal] = {
            **_agreement(model, session, test, "test"),
            **_agreement(model, session, sample_rows(model, RANDOM_ROWS, seed=1), "random rows"),
            **_seconds(model, session, train, rows),
        }
        print(principal, found[principal], flush=True)
    append_record(
        records,
        {
            "name": "exported",
            "config": {"rows": rows, "block": BLOCK, "random_rows": RANDOM_ROWS, "bars": BARS},
            "seed": 1,
            **provenance("python -m benchmarks exported", "onnx", "onnxruntime", "skl2onnx", "pyarrow"),
            "metrics": found,
            "seconds": time.perf_counter() - start,
        },
    )
    return found


def _adult(part: Any) -> pa.Table:
    columns = {name: values.tolist() for name, values in adult_table(part).items()}
    return pa.table({name: [None if value == "?" else value for value in listed] for name, listed in columns.items()})


def _agreement(model: Any, session: Any, table: pa.Table, name: str) -> dict[str, float]:
    rows = table.select(list(model.feature_names_in_))
    label, proba = session.run(None, onnx_inputs(session, rows))
    return {
        f"difference, {name}": float(np.abs(proba - model.predict_proba(rows)).max()),
        f"other decisions, {name}": float((label != model.predict(rows)).sum()),
    }


def _seconds(model: Any, session: Any, table: pa.Table, rows: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    drawn = coded_text(table.select(list(model.feature_names_in_)).take(rng.integers(0, table.num_rows, rows)))
    python, runtime, inputs = 0.0, 0.0, 0.0
    with threadpool_limits(1):
        for first in range(0, rows, BLOCK):
            block = drawn.slice(first, BLOCK)
            start = time.process_time()
            model.predict_proba(block)
            between = time.process_time()
            feeds = onnx_inputs(session, block)
            made = time.process_time()
            session.run(None, feeds)
            end = time.process_time()
            python, inputs, runtime = python + between - start, inputs + made - between, runtime + end - made
    return {
        "python seconds": python,
        "onnxruntime seconds": runtime,
        "ratio": runtime / python,
        "ratio with the inputs made from a frame": (runtime + inputs) / python,
    }
