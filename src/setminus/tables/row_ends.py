"""Where the rows of a text table end: at a line's end that is not inside quotes."""

from __future__ import annotations

import csv
import itertools
from contextlib import suppress

import numpy as np

__all__ = ["end_by_reading", "last_row_end"]


def last_row_end(block: bytes, separator: str, line_end: bytes) -> int:
    r"""Where the last whole row of a block ends; 0 where there is none. The block begins with a row.

    Examples
    --------
    >>> last_row_end(b'1,"two\nlines"\n2,"cut\noff', ",", b"\n")
    14
    """
    if b'"' not in block:
        return block.rfind(line_end) + 1
    data = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    # a quote opens a value at its beginning only, or goes on after a doubled one
    opening = quotes[0::2]
    before = data[np.maximum(opening - 1, 0)]
    legal = np.isin(before, np.frombuffer(b'\n\r"' + separator.encode(), dtype=np.uint8)) | (opening == 0)
    if not legal.all():
        return end_by_reading(block, separator)
    end = len(block)
    while (end := block.rfind(line_end, 0, end)) >= 0:
        if np.searchsorted(quotes, end) % 2 == 0:
            return end + 1
    return 0


def end_by_reading(block: bytes, separator: str) -> int:
    """The same where quotes stand inside values: only a parser can tell."""
    lines = block.splitlines(keepends=True)
    ends = list(itertools.accumulate(map(len, lines), initial=0))
    # latin-1: any byte is a character, and none of ours changes its meaning
    reader = csv.reader((line.decode("latin-1") for line in lines), delimiter=separator)
    last = before = 0
    # a value too long for the parser: the rows before it are whole all the same
    with suppress(csv.Error):
        for _ in reader:
            before, last = last, reader.line_num
    # the last record may only have ended because the block did
    return ends[before]
