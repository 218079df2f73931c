"""Table 6 of the paper: all men against all women; the sex is to change, the hair to stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from setminus_paper.data.celeba import CELEBA
from setminus_paper.run import Run
from setminus_paper.transfer import face_tables
from setminus_paper.transfer.face_tables import SIZES, FaceTable
from setminus_paper.transfer.style_transfer_tables import JOB, ROWS

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "PAPER", "plan"]

CLAIM = (
    "Where the domains are all men and all women, the hair's color still goes along with the sex: against the "
    "orthogonal discriminator it stays more often than with plain CycleGAN."
)
DEFAULT_SEEDS = 1
METHODS = tuple(ROWS)
PAPER: dict[str, dict[str, float]] = {
    "vanilla": {"z1": 0.753, "z2": 0.870, "fid": 36.2},
    "orthogonal_mldg": {"z1": 0.818, "z2": 0.935, "fid": 35.2},
    "orthogonal_trm": {"z1": 0.763, "z2": 0.925, "fid": 33.5},
    "orthogonal_fish": {"z1": 0.742, "z2": 0.933, "fid": 33.1},
    "importance_oracle": {"z1": 0.733, "z2": 0.881, "fid": 36.5},
    "orthogonal_oracle": {"z1": 0.840, "z2": 0.952, "fid": 38.5},
}
"""The paper's accuracies, as shares, and its FID by Inception."""
QUICK_STEPS = 800
"""Of every row: the table has the same networks as table 2, and shorter runs."""


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...], methods: Sequence[str] = METHODS) -> list[Run]:
    """One run for each row.

    Examples
    --------
    >>> [run.config["method"] for run in plan("quick", (0,), ("vanilla", "orthogonal_oracle"))]
    ['vanilla', 'orthogonal_oracle']
    """
    size = SIZES[scale]
    if scale == "quick":
        size = replace(size, translation=replace(size.translation, steps=QUICK_STEPS), short_steps=None)
    return face_tables.plan(FaceTable("table6", CELEBA, PAPER), size, scale, seeds, methods)
