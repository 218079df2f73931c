"""What tuning costs beside the base model: seconds as ratios to one fit of it, and memory as a ratio to the table.

``python -m benchmarks tuning``. The full classifier is frozen, so that its own fits are not counted; both sides have
the same threads, in one run.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from benchmarks.provenance import provenance
from setminus import GroupPrincipal, ProxyPrincipal, TunedOrthogonalClassifier
from setminus.records import append_record

ROWS, FEATURES, GROUPS = 500_000, 20, 9
BARS = {"default": 1.5, "f1": 2.0, "memory": 3.0}
"""Of the default to one fit of the base model, of ``scoring="f1"`` to the default, of the peak memory to the table."""


def run(records: Path, rows: int = ROWS) -> dict[str, float]:
    """Measure, print and append a record."""
    X, y, groups = people(rows)
    start = time.perf_counter()
    base = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    seconds = {"base": time.perf_counter() - start}
    frozen = FrozenEstimator(base)
    cases: dict[str, dict[str, Any]] = {
        "default": {"principal": GroupPrincipal()},
        "f1": {"principal": GroupPrincipal(), "scoring": "f1"},
        "proxy, logistic": {"principal": ProxyPrincipal(LogisticRegression(max_iter=1000))},
        "proxy, boosting": {"principal": ProxyPrincipal()},
    }
    metrics: dict[str, float] = {}

    def write(name: str) -> None:
        # after each case: a run that is stopped keeps what it measured
        record = {
            "name": f"tuning, {name}",
            "config": {"rows": rows, "features": FEATURES, "groups": GROUPS, "bars": BARS},
            "seed": 0,
            **provenance("python -m benchmarks tuning"),
            "metrics": {**metrics, "seconds": dict(seconds)},
            "seconds": sum(seconds.values()),
        }
        append_record(records, record)
        print(name, metrics, flush=True)

    for name, options in cases.items():
        start = time.perf_counter()
        fit(frozen, X, y, groups, **options)
        seconds[name] = time.perf_counter() - start
        metrics[f"{name} / base"] = seconds[name] / seconds["base"]
        if name == "f1":
            metrics["f1 / default"] = seconds["f1"] / seconds["default"]
        write(name)
    tracemalloc.start()
    fit(frozen, X, y, groups, principal=GroupPrincipal())
    metrics["memory / table"] = tracemalloc.get_traced_memory()[1] / X.nbytes
    tracemalloc.stop()
    write("memory")
    return metrics


def fit(full: Any, X: Any, y: Any, groups: Any, **options: Any) -> TunedOrthogonalClassifier:
    """One fit of the tuned classifier."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return TunedOrthogonalClassifier(full, **options).fit(X, y, sensitive_features=groups)


def people(rows: int) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Rows of nine groups, the last a sixth of the first, that features and label depend on."""
    rng = np.random.default_rng(0)
    sizes = np.geomspace(1, 1 / 6, GROUPS)
    groups = rng.choice(GROUPS, rows, p=sizes / sizes.sum())
    X = rng.normal(size=(rows, FEATURES))
    X[:, :5] += groups[:, None] * np.linspace(-0.2, 0.2, 5)
    log_odds = X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 5] + 0.7 * X[:, 6] * X[:, 7] + 0.15 * (groups - 4)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-log_odds))).astype(np.intp), groups
