"""How a text table is laid out: guessed from its first lines, checked against all of its rows."""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise, zip_longest
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from setminus.errors import UserError
from setminus.tables.columns import MISSING, check_unique, shown
from setminus.tables.numerals import (
    DecimalSign,
    Numerals,
    is_number,
    other_sign,
    proven_sign,
    ungrouped,
    unproven_point,
)

__all__ = ["Below", "Findings", "Layout", "Survey", "conformed", "first_is_data", "sniff"]

RECORDS = 200
SEPARATORS = (",", ";", "\t")

Record = Sequence[str]


class Below(NamedTuple):
    """The values of a column below the first line.

    They are `numeric` if all are numbers. The cell of the first line `recurs` if it is among them. The column
    `repeats` if some value occurs more than once.
    """

    numeric: bool
    recurs: bool
    repeats: bool


@dataclass(frozen=True)
class Layout:
    """How a text table is written.

    Attributes
    ----------
    names : tuple of str
    separator : str
    header : bool
        Whether the first line holds the names.
    padded : bool
        Whether a space follows the separators, which is not part of the values.
    decimal : {".", ","}
    line_end : bytes
        The last byte of a line.
    blank : int
        Number of empty lines at the beginning.
    notes : tuple of str
        Guesses to show to the user.
    first : tuple of str
        The cells of the first line.
    below : tuple of Below, or None
        The columns below it in the first rows; None where the user says whether there is a header.
    unproven : str or None
        A number such as 1.200, where the first rows do not prove that its point is the decimal sign.
    """

    names: tuple[str, ...]
    separator: str = ","
    header: bool = True
    padded: bool = False
    decimal: str = "."
    line_end: bytes = b"\n"
    blank: int = 0
    notes: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    below: tuple[Below, ...] | None = None
    unproven: str | None = None


def sniff(
    text: str,
    whole: bool,
    where: str,
    *,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    tabs: bool = False,
) -> Layout:
    r"""Guess the layout from the first lines of a table.

    The first line is taken for data only if it has a number above numbers, or most of its values occur again below,
    and fewer of its values look like names: words above numbers, or above values that repeat. Numbers that count
    up by one, such as 0, 1, 2, are names.

    `text` holds the first lines, or with `whole` all of them; `where` names the file in errors; `tabs` says whether its
    ending promises tabs. What the user gives as `header`, `separator` or `decimal` is not guessed.

    Examples
    --------
    >>> layout = sniff("age;income\n39;7,5\n", True, "people.csv")
    >>> layout.names, layout.separator, layout.decimal
    (('age', 'income'), ';', ',')
    >>> sniff("39, m\n50, f\n", True, "people.csv").notes[0][:65]
    'the first line looks like data: columns are called column_1 to co'
    """
    text = text.removeprefix("\ufeff")
    line_end = "\n" if "\n" in text or "\r" not in text else "\r"
    if not whole and line_end in text:
        text = text[: text.rindex(line_end)]
    separator = separator or _separator(text, tabs)
    records = _records(text, separator)
    if not records and text.strip():
        raise UserError(
            f"the first line of {where} has a value of more than {csv.field_size_limit():,} characters",
            do="check its quotes and separators.",
        )
    if not records:
        raise UserError(f"{where} is empty", do="give a file with a line of column names and rows below it.")
    # the first line may be that of the names, which nobody pads
    padded = _padded(records[1:] or records)
    if padded:
        records = [[cell.strip() for cell in record] for record in records]
    first = records[0]
    notes, below = [], None
    if header is None:
        below = tuple(_below(records))
        header = not first_is_data(first, below)
        numbers = [cell for cell in first if is_number(cell)]
        if not header:
            notes.append(
                f"the first line looks like data: columns are called column_1 to column_{len(first)} (--header, or "
                "header=True in Python, if it holds names)"
            )
        elif _counts_up(numbers):
            notes.append(f"the numbers {numbers[0]}, {numbers[1]} ... of the first line were taken for column names")
    names = _names(first, header, where)
    folded: dict[str, str] = {}
    for name in names:
        other = folded.setdefault(name.strip().casefold(), name)
        if other != name:
            notes.append(f"the columns {shown(other)} and {shown(name)} differ only in spaces or capital letters")
    if header and whole and line_end not in text.strip("\r\n"):
        raise UserError(
            f"{where} has one line only, which was taken for column names",
            do="give a file with rows, or say --no-header (header=False in Python) if that line is a row.",
        )
    unproven = None
    # where commas separate, one inside a number is a decimal sign only if the user says so
    if decimal is None and separator != ",":
        cells = [cell for record in records[1:] for cell in record]
        decimal = proven_sign(cells)
        unproven = unproven_point(cells) if decimal == "." else None
    return Layout(
        names,
        separator,
        header,
        padded,
        decimal or ".",
        line_end.encode(),
        blank=text[: len(text) - len(text.lstrip("\r\n"))].count(line_end),
        notes=tuple(notes),
        first=tuple(first),
        below=below,
        unproven=unproven,
    )


