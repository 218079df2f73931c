"""Numbers in text: whether the comma or the point is the decimal sign, and which of them groups thousands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "NUMBER",
    "DecimalSign",
    "Numerals",
    "Shape",
    "is_number",
    "looks_numeric",
    "other_sign",
    "proven_sign",
    "shape_of",
    "ungrouped",
    "unproven_point",
]

TRIED = 64
"""Values of a column, spread over it, that decide whether all of them are looked at."""

# a zero at the beginning is kept apart: 0,915 is no number of thousands
_SHAPE = np.full(256, ord("x"), dtype=np.uint8)
_SHAPE[list(b"0123456789")] = ord("9")
for _kept in b".,+-eE \t":
    _SHAPE[_kept] = _kept


class DecimalSign(NamedTuple):
    """The decimal sign of a text table, and whether it is assumed because no value proves it."""

    sign: str
    assumed: bool = False


class Shape(NamedTuple):
    """How a value reads, given the decimal sign.

    Attributes
    ----------
    number : bool
        A number, perhaps with groups of thousands.
    grouped : bool
        With groups of thousands.
    fraction : bool
        With the decimal sign, or an exponent.
    decisive : bool
        A number by this decimal sign only.
    contrary : bool
        A number by the other decimal sign only.
    """

    number: bool
    grouped: bool
    fraction: bool
    decisive: bool
    contrary: bool


def other_sign(sign: str) -> str:
    """The comma for the point, and the point for the comma."""
    return "," if sign == "." else "."


def _patterns(decimal: str) -> tuple[str, str]:
    """A number without, and with groups of thousands."""
    sign, group = re.escape(decimal), re.escape(other_sign(decimal))
    plain = rf"[+-]?(\d+({sign}\d*)?|{sign}\d+)([eE][+-]?\d+)?"
    return plain, rf"[+-]?[1-9]\d{{0,2}}({group}\d{{3}})+({sign}\d*)?"


PATTERNS = {
    sign: tuple(re.compile(rf"[ \t]*{pattern}[ \t]*", re.ASCII) for pattern in _patterns(sign)) for sign in ".,"
}
NUMBER = "|".join((*_patterns("."), *_patterns(",")))
"""The pattern of a number by either decimal sign, for Python and for pyarrow."""
EITHER = re.compile(rf"\s*({NUMBER})\s*", re.ASCII)

_UNIT = r"(%|[$€£¥₹]|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|kr|zł)"
_SPACED = r"[1-9]\d{0,2}([ '\u2019\u00a0\u202f]\d{3})+([.,]\d+)?"
_MONTH = r"[^\W\d_]{3,9}\.?"
_CLOCK = r"\d{1,3}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"
FORMS = {
    "numbers with a unit, spaces or brackets": re.compile(
        rf"[+-]?{_UNIT}?\s?[+-]?\(?{_UNIT}?\s?(({NUMBER})|{_SPACED})\s?{_UNIT}?\)?"
    ),
    "dates or times": re.compile(
        r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})"
        rf"|\d{{1,2}}[ .-]+{_MONTH}[ .-]+\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})([ T,]+{_CLOCK}.{{0,6}})?|{_CLOCK}"
    ),
}
"""Text that stands for numbers or dates in a form that is not read as such."""


def is_number(cell: str) -> bool:
    """Whether a cell is a number by either decimal sign.

    Examples
    --------
    >>> [is_number(cell) for cell in ("59,915", "7.5", "31.12.2020", "")]
    [True, True, False, False]
    """
    return EITHER.fullmatch(cell) is not None


@lru_cache(maxsize=4096)
def shape_of(shape: str, decimal: str) -> Shape:
    """Classify a value by its shape, which is its text with 9 for each digit but a leading zero.

    Examples
    --------
    >>> shape_of("99,999", ".")  # 59,915
    Shape(number=True, grouped=True, fraction=False, decisive=False, contrary=False)
    >>> shape_of("9,999,999", ".").decisive, shape_of("99,99", ".").contrary, shape_of("0,999", ".").contrary
    (True, True, True)
    """
    if "x" in shape:
        return Shape(number=False, grouped=False, fraction=False, decisive=False, contrary=False)
    plain, grouped = (pattern.fullmatch(shape) is not None for pattern in PATTERNS[decimal])
    number, other = plain or grouped, any(pattern.fullmatch(shape) for pattern in PATTERNS[other_sign(decimal)])
    return Shape(
        number=number,
        grouped=grouped,
        fraction=number and not {*shape}.isdisjoint({decimal, "e", "E"}),
        decisive=number and not other,
        contrary=other and not number,
    )


def _shapes(words: pa.StringArray) -> pa.StringArray:
    """The shape of each word; none of them is null."""
    _, offsets, data = words.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[words.offset : words.offset + len(words) + 1]
    if data is None or ends[0] == ends[-1]:
        return words
    text = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]
    # one byte more: an empty word at the end begins behind the text
    text = np.append(text, np.uint8(0))
    shapes = _SHAPE[text]
    begin = ends[:-1] - ends[0]
    head = text[begin]
    signed = (head == ord("+")) | (head == ord("-"))
    if signed.any():
        begin = begin + signed
        head = text[begin]
    shapes[begin[head == ord("0")]] = ord("0")
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(ends - ends[0]), pa.py_buffer(shapes))


def looks_numeric(words: pa.StringArray) -> bool:
    """Whether most words in a sample are numbers by either sign.

    Examples
    --------
    >>> looks_numeric(pa.array(["59,915", "7", "unknown"])), looks_numeric(pa.array(["a", "b", "7"]))
    (True, False)
    """
    some = _sample(words)
    return 2 * sum(map(is_number, some)) > len(some)


def _sample(words: pa.StringArray) -> list[str]:
    found: list[str] = words.take(np.arange(0, len(words), -(-len(words) // TRIED))).to_pylist()
    return found


def _form(words: pa.StringArray) -> str | None:
    """The form of numbers or dates that every word of a sample has."""
    some = [word.strip() for word in _sample(words)]
    return next((form for form, pattern in FORMS.items() if all(map(pattern.fullmatch, some))), None)


@dataclass
class Numerals:
    """Counts of the numbers in the text of a column, collected block by block.

    Attributes
    ----------
    decimal : str
        The decimal sign that they are read by.
    numbers, contraries, others : int
        Values that are numbers, that are numbers by the other sign only, and that are not numbers.
    stray : tuple of int and str, or None
        The first value that is not a number: its row, from 0, and its text.
    grouped : str or None
        A value with groups of thousands.
    fractions, decisive : bool
        Whether some value has the decimal sign, and whether some value proves it.
    forms : set of str or None
        The form of the text in each block that does not hold numbers: one of `FORMS`, or None.
    """

    decimal: str
    numbers: int = 0
    contraries: int = 0
    others: int = 0
    stray: tuple[int, str] | None = None
    grouped: str | None = None
    fractions: bool = False
    decisive: bool = False
    forms: set[str | None] = field(default_factory=set)

    def add_numbers(self, column: pa.ChunkedArray) -> None:
        """Add a block that was parsed as numbers."""
        self.numbers += len(column) - column.null_count
        if pa.types.is_floating(column.type):
            self.fractions = True
            self.decisive = self.decisive or _no_thousands(column)

    def add(self, column: pa.ChunkedArray, first_row: int) -> None:
        """Add a block that was parsed as text."""
        words = column.combine_chunks()
        present = words.drop_null()
        if not len(present):
            return
        if not looks_numeric(present):
            self._note_stray(words, present[0].as_py(), first_row)
            self.others += len(present)
            # one block of other text settles it
            if None not in self.forms:
                self.forms.add(_form(present))
            return
        shapes = _shapes(present).dictionary_encode()
        judged = [shape_of(shape, self.decimal) for shape in shapes.dictionary.to_pylist()]
        codes = shapes.indices.to_numpy()
        number, grouped, contrary = (
            np.array([getattr(shape, of) for shape in judged])[codes] for of in ("number", "grouped", "contrary")
        )
        self.numbers += int(number.sum())
        self.contraries += int(contrary.sum())
        self.others += int(len(present) - number.sum() - contrary.sum())
        self.fractions |= any(shape.fraction for shape in judged)
        self.decisive |= any(shape.decisive for shape in judged)
        if self.grouped is None and grouped.any():
            self.grouped = present[int(grouped.argmax())].as_py()
        if not number.all():
            self._note_stray(words, present[int(number.argmin())].as_py(), first_row)

    def _note_stray(self, words: pa.StringArray, value: str, first_row: int) -> None:
        if self.stray is None:
            self.stray = first_row + pc.index(words, value).as_py(), value


def _no_thousands(column: pa.ChunkedArray) -> bool:
    """Whether some number has more than three decimals, or is below 1: then its sign cannot group thousands."""
    values = column.drop_null().to_numpy()
    values = np.abs(values[np.isfinite(values)])
    thousandths = values[values < 1e6] * 1000
    more_places = np.abs(thousandths - np.rint(thousandths)) > 1e-6
    return bool(more_places.any() or ((values > 0) & (values < 1)).any())


def ungrouped(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Convert text with groups of thousands to numbers.

    Examples
    --------
    >>> ungrouped(pa.chunked_array([["59,915", "1,234.5", None]]), ".").to_pylist()
    [59915.0, 1234.5, None]
    """
    words = pc.replace_substring(pc.ascii_trim_whitespace(column), other_sign(decimal), "")
    return (words if decimal == "." else pc.replace_substring(words, decimal, ".")).cast(pa.float64())


def proven_sign(cells: Iterable[str]) -> str:
    """The decimal sign that some cells prove; the point where they prove neither or both.

    Examples
    --------
    >>> proven_sign(["7,5", "12"]), proven_sign(["59,915"]), proven_sign(["7,5", "2.25"])
    (',', '.', '.')
    """
    shapes = set(_shapes(pa.array(cells, pa.string())).to_pylist())
    comma = any(shape_of(shape, ".").contrary for shape in shapes)
    point = any(shape_of(shape, ",").contrary for shape in shapes)
    return "," if comma and not point else "."


def unproven_point(cells: Sequence[str]) -> str | None:
    """A cell whose point may group thousands, where no cell proves that the point is the decimal sign.

    Examples
    --------
    >>> unproven_point(["850", "1.200"]), unproven_point(["850", "1.200", "0.5"])
    ('1.200', None)
    """
    shapes = _shapes(pa.array(cells, pa.string())).to_pylist()
    judged = {shape: shape_of(shape, ",") for shape in set(shapes)}
    if any(shape.contrary for shape in judged.values()):
        return None
    return next((cell.strip() for cell, shape in zip(cells, shapes, strict=True) if judged[shape].grouped), None)
