"""Figure 2a: the test loss of importance sampling and of the formula as z1 predicts y better and better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from setminus.charts.chart import Chart, Line, Rule
from setminus_paper.claims.importance_against_formula import (
    DigitSize,
    Schedule,
    measure_digits,
    measure_gaussians,
)
from setminus_paper.claims.over_seeds import Records, Summary
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

CLAIM = (
    "The variance of the importance-sampling objective grows linearly with the chi-square divergence of z1, and its "
    "test loss climbs with it. The loss of the formula stays."
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
"""Larger batches at a lower rate: how much of the figure depends on the training."""
DIGIT_SIZE = {"quick": DigitSize(), "paper": DigitSize(pixels=28, width=64, test_rows=12_000)}
DIGIT_SEEDS = {"quick": 3, "paper": 10}


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run for each divergence, on Gaussians and on colored digits; the latter for the first few seeds."""
    gaussians = GAUSSIANS[scale]
    trainings = [
        *((strength, DIGITS[scale]) for strength in LAMBDAS),
        *((strength, GENTLE[scale]) for strength in GENTLE_LAMBDAS),
    ]
    return [
        *(gaussian_run("fig2a", scale, seeds, divergence, gaussians) for divergence in DIVERGENCES),
        *(digit_run("fig2a", scale, seeds, strength, digits) for strength, digits in trainings),
    ]


def gaussian_run(name: str, scale: Scale, seeds: tuple[int, ...], divergence: float, schedule: Schedule) -> Run:
    """One training schedule on Gaussians with a divergence of z1."""
    config = {"scale": scale, "data": "gaussians", "divergence": divergence, **asdict(schedule)}
    return Run(name, config, seeds, partial(measure_gaussians, divergence=divergence, schedule=schedule), "32-true")


def digit_run(name: str, scale: Scale, seeds: tuple[int, ...], strength: float, schedule: Schedule) -> Run:
    """One training schedule on colored digits, for the first few seeds; z1 depends on y by `strength`."""
    size = DIGIT_SIZE[scale]
    config = {"scale": scale, "data": "colored digits", "lambda_digit": strength, **asdict(schedule), **asdict(size)}
    measured = partial(measure_digits, lambda_digit=strength, schedule=schedule, size=size)
    return Run(name, config, seeds[: DIGIT_SEEDS[scale]], measured, "32-true")


WAYS = {"importance": "importance sampling", "orthogonal": "formula"}
EXPECTED = {"importance": "climbs", "orthogonal": "stays"}


def charts(records: Records) -> list[Chart]:
    """For each data set and training: test loss, its excess over the least possible, and the variance."""
    axis = "expected chi-square divergence of z1"
    found = []
    for name, some in by_training(records).items():
        points = by_value(some, "divergence")
        formula = [metrics[0]["variance_exact"] for metrics in points.values()]
        variance = [
            Line([*points], formula, "the paper's formula", markers=False),
            _line(points, "variance", "measured"),
        ]
        found += [
            *loss_charts(name, some, "divergence", axis),
            Chart(
                f"Variance of the objective: {name}",
                axis,
                "variance of one row's term",
                variance,
                "Claim: it grows linearly with the divergence. A measured variance below the formula missed the rare "
                "rows of large weight; one far above drew one of them.",
                x_scale="log",
                y_scale="log",
            ),
        ]
    return found


def summary(records: Records) -> Summary:
    """The excess at both ends of the sweep, and the variance at its upper end."""
    rows = []
    for name, some in by_training(records).items():
        points = by_value(some, "divergence")
        low, high = min(points), max(points)
        for way, words in WAYS.items():
            ends = "; ".join(spread(points[end], f"{way}_excess") for end in (low, high))
            rows.append((f"{name}, divergence {low:.3g}; {high:.3g}: {words}", EXPECTED[way], ends))
        exact = f"{points[high][0]['variance_exact']:.4g}"
        rows.append((f"{name}, divergence {high:.3g}: variance", exact, spread(points[high], "variance")))
    return rows


def by_training(records: Records) -> dict[str, list[dict[str, Any]]]:
    """Records by data set and batch size; by rate too, where several were trained on one sweep of the divergence."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        config = record["config"]
        name = f"{config['data']}, batch {config['batch']}"
        if record["name"] == "fig2a":
            name += f", rate {config['rate']:g}"
        found.setdefault(name, []).append(record)
    return found


def by_value(records: Records, key: str) -> dict[float, list[dict[str, Any]]]:
    """The metrics of all seeds at each value of the divergence, or of a setting of the run, in order."""
    found: dict[float, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault({**record["config"], **record["metrics"]}[key], []).append(record["metrics"])
    return dict(sorted(found.items()))


def loss_charts(name: str, records: Records, key: str, axis: str) -> list[Chart]:
    """The test losses over `key`, and how far they are above the least possible."""
    points = by_value(records, key)
    loss, excess = (
        [_line(points, f"{way}_{what}", words) for way, words in WAYS.items()] for what in ("loss", "excess")
    )
    least = Rule(float(np.mean([record["metrics"]["loss_exact"] for record in records])), "exact p(y | z2)")
    return [
        Chart(
            f"Test loss: {name}",
            axis,
            "nats",
            [*loss, least],
            "Claim: the loss of importance sampling climbs, the other stays. Medians over seeds, with the smallest and "
            "the largest; z1 is independent of y in the test rows.",
            x_scale="log",
            y_scale="log",
        ),
        Chart(
            f"Excess over p(y | z2): {name}",
            axis,
            "nats",
            excess,
            "The same losses minus the least possible. Smaller batches and a higher rate make the variance of the "
            "weights cost more; losses of many powers of ten are networks that diverged.",
            x_scale="log",
            y_scale="log",
        ),
    ]


def spread(metrics: Sequence[dict[str, Any]], key: str) -> str:
    """Mean and standard deviation over seeds, and the median, which one seed cannot move."""
    values = [one[key] for one in metrics]
    return f"{np.mean(values):.3g} ± {np.std(values):.2g} [{np.median(values):.3g}]"


def _line(points: dict[float, list[dict[str, Any]]], key: str, name: str) -> Line:
    values = [[one[key] for one in some] for some in points.values()]
    middle = [float(np.median(some)) for some in values]
    return Line([*points], middle, name, low=[*map(min, values)], high=[*map(max, values)])
