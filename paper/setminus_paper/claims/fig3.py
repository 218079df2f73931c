"""Figure 3: colored digits of domain A, and what each method of table 1 made of them.

The records are those of table 1, which hold the images: nothing is trained that the table has already.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from setminus_paper.report.sample_grids import draw_grids, sample_grids
from setminus_paper.report.style_transfer import summary
from setminus_paper.transfer.table1 import CLAIM, JOB, METHODS, plan

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "RECORDS_OF", "draw", "plan", "summary"]

DEFAULT_SEEDS = 1
RECORDS_OF = "table1"


def draw(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw the images of the first seed."""
    draw_grids(sample_grids(records, seed="first")[:1], path)
