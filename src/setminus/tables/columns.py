"""What each column of a table is, and what will be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from setminus.tables.values import FLAGS, is_text, plain, to_text

__all__ = ["KEPT", "ColumnKind", "ColumnSummary", "describe"]

ColumnKind = Literal["number", "category", "yes/no", "date", "identifier", "constant", "other"]

KEPT: tuple[ColumnKind, ...] = ("number", "category", "yes/no", "date")
"""Kinds that models are given; columns of the others are left out."""

MOST_LEVELS = 200
"""Values of a category; gradient boosting can tell 255 apart, and one with more is seldom a category."""

FEW_LEVELS = 20
"""Values that a category may have however few rows there are."""

MUCH_MISSING = 0.4


@dataclass(frozen=True)
class ColumnSummary:
    """One column: what it is, and what is done with it.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "yes/no", "date", "identifier", "constant", "other"}
    missing : float
        Share of the rows without a value.
    distinct : int
        Different values, the missing one not counted.
    use : str
        What is done with it, in words.
    warning : str or None
        What to look at.
    """

    name: str
    kind: ColumnKind
    missing: float
    distinct: int
    use: str
    warning: str | None = None

    @property
    def kept(self) -> bool:
        """Whether models are given this column."""
        return self.kind in KEPT


def describe(table: pa.Table) -> list[ColumnSummary]:
    """Work out what each column of a table is.

    Numbers, dates and truth values go by their type. Words are a category unless they have more than 200 values, or
    more than 20 and a new one in every other row: then they name rows, as whole numbers do that count them. A
    column with one value, and one of a type that no model takes, is left out too.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    list of ColumnSummary
        In the order of the columns.

    Examples
    --------
    >>> people = pa.table({"age": [39, None, 28], "sex": ["m", "f", "f"], "from": ["earth"] * 3})
    >>> for column in describe(people):
    ...     print(column.name, "|", column.kind, "|", column.use)
    age | number | as a number; missing is told apart
    sex | category | one of 2 levels
    from | constant | left out: it has one value only
    """
    return [_summary(name, table.column(position)) for position, name in enumerate(table.column_names)]


def _summary(name: str, column: pa.ChunkedArray) -> ColumnSummary:
    if _nested(column.type):
        share = column.null_count / max(1, len(column))
        return ColumnSummary(name, "other", share, 0, f"left out: no model takes {column.type}")
    values = plain(column)
    missing = values.null_count
    share = missing / max(1, len(values))
    distinct = pc.count_distinct(values, mode="only_valid").as_py() if missing < len(values) else 0
    kind = _kind(values, distinct, missing)
    warning = None
    if share > MUCH_MISSING and kind in KEPT:
        warning = f"{share:.0%} of its values are missing"
    return ColumnSummary(name, kind, share, distinct, _use(kind, distinct, missing), warning)


def _kind(values: pa.ChunkedArray, distinct: int, missing: int) -> ColumnKind:
    kind, present = values.type, len(values) - missing
    # one value beside missing ones still tells two sorts of rows apart
    if distinct == 0 or (distinct == 1 and missing == 0):
        return "constant"
    if distinct == 2 and (is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
        words = {word.lower() for word in pc.unique(to_text(values)).to_pylist() if word is not None}
        if words <= set(FLAGS) and {FLAGS[word] for word in words} == {0, 1}:
            return "yes/no"
    if is_text(kind) or pa.types.is_boolean(kind):
        names_rows = distinct > MOST_LEVELS or (distinct > FEW_LEVELS and 2 * distinct > present)
        return "identifier" if names_rows else "category"
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return "date"
    if pa.types.is_integer(kind) and distinct == present > FEW_LEVELS:
        ends = pc.min_max(values).as_py()
        # with gaps, since rows that count up may have been dropped or held out
        if ends["max"] - ends["min"] < 1.5 * present:
            return "identifier"
    return "number"


def _nested(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _nested(kind.value_type)
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    simple = pa.types.is_boolean(kind) or pa.types.is_null(kind) or is_text(kind)
    moment = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind)
    return not (plain or simple or moment or pa.types.is_duration(kind))


def _use(kind: ColumnKind, distinct: int, missing: int) -> str:
    match kind:
        case "number":
            use = "as a number"
        case "date":
            use = "as a number of days"
        case "yes/no":
            use = "as 1 and 0"
        case "category":
            use = f"one of {distinct} levels"
        case "identifier":
            return f"left out: its {distinct} values name rows rather than describe them"
        case "constant":
            return "left out: it has no values" if distinct == 0 else "left out: it has one value only"
        case "other":
            return "left out"
    if not missing:
        return use
    return use + (", missing is one more" if kind == "category" else "; missing is told apart")
