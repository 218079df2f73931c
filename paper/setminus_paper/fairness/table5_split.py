"""Table 5 of the paper on the one split of its public code: the first 800 of 900 rows train, 100 test."""

from __future__ import annotations

from functools import partial

from setminus_paper.fairness.table5 import CLAIM
from setminus_paper.fairness.tables import JOB, METHODS, runs

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "plan"]

DEFAULT_SEEDS = 10
plan = partial(runs, "table5_split")
