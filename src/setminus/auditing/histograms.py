"""Where each group's scores lie among the rows of one label: equalized odds asks for equal curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.inputs import Scored

__all__ = ["ScoreHistogram", "score_histograms"]


@dataclass(frozen=True)
class ScoreHistogram:
    """Share of a group's rows of one label in each score bin.

    The score is P(second class) for two classes, and the probability of the row's own label for more.
    """

    group: Any
    label: Any
    edges: NDArray[np.float64]
    share: NDArray[np.float64]


def score_histograms(rows: Scored, *, n_bins: int = 50) -> tuple[ScoreHistogram, ...]:
    """Histograms by group and label; a cell without rows has none.

    Parameters
    ----------
    rows : Scored
    n_bins : int

    Returns
    -------
    tuple of ScoreHistogram

    Examples
    --------
    >>> from setminus.auditing.inputs import read_scored
    >>> rows = read_scored([0, 1, 1], [0.1, 0.2, 0.9], ["f", "m", "m"])
    >>> score_histograms(rows, n_bins=2)[1].share.tolist()
    [0.5, 0.5]
    """
    edges = np.linspace(0, 1, n_bins + 1)
    histograms = []
    for c, label in enumerate(rows.classes):
        score = rows.proba[:, 1 if len(rows.classes) == 2 else c]
        for g, group in enumerate(rows.groups):
            held = (rows.y == c) & (rows.group == g)
            weight = None if rows.weight is None else rows.weight[held]
            # a probability may leave [0, 1] by a rounding error
            counts = np.histogram(np.clip(score[held], 0, 1), bins=edges, weights=weight)[0]
            if counts.sum() > 0:
                histograms.append(ScoreHistogram(group, label, edges, counts / counts.sum()))
    return tuple(histograms)
