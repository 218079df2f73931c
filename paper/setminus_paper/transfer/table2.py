"""Table 2 of the paper: men without blond hair against women with it; the sex is to change, the hair to stay."""

from __future__ import annotations

from collections.abc import Sequence

from setminus_paper.run import Run
from setminus_paper.transfer.faces import FACE_ROWS, SIZES, runs
from setminus_paper.transfer.translation import JOB

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "plan"]

CLAIM = (
    "Plain CycleGAN turns dark-haired men into blond women. Against the orthogonal discriminator the sex changes and "
    "the hair keeps its color more often, at a comparable image quality."
)
DEFAULT_SEEDS = 1
METHODS = tuple(FACE_ROWS)


def plan(scale: str, seeds: tuple[int, ...], methods: Sequence[str] = METHODS) -> list[Run]:
    """One run for each row.

    Examples
    --------
    >>> [run.config["translation"]["steps"] >= 2_000 for run in plan("quick", (0,), ("vanilla", "orthogonal_trm"))]
    [True, False]
    """
    return runs("table2", SIZES[scale], scale, seeds, methods)
