"""Table 6 of the paper: all men against all women; the sex is to change, the hair to stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setminus_paper.run import Run
from setminus_paper.transfer.faces import FACE_ROWS, SIZES, runs
from setminus_paper.transfer.translation import JOB

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "plan"]

CLAIM = (
    "Where the domains are all men and all women, the hair's color still goes along with the sex: against the "
    "orthogonal discriminator it stays more often than with plain CycleGAN."
)
DEFAULT_SEEDS = 1
METHODS = tuple(FACE_ROWS)
QUICK_STEPS = 800
"""Steps of every row: the networks are those of table 2, the runs are shorter."""


def plan(scale: str, seeds: tuple[int, ...], methods: Sequence[str] = METHODS) -> list[Run]:
    """One run for each row.

    Examples
    --------
    >>> [run.config["method"] for run in plan("quick", (0,), ("vanilla", "orthogonal_oracle"))]
    ['vanilla', 'orthogonal_oracle']
    """
    size = SIZES[scale]
    if scale == "quick":
        size = replace(size, translation=replace(size.translation, steps=QUICK_STEPS), short_steps=None)
    return runs("table6", size, scale, seeds, methods)
