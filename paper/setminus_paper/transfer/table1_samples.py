"""Figures 3 and 4 of the paper: images that the rows of table 1 translated, which the records of table 1 hold.

Nothing is trained for a figure that the table has already. One seed is enough for either.
"""

from __future__ import annotations

from setminus_paper.transfer.table1 import CLAIM, JOB, METHODS, plan

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "RECORDS_OF", "plan"]

DEFAULT_SEEDS = 1
RECORDS_OF = "table1"