def first_is_data(first: Record, below: Sequence[Below]) -> bool:
    """Whether the first line is a row, judged by the values below each of its cells.

    Examples
    --------
    >>> numbers = Below(numeric=True, recurs=False, repeats=False)
    >>> first_is_data(["39", "2.5"], [numbers, numbers]), first_is_data(["age", "pay"], [numbers, numbers])
    (True, False)
    """
    if _counts_up([cell for cell in first if is_number(cell)]):
        return False
    numbers = recurring = rows = names = 0
    for cell, column in zip(first, below, strict=False):
        number = column.numeric and is_number(cell)
        row = number or column.recurs
        numbers += number
        recurring += column.recurs
        rows += row
        # a word above values, and not among them, is their name: they are numbers, or come again
        names += not row and (column.numeric or column.repeats)
    return (numbers > 0 or 2 * recurring > len(first)) and rows > names


def _below(records: Sequence[Record]) -> Iterator[Below]:
    columns = zip_longest(*records[1:], fillvalue="")
    for cell, column in zip_longest(records[0], islice(columns, len(records[0])), fillvalue=""):
        values = [str(value).strip() for value in column if value not in MISSING]
        yield Below(
            numeric=bool(values) and all(map(is_number, values)),
            recurs=cell.strip() in values,
            repeats=len({*values}) < len(values),
        )


def _records(text: str, separator: str) -> list[Record]:
    records: list[Record] = []
    # a value too long for the parser: the rows before it are whole all the same
    with suppress(csv.Error):
        # a blank line is no record, to pyarrow either
        for record in islice(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=separator)), RECORDS):
            records.append(record)
    return records


def _separator(text: str, tabs: bool) -> str:
    """The separator that cuts the most lines into the same number of values, at least 2."""

    def fitness(separator: str) -> tuple[bool, float, bool, int]:
        records = _records(text, separator)
        widths = Counter(len(record) for record in records)
        width, lines = widths.most_common(1)[0] if widths else (1, 0)
        # both cut 1,5;2,5 evenly, but 5;2 is no number
        whole = all(is_number(cell) or {*cell}.isdisjoint(SEPARATORS) for record in records[-1:] for cell in record)
        return width > 1, lines / max(1, widths.total()), whole, width

    order = ("\t", ",", ";") if tabs else SEPARATORS
    # of equals, max takes the first
    return max(order, key=fitness)


def _padded(records: Sequence[Record]) -> bool:
    """Whether a space follows most separators; a missing value has none."""
    inner = [cell for record in records for cell in record[1:] if cell]
    return 2 * sum(cell.startswith(" ") for cell in inner) > len(inner)


def _counts_up(cells: Sequence[str]) -> bool:
    return (
        len(cells) > 1
        and all(cell.isdecimal() and len(cell) < 10 for cell in cells)
        and all(int(b) - int(a) == 1 for a, b in pairwise(cells))
    )


