"""The rows of a table of style transfer: of each method its scores over seeds, beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Cell", "Row", "Score", "by_method", "compared", "rows_of", "scores_of", "shown", "steps_of", "summary"]

Record = dict[str, Any]

PLAIN, ORTHOGONAL = "vanilla", "orthogonal_oracle"
ORDER = (PLAIN, "orthogonal_mldg", "orthogonal_trm", "orthogonal_fish", "importance_oracle", ORTHOGONAL)
"""The paper's; a file has records in the order in which they were measured."""


@dataclass(frozen=True)
class Score:
    """A column.

    Attributes
    ----------
    metric : str
        Its key in the metrics of a record.
    heading : str
    published : str, optional
        Its key among the paper's numbers.
    share : bool
        Whether it is a share, to be shown in percent.
    """

    metric: str
    heading: str
    published: str | None = None
    share: bool = True


SCORES = (
    Score("z1", "Z1 accuracy, oracle", "z1"),
    Score("z2", "Z2 accuracy, oracle", "z2"),
    Score("z1_measured", "Z1, measured"),
    Score("z2_measured", "Z2, measured"),
    Score("fid", "FID, lower is better", "fid", share=False),
)


@dataclass(frozen=True)
class Cell:
    """A score of a method: the mean over its seeds, their deviation where there are several, and the paper's."""

    score: Score
    value: float | None
    deviation: float | None
    paper: float | None


@dataclass(frozen=True)
class Row:
    """A method.

    Attributes
    ----------
    method, label : str
    records : list of dict
        One for each seed.
    cells : dict of str to Cell
        By metric, those that any record of the table has.
    """

    method: str
    label: str
    records: list[Record]
    cells: dict[str, Cell]

    @property
    def steps(self) -> list[int]:
        """How long its runs were trained; more than one number where they differ."""
        return steps_of(self.records)


def rows_of(records: Sequence[Record]) -> list[Row]:
    """One row for each method, in the paper's order.

    Parameters
    ----------
    records : sequence of dict
        All of one table.

    Returns
    -------
    list of Row
    """
    scores = scores_of(records)
    return [
        Row(method, own[0]["metrics"]["row"]["label"], own, {score.metric: _cell(score, own) for score in scores})
        for method, own in by_method(records).items()
    ]


def scores_of(records: Iterable[Record]) -> list[Score]:
    """The columns for which a record has a number."""
    known = {metric for record in records for metric in record["metrics"]}
    return [score for score in SCORES if score.metric in known]


def steps_of(records: Iterable[Record]) -> list[int]:
    """For how many steps the runs were trained, each number once, from the smallest on."""
    return sorted({record["config"]["translation"]["steps"] for record in records})


def by_method(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each method: the paper's in its order, others behind them as they came."""
    found: dict[str, list[Record]] = {method: [] for method in ORDER}
    for record in records:
        found.setdefault(record["config"]["method"], []).append(record)
    return {method: own for method, own in found.items() if own}


def shown(score: Score, value: float | None, deviation: float | None = None) -> str:
    """A number as the tables write it.

    Examples
    --------
    >>> shown(SCORES[0], 0.949, 0.0123), shown(SCORES[-1], 39.7), shown(SCORES[0], None)
    ('94.9 ± 1.2 %', '39.7', 'not measured')
    """
    if value is None:
        return "not measured"
    factor, unit = (100, " %") if score.share else (1, "")
    return f"{factor * value:.1f}{'' if deviation is None else f' ± {factor * deviation:.1f}'}{unit}"


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of each score of each method that the paper has, too: which, the paper's, ours."""
    told = []
    for row in rows_of(records):
        for cell in row.cells.values():
            if cell.score.published:
                name = "FID" if cell.score.metric == "fid" else f"{cell.score.metric.upper()} accuracy"
                paper = "" if cell.paper is None else shown(cell.score, cell.paper)
                told.append((f"{row.label}: {name}", paper, shown(cell.score, cell.value, cell.deviation)))
    return told


def compared(rows: Sequence[Row]) -> str:
    r"""How far ``w_x \ w_1 (Oracle)`` is above plain CycleGAN in both accuracies; nothing where one is missing."""
    found = {row.method: row for row in rows}
    if not {PLAIN, ORTHOGONAL} <= {*found}:
        return ""
    parts = []
    for metric in ("z1", "z2"):
        after, before = (found[method].cells[metric] for method in (ORTHOGONAL, PLAIN))
        paper = "" if after.paper is None or before.paper is None else f" (paper: {_points(after.paper, before.paper)})"
        parts.append(f"{metric.upper()} accuracy {_points(after.value or 0.0, before.value or 0.0)} points{paper}")
    return f"{found[ORTHOGONAL].label} against {found[PLAIN].label}: {', '.join(parts)}."


def _points(after: float, before: float) -> str:
    return f"{100 * (after - before):+.1f}"


def _cell(score: Score, own: Sequence[Record]) -> Cell:
    values = [one["metrics"][score.metric] for one in own if one["metrics"].get(score.metric) is not None]
    paper = own[0]["metrics"]["row"].get("paper", {})
    return Cell(
        score,
        float(np.mean(values)) if values else None,
        float(np.std(values, ddof=1)) if len(values) > 1 else None,
        paper.get(score.published) if score.published else None,
    )
