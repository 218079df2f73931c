"""The combinations of values in the columns of a part of a file, as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["BLOCK", "MAX_CELLS", "blocks", "check_cells", "codes_of", "combined", "decoded", "first_rows", "keys_of"]

MAX_CELLS = 100_000
"""Combinations of values: with more of them, a column is not one of groups."""

BLOCK = 1 << 16
"""Rows at a time: their intermediate results stay in the cache."""

Codes = NDArray[np.intp]


def codes_of(column: pa.ChunkedArray) -> tuple[NDArray[np.integer[Any]], int]:
    """A number for each value, the largest for a missing one, and how many numbers there are."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    # parts of one column may have different dictionaries
    coded = coded.unify_dictionaries().combine_chunks()
    words = coded.dictionary
    indices = pc.fill_null(coded.indices, len(words)) if coded.indices.null_count else coded.indices
    codes = indices.to_numpy(zero_copy_only=False)
    if words.null_count:
        # one number for both kinds of missing values
        missing = words.is_null().to_numpy(zero_copy_only=False)
        codes = np.where([*missing, True], len(words), np.arange(len(words) + 1))[codes]
    return codes, len(words) + 1


def combined(
    coded: list[tuple[NDArray[np.integer[Any]], int]], name: str, columns: Sequence[str]
) -> tuple[Codes, Codes]:
    """The cell of each row, from 0 without gaps, and the rows of each cell; coded: codes, and how many there are."""
    cell, n_cells = np.zeros(len(coded[0][0]), np.intp), 1
    for codes, size in coded:
        cell *= size
        cell += codes
        n_cells *= size
        if n_cells > 100 * MAX_CELLS:
            found, cell = np.unique(cell, return_inverse=True)
            n_cells = len(found)
            check_cells(n_cells, name, columns)
    counted = np.bincount(cell)
    present = counted > 0
    check_cells(int(present.sum()), name, columns)
    # in place, as no new memory has to be found for it
    np.take(np.cumsum(present) - 1, cell, out=cell, mode="clip")
    return cell, counted[present]


def first_rows(cell: Codes, n_cells: int) -> Codes:
    """The first row of each cell."""
    first = np.full(n_cells, len(cell), np.intp)
    for at in blocks(len(cell)):
        block = cell[at]
        # of equal cells the last assignment stays: that of the first row
        here = np.full(n_cells, len(cell), np.intp)
        here[block[::-1]] = np.arange(at.start + len(block) - 1, at.start - 1, -1)
        np.minimum(first, here, out=first)
        if first.max() < len(cell):
            break
    return first


def keys_of(cells: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The values of each row; NaN by name, as it is not equal to itself."""
    columns = [cells.column(name).to_pylist() for name in names]
    return [tuple("NaN" if one != one else one for one in key) for key in zip(*columns, strict=True)]


def decoded(rows: pa.Table) -> pa.Table:
    """With text as text: the dictionaries of two parts may differ."""
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


def blocks(n: int, size: int = BLOCK) -> list[slice]:
    """Slices of so many rows each."""
    return [slice(start, start + size) for start in range(0, n, size)]


def check_cells(n: int, name: str, columns: Sequence[str]) -> None:
    """Raise where the columns of a file have too many combinations of values."""
    if n > MAX_CELLS:
        raise UserError(
            f"{name} has more than {MAX_CELLS:,} combinations of {', '.join(columns)}",
            do="name columns of few values, or cut numbers into bins first.",
        )