def _names(first: Record, header: bool, where: str) -> tuple[str, ...]:
    if not header:
        return tuple(f"column_{k}" for k in range(1, len(first) + 1))
    # pandas leaves the name of its index empty
    names = tuple(name or f"column_{k}" for k, name in enumerate(first, 1))
    check_unique(names, where, ", or say --no-header (header=False in Python) if the first line is a row")
    return names


@dataclass(frozen=True)
class Findings:
    """What all rows of a text table show.

    Attributes
    ----------
    schema : pyarrow.Schema
        The narrowest types that hold every row.
    grouped : frozenset of str
        The columns of numbers that are written with groups of thousands.
    starts, offsets : tuple of int
        The first row and the first byte of each block, and the end of the last one.
    decimal : DecimalSign
    notes : tuple of str
        Guesses to show to the user.
    """

    schema: Any
    grouped: frozenset[str]
    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    decimal: DecimalSign
    notes: tuple[str, ...]


@dataclass
class _Column:
    """One column in the blocks so far."""

    numerals: Numerals
    # the cell of the first line; None where the user says whether there is a header
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
        return Below(numeric=numeric, recurs=self.recurs, repeats=self.repeats)


class Survey:
    """Collects types and numbers from the parsed blocks of a text table; `layout` is how they were parsed."""

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
        """The result; `assumed` says whether the decimal sign is a guess, `where` names the file in errors."""
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
        """Raise where the first rows and all rows disagree on whether the first line holds column names."""
        if self.layout.below is None:
            return
        data = first_is_data(self.layout.first, [column.below for column in self._columns])
        if data is self.layout.header:
            looked = ("column names", "a row") if self.layout.header else ("a row", "column names")
            raise UserError(
                f"the first line of {where} looks like {looked[0]} by the first rows, and like {looked[1]} by all rows",
                do="say --header if it holds column names, --no-header if it is a row (header= in Python).",
            )

    def _sign_notes(self, assumed: bool) -> list[str]:
        """How commas and points in numbers were read."""
        sign, notes = self.layout.decimal, []
        grouped = [
            (name, column.numerals.grouped)
            for name, column in zip(self.layout.names, self._columns, strict=True)
            if column.grouped
        ]
        cell = self.layout.unproven
        if sign == "." and cell and not any(column.numerals.decisive for column in self._columns):
            notes.append(
                f"the point is taken for the decimal sign: {cell} is read as {float(cell):.12g}; the first rows do "
                "not prove it (--decimal , if it groups thousands)"
            )
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
        """Columns that are read as text because of a few values among numbers, or because of how they are written."""
        notes = []
        other = other_sign(self.layout.decimal)
        for name, column in zip(self.layout.names, self._columns, strict=True):
            found = column.numerals
            odd, numbers = found.others + found.contraries, found.numbers + found.contraries
            if column.kind == pa.string() and len(found.forms) == 1 and (form := min(found.forms, key=str)):
                row, value = found.stray or (0, "")
                plain = "dates as 2020-01-31, times as 09:30:00" if "date" in form else "plain numbers such as -1234.5"
                notes.append(
                    f"{shown(name)} is read as text: its values look like {form}, such as {shown(value)} in row "
                    f"{row + 1:,} (write {plain} to use them)"
                )
            elif column.kind == pa.string() and found.stray is not None and numbers > found.others:
                row, value = found.stray
                notes.append(
                    f"{shown(name)} is read as text: {odd:,} of its {found.numbers + odd:,} values are no numbers, "
                    f"such as {shown(value)} in row {row + 1:,}"
                    + (f" (--decimal {other} if that is its decimal sign)" if found.contraries else "")
                )
        return notes


def conformed(table: pa.Table, findings: Findings) -> pa.Table | None:
    """A block converted to the types of the whole table; None where it must be parsed again, as text."""
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
