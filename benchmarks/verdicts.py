"""The verdict of ``setminus adapt`` against the truth: whether it advises against adaptation where that hurts.

Every setting of the adapters is adapted as the command does, without target labels; then other target rows are scored.
One record for each setting, method and seed; existing ones are not run again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from setminus_paper.pages import markdown_table
from threadpoolctl import threadpool_limits

from benchmarks.adapter_settings import SETTINGS, Setting, part_of, rows_of
from benchmarks.adapters_page import VERDICT_HEADS, judged
from benchmarks.provenance import provenance
from benchmarks.resuming import existing_keys
from setminus.adaptation.automatic import agreement_beyond_chance
from setminus.adaptation.prior_correction import PriorCorrectedClassifier
from setminus.commands.adapt import (
    AdaptConfig,
    AdaptMethod,
    automatic_model,
    compared,
    corrected_model,
    fitted,
    requested_model,
)
from setminus.commands.table_roles import Domains
from setminus.records import append_record, read_records

COMMAND = "python -m benchmarks verdicts"
METHODS: tuple[AdaptMethod, ...] = ("auto", "corrected", "vada_orthogonal")


def run(
    seeds: Sequence[int],
    records: Path,
    settings: Sequence[Setting] = SETTINGS,
    methods: Sequence[AdaptMethod] = METHODS,
) -> None:
    """Run missing settings and append their records, then print the table."""
    done = existing_keys(records, key)
    torch.set_num_threads(1)
    shared = provenance(COMMAND, "torch")
    for seed in seeds:
        for setting in settings:
            missing = [method for method in methods if (*setting, method, seed) not in done]
            for found in measured(setting, missing, seed) if missing else ():
                append_record(records, {**found, **shared})
                print(f"seed {seed}: {setting[0]} at {setting[1]:g}, {found['name']}", flush=True)
    print(markdown_table(judged(read_records(records)), VERDICT_HEADS))


def key(record: dict[str, Any]) -> tuple[str, float, str, int]:
    """What identifies a record."""
    return record["config"]["task"], record["config"]["shift"], record["name"], record["seed"]


def measured(setting: Setting, methods: Sequence[AdaptMethod], seed: int) -> Iterator[dict[str, Any]]:
    """The verdicts of the command on one setting, and the accuracies that it does not see."""
    rows = rows_of(setting, seed)
    domains, truth = _domains(rows.X, rows.y, rows.sample_domain), rows.labels.astype(str)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corrected: PriorCorrectedClassifier = fitted(corrected_model(AdaptConfig("", "", "", seed=seed)), domains)
        automatic = fitted(automatic_model(AdaptConfig("", "", "", seed=seed)), domains)
        untrained = {"auto": automatic, "corrected": corrected}
        for method in methods:
            start = time.perf_counter()
            model = untrained.get(method)
            if model is None:
                model = fitted(requested_model(AdaptConfig("", "", "", method=method, seed=seed)), domains)
            # the model stands for another seed: that check never advises against a model, and doubles the time
            metrics = compared(domains, corrected, model, model, None if method == "auto" else automatic)
            models = {"source only": corrected.classifier_, "corrected": corrected, "auto": automatic, "adapted": model}
            accuracy = {name: float(np.mean(one.predict(rows.scored) == truth)) for name, one in models.items()}
            agreement = agreement_beyond_chance(
                *(one.predict_proba(domains.target).argmax(axis=1) for one in (model, automatic))
            )
            yield {
                "name": method,
                "config": {"task": setting[0], "shift": setting[1], "part": part_of(setting)},
                "seed": seed,
                "metrics": {
                    "accuracy": accuracy,
                    "verdict": metrics["verdict"],
                    "recommended": metrics["recommended"],
                    "findings": {finding["name"]: finding["status"] for finding in metrics["findings"]},
                    "measures": {**metrics["measures"], "agreement_with_auto": agreement},
                },
                "seconds": round(time.perf_counter() - start, 3),
            }


def _domains(X: Any, y: Any, sample_domain: Any) -> Domains:
    """Rows as the command reads them from two tables."""
    of_source = sample_domain > 0
    classes, codes = np.unique(y[of_source].astype(str), return_inverse=True)
    source, target = X[of_source], X[~of_source]
    outside = (target < source.min(axis=0)) | (target > source.max(axis=0))
    none = np.empty(0, dtype=np.int64)
    return Domains(
        encoder=None,  # type: ignore[arg-type]
        source=source,
        target=target,
        classes=classes,
        codes=codes,
        labelled=none,
        truth=none,
        unseen={f"x{place}": float(share) for place, share in enumerate(outside.mean(axis=0))},
        about={},
    )
