"""Is the promise of the tuned classifier kept? On simulated rows whose true gap is known, and on splits of real sets.

``python -m benchmarks promises --only tuned``. The promise is broken where a tolerance is certified and the gap is
above it; the negative control takes the best point whose out-of-fold gap is within the tolerance, from the same fit.

simulated
    One feature, normal around a centre of its group and label. The full classifier does not see the group, so that it
    has a gap; with the group among its features it would be fair, and there would be nothing to break. A decision is a
    set of values of the feature in each group, so that its true rates are sums of normal probabilities.
real
    Development sets, which also had a part in the choice of `OPTIMISM` in `setminus.estimators.frontier`: no
    independent proof. The gap is measured on test rows: noise makes it larger than the true one, so that a certificate
    may be right and the gap on test rows above the tolerance.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks.fairness_sets import load
from benchmarks.promises import BASE_RATE, GROUPS, ROWS, TOLERANCE, group_shares
from benchmarks.provenance import provenance
from benchmarks.resuming import existing_keys
from setminus import TunedOrthogonalClassifier
from setminus.auditing.rates import rate_interval
from setminus.core.gaps import count_table, equalized_odds_from_table
from setminus.records import append_record, read_records

Floats = NDArray[np.float64]

SETS_A_RECORD = 5
MODES = ("fitted", "frozen")
"""The full classifier is fitted out of fold and the certificate approximate, or it is frozen and the rows are fresh."""
STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the formula; fewer than by default, so that many sets can be drawn. Offsets are searched as always."""
CENTRES = np.array([-0.8, 0.8])
"""Of the feature, by label; those of the groups lie up to half a deviation to both sides."""
GRID = np.linspace(-8, 8, 8001)

REAL = {"adult": 0.1, "credit-2": 0.05, "compas-4": 0.2, "law-2": 0.2}
"""Sets and tolerances."""
REAL_ROWS = 16_000
"""A random part of a larger set, half to fit and half to test."""
SPLITS = 100


def run(records: Path, sets: int = 1000, again: str | None = None, only: str = "") -> None:
    """Append missing records; every beginning of a run is a complete comparison on fewer sets and splits."""
    done = existing_keys(records, lambda record: (record["name"], str(sorted(record["config"].items()))), again)
    for name, config in settings(sets):
        if only not in name or (name, str(sorted(config.items()))) in done:
            continue
        start = time.perf_counter()
        found = simulated(**config) if name == "tuned, simulated" else real(**config)
        record = {
            "name": name,
            "config": config,
            "seed": config.get("part", config.get("split")),
            **provenance("python -m benchmarks promises"),
            "metrics": found,
            "seconds": round(time.perf_counter() - start, 3),
        }
        append_record(records, record)
        print(name, config, found, f"{record['seconds']:.0f} s", flush=True)


