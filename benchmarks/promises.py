"""Is a promise kept? Certificates and intervals on simulated rows whose true gaps are known.

``python -m benchmarks promises``. Each record is one setting: a number of rows, of groups, and 1,000 data sets.

certificate
    The true gap is a hair above the tolerance: every certificate is wrong. At most 5 % may be given. The negative
    control takes the measured gap for the true one.
choice
    A score that leans on the group is corrected by 21 strengths. The true gap of each is known. The strengths are
    tested in a fixed order, from the fairest on, until the first that is not certified; the last certified one is used.
    The promise is broken if its true gap is above the tolerance. The negative control uses the least correction whose
    measured gap is within the tolerance.
interval
    How often the 95 % intervals of `setminus.audit` contain the true gap, for several shapes of the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.provenance import provenance
from benchmarks.resuming import existing_keys
from setminus.auditing.rates import bootstrap_tables, gap_interval, rate_interval
from setminus.core import Constraint
from setminus.core.certificate import p_value
from setminus.core.differences import score_p_value
from setminus.core.gaps import equalized_odds_from_table
from setminus.records import append_record, read_records

Floats = NDArray[np.float64]

ROWS = (1_000, 4_000, 16_000)
GROUPS = (2, 4, 8)
TOLERANCE = {2: (0.2, 0.1, 0.05), 4: (0.3, 0.15, 0.08), 8: (0.45, 0.22, 0.11)}
"""By groups, for each number of rows: what these rows can certify where the groups are equal."""
STRENGTHS = np.linspace(1, 0, 21)
BASE_RATE = 0.4
SHAPES = {
    "none": lambda n: np.zeros(n),
    "one group": lambda n: np.eye(n)[-1],
    "half of the groups": lambda n: (np.arange(n) >= n / 2).astype(float),
    "even steps": lambda n: np.linspace(0, 1, n),
}
"""How much of the gap each group has."""
COVERED = {
    "equalized_odds_max": "equalized odds (max)",
    "equalized_odds_sum": "equalized odds (sum)",
    "equal_opportunity": "equal opportunity",
    "demographic_parity": "demographic parity",
    "true_positive_rate": "TPR of a group",
}
"""What has an interval."""


def run(records: Path, sets: int = 1000, again: str | None = None, only: str = "") -> None:
    """Append a record for each setting that has none, and print it."""
    done = existing_keys(records, lambda record: (record["name"], str(sorted(record["config"].items()))), again)
    for name, config, measure in settings(sets):
        if only not in name or (name, str(sorted(config.items()))) in done:
            continue
        start = time.perf_counter()
        metrics = measure()
        record = {
            "name": name,
            "config": config,
            "seed": 0,
            **provenance("python -m benchmarks promises"),
            "metrics": metrics,
            "seconds": time.perf_counter() - start,
        }
        append_record(records, record)
        print(name, config, metrics, f"{record['seconds']:.0f} s", flush=True)


def table(records: Path, sets: int = 1000) -> str:
    """The certificates as a table in Markdown, in percent."""

    def percent(found: dict[str, float]) -> str:
        return f"{100 * found['value']:.1f} ({100 * found['low']:.1f} to {100 * found['high']:.1f})"

    lines = [
        "| groups | rows | tolerance | wrong certificates, % | wrong by the measured gap, % "
        "| equal groups certified, % |",
        "|---|---|---|---|---|---|",
    ]
    for record in read_records(records):
        config, metrics = record["config"], record["metrics"]
        if record["name"] == "certificate" and config["sets"] == sets:
            cells = [percent(metrics[key]) for key in ("broken", "broken_by_point", "power")]
            lines.append(f"| {config['groups']} | {config['rows']:,} | {config['tolerance']:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def coverage(records: Path, sets: int = 1000) -> str:
    """The lowest and highest coverage of the intervals over all shapes of the truth, as a table in Markdown."""
    lines = [
        "| groups | rows | truths | " + " | ".join(COVERED.values()) + " |",
        "|---|---|---|" + "---|" * len(COVERED),
    ]
    by_size: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for record in read_records(records):
        if record["name"] == "interval" and record["config"]["sets"] == sets:
            size = record["config"]["groups"], record["config"]["rows"]
            by_size.setdefault(size, []).append(record["metrics"])
    for (groups, rows), found in sorted(by_size.items()):
        shares = ([100 * metrics[key]["coverage"]["value"] for metrics in found] for key in COVERED)
        cells = [f"{min(share):.1f} to {max(share):.1f}" for share in shares]
        lines.append(f"| {groups} | {rows:,} | {len(found)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def settings(sets: int) -> Iterator[tuple[str, dict[str, Any], Callable[[], dict[str, Any]]]]:
    """The name, the configuration and the measurement of each setting."""
    for groups, (rows, tolerance) in ((g, pair) for g in GROUPS for pair in zip(ROWS, TOLERANCE[g], strict=True)):
        config = {"rows": rows, "groups": groups, "sets": sets, "tolerance": tolerance}
        yield "certificate", config, lambda config=config: certificates(**config)
        yield "choice", config, lambda config=config: choices(**config)
    for groups, rows, shape in product(GROUPS, ROWS, SHAPES):
        # of two groups one has the gap, whatever the shape
        if groups == 2 and shape not in ("none", "one group"):
            continue
        for gap in (0.0,) if shape == "none" else (0.05, 0.2):
            config = {"rows": rows, "groups": groups, "sets": sets, "shape": shape, "gap": gap}
            yield "interval", config, lambda config=config: intervals(**config)


def certificates(rows: int, groups: int, sets: int, tolerance: float) -> dict[str, Any]:
    """How often a gap above the tolerance is certified, and how often equal groups are."""
    rng = np.random.default_rng([rows, groups, 1])
    above = drawn(probabilities(np.eye(groups)[-1] * (tolerance + 1e-6)), rows, rng, sets)
    equal = drawn(probabilities(np.zeros(groups)), rows, rng, sets)
    by_point = int((equalized_odds_from_table(above) <= tolerance).sum())
    # where the approximation refuses, so does the exact test
    wrong = sum(certified(table, tolerance) for table in above[approximately_certified(above, tolerance)])
    some = equal[: sets // 5]
    right = sum(certified(table, tolerance) for table in some[approximately_certified(some, tolerance)])
    return {
        "broken": share(wrong, sets),
        "broken_by_point": share(by_point, sets),
        "power": share(right, len(some)),
    }


def choices(rows: int, groups: int, sets: int, tolerance: float) -> dict[str, Any]:
    """How often the chosen strength has a true gap above the tolerance."""
    rng = np.random.default_rng([rows, groups, 2])
    lean = np.linspace(-1, 1, groups)
    centre = np.array([-0.8, 0.9])
    # P(score + lean of the group, less the correction, above 0)
    rate = ndtr(centre[None, None, :] + (1 - STRENGTHS)[:, None, None] * lean[None, :, None])
    true_gaps = np.ptp(rate, axis=1).max(axis=1)
    chosen, measured = [], []
    for _ in range(sets):
        group = rng.choice(groups, size=rows, p=group_shares(groups))
        y = (rng.uniform(size=rows) < BASE_RATE).astype(np.intp)
        score = centre[y] + rng.normal(size=rows)
        decided = (score + (1 - STRENGTHS)[:, None] * lean[group] > 0).astype(np.intp)
        place = 4 * groups * np.arange(len(STRENGTHS))[:, None] + 4 * group + 2 * y + decided
        tables = np.bincount(place.ravel(), minlength=4 * groups * len(STRENGTHS)).astype(np.float64)
        tables = tables.reshape(-1, groups, 2, 2)
        # until the first that is not certified
        first_refused = int(np.append(approximately_certified(tables, tolerance), False).argmin())
        last = next((k for k in range(first_refused) if not certified(tables[k], tolerance)), first_refused) - 1
        within = np.flatnonzero(equalized_odds_from_table(tables) <= tolerance)
        chosen += [true_gaps[last]] if last >= 0 else []
        measured += [true_gaps[within[-1]]] if len(within) else []
    return {
        "broken": share(int(np.sum(np.array(chosen) > tolerance)), sets),
        "broken_by_point": share(int(np.sum(np.array(measured) > tolerance)), sets),
        "certified": share(len(chosen), sets),
        "mean_true_gap": float(np.mean(chosen)) if chosen else None,
        "mean_true_gap_by_point": float(np.mean(measured)) if measured else None,
    }


def intervals(rows: int, groups: int, sets: int, shape: str, gap: float) -> dict[str, Any]:
    """How often the intervals of the gaps contain the true ones, and of the smallest group's true positive rate."""
    rng = np.random.default_rng([rows, groups, 3])
    cells = probabilities(gap * SHAPES[shape](groups))
    selected = cells.sum(axis=1)
    parity = np.ptp(selected[:, 1] / selected.sum(axis=1))
    asked: dict[str, tuple[Constraint, Any, float]] = {
        "demographic_parity": ("demographic_parity", "max", float(parity)),
        "equalized_odds_max": ("equalized_odds", "max", gap),
        "equalized_odds_sum": ("equalized_odds", "sum", gap),
        "equal_opportunity": ("equal_opportunity", "max", gap),
    }
    inside, width = dict.fromkeys([*asked, "true_positive_rate"], 0), dict.fromkeys([*asked, "true_positive_rate"], 0.0)
    for k, table in enumerate(drawn(cells, rows, rng, sets)):
        places = np.repeat(np.arange(table.size), table.ravel().astype(np.intp))
        centre, draws = bootstrap_tables(
            *np.unravel_index(places, table.shape), table.shape, n_bootstrap=300, random_state=k
        )
        found = {
            key: (gap_interval(table, centre, draws, constraint=constraint, agg=agg), truth)
            for key, (constraint, agg, truth) in asked.items()
        }
        positives = table[-1, 1]
        rate = cells[-1, 1, 1] / cells[-1, 1].sum()
        found["true_positive_rate"] = rate_interval(positives[1] / positives.sum(), positives.sum()), float(rate)
        for key, (interval, truth) in found.items():
            inside[key] += interval.low <= truth <= interval.high
            width[key] += (interval.high - interval.low) / sets
    return {key: {"coverage": share(inside[key], sets), "width": width[key]} for key in inside}


