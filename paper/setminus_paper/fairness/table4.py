"""Table 4 of the paper: accuracy against fairness on Adult."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from setminus_paper.fairness.fairness_tables import AVAILABLE, JOB, runs
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "PAPER", "plan"]

CLAIM = (
    "On Adult, with sex as the sensitive attribute, the orthogonal classifier is less unfair than the full one, and "
    "comparable with methods that are trained to be fair."
)
DEFAULT_SEEDS = 10
METHODS = AVAILABLE
_ORTHOGONAL = {"accuracy": 0.816, "dp_gap": 0.12, "eo_gap": 0.12}
PAPER: dict[str, dict[str, float]] = {
    "vanilla": {"accuracy": 0.845, "dp_gap": 0.19, "eo_gap": 0.20},
    "laftr_0.1": {"accuracy": 0.842, "dp_gap": 0.14, "eo_gap": 0.09},
    "laftr_0.5": {"accuracy": 0.840, "dp_gap": 0.12, "eo_gap": 0.07},
    "lmifr_0.05": {"accuracy": 0.816, "dp_gap": 0.04, "eo_gap": 0.15},
    "lmifr_0.1": {"accuracy": 0.820, "dp_gap": 0.06, "eo_gap": 0.16},
    "rebias_100": {"accuracy": 0.843, "dp_gap": 0.15, "eo_gap": 0.11},
    "rebias_50": {"accuracy": 0.844, "dp_gap": 0.17, "eo_gap": 0.16},
    "orthogonal": _ORTHOGONAL,
    "orthogonal_uniform": _ORTHOGONAL,
}
"""The paper's numbers by row. Its one row of w_x \\ w_1 stands beside both priors."""


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...], methods: Sequence[str] = METHODS) -> list[Run]:
    """One run for each row.

    Examples
    --------
    >>> [run.config["method"] for run in plan("quick", (0, 1), methods=("rebias_50", "vanilla"))]
    ['vanilla', 'rebias_50']
    """
    return runs("table4", seeds, methods, PAPER)
