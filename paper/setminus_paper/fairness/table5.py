"""Table 5 of the paper: accuracy against fairness on German credit."""

from __future__ import annotations

from functools import partial

from setminus_paper.fairness.tables import JOB, METHODS, runs

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "plan"]

CLAIM = (
    "On German credit, with age as the sensitive attribute, the orthogonal classifier is as fair as methods that are "
    "trained to be, and more accurate than LAFTR."
)
DEFAULT_SEEDS = 10
plan = partial(runs, "table5")
