"""Any metric by group, with intervals, as a frame."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from setminus.auditing.rates import Decided
from setminus.core.checks import group_name
from setminus.errors import UserError

__all__ = ["Metrics", "metrics_by_group"]

Metrics = Callable[..., float] | Mapping[str, Callable[..., float]]
"""One metric or several by name: from labels and predictions, as arrays, to a number."""

Floats = NDArray[np.float64]

BACKENDS: tuple[Literal["pandas", "polars", "pyarrow"], ...] = ("pandas", "polars", "pyarrow")


def metrics_by_group(
    rows: Decided,
    proba: Floats | None,
    metrics: Metrics,
    *,
    of: str,
    confidence: float,
    n_bootstrap: int,
    random_state: int,
) -> Any:
    """The table of `Audit.by_group`, which documents the parameters."""
    named = dict(metrics) if isinstance(metrics, Mapping) else {_name(metrics): metrics}
    if of not in ("decisions", "proba"):
        raise UserError(f"of is {of!r}", expected="'decisions' or 'proba'")
    if rows.y is None:
        raise UserError("the audit has no labels", do="only selection rates are known: see group_rates.")
    if of == "proba" and proba is None:
        raise UserError("the audit has no scores", do="pass proba to audit, or metrics of decisions.")
    classes = np.asarray(rows.classes)
    y = classes[rows.y]
    scores = proba[:, 1] if proba is not None and len(classes) == 2 else proba
    judged: NDArray[Any] = classes[rows.predicted] if of == "decisions" or scores is None else scores
    rng = np.random.default_rng(random_state)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    everyone = [(group_name(group), np.flatnonzero(rows.group == g)) for g, group in enumerate(rows.groups)]
    columns: dict[str, list[Any]] = {"group": [], "n": []}
    for name in named:
        columns |= {name: [], f"{name}_low": [], f"{name}_high": []}
    for group, members in [*everyone, ("all rows", np.arange(len(y)))]:
        columns["group"].append(group)
        columns["n"].append(len(members))
        drawn = [members, *(rng.choice(members, size=len(members)) for _ in range(n_bootstrap))]
        for name, metric in named.items():
            value, *draws = (_value(metric, y[chosen], judged[chosen], rows.weight, chosen) for chosen in drawn)
            known = np.array([draw for draw in draws if not np.isnan(draw)])
            low, high = np.quantile(known, tails) if len(known) else (np.nan, np.nan)
            columns[name].append(value)
            columns[f"{name}_low"].append(float(low))
            columns[f"{name}_high"].append(float(high))
    return nw.from_dict(columns, backend=_backend()).to_native()


def _name(metric: Callable[..., float]) -> str:
    return getattr(metric, "__name__", "metric")


def _value(
    metric: Callable[..., float], y: NDArray[Any], judged: NDArray[Any], weight: Floats | None, chosen: NDArray[np.intp]
) -> float:
    """The metric of some rows; NaN where it is undefined, for example without rows of a class."""
    try:
        return float(metric(y, judged) if weight is None else metric(y, judged, sample_weight=weight[chosen]))
    except (ValueError, ZeroDivisionError):
        return float("nan")


def _backend() -> Literal["pandas", "polars", "pyarrow"]:
    for name in BACKENDS:
        if importlib.util.find_spec(name):
            return name
    raise UserError("no data frame library is installed", do="install one of " + ", ".join(BACKENDS) + ".")
