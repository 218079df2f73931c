"""Figure 2a: the test loss of importance sampling and of the formula as z1 says more and more about y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import numpy as np

from setminus.report.charts.chart import Chart, Line, Mark, Rule
from setminus_paper.claims.importance_against_formula import (
    DigitSize,
    Schedule,
    measure_digits,
    measure_gaussians,
)
from setminus_paper.run import Run

__all__ = [
    "CLAIM",
    "DEFAULT_SEEDS",
    "WAYS",
    "by_data",
    "charts",
    "excess_lines",
    "grouped",
    "loss_lines",
    "plan",
    "spread",
    "summary",
]

CLAIM = (
    "The variance of the importance-sampling objective grows linearly with the expected chi-square divergence between "
    "the marginal of z1 and what z1 is given the label, and its test loss climbs with it; that of the full classifier "
    "minus the principal one stays where it is."
)
DEFAULT_SEEDS = 10
DIVERGENCES = (0.03, 0.1, 0.5, 2.0, 10.0, 50.0, 300.0)
GAUSSIANS = {
    "quick": Schedule(rows=2000, steps=1000, batch=64, rate=0.03),
    "paper": Schedule(rows=10_000, steps=5000, batch=64, rate=0.03),
}
LAMBDAS = (0.5, 0.8, 0.9, 0.95)
DIGITS = {
    "quick": Schedule(rows=4000, steps=500, batch=32, rate=0.1),
    "paper": Schedule(rows=48_000, steps=2000, batch=128, rate=0.1),
}
GENTLE_LAMBDAS = (0.5, 0.95)
GENTLE = {
    "quick": Schedule(rows=4000, steps=300, batch=128, rate=0.03),
    "paper": Schedule(rows=48_000, steps=2000, batch=512, rate=0.03),
}
"""Larger batches at a lower rate: how much of the figure is the training's doing."""
DIGIT_SIZE = {"quick": DigitSize(), "paper": DigitSize(pixels=28, width=64, test_rows=12_000)}
DIGIT_SEEDS = {"quick": 3, "paper": 10}


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...]) -> list[Run]:
    """One run for each divergence, on Gaussians and on colored digits; the latter for the first few seeds.

    Examples
    --------
    >>> runs = plan("quick", (0, 1, 2, 3))
    >>> runs[0].config["data"], runs[0].config["divergence"], runs[-1].config["data"], runs[-1].seeds
    ('gaussians', 0.03, 'colored digits', (0, 1, 2))
    """
    gaussians, size = GAUSSIANS[scale], DIGIT_SIZE[scale]
    trainings = [
        *((strength, DIGITS[scale]) for strength in LAMBDAS),
        *((strength, GENTLE[scale]) for strength in GENTLE_LAMBDAS),
    ]
    return [
        *(
            Run(
                "fig2a",
                {"scale": scale, "data": "gaussians", "divergence": divergence, **asdict(gaussians)},
                seeds,
                partial(measure_gaussians, divergence=divergence, schedule=gaussians),
            )
            for divergence in DIVERGENCES
        ),
        *(
            Run(
                "fig2a",
                {"scale": scale, "data": "colored digits", "lambda_digit": strength, **asdict(digits), **asdict(size)},
                seeds[: DIGIT_SEEDS[scale]],
                partial(measure_digits, lambda_digit=strength, schedule=digits, size=size),
            )
            for strength, digits in trainings
        ),
    ]


Record = dict[str, Any]
WAYS = {"importance": "importance sampling", "orthogonal": "full minus principal"}


def charts(records: Sequence[Record]) -> list[Chart]:
    """For each data set and training: test loss, its excess over the least possible, and the variance."""
    return [chart for name, some in by_data(records).items() for chart in _charts(name, some)]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, the paper, measured): the excess at both ends of the sweep, and the variance at its end."""
    rows = []
    for name, some in by_data(records).items():
        points = grouped(some, "divergence")
        low, high = points[min(points)], points[max(points)]
        for method, words in WAYS.items():
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
        f"{words} from {_median(low, method):.3g} to {_median(high, method):.3g}" for method, words in WAYS.items()
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
    return [_line(points, f"{method}_{what}", words) for method, words in WAYS.items()]


def _line(points: dict[float, list[dict[str, Any]]], key: str, name: str) -> Line:
    values = [[one[key] for one in some] for some in points.values()]
    middle = [float(np.median(some)) for some in values]
    return Line([*points], middle, name, low=[*map(min, values)], high=[*map(max, values)])


def _median(metrics: Sequence[dict[str, Any]], method: str) -> float:
    return float(np.median([one[f"{method}_excess"] for one in metrics]))
