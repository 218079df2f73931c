"""Table 4 of the paper: accuracy against fairness on Adult."""

from __future__ import annotations

from functools import partial

from setminus_paper.fairness.tables import JOB, METHODS, runs

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "plan"]

CLAIM = (
    "On Adult, with sex as the sensitive attribute, the orthogonal classifier is less unfair than the full one, and "
    "comparable with methods that are trained to be fair."
)
DEFAULT_SEEDS = 10
plan = partial(runs, "table4")
