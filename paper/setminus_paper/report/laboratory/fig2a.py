"""Figure 2a: test loss, and the variance of the importance-sampling objective, against the divergence of z1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setminus.report.charts.chart import Chart, Line, Mark, Rule

__all__ = ["METHODS", "by_data", "charts", "excess_lines", "grouped", "loss_lines", "spread", "summary"]

Record = dict[str, Any]
METHODS = {"importance": "importance sampling", "orthogonal": "full minus principal"}


def charts(records: Sequence[Record]) -> list[Chart]:
    """For each data set and training: test loss, its excess over the least possible, and the variance."""
    return [chart for name, some in by_data(records).items() for chart in _charts(name, some)]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, the paper, measured): the excess at both ends of the sweep, and the variance at its end."""
    rows = []
    for name, some in by_data(records).items():
        points = grouped(some, "divergence")
        low, high = points[min(points)], points[max(points)]
        for method, words in METHODS.items():
            claim = "climbs" if method == "importance" else "stays"
            rows.append(
                (
                    f"{name}: excess loss of {words} in nats, divergence {min(points):.3g} and {max(points):.3g}",
                    claim,
                    f"{spread(low, f'{method}_excess')}; {spread(high, f'{method}_excess')}",
                )
            )
        rows.append(
            (
                f"{name}: variance of the importance-sampling objective, divergence {max(points):.3g}",
                f"{high[0]['variance_exact']:.4g}",
                spread(high, "variance"),
            )
        )
    return rows


def by_data(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by data set; by training too, where there are several on one sweep of the divergence."""
    found: dict[str, list[Record]] = {}
    for record in records:
        config = record["config"]
        name = f"{config['data']}, batches of {config['batch']}"
        if record["name"] == "fig2a":
            name += f", rate {config['rate']:g}"
        found.setdefault(name, []).append(record)
    return found


def grouped(records: Sequence[Record], by: str) -> dict[float, list[dict[str, Any]]]:
    """The metrics of all seeds at each value of the divergence, or of a setting of the run, in order."""
    found: dict[float, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault({**record["config"], **record["metrics"]}[by], []).append(record["metrics"])
    return dict(sorted(found.items()))


def loss_lines(records: Sequence[Record], by: str) -> list[Mark]:
    """The test losses over `by`, and the least that is possible."""
    least = float(np.mean([record["metrics"]["loss_exact"] for record in records]))
    return [*_lines(grouped(records, by), "loss"), Rule(least, "exact p(y | z2)")]


def excess_lines(records: Sequence[Record], by: str) -> list[Mark]:
    """How far above the least possible loss both ways are, over `by`."""
    return _lines(grouped(records, by), "excess")


def spread(metrics: Sequence[dict[str, Any]], key: str) -> str:
    """The mean over seeds with its standard deviation, and the median, which one seed cannot move."""
    values = [one[key] for one in metrics]
    return f"{np.mean(values):.3g} ± {np.std(values):.2g} (median {np.median(values):.3g})"


def _charts(name: str, records: list[Record]) -> list[Chart]:
    points = grouped(records, "divergence")
    low, high = points[min(points)], points[max(points)]
    seen = " and ".join(
        f"{words} from {_median(low, method):.3g} to {_median(high, method):.3g}" for method, words in METHODS.items()
    )
    variance = [
        Line([*points], [some[0]["variance_exact"] for some in points.values()], "the paper's formula", markers=False),
        _line(points, "variance", "measured"),
    ]
    axis = "expected chi-square divergence of z1"
    return [
        Chart(
            f"Test loss: {name}",
            axis,
            "nats",
            loss_lines(records, "divergence"),
            "The paper: importance sampling's loss climbs with the divergence, the other stays. Median over seeds, "
            "with the smallest and the largest; z1 says nothing of y in the test rows.",
            x_scale="log",
            y_scale="log",
        ),
        Chart(
            f"Excess over p(y | z2): {name}",
            axis,
            "nats",
            excess_lines(records, "divergence"),
            f"The same losses above the least possible. Seen, by the median: {seen}. How far they part is the "
            "training's doing too: smaller batches and a higher rate make the weights' variance cost more.",
            x_scale="log",
            y_scale="log",
        ),
        Chart(
            f"Variance of the objective: {name}",
            axis,
            "variance of one row's term",
            variance,
            "The paper: it grows linearly with the divergence, also at the right classifier. A measured variance "
            "below the formula has missed the rare rows of large weight; one far above has met one.",
            x_scale="log",
            y_scale="log",
        ),
    ]


def _lines(points: dict[float, list[dict[str, Any]]], what: str) -> list[Mark]:
    return [_line(points, f"{method}_{what}", words) for method, words in METHODS.items()]


def _line(points: dict[float, list[dict[str, Any]]], key: str, name: str) -> Line:
    values = [[one[key] for one in some] for some in points.values()]
    middle = [float(np.median(some)) for some in values]
    return Line([*points], middle, name, low=[*map(min, values)], high=[*map(max, values)])


def _median(metrics: Sequence[dict[str, Any]], method: str) -> float:
    return float(np.median([one[f"{method}_excess"] for one in metrics]))