def certified(table: Floats, tolerance: float) -> bool:
    """As `setminus.certify` at 95 %, without the bound."""
    return p_value(table, tolerance, enough=0.0501) <= 0.05


def approximately_certified(tables: Floats, tolerance: float) -> NDArray[np.bool_]:
    """The same by the normal approximation, for many tables at once."""
    hits, n = tables[..., 1], tables.sum(axis=-1)
    one, other = (~np.eye(tables.shape[1], dtype=bool)).nonzero()
    found: Floats = score_p_value(hits[:, one], n[:, one], hits[:, other], n[:, other], tolerance)
    return found.max(axis=(1, 2)) <= 0.05


def group_shares(groups: int) -> Floats:
    """The last group has a third of the rows of the first."""
    sizes = np.geomspace(1, 1 / 3, groups)
    return sizes / sizes.sum()


def probabilities(below: Floats) -> Floats:
    """Of the cells (group, label, prediction): a true positive rate of 0.7, less in some groups."""
    positive = np.stack([np.full(len(below), 0.2), 0.7 - below], axis=1)
    given = np.stack([1 - positive, positive], axis=-1)
    return group_shares(len(below))[:, None, None] * np.array([1 - BASE_RATE, BASE_RATE])[None, :, None] * given


def drawn(cells: Floats, rows: int, rng: np.random.Generator, sets: int) -> Floats:
    """Counts of so many rows, for each data set."""
    return rng.multinomial(rows, cells.ravel(), size=sets).reshape(sets, *cells.shape).astype(np.float64)


def share(count: int, of: int) -> dict[str, float]:
    """A share with its 95 % interval."""
    found = rate_interval(count / of, of)
    return {"value": found.value, "low": found.low, "high": found.high}
