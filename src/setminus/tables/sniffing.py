"""How a text table is laid out, guessed from its first lines: separator, header, decimal sign, padding."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest

from setminus.tables.errors import TableError, check_unique

__all__ = ["MISSING", "Layout", "sniff"]

MISSING = ("", "?", "NA", "N/A", "n/a", "null", "NULL", "nan", "NaN")
"""What stands for a missing value in a text table."""

RECORDS = 200
SEPARATORS = (",", ";", "\t")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")

Record = Sequence[str]


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
    """

    names: tuple[str, ...]
    separator: str = ","
    header: bool = True
    padded: bool = False
    decimal: str = "."
    line_end: bytes = b"\n"
    blank: int = 0
    notes: tuple[str, ...] = ()


def sniff(
    text: str, whole: bool, where: str, *, header: bool | None = None, separator: str | None = None, tabs: bool = False
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
    separator : str, optional
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
    if "\x00" in text:
        raise TableError(f"{where} is no text: it holds zero bytes", "Save the table as CSV or Parquet.")
    text = text.removeprefix("\ufeff")
    line_end = "\n" if "\n" in text or "\r" not in text else "\r"
    if not whole and line_end in text:
        text = text[: text.rindex(line_end)]
    separator = separator or _separator(text, tabs)
    records = _records(text, separator)
    if not records:
        raise TableError(f"{where} is empty", "Give a file with a line of column names and rows below it.")
    # the first line may be that of the names, which nobody pads
    padded = _padded(records[1:] or records)
    if padded:
        records = [[cell.strip() for cell in record] for record in records]
    decimal = _decimal(records, separator)
    notes = []
    if header is None:
        data, why = _first_is_data(records, decimal)
        header = not data
        notes += [why] if why else []
    if header and len(records) == 1 and whole:
        raise TableError(
            f"{where} has one line only, which was taken for column names",
            "Give a file with rows, or say --no-header (header=False in Python) if that line is a row.",
        )
    names = _names(records[0], header, where)
    blank = text[: len(text) - len(text.lstrip("\r\n"))].count(line_end)
    return Layout(names, separator, header, padded, decimal, line_end.encode(), blank, tuple(notes))


def _records(text: str, separator: str) -> list[Record]:
    try:
        # a blank line is no record, to pyarrow either
        records = (record for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if record)
        return list(islice(records, RECORDS))
    except csv.Error as error:
        raise TableError(f"the first lines are no CSV: {error}", "Check its quotes and separators.") from error


def _separator(text: str, tabs: bool) -> str:
    """The separator that cuts the most lines into the same number of values, at least 2."""

    def fitness(separator: str) -> tuple[bool, float, int]:
        widths = Counter(len(record) for record in _records(text, separator))
        width, lines = widths.most_common(1)[0] if widths else (1, 0)
        return width > 1, lines / max(1, widths.total()), width

    order = ("\t", ",", ";") if tabs else SEPARATORS
    # of equals, max takes the first
    return max(order, key=fitness)


def _padded(records: Sequence[Record]) -> bool:
    inner = [cell for record in records for cell in record[1:]]
    return bool(inner) and all(cell.startswith(" ") for cell in inner)


def _decimal(records: Sequence[Record], separator: str) -> str:
    cells = [] if separator == "," else [cell.strip() for record in records[1:] for cell in record]
    comma = any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return "," if comma and not any(DECIMAL_POINT.fullmatch(cell) for cell in cells) else "."


def _first_is_data(records: Sequence[Record], decimal: str) -> tuple[bool, str | None]:
    first, below = records[0], records[1:]
    columns = [[cell for cell in column if cell not in MISSING] for column in zip_longest(*below, fillvalue="")]
    pairs = [(cell.strip(), column) for cell, column in zip(first, columns, strict=False) if column]
    numbers = [cell for cell, column in pairs if all(_is_number(value, decimal) for value in (cell, *column))]
    recurring = [cell for cell, column in pairs if cell in column]
    if numbers and _counts_up(numbers):
        return False, f"the numbers {numbers[0]}, {numbers[1]} ... of the first line were taken for column names"
    named = [cell for cell, column in pairs if cell not in numbers and cell not in column and _is_name(column, decimal)]
    if (numbers or 2 * len(recurring) > len(first)) and len({*numbers, *recurring}) > len(named):
        last = f"column_{len(first)}"
        return True, (
            f"the first line looks like data: columns are called column_1 to {last} (--header, or header=True in "
            "Python, if it holds names)"
        )
    return False, None


def _is_name(column: Sequence[str], decimal: str) -> bool:
    """Whether a word above these values, and not among them, is their name: they are numbers, or come again."""
    return len({*column}) < len(column) or all(_is_number(value, decimal) for value in column)


def _is_number(cell: str, decimal: str) -> bool:
    return NUMBER.fullmatch(cell.strip().replace(decimal, ".")) is not None


def _counts_up(cells: Sequence[str]) -> bool:
    return (
        len(cells) > 1
        and all(cell.isdecimal() for cell in cells)
        and all(int(b) - int(a) == 1 for a, b in pairwise(cells))
    )


def _names(first: Record, header: bool, where: str) -> tuple[str, ...]:
    if not header:
        return tuple(f"column_{k}" for k in range(1, len(first) + 1))
    # pandas leaves the name of its index empty
    names = tuple(name or f"column_{k}" for k, name in enumerate(first, 1))
    check_unique(names, where, ", or say --no-header (header=False in Python) if the first line is a row")
    return names
