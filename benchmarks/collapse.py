"""Why an adapted network ignores a good estimate of the target's class frequencies: one term of its loss at a time.

On two development settings of weak features, `vada_orthogonal` is trained without one of its terms, without any of
them, and with the mass constraint. Each network's predictions are measured as they are, and after calibration on
held-out source rows with the estimated class frequencies.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from setminus_paper.tables import to_frame
from sklearn.utils import check_random_state

from benchmarks.adapter_settings import Rows, Setting, rows_of
from benchmarks.provenance import provenance
from benchmarks.resuming import existing_keys
from setminus.adaptation.automatic import MASS, common_scale, network_logits
from setminus.adaptation.domain_rows import held_out_rows
from setminus.adaptation.domains import DomainData, LabelShift
from setminus.adaptation.label_shift import calibrator, class_frequencies
from setminus.adaptation.methods import AdaptationConfig
from setminus.adaptation.small_networks import adapted
from setminus.adaptation.vada import VadaConfig
from setminus.charts.chart import Chart, Dots
from setminus.charts.picture import draw
from setminus.records import append_record, read_records

Key = tuple[str, float, str, int]

SETTINGS: tuple[Setting, ...] = (("gauss weak a", 0.85), ("words a", 0.85))
STEPS = 300
LOSSES: dict[str, float] = dict.fromkeys(("domain", "source_vat", "target_vat", "target_entropy"), 0.1)
"""The weights of `OrthogonalAdapter`."""
VARIANTS: dict[str, dict[str, Any]] = {
    "source only": {"method": "source_only"},
    "all terms": {},
    "without domain loss": {"domain": 0.0},
    "without target entropy": {"target_entropy": 0.0},
    "without target VAT": {"target_vat": 0.0},
    "without source VAT": {"source_vat": 0.0},
    "without any VAT": {"source_vat": 0.0, "target_vat": 0.0},
    "without any target term": {"target_vat": 0.0, "target_entropy": 0.0, "domain": 0.0},
    "with mass constraint": {"mass": MASS},
}


def run(seeds: Sequence[int], records: Path, again: str | None = None) -> None:
    """Run missing variants and append their records."""
    done = existing_keys(records, _key, again)
    torch.set_num_threads(1)
    shared = provenance("python -m benchmarks collapse", "torch")
    for seed in seeds:
        for setting in SETTINGS:
            for name in VARIANTS:
                if (*setting, name, seed) not in done:
                    start = time.perf_counter()
                    metrics = measured(rows_of(setting, seed), seed, **VARIANTS[name])
                    config = {"task": setting[0], "shift": setting[1], "steps": STEPS}
                    seconds = round(time.perf_counter() - start, 3)
                    record = {"name": name, "config": config, "seed": seed, "metrics": metrics, "seconds": seconds}
                    append_record(records, {**record, **shared})


def measured(rows: Rows, seed: int, *, method: str = "vada_orthogonal", mass: float = 0.0, **losses: float) -> Any:
    """Estimated, decided and true frequency of the second half of the classes, and accuracies."""
    of_source = rows.sample_domain > 0
    x, target, codes = rows.X[of_source], rows.X[~of_source], rows.y[of_source]
    scale = common_scale(np.sqrt((x.var(axis=0) + target.var(axis=0)) / 2))
    x, target, scored = ((one - rows.X[of_source].mean(axis=0)) / scale for one in (x, target, rows.scored))
    random = check_random_state(seed)
    held = held_out_rows(codes, 0.2, random)
    tensor, labels = partial(torch.tensor, dtype=torch.float32), torch.from_numpy(codes)
    n_classes = int(codes.max()) + 1
    data = DomainData(
        tensor(x[~held]), labels[~held], tensor(target), n_classes, tensor(x[held]), torch.from_numpy(codes[held])
    )
    weights = VadaConfig(**{**LOSSES, **losses}, vat_radius=0.3 * x.shape[1] ** 0.5, vat_xi=1e-3)
    fitted = adapted(
        method,
        data,
        AdaptationConfig(weights, warmup=STEPS // 5),
        label_shift=LabelShift("em"),
        discriminator="orthogonal",
        width=64,
        steps=STEPS,
        refine_steps=0,
        seed=int(random.randint(2**31 - 1)),
        mass=mass,
    )
    logits = network_logits(fitted.layers, scored)
    calibrated = calibrator(network_logits(fitted.layers, x[held]), codes[held])
    prior = class_frequencies(codes[held], n_classes)
    second = np.arange(n_classes) >= (n_classes + 1) // 2
    found = {"decided": float(np.mean(second[logits.argmax(axis=1)])), "true": float(np.mean(second[rows.labels]))}
    found["accuracy"] = float(np.mean(logits.argmax(axis=1) == rows.labels))
    estimate = fitted.target_prior
    if estimate is not None:
        corrected = calibrated.proba(logits) * estimate / prior
        found |= {"estimated": float(estimate[second].sum())}
        found |= {"corrected_accuracy": float(np.mean(corrected.argmax(axis=1) == rows.labels))}
        found |= {"corrected_decided": float(np.mean(second[corrected.argmax(axis=1)]))}
    # on rows that it was trained on, and on rows that it was not: how often the rare half of the source is found
    for name, part in (("trained_recall", ~held), ("held_out_recall", held)):
        rare = part & second[codes]
        found[name] = float(np.mean(network_logits(fitted.layers, x[rare]).argmax(axis=1) == codes[rare]))
    return found


def picture(records: Path, path: Path) -> Path:
    """Draw the accuracy of each variant as it is, and calibrated with the estimated frequencies."""
    frame = to_frame(read_records(records))
    charts = []
    for task, own in frame.groupby("task", sort=False):
        series = []
        for metric, label in (("accuracy", "as trained"), ("corrected_accuracy", "calibrated, with the estimate")):
            found = own.dropna(subset=[metric]).groupby("name", sort=False)[metric]
            shown = [name for name in VARIANTS if name in found.groups]
            mean, low, high = (getattr(found, take)().loc[shown].tolist() for take in ("mean", "min", "max"))
            series.append(Dots(shown, mean, low, high, label))
        title = f"{task}: {own['seed'].nunique()} seeds"
        charts.append(Chart(title, "accuracy on target rows", "", series, "Lines: smallest and largest of the seeds."))
    draw(charts, path, columns=2)
    return path


def _key(record: dict[str, Any]) -> Key:
    return record["config"]["task"], record["config"]["shift"], record["name"], record["seed"]
