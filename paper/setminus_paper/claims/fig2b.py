"""Figure 2b: the test loss of importance sampling and of the formula as the learning rate grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

from setminus.report.charts.chart import Chart
from setminus_paper.claims.fig2a import (
    DIGIT_SEEDS,
    DIGIT_SIZE,
    DIGITS,
    GAUSSIANS,
    WAYS,
    by_data,
    excess_lines,
    grouped,
    loss_lines,
    spread,
)
from setminus_paper.claims.importance_against_formula import measure_digits, measure_gaussians
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

CLAIM = (
    "Where z1 says much about the label, the test loss of importance sampling climbs with the learning rate, because "
    "the variance of its gradients does more harm in larger steps; that of the full classifier minus the principal "
    "one stays where it is."
)
DEFAULT_SEEDS = 10
DIVERGENCE = 30.0
LAMBDA_DIGIT = 0.95
GAUSSIAN_RATES = (0.003, 0.01, 0.03, 0.1, 0.2)
DIGIT_RATES = (0.01, 0.03, 0.1, 0.2)


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...]) -> list[Run]:
    """One run for each learning rate, on Gaussians and on colored digits; the latter for the first few seeds.

    Examples
    --------
    >>> runs = plan("quick", (0, 1, 2, 3))
    >>> [run.config["rate"] for run in runs if run.config["data"] == "gaussians"]
    [0.003, 0.01, 0.03, 0.1, 0.2]
    """
    gaussians = [replace(GAUSSIANS[scale], rate=rate) for rate in GAUSSIAN_RATES]
    digits = [replace(DIGITS[scale], rate=rate) for rate in DIGIT_RATES]
    size = DIGIT_SIZE[scale]
    about_digits = {"scale": scale, "data": "colored digits", "lambda_digit": LAMBDA_DIGIT}
    return [
        *(
            Run(
                "fig2b",
                {"scale": scale, "data": "gaussians", "divergence": DIVERGENCE, **asdict(schedule)},
                seeds,
                partial(measure_gaussians, divergence=DIVERGENCE, schedule=schedule),
            )
            for schedule in gaussians
        ),
        *(
            Run(
                "fig2b",
                {**about_digits, **asdict(schedule), **asdict(size)},
                seeds[: DIGIT_SEEDS[scale]],
                partial(measure_digits, lambda_digit=LAMBDA_DIGIT, schedule=schedule, size=size),
            )
            for schedule in digits
        ),
    ]


Record = dict[str, Any]
PER_ROW = 2


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
        for method, words in WAYS.items()
        for rate, metrics in grouped(some, "rate").items()
    ]
