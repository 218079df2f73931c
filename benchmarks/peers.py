"""Accuracy against equalized odds on Adult, ours and other libraries' methods on the same splits.

For each seed both original files are pooled and split 70 to 30. Methods learn, and choose whatever they choose, on the
70 %; the 30 % are only measured on. One record for each seed, method and tolerance; those already there are not run
again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks import others, ours
from benchmarks.adult import Adult, pooled
from benchmarks.method import Answer, Method
from benchmarks.resuming import already
from setminus import demographic_parity_gap, equalized_odds_gap
from setminus.datasets.split import Split
from setminus.records import append_record, versions

RECORDS = Path("results/peers/records.jsonl")
SEEDS = range(5)
METHODS = (*ours.METHODS, *others.METHODS)

PROTOCOL = {
    "data": "Adult, both files pooled, sex not among the features",
    "split": "70 % to learn and tune, 30 % to test, stratified by label",
    "base": "HistGradientBoostingClassifier, defaults, categorical_features given",
    "threads": "1",
}


def run(
    seeds: Sequence[int] = SEEDS,
    methods: Sequence[Method] = METHODS,
    records: Path = RECORDS,
    again: str | None = None,
) -> None:
    """Run what is missing and append its records."""
    done = already(records, key, again)
    for seed in seeds:
        missing = [m for m in methods if any((seed, m.name, t) not in done for t in m.tolerances)]
        if not missing:
            print(f"seed {seed}: all there", flush=True)
            continue
        data = pooled(seed)
        for method in missing:
            start = time.perf_counter()
            # one thread: two that wait for each other on a shared machine take five times as long
            with threadpool_limits(1):
                found = run_method(data, method, PROTOCOL)
            for record in found:
                if key(record) not in done:
                    append_record(records, record)
            print(f"seed {seed}: {method.name}, {time.perf_counter() - start:.1f} s", flush=True)


def run_method(data: Adult, method: Method, protocol: dict[str, str]) -> list[dict[str, Any]]:
    """The records of one method on one split."""
    software = versions("fairlearn", "aif360", "oxonfair")
    return [
        {
            "name": method.name,
            "config": {
                **protocol,
                **method.config,
                "needs_attribute": method.needs_attribute,
                "deterministic": method.deterministic,
                "tolerance": answer.tolerance,
            },
            "seed": data.seed,
            "versions": software,
            "metrics": {**measure(answer, data.test), **answer.settings},
            "seconds": round(answer.seconds, 3),
        }
        for answer in method.answers(data)
    ]


def measure(answer: Answer, test: Split) -> dict[str, float | None]:
    """What a table may show of one answer; None where there is no probability."""
    groups = {"sensitive_features": test.z1}
    metrics: dict[str, float | None] = {
        "accuracy": accuracy_score(test.y, answer.predictions),
        "equalized_odds_sum": equalized_odds_gap(test.y, answer.predictions, agg="sum", **groups),
        "equalized_odds_max": equalized_odds_gap(test.y, answer.predictions, agg="max", **groups),
        "demographic_parity": demographic_parity_gap(test.y, answer.predictions, **groups),
        "auc": None,
        "log_loss": None,
    }
    if answer.proba is not None:
        metrics["auc"] = roc_auc_score(test.y, answer.proba)
        # a coin that is sure and wrong would cost infinitely much
        metrics["log_loss"] = log_loss(test.y, np.clip(answer.proba, 1e-6, 1 - 1e-6))
    return metrics


def key(record: dict[str, Any]) -> tuple[int, str, float | None]:
    """What makes a record one of a kind."""
    return record["seed"], record["name"], record["config"]["tolerance"]
