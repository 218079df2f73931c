"""One part of a file, scored: the same in every engine."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.errors import UserError
from setminus.tables.drift import ColumnDrift, Drift
from setminus.tables.errors import TableError
from setminus.tables.reading import Table
from setminus.tables.values import coded_text

__all__ = ["Parts", "Scorer", "score_column", "score_rows"]

Parts = Generator[tuple[pa.Table, pa.Table, Drift]]
"""The rows to keep, their scores and their drift, part by part in the order of the file."""


class Scorer(Protocol):
    """Scores the rows of a file; goes to worker processes, so it holds settings and no data.

    It is given the columns that it needs; text in them is dictionary-encoded, without spaces around it.
    """

    def columns(self, table: Table) -> list[str]:
        """The columns that `score` needs; raises where the table cannot be scored."""
        ...

    def score(self, rows: pa.Table) -> pa.Table:
        """One or more columns of scores, a row for each row."""
        ...

    def drift(self, rows: pa.Table) -> dict[str, ColumnDrift]:
        """How the rows differ from those of training, by column; empty where that is not known."""
        ...


def score_rows(scorer: Scorer, rows: pa.Table, start: int, where: str) -> tuple[pa.Table, Drift]:
    """The scores and the drift of one part; a value that is refused is named by the range of rows it is in.

    Parameters
    ----------
    scorer : Scorer
    rows : pyarrow.Table
    start : int
        The position of the first of them in the file.
    where : str
        What to call the file in an error.
    """
    try:
        rows = coded_text(rows)
        drift = scorer.drift(rows)
        scores = scorer.score(rows)
    except ValueError as error:
        said = TableError.of(error)
        place = f"in rows {start + 1:,} to {start + rows.num_rows:,} of {where}"
        raise TableError(f"{place}, {said.problem}", said.advice) from error
    if scores.num_rows != rows.num_rows:
        raise UserError(f"the scorer gave {scores.num_rows} scores for {rows.num_rows} rows", expected="one for each")
    return scores, drift


def score_column(scores: NDArray[np.float64], k: int) -> pa.Array:
    """One column of an array of scores, laid out as arrow wants it.

    Examples
    --------
    >>> score_column(np.array([[0.25, 0.75]]), 1).to_pylist()
    [0.75]
    """
    return pa.array(np.ascontiguousarray(scores[:, k]))
