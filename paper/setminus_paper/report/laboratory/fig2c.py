"""Figure 2c: histograms of predicted p(y|z2) around its two true values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setminus.report.charts.chart import Bars, Chart, Rule
from setminus_paper.report.laboratory.over_seeds import mean_and_deviation

__all__ = ["charts", "summary"]

Record = dict[str, Any]


def charts(records: Sequence[Record]) -> list[Chart]:
    """One histogram for each way, with the images of either background color."""
    truth = records[0]["metrics"]["truth"]
    return [
        Chart(
            way[0].upper() + way[1:],
            "predicted probability of domain B",
            "share of the images of a color",
            [
                *(_bars(records, way, color) for color in (0, 1)),
                *(Rule(value, f"truth, {domain}", axis="x") for value, domain in zip(truth, "AB", strict=True)),
            ],
            caption=_caption(records, way),
        )
        for way in _ways(records)
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, exact, measured)."""
    rows = []
    for way in _ways(records):
        for color, truth in enumerate(records[0]["metrics"]["truth"]):
            means = [record["metrics"]["ways"][way]["mean"][color] for record in records]
            rows.append((f"{way}: mean p(B), background {'AB'[color]}", f"{truth:g}", mean_and_deviation(means)))
        errors = [record["metrics"]["ways"][way]["absolute_error"] for record in records]
        rows.append((f"{way}: mean absolute error", "0", mean_and_deviation(errors)))
    return rows


def _ways(records: Sequence[Record]) -> list[str]:
    return list(records[0]["metrics"]["ways"])


def _bars(records: Sequence[Record], way: str, color: int) -> Bars:
    shares = np.mean([record["metrics"]["ways"][way]["histogram"][color] for record in records], axis=0)
    middles = (np.arange(len(shares)) + 0.5) / len(shares)
    return Bars(middles.tolist(), shares.tolist(), f"background of domain {'AB'[color]}")


def _caption(records: Sequence[Record], way: str) -> str:
    means = np.mean([record["metrics"]["ways"][way]["mean"] for record in records], axis=0)
    spread = np.mean([record["metrics"]["ways"][way]["sd"] for record in records], axis=0)
    excess = np.mean([record["metrics"]["ways"][way]["excess_loss"] for record in records])
    return (
        f"The means are {means[0]:.3f} and {means[1]:.3f}, the standard deviations {spread[0]:.3f} and "
        f"{spread[1]:.3f} over images; loss beyond that of the truth: {excess:.4f}. {len(records)} seeds."
    )
