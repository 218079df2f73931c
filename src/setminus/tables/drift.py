"""Values of new rows that the training rows did not have, counted by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setminus.tables.columns import FLAGS, distinct_words
from setminus.tables.encoding import NUMBERS, level_words

__all__ = ["ColumnDrift", "Drift", "column_drift", "drift_text", "merge_drift", "unranged_text", "unseen_fraction"]

MORE_MISSING = 0.05
"""How much larger the fraction of rows without a value may be than in training, where some had none there too."""

MAX_NAMED = 4
"""Columns that a message names."""


@dataclass(frozen=True)
class ColumnDrift:
    """How the new rows of one column differ from the training rows.

    Parameters
    ----------
    rows : int
        New rows.
    outside : int
        Rows with a value that training did not have: another level, another word than yes or no, a number further
        from the range of training than that range is wide, or a value of another kind.
    missing : int
        Rows without a value.
    expected_missing : float
        Rows that would have no value if the fraction were that of training.
    example : str
        One of the values outside, empty where there is none.
    ranged : bool
        False for a number of a model that was saved without the range of training: only its kind is checked.
    """

    rows: int
    outside: int
    missing: int
    expected_missing: float
    example: str = ""
    ranged: bool = True

    def __add__(self, other: ColumnDrift) -> ColumnDrift:
        return ColumnDrift(
            self.rows + other.rows,
            self.outside + other.outside,
            self.missing + other.missing,
            self.expected_missing + other.expected_missing,
            self.example or other.example,
            self.ranged and other.ranged,
        )

    @property
    def fraction(self) -> float:
        """The fraction of rows outside, and of those without a value beyond the fraction of training."""
        return (self.outside + max(self.missing - self.expected_missing, 0.0)) / self.rows

    @property
    def unseen(self) -> int:
        """The rows to warn of: those outside, and those without a value where training had none or clearly fewer."""
        # a fraction that was not 0 is another one in every sample
        allowed = self.expected_missing + MORE_MISSING * self.rows if self.expected_missing else 0
        return self.outside + (round(self.missing - self.expected_missing) if self.missing > allowed else 0)


Drift = Mapping[str, ColumnDrift]
"""The drift of each column by name."""


def column_drift(table: pa.Table, columns: Sequence[dict[str, Any]]) -> dict[str, ColumnDrift]:
    """Compare the rows of a table with what an encoder learned of its `columns`, ``TableEncoder.columns_``.

    The table has at least one row. Columns that it lacks are skipped. `merge_drift` adds up parts of a table.

    Examples
    --------
    >>> from setminus.tables.encoding import TableEncoder
    >>> old, new = pa.table({"age": [20, 30, 40], "sex": list("fmf")}), pa.table({"age": [25, 35], "sex": ["f", "x"]})
    >>> found = column_drift(new, TableEncoder().fit(old).columns_)
    >>> found["age"].unseen, found["sex"].unseen, found["sex"].example
    (0, 1, 'x')
    """
    present = set(table.column_names)
    known = [column for column in columns if column["name"] in present]
    return {column["name"]: _drift(column, table.column(column["name"])) for column in known}


def merge_drift(first: Drift, second: Drift) -> dict[str, ColumnDrift]:
    """The drift of two parts of a table together."""
    return {name: first[name] + part if name in first else part for name, part in second.items()}


def unseen_fraction(table: pa.Table, columns: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The fraction of rows, by column, outside the range or levels of training, or missing more often than there.

    Examples
    --------
    >>> from setminus.tables.encoding import TableEncoder
    >>> old, new = pa.table({"age": [20, 30, 40], "sex": list("fmf")}), pa.table({"age": [25, 35], "sex": ["f", "x"]})
    >>> unseen_fraction(new, TableEncoder().fit(old).columns_)
    {'age': 0.0, 'sex': 0.5}
    """
    return {name: found.fraction for name, found in column_drift(table, columns).items()}


def drift_text(drift: Drift) -> str:
    """The columns with unseen values as a clause, those with the most rows first; empty where there are none.

    Examples
    --------
    >>> drift_text({"job": ColumnDrift(rows=10, outside=3, missing=0, expected_missing=0.0, example="cook")})
    "job in 3 of 10 rows (such as 'cook')"
    """
    found = sorted(((name, part) for name, part in drift.items() if part.unseen), key=lambda item: -item[1].unseen)
    named = [
        f"{name} in {part.unseen:,} of {part.rows:,} rows "
        + (f"(such as {part.example!r})" if part.example else "(no value)")
        for name, part in found
    ]
    return _first_few(named)


def unranged_text(drift: Drift) -> str:
    """The numbers that could not be compared with training as a clause; empty where there are none."""
    return _first_few([name for name, part in drift.items() if not part.ranged])


def _first_few(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _drift(column: dict[str, Any], values: pa.ChunkedArray) -> ColumnDrift:
    by_words = column["kind"] in ("category", "yes/no")
    outside, missing, example = _words_outside(column, values) if by_words else _numbers_outside(column, values)
    n = len(values)
    return ColumnDrift(n, outside, missing, column["missing"] * n, example, by_words or "low" in column)


def _words_outside(column: dict[str, Any], values: pa.ChunkedArray) -> tuple[int, int, str]:
    words, places = distinct_words(values)
    if column["kind"] == "category":
        known = pc.is_in(words, value_set=level_words(column))
    else:
        known = pc.is_in(pc.utf8_lower(words), value_set=pa.array(list(FLAGS)))
    counts = np.bincount(places, minlength=len(words))
    absent = pc.is_null(words).to_numpy()
    unseen = np.flatnonzero(~known.to_numpy() & ~absent & (counts > 0))
    example = words[int(unseen[0])].as_py() if len(unseen) else ""
    return int(counts[unseen].sum()), int(counts[absent].sum()), example


def _numbers_outside(column: dict[str, Any], values: pa.ChunkedArray) -> tuple[int, int, str]:
    if _another_kind(column, values.type):
        return len(values) - values.null_count, values.null_count, str(values.type)
    numbers = NUMBERS[column["kind"]](values, column["name"])
    outside = np.zeros(len(numbers), dtype=bool)
    if "low" in column:
        width = column["high"] - column["low"]
        outside = (numbers < column["low"] - width) | (numbers > column["high"] + width)
    example = str(values[int(outside.argmax())].as_py()) if outside.any() else ""
    return int(outside.sum()), int(np.isnan(numbers).sum()), example


def _another_kind(column: dict[str, Any], kind: pa.DataType) -> bool:
    """Whether values can be read as numbers but mean something else: truth values, or times of day for dates."""
    if column["kind"] == "number":
        return bool(pa.types.is_boolean(kind) and not 0 <= column.get("low", 0) <= column.get("high", 1) <= 1)
    return bool(pa.types.is_temporal(kind) and pa.types.is_time(kind) != column.get("clock", pa.types.is_time(kind)))
