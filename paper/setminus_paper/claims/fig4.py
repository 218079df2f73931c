"""Figure 4: colored digits of both domains, and what each method of table 1 made of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from setminus_paper.claims.fig3 import CLAIM, DEFAULT_SEEDS, JOB, METHODS, RECORDS_OF, plan, summary
from setminus_paper.report.sample_grids import draw_grids, sample_grids

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "RECORDS_OF", "draw", "plan", "summary"]


def draw(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw the images of the last seed: figure 3 has those of the first."""
    draw_grids(sample_grids(records, seed="last"), path, scale=2)
