"""Table 2 of the paper: men without blond hair against women with it; the sex is to change, the hair to stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from setminus_paper.data.celeba import CELEBA_GH
from setminus_paper.run import Run
from setminus_paper.transfer import face_tables
from setminus_paper.transfer.face_tables import SIZES, FaceTable
from setminus_paper.transfer.style_transfer_tables import JOB, ROWS

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "PAPER", "plan"]

CLAIM = (
    "Plain CycleGAN turns dark-haired men into blond women. Against the orthogonal discriminator the sex changes and "
    "the hair keeps its color more often, at a comparable image quality."
)
DEFAULT_SEEDS = 1
METHODS = tuple(ROWS)
PAPER: dict[str, dict[str, float]] = {
    "vanilla": {"z1": 0.884, "z2": 0.168, "fid": 38.5},
    "orthogonal_mldg": {"z1": 0.909, "z2": 0.530, "fid": 46.2},
    "orthogonal_trm": {"z1": 0.922, "z2": 0.565, "fid": 39.8},
    "orthogonal_fish": {"z1": 0.888, "z2": 0.429, "fid": 43.4},
    "importance_oracle": {"z1": 0.891, "z2": 0.406, "fid": 44.3},
    "orthogonal_oracle": {"z1": 0.937, "z2": 0.574, "fid": 39.7},
}
"""The paper's accuracies, as shares, and its FID by Inception."""


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...], methods: Sequence[str] = METHODS) -> list[Run]:
    """One run for each row.

    Examples
    --------
    >>> [run.config["translation"]["steps"] >= 2_000 for run in plan("quick", (0,), ("vanilla", "orthogonal_trm"))]
    [True, False]
    """
    return face_tables.plan(FaceTable("table2", CELEBA_GH, PAPER), SIZES[scale], scale, seeds, methods)
