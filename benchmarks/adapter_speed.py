"""What the training of an adapter costs beside scikit-learn's MLPClassifier, at equal steps and batches.

``python -m benchmarks adapter_speed``: 2,000 source and 2,000 target rows of 100 features, one thread. A step of ours
has 64 rows of each domain, one of MLPClassifier has 64 source rows; both have two hidden layers of 64 units. Times are
the processor's, taken in turns in one run, so that other work on the machine counts for neither side.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from benchmarks.provenance import provenance
from setminus.adaptation.adapter import OrthogonalAdapter
from setminus.adaptation.adapter_parameters import Method
from setminus.progress import Event, listen
from setminus.records import append_record

Floats = NDArray[np.float64]

ROWS, FEATURES, WIDTH, BATCH = 2_000, 100, 64, 64
EPOCHS = 32
"""Of MLPClassifier; each has ``ceil(ROWS / BATCH)`` steps."""
SHIFTS = ("class frequencies", "class frequencies and features")
METHODS: tuple[Method, ...] = ("auto", "source_only", "dann", "vada", "vada_orthogonal")
MAX_SECONDS, MAX_RATIO = 10.0, 3.0
COMMAND = "python -m benchmarks adapter_speed"


def run(records: Path, repeats: int = 3, epochs: int = EPOCHS) -> dict[str, Any]:
    """Time every method, print a table and append a record."""
    torch.set_num_threads(1)
    begin = time.perf_counter()
    metrics = {shift: compared(*domains(moved=shift != SHIFTS[0]), repeats=repeats, epochs=epochs) for shift in SHIFTS}
    record = {
        "name": "adapter speed",
        "config": {"rows": ROWS, "features": FEATURES, "width": WIDTH, "batch": BATCH, "epochs": epochs, "threads": 1},
        "seed": 0,
        **provenance(COMMAND, "torch"),
        "metrics": metrics,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    append_record(records, record)
    print(table(metrics))
    return metrics


def compared(
    X: Floats, y: NDArray[np.int64], domain: NDArray[np.int64], *, repeats: int, epochs: int
) -> dict[str, dict[str, float]]:
    """The least seconds of each method, its steps, and the ratio to MLPClassifier."""
    steps, source = epochs * -(-ROWS // BATCH), domain > 0
    fits: dict[str, Callable[[], object]] = {"MLPClassifier": lambda: mlp(epochs).fit(X[source], y[source])}
    for method in METHODS:
        adapter = OrthogonalAdapter(method, steps=steps, hidden_size=WIDTH, batch_size=BATCH)
        fits[method] = partial(adapter.fit, X, y, domain)
    times: dict[str, list[tuple[float, int]]] = {name: [] for name in fits}
    for _ in range(repeats):
        for name, fit in fits.items():
            times[name].append(timed(fit))
    least = {name: min(own) for name, own in times.items()}
    least["MLPClassifier"] = (least["MLPClassifier"][0], steps)
    base = least["MLPClassifier"][0]
    return {name: {"seconds": own, "steps": done, "ratio": own / base} for name, (own, done) in least.items()}


def mlp(epochs: int) -> MLPClassifier:
    """A network of the same size, with as many steps of as many rows, and no early stop."""
    return MLPClassifier(
        (WIDTH, WIDTH), batch_size=BATCH, max_iter=epochs, n_iter_no_change=epochs, tol=0.0, random_state=0
    )


def timed(fit: Callable[[], object]) -> tuple[float, int]:
    """Seconds of the processor, and the training steps that were reported."""
    done: dict[tuple[str, int], int] = {}

    def count(event: Event) -> None:
        if event.unit == "steps":
            done[event.name, event.depth] = event.done

    with threadpool_limits(1), warnings.catch_warnings(), listen(count):
        warnings.simplefilter("ignore")
        start = time.process_time()
        fit()
        return time.process_time() - start, sum(done.values())


def domains(*, moved: bool) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Two classes, 80 % of one in the source and 20 % in the target, whose features may have moved as well."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 0, 1], [int(share * ROWS) for share in (0.8, 0.2, 0.2, 0.8)])
    domain = np.repeat([1, -1], ROWS)
    X = rng.normal(size=(2 * ROWS, FEATURES))
    X[:, :10] += 0.8 * y[:, None]
    if moved:
        # half of the columns that tell the classes, with the sign of one class, then of the other
        X[domain < 0, :5] += 1.5
        X[domain < 0, 5:10] -= 1.5
    return X, np.where(domain > 0, y, -1), domain


def table(metrics: dict[str, Any]) -> str:
    """The times as Markdown, with the bars that they are compared with."""
    lines = ["| what changed | method | seconds | steps | MLPClassifier = 1 | bars |", "|---|---|---|---|---|---|"]
    for shift, found in metrics.items():
        for name, own in found.items():
            met = own["seconds"] <= MAX_SECONDS and own["ratio"] <= MAX_RATIO
            cells = [shift, name, f"{own['seconds']:.2f}", f"{own['steps']:,}", f"{own['ratio']:.2f}"]
            lines.append(f"| {' | '.join([*cells, '' if name == 'MLPClassifier' else 'met' if met else 'missed'])} |")
    return "\n".join(lines)
