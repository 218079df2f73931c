"""Records of the fairness tables, gathered to rows: for each method its numbers by seed, and the paper's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any, Literal

from scipy.special import stdtrit

__all__ = ["KINDS", "METRICS", "RULES", "Estimate", "Row", "difference", "estimate", "rows_of"]

Rule = Literal["validation", "test_oracle"]

RULES: tuple[Rule, ...] = ("validation", "test_oracle")
"""How a row's epoch was picked: by its accuracy on validation rows, or on the test rows themselves."""
METRICS = ("accuracy", "dp_gap", "eo_gap")
KINDS = {"paper": "The paper's rows", "ours": "Ours beyond the paper", "peer": "Other libraries"}
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """A method on one data set.

    Attributes
    ----------
    method, label : str
        For commands, and for readers.
    kind : "paper", "ours" or "peer"
    needs_group : bool
        Whether it has to know the group when it predicts.
    encoding : str
        Of the table that it was given: methods of one encoding stand on the same features.
    paper : dict or None
        The paper's numbers by metric.
    seeds : tuple of int
    measured : dict
        By rule and metric, a number for each seed.
    seconds : float
        For one seed, the median.
    """

    method: str
    label: str
    kind: str
    needs_group: bool
    encoding: str
    paper: dict[str, float] | None
    seeds: tuple[int, ...]
    measured: dict[str, dict[str, tuple[float, ...]]]
    seconds: float

    @property
    def ours(self) -> bool:
        r"""Whether it is ``full \ principal`` of some kind."""
        return self.kind == "ours" or self.method.startswith("orthogonal")

    @property
    def family(self) -> str:
        """The label without the parameter in brackets."""
        return self.label.split(" (")[0]

    def mean(self, metric: str, rule: str = RULES[0]) -> float:
        """Over the seeds."""
        return fmean(self.measured[rule][metric])


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, their standard deviation, and between which numbers one more run would fall.

    With a single seed nothing but the mean is known, and the others are None.
    """

    mean: float
    deviation: float | None
    low: float | None
    high: float | None


def rows_of(records: Iterable[dict[str, Any]]) -> list[Row]:
    """The rows of one table: the paper's first, the plain one before all, the others by name.

    The order does not depend on that of the records, which is the order in which runs were finished.
    """
    by_method: dict[str, dict[int, dict[str, Any]]] = {}
    for record in records:
        # a seed that was measured again stands for itself once
        by_method.setdefault(record["config"]["method"], {})[record["seed"]] = record
    rows = [_row(method, [found[seed] for seed in sorted(found)]) for method, found in by_method.items()]
    return sorted(rows, key=_place)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, standard deviation, and the 95 % prediction interval of one more run.

    A number that was measured once, as the paper's, is to be compared with that interval and not with that of the
    mean: it is as wide as the runs differ, and does not shrink with their number.

    Examples
    --------
    >>> found = estimate([0.80, 0.82, 0.84])
    >>> round(found.mean, 2), round(found.deviation, 2), round(found.low, 2), round(found.high, 2)
    (0.82, 0.02, 0.72, 0.92)
    """
    mean = fmean(values)
    if len(values) < 2:
        return Estimate(mean, None, None, None)
    deviation = stdev(values)
    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * deviation * (1 + 1 / len(values)) ** 0.5
    # neither accuracy nor a gap can be less than nothing
    return Estimate(mean, deviation, max(mean - reach, 0.0), mean + reach)


def difference(one: Row, other: Row, metric: str, rule: str) -> tuple[float, float]:
    """The first less the second in the seeds that both have, on average, and the standard error of that."""
    values = [dict(zip(row.seeds, row.measured[rule][metric], strict=True)) for row in (one, other)]
    shared = [values[0][seed] - values[1][seed] for seed in one.seeds if seed in values[1]]
    if len(shared) < 2:
        return one.mean(metric, rule) - other.mean(metric, rule), float("inf")
    return fmean(shared), stdev(shared) / len(shared) ** 0.5


def _row(method: str, records: list[dict[str, Any]]) -> Row:
    metrics = [record["metrics"] for record in records]
    about = metrics[-1]["row"]
    return Row(
        method,
        about["label"],
        about["kind"],
        about["needs_group"],
        records[-1]["config"].get("encoding", ""),
        about["paper"],
        tuple(record["seed"] for record in records),
        {rule: {metric: tuple(one[rule][metric] for one in metrics) for metric in (*METRICS, "auc")} for rule in RULES},
        median(one["seconds_per_seed"] for one in metrics),
    )


def _place(row: Row) -> tuple[int, bool, list[tuple[bool, float, str]]]:
    known = list(KINDS)
    kind = known.index(row.kind) if row.kind in known else len(known)
    # numbers within a name by their size: 50 before 100
    parts = re.split(r"(\d+(?:\.\d+)?)", row.label)
    return (
        kind,
        row.method != "vanilla",
        [(True, float(p), "") if i % 2 else (False, 0.0, p) for i, p in enumerate(parts)],
    )
