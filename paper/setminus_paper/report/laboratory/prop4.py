"""Proposition 4: the equalized-odds gap against how dependent u and z2 are given the label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.report.charts.chart import Chart, Line, Mark
from setminus_paper.report.laboratory.over_seeds import mean_and_deviation

__all__ = ["charts", "summary"]

Record = dict[str, Any]
WHO = ("full", "orthogonal")


def charts(records: Sequence[Record]) -> list[Chart]:
    """The gap of the probabilities and that of the decisions, mean and middle half over models."""
    scores = {who: _stack(records, who, "scores") for who in WHO}
    decisions = {who: _stack(records, who, "decisions") for who in WHO}
    rows = records[0]["config"]["rows"]
    dependence = records[0]["metrics"]["dependence"]
    sampled = _stack(records, "orthogonal", "decisions_sampled")
    on_samples = Line(dependence, sampled.mean(axis=0).tolist(), f"orthogonal, {rows:,} rows")
    return [
        Chart(
            "Gap of the probabilities",
            "dependence of u and z2 given y",
            "equalized-odds gap (sum)",
            _lines(dependence, scores),
            caption=(
                "The paper: without dependence the orthogonal classifier satisfies equalized odds. Seen: its largest "
                f"gap over {len(records)} models is then {scores['orthogonal'][:, 0].max():.1g}, that of the full one "
                f"{scores['full'][:, 0].mean():.2f} in the mean. "
                f"At dependence {dependence[-1]:g} they are {scores['orthogonal'][:, -1].mean():.2f} and "
                f"{scores['full'][:, -1].mean():.2f} in the mean. Lines: mean; bars: middle half of the models."
            ),
        ),
        Chart(
            "Gap of the decisions",
            "dependence of u and z2 given y",
            "equalized-odds gap (sum)",
            [*_lines(dependence, decisions), on_samples],
            caption=(
                "The same for the most probable class. A threshold turns small differences into large ones: at "
                f"dependence {dependence[1]:g} the mean gap is {decisions['orthogonal'][:, 1].mean():.3f}, that of the "
                f"probabilities {scores['orthogonal'][:, 1].mean():.4f}."
            ),
        ),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, expected, measured)."""
    dependence = records[0]["metrics"]["dependence"]
    rows = []
    for name, expected in (("decisions", "0"), ("scores", "0")):
        gap = _stack(records, "orthogonal", name)[:, 0].max()
        rows.append((f"largest gap, orthogonal, {name}, independent", expected, f"{gap:.1g}"))
    for name in ("decisions", "scores"):
        rows.append(
            (f"gap, full, {name}, independent", "> 0", mean_and_deviation(_stack(records, "full", name)[:, 0], ".3g"))
        )
    sampled = _stack(records, "orthogonal", "decisions_sampled")[:, 0]
    rows.append(
        (
            f"gap, orthogonal, {records[0]['config']['rows']:,} rows, independent",
            "near 0",
            mean_and_deviation(sampled, ".3g"),
        )
    )
    for place in (1, len(dependence) // 2, len(dependence) - 1):
        for who in WHO:
            gaps = _stack(records, who, "scores")[:, place]
            rows.append(
                (f"gap, {who}, scores, dependence {dependence[place]:g}", "> 0", mean_and_deviation(gaps, ".3g"))
            )
    wider = np.mean(_stack(records, "orthogonal", "decisions")[:, -1] > _stack(records, "full", "decisions")[:, -1])
    what = f"models whose orthogonal decisions have the wider gap, dependence {dependence[-1]:g}"
    rows.append((what, "", f"{wider:.0%}"))
    accuracy = [100 * _stack(records, who, "accuracy")[:, 0].mean() for who in WHO]
    rows.append(("accuracy, full and orthogonal, independent", "", f"{accuracy[0]:.1f} % and {accuracy[1]:.1f} %"))
    return rows


def _stack(records: Sequence[Record], who: str, name: str) -> NDArray[np.float64]:
    return np.array([record["metrics"][who][name] for record in records])


def _lines(dependence: list[float], gaps: dict[str, NDArray[np.float64]]) -> list[Mark]:
    return [
        Line(
            dependence,
            values.mean(axis=0).tolist(),
            who,
            low=np.quantile(values, 0.25, axis=0).tolist(),
            high=np.quantile(values, 0.75, axis=0).tolist(),
        )
        for who, values in gaps.items()
    ]