def settings(sets: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the configuration of each record."""
    parts = sets // SETS_A_RECORD
    for step in range(max(parts, SPLITS)):
        for mode in MODES if step < parts else ():
            for groups in GROUPS:
                for rows, tolerance in zip(ROWS, TOLERANCE[groups], strict=True):
                    config = {"rows": rows, "groups": groups, "tolerance": tolerance, "mode": mode}
                    yield "tuned, simulated", {**config, "sets": SETS_A_RECORD, "part": step}
        # two splits for each part of the simulation
        for split in range(2 * step, min(2 * step + 2, SPLITS)):
            for name, tolerance in REAL.items():
                yield "tuned, real", {"set": name, "tolerance": tolerance, "split": split}


def simulated(rows: int, groups: int, tolerance: float, mode: str, sets: int, part: int) -> dict[str, Any]:
    """How often a certified tolerance, and that of the negative control, is below the true gap."""
    rng = np.random.default_rng([rows, groups, MODES.index(mode), part])
    counts = dict.fromkeys(("certified", "broken", "left_alone", "broken_by_point"), 0)
    leads = []
    for _ in range(sets):
        X, y, group = people(rows, groups, rng)
        full: Any = LogisticRegression()
        if mode == "frozen":
            full = FrozenEstimator(LogisticRegression().fit(*people(rows, groups, rng)[:2]))
        model = tuned(full, X, y, group, tolerance)
        certificate, searched = model.certificate_, model.at(index=model.frontier_.best(tolerance))
        gap, by_point = true_gap(model, groups), true_gap(searched, groups)
        counts["certified"] += certificate.certified
        counts["broken"] += certificate.certified and gap > tolerance
        counts["left_alone"] += model.choice_ == "left alone"
        counts["broken_by_point"] += by_point > tolerance
        leads.append(model.score(X, y, sensitive_features=group) - max(y.mean(), 1 - y.mean()))
    return {**counts, "mean_lead": float(np.mean(leads))}


def real(set: str, tolerance: float, split: int) -> dict[str, Any]:
    """One split of one set: whether the tolerance is certified, and the gaps on test rows."""
    data = cached(set)
    rows = np.random.default_rng([split, 1]).permutation(len(data.y))[:REAL_ROWS]
    strata = np.char.add(data.groups[rows], data.y[rows].astype(str))
    train, test = train_test_split(rows, test_size=0.5, random_state=split, stratify=strata)
    full = HistGradientBoostingClassifier(max_iter=40, categorical_features=data.categorical, random_state=split)
    model = tuned(full, data.X[train], data.y[train], data.groups[train], tolerance)
    searched = model.at(index=model.frontier_.best(tolerance))
    codes = np.unique(data.groups[test], return_inverse=True)[1]
    found: dict[str, Any] = {"certified": model.certificate_.certified, "choice": model.choice_}
    for name, one in (("", model), ("_by_point", searched)):
        predictions = one.predict(data.X[test], sensitive_features=data.groups[test])
        table = count_table(codes, data.y[test], predictions, (codes.max() + 1, 2, 2))
        found[f"gap{name}"] = float(equalized_odds_from_table(table))
        found[f"accuracy{name}"] = float((predictions == data.y[test]).mean())
    return found


def tuned(full: Any, X: Any, y: Any, groups: Any, tolerance: float) -> TunedOrthogonalClassifier:
    """The classifier with its defaults, but fewer strengths."""
    model = TunedOrthogonalClassifier(full, tolerance=tolerance, strengths=STRENGTHS)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(X, y, sensitive_features=groups)


def people(rows: int, groups: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Features (one), labels and groups."""
    group = rng.choice(groups, size=rows, p=group_shares(groups))
    y = (rng.uniform(size=rows) < BASE_RATE).astype(np.intp)
    value = centre(groups)[group, y] + rng.normal(size=rows)
    return value[:, None], y, group


def centre(groups: int) -> Floats:
    """The mean of the feature by group and label."""
    return np.linspace(-0.5, 0.5, groups)[:, None] + CENTRES


def true_gap(model: TunedOrthogonalClassifier, groups: int) -> float:
    """The gap of the distribution: the normal probability of the values that are selected, by group and label."""
    group = np.repeat(np.arange(groups), len(GRID))
    selected = model.predict(np.tile(GRID, groups)[:, None], sensitive_features=group)
    edges = np.concatenate([[-np.inf], (GRID[1:] + GRID[:-1]) / 2, [np.inf]])
    mass = np.diff(ndtr(edges - centre(groups)[:, :, None]), axis=-1)
    rate = (mass * selected.reshape(groups, 1, -1)).sum(axis=-1)
    return float(np.ptp(rate, axis=0).max())


cached = lru_cache(maxsize=len(REAL))(load)


def tables(records: Path) -> tuple[str, str]:
    """Both tables in Markdown, of all records."""
    every = read_records(records)
    keys = ("mode", "groups", "rows", "tolerance")
    by_setting: dict[Any, list[dict[str, Any]]] = {}
    for record in every:
        if record["name"] == "tuned, simulated":
            by_setting.setdefault(tuple(record["config"][key] for key in keys), []).append(record)
    lines = [
        "| full classifier | groups | rows | tolerance | sets | certified | broken, % of the sets "
        "| left alone | broken without a confidence, % |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (mode, groups, rows, tolerance), own in sorted(by_setting.items()):
        n = sum(record["config"]["sets"] for record in own)
        total = {key: sum(record["metrics"][key] for record in own) for key in own[0]["metrics"]}
        cells = [f"{total['certified']}", percent(total["broken"], n), f"{total['left_alone']}"]
        shown = f"| {mode} | {groups} | {rows:,} | {tolerance:g} | {n} |"
        lines.append(f"{shown} {' | '.join(cells)} | {percent(total['broken_by_point'], n)} |")
    second = [
        "| set | tolerance | splits | certified | above on test rows, % of the certified "
        "| without a confidence, % of the splits | accuracy | accuracy without |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, tolerance in REAL.items():
        own = [r["metrics"] for r in every if r["name"] == "tuned, real" and r["config"]["set"] == name]
        if own:
            sure = [found for found in own if found["certified"]]
            above = percent(sum(found["gap"] > tolerance for found in sure), len(sure)) if sure else ""
            control = percent(sum(found["gap_by_point"] > tolerance for found in own), len(own))
            means = [f"{np.mean([found[key] for found in own]):.3f}" for key in ("accuracy", "accuracy_by_point")]
            cells = [name, f"{tolerance:g}", str(len(own)), str(len(sure)), above, control, *means]
            second.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines), "\n".join(second)


def percent(count: int, of: int) -> str:
    """A share in percent with its 95 % interval (Wilson)."""
    found = rate_interval(count / of, of)
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"
