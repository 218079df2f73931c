"""Theorem 1: the bound beside the excess risks, and how often the step of its proof fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.report.charts.chart import Chart, Line
from setminus_paper.report.laboratory.over_seeds import mean_and_deviation

__all__ = ["charts", "summary"]

Record = dict[str, Any]
RISKS = {
    "bound": "the bound as printed",
    "orthogonal": "orthogonal, measured",
    "orthogonal_exact": "orthogonal, first order",
    "full": "full, measured",
    "full_exact": "full, chi-square",
}
STEPS = {"step_fails_proof": "gamma = max 1/p(y|x), as in the proof", "step_fails_printed": "gamma = max 1/p(x|y)"}


def charts(records: Sequence[Record]) -> list[Chart]:
    """The risks on one model, all in logs, and the share of samples on which the proof's step fails, over all."""
    first = min(records, key=lambda record: record["seed"])["metrics"]
    fails = {key: _stack(records, key) for key in STEPS}
    at = first["n"].index(10**6)
    return [
        Chart(
            "Excess risk as the data grow",
            "rows",
            "nats",
            [Line(first["n"], first[key], name, markers="exact" not in key) for key, name in RISKS.items()],
            x_scale="log",
            y_scale="log",
            caption=(
                "The paper: the orthogonal classifier's excess risk is below the bound. Seen: it is, in all but "
                f"{_stack(records, 'above_bound').mean():.1%} of the samples, and both fall alike (slopes "
                f"{first['slope_orthogonal']:.2f} and {first['slope_bound']:.2f}), the bound "
                f"{first['bound'][at] / first['orthogonal'][at]:,.0f} times higher at a million rows. The full "
                f"classifier's falls faster (slope {first['slope_full']:.2f})."
            ),
        ),
        Chart(
            "Where the proof's step fails",
            "rows",
            "share of samples",
            [
                Line(
                    first["n"],
                    values.mean(axis=0).tolist(),
                    STEPS[key],
                    low=values.min(axis=0).tolist(),
                    high=values.max(axis=0).tolist(),
                )
                for key, values in fails.items()
            ],
            x_scale="log",
            caption=(
                "The proof says that the orthogonal excess is at most 1 + gamma times the full one. At a million rows "
                f"it is more in {fails['step_fails_proof'][:, at].mean():.0%} of the samples, at {first['n'][-1]:,} in "
                f"{fails['step_fails_proof'][:, -1].mean():.0%}: one falls as the root of 1/n, the other as 1/n. Mean "
                "and range over models."
            ),
        ),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, expected, measured), mean and standard deviation over models."""
    n = records[0]["metrics"]["n"]
    rows = [
        (f"slope of the {name} in logs", expected, mean_and_deviation(_stack(records, f"slope_{key}")))
        for key, name, expected in (
            ("full", "full excess risk", "-1"),
            ("orthogonal", "orthogonal excess risk", "-0.5"),
            ("bound", "bound", "-0.5"),
        )
    ]
    for key in ("full", "orthogonal"):
        ratio = _stack(records, key)[:, -1] / _stack(records, f"{key}_exact")[:, -1]
        rows.append((f"{key} excess at {n[-1]:,} rows over its closed form", "1", mean_and_deviation(ratio)))
    above = _stack(records, "above_bound").mean()
    rows.append(("samples above the bound", f"at most {records[0]['config']['delta']:.0%}", f"{above:.1%}"))
    slack = [_stack(records, "bound")[:, at] / _stack(records, "orthogonal_quantile")[:, at] for at in (0, -1)]
    what = f"bound over the measured quantile, {n[0]:,} and {n[-1]:,} rows"
    rows.append((what, "1 or more", " and ".join(f"{np.median(ratio):,.0f}" for ratio in slack)))
    for at in (n.index(10**4), n.index(10**6), len(n) - 1):
        for key, name in STEPS.items():
            fails = _stack(records, key)[:, at]
            rows.append((f"the proof's step fails, {n[at]:,} rows, {name}", "0 %", f"{fails.mean():.0%}"))
    return rows


def _stack(records: Sequence[Record], name: str) -> NDArray[np.float64]:
    return np.array([record["metrics"][name] for record in records])
