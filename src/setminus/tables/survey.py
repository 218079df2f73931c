"""What all rows of a text table say, block by block: types, the decimal sign, and whether the first line is a row."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from setminus.tables.errors import TableError, shown
from setminus.tables.numerals import DecimalSign, Numerals, other_sign, ungrouped
from setminus.tables.sniffing import Below, Layout, first_is_data

__all__ = ["Findings", "Survey", "conformed"]


@dataclass(frozen=True)
class Findings:
    """What a survey of all rows found.

    Attributes
    ----------
    schema : pyarrow.Schema
        The narrowest types that hold for every row.
    grouped : frozenset of str
        The columns of numbers whose text has groups of thousands.
    starts, offsets : tuple of int
        The first row and the first byte of each block, and those behind the last.
    decimal : DecimalSign
    notes : tuple of str
        What the reader of the table should know of.
    """

    schema: Any
    grouped: frozenset[str]
    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    decimal: DecimalSign
    notes: tuple[str, ...]


@dataclass
class _Column:
    """One column as far as it has been seen."""

    numerals: Numerals
    # the cell of the first line above it, and what the first rows hold; None where nobody asks what it is
    cell: str | None = None
    in_rows: bool = False
    recurs: bool = False
    repeats: bool = False
    kinds: set[Any] = field(default_factory=set)

    def add(self, values: pa.ChunkedArray, first_row: int) -> None:
        present = len(values) - values.null_count
        if pa.types.is_null(values.type) or not present:
            return
        self.kinds.add(values.type)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            self.numerals.add_numbers(values)
            return
        if not pa.types.is_string(values.type):
            self.numerals.others += present
            return
        self.numerals.add(values, first_row)
        if self.cell is not None:
            # not in the first line itself, where that was taken for a row
            again = values.slice(1) if first_row == 0 and self.in_rows else values
            self.recurs = self.recurs or bool(pc.any(pc.equal(again, self.cell)).as_py())
            # within a block: to remember all values would take the memory of the table
            self.repeats = self.repeats or pc.count_distinct(values, mode="only_valid").as_py() < present

    @property
    def kind(self) -> Any:
        """The narrowest type that holds for every block."""
        return pa.float64() if self.grouped else _joined(self.kinds)

    @property
    def grouped(self) -> bool:
        """Whether every value is a number, and some have groups of thousands."""
        return self.numerals.grouped is not None and not self.numerals.contraries and not self.numerals.others

    @property
    def below(self) -> Below:
        numeric = bool(self.kinds) and not self.numerals.others
        return Below(present=bool(self.kinds), numeric=numeric, recurs=self.recurs, repeats=self.repeats)


class Survey:
    """Takes the blocks of a text table as they were parsed, and says what all of them together show.

    Parameters
    ----------
    layout : Layout
        What the blocks were parsed by.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        self._columns = [_Column(Numerals(layout.decimal)) for _ in layout.names]
        if layout.below is not None:
            for column, cell, below in zip(self._columns, layout.first, layout.below, strict=True):
                column.cell, column.in_rows = cell, not layout.header
                column.recurs, column.repeats = below.recurs, below.repeats
        self._rows: list[int] = []
        self._lengths: list[int] = []

    def add(self, table: pa.Table, length: int) -> None:
        """One more block, of `length` bytes."""
        first_row = sum(self._rows)
        for column, values in zip(self._columns, table.columns, strict=True):
            column.add(values, first_row)
        self._rows.append(table.num_rows)
        self._lengths.append(length)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return sum(self._rows)

    @property
    def refuted(self) -> bool:
        """Whether some values are numbers by the other decimal sign only; the point holds where others prove it."""
        found = [column.numerals for column in self._columns]
        proven = self.layout.decimal == "." and any(numerals.decisive for numerals in found)
        return any(numerals.contraries for numerals in found) and not proven

    @property
    def unclear(self) -> bool:
        """Whether there are groups of three digits, such as 59,915, and nothing proves that they are thousands."""
        proven = any(column.numerals.decisive or column.numerals.fractions for column in self._columns)
        return any(column.grouped for column in self._columns) and not proven

    def findings(self, assumed: bool, where: str) -> Findings:
        """All that was found.

        Parameters
        ----------
        assumed : bool
            Whether the decimal sign is a guess.
        where : str
            What to call the table in an error.
        """
        self._check_first_line(where)
        layout = self.layout
        named = list(zip(layout.names, self._columns, strict=True))
        return Findings(
            schema=pa.schema([(name, column.kind) for name, column in named]),
            grouped=frozenset(name for name, column in named if column.grouped),
            starts=tuple(itertools.accumulate(self._rows, initial=0)),
            offsets=tuple(itertools.accumulate(self._lengths, initial=0)),
            decimal=DecimalSign(layout.decimal, assumed),
            notes=(*layout.notes, *self._sign_notes(assumed), *self._text_notes()),
        )

    def _check_first_line(self, where: str) -> None:
        """The first line was judged by the first rows: raise where all of them judge otherwise."""
        if self.layout.below is None:
            return
        data = first_is_data(self.layout.first, [column.below for column in self._columns])
        if data is self.layout.header:
            looked = ("column names", "a row") if self.layout.header else ("a row", "column names")
            raise TableError(
                f"the first line of {where} looks like {looked[0]} by the first rows, and like {looked[1]} by all rows",
                "Say --header if it holds column names, --no-header if it is a row (header= in Python).",
            )

    def _sign_notes(self, assumed: bool) -> list[str]:
        """What was made of commas and points in numbers."""
        sign, notes = self.layout.decimal, []
        grouped = [
            (name, column.numerals.grouped)
            for name, column in zip(self.layout.names, self._columns, strict=True)
            if column.grouped
        ]
        if sign == ",":
            notes.append("the comma is taken for the decimal sign: 7,5 is read as 7.5 (--decimal . if it is not)")
        if grouped:
            text = grouped[0][1]
            number = ungrouped(pa.chunked_array([[text]]), sign)[0].as_py()
            notes.append(
                f"{'the comma' if sign == '.' else 'the point'} is taken to group thousands in "
                f"{_listed([name for name, _ in grouped])}: {text} is read as {number:.12g}"
                + (f"; no value proves it (--decimal {other_sign(sign)} if it is the decimal sign)" if assumed else "")
            )
        return notes

    def _text_notes(self) -> list[str]:
        """Columns of numbers that a few values make columns of text."""
        notes = []
        other = other_sign(self.layout.decimal)
        for name, column in zip(self.layout.names, self._columns, strict=True):
            found = column.numerals
            odd, numbers = found.others + found.contraries, found.numbers + found.contraries
            if column.kind == pa.string() and found.stray is not None and numbers > found.others:
                row, value = found.stray
                notes.append(
                    f"{shown(name)} is read as text: {odd:,} of its {found.numbers + odd:,} values are no numbers, "
                    f"such as {shown(value)} in row {row + 1:,}"
                    + (f" (--decimal {other} if that is its decimal sign)" if found.contraries else "")
                )
        return notes


def conformed(table: pa.Table, findings: Findings) -> pa.Table | None:
    """A block with the types that hold for every block; None where its text is needed for that."""
    columns = []
    for name, values in zip(table.column_names, table.columns, strict=True):
        kind = findings.schema.field(name).type
        if values.type != kind:
            if pa.types.is_string(kind) and not pa.types.is_null(values.type):
                return None
            is_text = pa.types.is_string(values.type)
            # not safe only among numbers: a large integer may lose its last digits
            values = ungrouped(values, findings.decimal.sign) if is_text else values.cast(kind, safe=False)
        columns.append(values)
    return pa.table(columns, names=table.column_names)


def _joined(kinds: Iterable[Any]) -> Any:
    found = set(kinds)
    if len(found) <= 1:
        return found.pop() if found else pa.null()
    if found == {pa.int64(), pa.float64()}:
        return pa.float64()
    if all(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in found):
        zoned = {getattr(kind, "tz", None) for kind in found}
        # no finer than needed: nanoseconds end in the year 2262
        unit = "ns" if "ns" in {getattr(kind, "unit", None) for kind in found} else "s"
        return pa.timestamp(unit, tz=zoned.pop()) if len(zoned) == 1 else pa.string()
    return pa.string()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(shown, names[:3])) + more
