"""Accuracy on a target with other class frequencies: ours, skada's methods and prior correction on the same rows.

The settings are those of `benchmarks.adapter_settings`. Half of the target's rows are used without labels, the other
half are scored. Every method has its library's defaults; skada's use scikit-learn's support vector machine. One record
for each setting, method and seed; existing ones are not run again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from setminus_paper.run import Failure, spread
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from benchmarks.adapter_settings import SETTINGS, Rows, Setting, part_of, rows_of
from benchmarks.libraries import load, skada
from benchmarks.provenance import provenance
from benchmarks.resuming import existing_keys
from benchmarks.rlsbench import rlsbench
from setminus.adaptation.adapter import OrthogonalAdapter
from setminus.adaptation.label_shift import calibrator, class_frequencies, maximum_likelihood_prior
from setminus.adaptation.prior_correction import PriorCorrectedClassifier
from setminus.records import append_record

Key = tuple[str, float, str, int]
Predict = Callable[[Rows, int], NDArray[np.int64]]

OURS = ("auto", "vada_orthogonal", "vada", "vada_iw", "dann", "source_only")
FOLDS = 3
COMMAND = "python -m benchmarks adapters"


def run(
    seeds: Sequence[int],
    records: Path,
    again: str | None = None,
    *,
    jobs: int = 1,
    settings: Sequence[Setting] = SETTINGS,
    names: Sequence[str] | None = None,
) -> None:
    """Run missing methods and append their records."""
    done = existing_keys(records, key, again)
    tasks = []
    for seed in seeds:
        for setting in settings:
            missing = [name for name in names or METHODS if (*setting, name, seed) not in done]
            if missing:
                tasks.append((setting, seed, tuple(missing)))
    shared = provenance(COMMAND, "quapy", "skada", "torch")
    for place, outcome in spread(measured, tasks, jobs):
        setting, seed, _ = tasks[place]
        if isinstance(outcome, Failure):
            print(f"seed {seed}: {setting} failed\n{outcome.trace}", flush=True)
        else:
            append_record(records, {**outcome, **shared})
            accuracy = outcome["metrics"]["accuracy"]
            print(f"seed {seed}: {setting[0]} at {setting[1]:g}, {outcome['name']} {accuracy:.3f}", flush=True)


def measured(task: tuple[Setting, int, tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """The records of some methods on one setting with one seed."""
    setting, seed, names = task
    torch.set_num_threads(1)
    rows = rows_of(setting, seed)
    config = {
        "task": setting[0],
        "shift": setting[1],
        "part": part_of(setting),
        "source_rows": int(np.sum(rows.sample_domain > 0)),
        "target_rows": int(np.sum(rows.sample_domain < 0)),
        "threads": "1",
    }
    for name in names:
        start = time.perf_counter()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = METHODS[name](rows, seed)
        accuracy = float(np.mean(predicted == rows.labels))
        metrics = {"accuracy": accuracy, "scored_rows": len(rows.labels)}
        seconds = round(time.perf_counter() - start, 3)
        yield {"name": name, "config": config, "seed": seed, "metrics": metrics, "seconds": seconds}


def key(record: dict[str, Any]) -> Key:
    """What identifies a record."""
    return record["config"]["task"], record["config"]["shift"], record["name"], record["seed"]


def _logistic(rows: Rows, seed: int) -> NDArray[np.int64]:
    source = rows.sample_domain > 0
    model = LogisticRegression(max_iter=1000).fit(rows.X[source], rows.y[source])
    return model.predict(rows.scored)


def _logistic_em(rows: Rows, seed: int) -> NDArray[np.int64]:
    """Maximum likelihood class frequencies (Saerens et al. 2002) by probabilities calibrated out of fold."""
    source = rows.sample_domain > 0
    X, y = rows.X[source], rows.y[source]
    model = LogisticRegression(max_iter=1000)
    held_out = cross_val_predict(model, X, y, cv=FOLDS, method="predict_log_proba")
    model.fit(X, y)
    calibrated, prior = calibrator(held_out, y), class_frequencies(y, len(model.classes_))
    target = maximum_likelihood_prior(calibrated.proba(model.predict_log_proba(rows.X[~source])), prior)
    return (calibrated.proba(model.predict_log_proba(rows.scored)) * target / prior).argmax(axis=1)


def _corrected(rows: Rows, seed: int) -> NDArray[np.int64]:
    model = PriorCorrectedClassifier(LogisticRegression(max_iter=1000), random_state=seed)
    return model.fit(rows.X, rows.y, sample_domain=rows.sample_domain).predict(rows.scored)


def _quapy_emq(rows: Rows, seed: int) -> NDArray[np.int64]:
    """QuaPy's EMQ, whose estimate corrects the same logistic regression."""
    load("quapy", "quapy")
    from quapy.method.aggregative import EMQ

    source = rows.sample_domain > 0
    X, y = rows.X[source], rows.y[source]
    model = LogisticRegression(max_iter=1000)
    target = EMQ(model, val_split=FOLDS, calib="bcts", on_calib_error="backup").fit(X, y).predict(rows.X[~source])
    proba = model.fit(X, y).predict_proba(rows.scored)
    return (proba * target / class_frequencies(y, len(model.classes_))).argmax(axis=1)


def _rlsbench(rows: Rows, seed: int) -> NDArray[np.int64]:
    return rlsbench(rows.X, rows.y, rows.sample_domain, rows.scored, seed)


def _ours(rows: Rows, seed: int, *, method: str, **options: Any) -> NDArray[np.int64]:
    model = OrthogonalAdapter(method, random_state=seed, **options)
    return model.fit(rows.X, rows.y, sample_domain=rows.sample_domain).predict(rows.scored)


def _skada(rows: Rows, seed: int, *, method: str, **options: Any) -> NDArray[np.int64]:
    if method == "MMDTarSReweightAdapter":
        # no default: the width that scikit-learn's SVC takes
        options["gamma"] = 1 / (rows.X.shape[1] * rows.X.var())
    if method == "SubspaceAlignmentAdapter":
        # its default, all features, needs as many rows in each domain
        options["n_components"] = min(rows.X.shape[1], *np.bincount(rows.sample_domain > 0))
    try:
        return skada(method, rows.X, rows.y, rows.sample_domain, seed, **options)(rows.scored)
    except ValueError:
        # weights that leave one class only: without adaptation, then
        return skada("", rows.X, rows.y, rows.sample_domain, seed)(rows.scored)


METHODS: dict[str, Predict] = {
    "logistic regression": _logistic,
    "logistic regression + EM": _logistic_em,
    "logistic regression + QuaPy EMQ": _quapy_emq,
    "setminus corrected": _corrected,
    "SVC": partial(_skada, method=""),
    "skada CORAL": partial(_skada, method="CORALAdapter"),
    "skada OTMapping": partial(_skada, method="OTMappingAdapter"),
    "skada JDOT": partial(_skada, method="JDOTClassifier"),
    "skada MMDTarSReweight": partial(_skada, method="MMDTarSReweightAdapter"),
    "skada SubspaceAlignment": partial(_skada, method="SubspaceAlignmentAdapter"),
    "RLSbench DANN": _rlsbench,
    **{f"setminus {method}": partial(_ours, method=method) for method in OURS},
}
"""skada's MMDTarSReweight and RLSbench's remedy are designed for other class frequencies in the target."""
