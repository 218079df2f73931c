"""Text that a spreadsheet would run as a formula, and its way there and back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from setminus.tables.numerals import NUMBER
from setminus.tables.values import is_text

__all__ = ["neutralized", "original_words"]

FORMULA = "'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""How a formula begins, also in wide letters. Apostrophes before it count, so that one set here is told from others."""


def neutralized(table: pa.Table) -> pa.Table:
    """A table with an apostrophe before each name and text that a spreadsheet would run; numbers stay as they are.

    Examples
    --------
    >>> neutralized(pa.table({"@x": ["=1+1", "-3.5", "'=y", "high"]})).to_pydict()
    {"'@x": ["'=1+1", '-3.5', "''=y", 'high']}
    """
    columns = [_column(column) if is_text(column.type) else column for column in table.columns]
    names = [f"'{name}" if _is_formula(name) else name for name in table.column_names]
    return pa.table(columns, names=names)


def original_words(words: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """What each of some words was before it was `neutralized`, if it was.

    Parameters
    ----------
    words : iterable of str
        All words of a column.
    known : collection of str
        What may stand in it. Where that covers every word, the column is as it was.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> original_words(["'=high", "low"], {"=high", "low"})
    {"'=high": '=high', 'low': 'low'}
    >>> original_words(["'=high"], {"'=high", "low"})
    {"'=high": "'=high"}
    """
    found = list(dict.fromkeys(words))
    if {*found} <= {*known}:
        return {word: word for word in found}
    return {word: word[1:] if word.startswith("'") and _is_formula(word) else word for word in found}


def _column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # as they stand: a space before a formula is part of the text
    words = (column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column).cast(pa.string())
    # few words come again and again: they are looked at once
    if not any(_is_formula(word) for word in pc.unique(words).to_pylist() if word is not None):
        return words
    formula = pc.and_not(
        pc.match_substring_regex(words, f"^{FORMULA}"), pc.match_substring_regex(words, f"^(?:{NUMBER})$")
    )
    return pc.if_else(formula, pc.replace_substring_regex(words, "^'*", r"'\0", max_replacements=1), words)


def _is_formula(text: str) -> bool:
    return re.match(FORMULA, text) is not None and re.fullmatch(NUMBER, text, re.ASCII) is None
