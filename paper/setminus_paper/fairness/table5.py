"""Table 5 of the paper: accuracy against fairness on German credit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from setminus_paper.fairness.fairness_tables import AVAILABLE, JOB, runs
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "PAPER", "plan"]

CLAIM = (
    "On German credit, with age as the sensitive attribute, the orthogonal classifier is as fair as methods that are "
    "trained to be, and more accurate than LAFTR."
)
DEFAULT_SEEDS = 10
METHODS = AVAILABLE
_ORTHOGONAL = {"accuracy": 0.754, "dp_gap": 0.09, "eo_gap": 0.18}
PAPER: dict[str, dict[str, float]] = {
    "vanilla": {"accuracy": 0.760, "dp_gap": 0.19, "eo_gap": 0.33},
    "laftr_0.1": {"accuracy": 0.730, "dp_gap": 0.11, "eo_gap": 0.17},
    "laftr_0.5": {"accuracy": 0.727, "dp_gap": 0.11, "eo_gap": 0.19},
    "lmifr_0.05": {"accuracy": 0.756, "dp_gap": 0.08, "eo_gap": 0.18},
    "lmifr_0.1": {"accuracy": 0.758, "dp_gap": 0.10, "eo_gap": 0.21},
    "rebias_100": {"accuracy": 0.730, "dp_gap": 0.07, "eo_gap": 0.17},
    "rebias_50": {"accuracy": 0.750, "dp_gap": 0.10, "eo_gap": 0.20},
    "orthogonal": _ORTHOGONAL,
    "orthogonal_uniform": _ORTHOGONAL,
}
"""The paper's numbers by row. Its one row of w_x \\ w_1 stands beside both priors."""


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...], methods: Sequence[str] = METHODS) -> list[Run]:
    """One run for each row.

    Examples
    --------
    >>> [run.config for run in plan("quick", (0, 1), methods=("vanilla",))]
    [{'data': 'German', 'method': 'vanilla', 'encoding': 'onehot'}]
    """
    return runs("table5", seeds, methods, PAPER)
