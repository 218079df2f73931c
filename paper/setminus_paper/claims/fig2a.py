"""Figure 2a: the test loss of importance sampling and of the formula as z1 says more and more about y."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Literal

from setminus_paper.claims.importance_against_formula import (
    DigitSize,
    Schedule,
    measure_digits,
    measure_gaussians,
)
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "plan"]

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
