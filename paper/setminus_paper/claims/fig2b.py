"""Figure 2b: the test loss of importance sampling and of the formula as the learning rate grows."""

from __future__ import annotations

from dataclasses import replace

from setminus.charts.chart import Chart
from setminus_paper.claims.fig2a import (
    DIGITS,
    EXPECTED,
    GAUSSIANS,
    WAYS,
    by_training,
    by_value,
    digit_run,
    gaussian_run,
    loss_charts,
    spread,
)
from setminus_paper.claims.over_seeds import Records, Summary
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

CLAIM = (
    "Where z1 predicts much of the label, the test loss of importance sampling climbs with the learning rate. The "
    "loss of the formula stays."
)
DEFAULT_SEEDS = 10
DIVERGENCE = 30.0
LAMBDA_DIGIT = 0.95
GAUSSIAN_RATES = (0.003, 0.01, 0.03, 0.1, 0.2)
DIGIT_RATES = (0.01, 0.03, 0.1, 0.2)


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run for each learning rate, on Gaussians and on colored digits; the latter for the first few seeds."""
    gaussians = [replace(GAUSSIANS[scale], rate=rate) for rate in GAUSSIAN_RATES]
    digits = [replace(DIGITS[scale], rate=rate) for rate in DIGIT_RATES]
    return [
        *(gaussian_run("fig2b", scale, seeds, DIVERGENCE, schedule) for schedule in gaussians),
        *(digit_run("fig2b", scale, seeds, LAMBDA_DIGIT, schedule) for schedule in digits),
    ]


PER_ROW = 2


def charts(records: Records) -> list[Chart]:
    """For each data set: test loss, and its excess over the least possible."""
    grouped = by_training(records).items()
    return [chart for name, some in grouped for chart in loss_charts(name, some, "rate", "learning rate")]


def summary(records: Records) -> Summary:
    """The excess at each rate."""
    return [
        (f"{name}, rate {rate:g}, {words}", EXPECTED[way], spread(metrics, f"{way}_excess"))
        for name, some in by_training(records).items()
        for way, words in WAYS.items()
        for rate, metrics in by_value(some, "rate").items()
    ]
