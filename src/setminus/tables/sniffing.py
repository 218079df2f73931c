"""How a text table is laid out, guessed from its first lines: separator, header, decimal sign, padding."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from setminus.tables.errors import TableError, check_unique
from setminus.tables.numerals import is_number, proven_sign

__all__ = ["MISSING", "Below", "Layout", "first_is_data", "sniff"]

MISSING = ("", "?", "NA", "N/A", "n/a", "null", "NULL", "nan", "NaN")
"""What stands for a missing value in a text table."""

RECORDS = 200
SEPARATORS = (",", ";", "\t")

Record = Sequence[str]


class Below(NamedTuple):
    """What stands in a column below the first line.

    Attributes
    ----------
    present : bool
        Any value at all.
    numeric : bool
        Numbers only.
    recurs : bool
        The cell of the first line, once more.
    repeats : bool
        Some value more than once.
    """

    present: bool
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
        Whether values are set off by a space after the separator, which is no part of them.
    decimal : {".", ","}
    line_end : bytes
        The last byte of a line.
    blank : int
        Empty lines above the first one that is not.
    notes : tuple of str
        Guesses that the reader of the table should know of.
    first : tuple of str
        The first line.
    below : tuple of Below, or None
        What the first rows hold below it, where that decided on `header`.
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
    r"""Work out the layout from the beginning of a table.

    A first line counts as data, not names, only where that is plain: it has a number above numbers, or most of its
    values come again below; and no more of its values look like names, as words above numbers do, or a word above
    others that come again and again. Numbers that count up by one, such as 0, 1, 2, are names.

    Parameters
    ----------
    text : str
        The first lines.
    whole : bool
        Whether that is all of the table; otherwise the last line may be cut off.
    where : str
        What to call the table in an error.
    header : bool, optional
        Whether the first line holds names; guessed by default.
    separator, decimal : str, optional
        Guessed by default.
    tabs : bool
        Whether the file's ending says that tabs separate.

    Returns
    -------
    Layout

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
        raise TableError(
            f"the first line of {where} has a value of more than {csv.field_size_limit():,} characters",
            "Check its quotes and separators.",
        )
    if not records:
        raise TableError(f"{where} is empty", "Give a file with a line of column names and rows below it.")
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
    if header and whole and line_end not in text.strip("\r\n"):
        raise TableError(
            f"{where} has one line only, which was taken for column names",
            "Give a file with rows, or say --no-header (header=False in Python) if that line is a row.",
        )
    if decimal is None:
        # where commas separate, one inside a number is a decimal sign only if the user says so
        decimal = "." if separator == "," else proven_sign(cell for record in records[1:] for cell in record)
    return Layout(
        _names(first, header, where),
        separator,
        header,
        padded,
        decimal,
        line_end.encode(),
        blank=text[: len(text) - len(text.lstrip("\r\n"))].count(line_end),
        notes=tuple(notes),
        first=tuple(first),
        below=below,
    )


def first_is_data(first: Record, below: Sequence[Below]) -> bool:
    """Whether the first line is a row, by what stands below each of its cells.

    Examples
    --------
    >>> numbers = Below(present=True, numeric=True, recurs=False, repeats=False)
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
            present=bool(values),
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
