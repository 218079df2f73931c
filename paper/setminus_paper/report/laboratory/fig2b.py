"""Figure 2b: test loss against the learning rate where z1 says much about y."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.report.charts.chart import Chart
from setminus_paper.report.laboratory.fig2a import METHODS, by_data, excess_lines, grouped, loss_lines, spread

__all__ = ["COLUMNS", "charts", "summary"]

Record = dict[str, Any]
COLUMNS = 2


def charts(records: Sequence[Record]) -> list[Chart]:
    """For each data set: test loss, and its excess over the least possible."""
    found = []
    for name, some in by_data(records).items():
        divergence = some[0]["metrics"]["divergence"]
        found += [
            Chart(
                f"Test loss: {name}",
                "learning rate",
                "nats",
                loss_lines(some, "rate"),
                "The paper: importance sampling's loss climbs with the rate, the other stays. The divergence of z1 is "
                f"{divergence:.3g}. Median over seeds, with the smallest and the largest.",
                x_scale="log",
                y_scale="log",
            ),
            Chart(
                f"Excess over p(y | z2): {name}",
                "learning rate",
                "nats",
                excess_lines(some, "rate"),
                "The same losses above the least possible. Losses of many powers of ten are networks that have "
                "diverged.",
                x_scale="log",
                y_scale="log",
            ),
        ]
    return found


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, the paper, measured): the excess at each rate."""
    return [
        (
            f"{name}: excess loss of {words} in nats, rate {rate:g}",
            "climbs with the rate" if method == "importance" else "stays",
            spread(metrics, f"{method}_excess"),
        )
        for name, some in by_data(records).items()
        for method, words in METHODS.items()
        for rate, metrics in grouped(some, "rate").items()
    ]
