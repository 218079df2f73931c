"""A file of any size in one pass: how often each combination of values occurs, and a random sample of the rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setminus.errors import UserError
from setminus.progress import tracked
from setminus.tables.columns import check_names
from setminus.tables.reading import Table

__all__ = ["MAX_CELLS", "Summary", "summarize"]

MAX_CELLS = 100_000
"""Combinations of values: with more of them, a column is not one of groups."""

Codes = NDArray[np.int32]
Cell = tuple[int, ...]


@dataclass(frozen=True)
class Summary:
    """What one pass over a file keeps.

    Attributes
    ----------
    cells : pyarrow.Table
        The first row of each combination of values and decision.
    counts : ndarray of int
        How many rows of the file each of them stands for.
    sample : pyarrow.Table
        Random rows, and a first row for each value of a required column that none of them has.
    n_rows : int
        Rows of the file.
    """

    cells: pa.Table
    counts: NDArray[np.int64]
    sample: pa.Table
    n_rows: int


def summarize(
    table: Table,
    values: Sequence[str],
    scores: Sequence[str] = (),
    *,
    threshold: float | None = None,
    required: Sequence[str] = (),
    kept: Sequence[str] = (),
    max_rows: int,
    seed: int = 0,
) -> Summary:
    """Count the combinations of values and decisions of a file, and draw rows from it, in one pass.

    Memory does not grow with the file: it holds one part of it, the cells and the sample.

    Parameters
    ----------
    table : Table
    values : sequence of str
        Columns of few distinct values: the label, groups, decisions.
    scores : sequence of str
        Columns of probabilities. Two rows of one cell have the same most probable column, and are on the same side of
        the threshold in each.
    threshold : float, optional
    required : sequence of str
        Columns of `values` that must not be missing: rows without them are in no sample, and in cells of their own.
    kept : sequence of str
        Other columns of the sample.
    max_rows : int
        Rows of the sample.
    seed : int

    Returns
    -------
    Summary

    Examples
    --------
    >>> import tempfile, pyarrow.parquet as pq
    >>> from pathlib import Path
    >>> from setminus.tables.reading import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.parquet")
    ...     pq.write_table(pa.table({"sex": ["f", "m", "f"], "p": [0.2, 0.9, 0.7]}), path)
    ...     found = summarize(open_table(path), ["sex"], ["p"], max_rows=2)
    >>> found.cells.to_pydict(), found.counts.tolist()
    ({'sex': ['f', 'f', 'm'], 'p': [0.2, 0.7, 0.9]}, [1, 1, 1])
    """
    used = [*dict.fromkeys([*values, *scores, *kept])]
    check_names(used, table.names, table.path.name)
    table = table.scanned().coded()
    n_rows = table.starts[-1]
    chosen = np.sort(np.random.default_rng(seed).choice(n_rows, size=min(max_rows, n_rows), replace=False))
    known: dict[str, dict[object, int]] = {name: {} for name in values}
    counts: dict[Cell, int] = {}
    first: list[pa.Table] = []
    sample: list[pa.Table] = []
    start = 0
    with tracked(f"read {table.path.name}", total=n_rows, unit="rows") as progress:
        for rows in table.batches(used):
            codes = [*(_codes(rows.column(name), known[name]) for name in values)]
            if scores:
                codes.append(_decisions([_floats(rows.column(name)) for name in scores], threshold))
            for cell, count, place in _counted(codes, counts.keys()):
                if cell not in counts:
                    first.append(_decoded(rows.slice(place, 1)))
                    if len(first) > MAX_CELLS:
                        raise UserError(
                            f"{table.path.name} has more than {MAX_CELLS:,} combinations of {', '.join(values)}",
                            do="name columns of few values, or cut numbers into bins first.",
                        )
                counts[cell] = counts.get(cell, 0) + count
            within = slice(*np.searchsorted(chosen, [start, start + rows.num_rows]))
            if within.stop > within.start:
                sample.append(_present(_decoded(rows.take(pa.array(chosen[within] - start))), required))
            start += rows.num_rows
            progress.advance(rows.num_rows)
    cells = pa.concat_tables(first).combine_chunks()
    return Summary(
        cells,
        np.array([*counts.values()], dtype=np.int64),
        _completed(pa.concat_tables(sample), _present(cells, required), required),
        n_rows,
    )


def _decoded(rows: pa.Table) -> pa.Table:
    """With text as text: the dictionaries of two parts may differ."""
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


def _completed(sample: pa.Table, cells: pa.Table, required: Sequence[str]) -> pa.Table:
    """The sample with one row for each value of a column that it lacks."""
    for name in required:
        lacking = {*cells.column(name).unique().to_pylist()} - {*sample.column(name).unique().to_pylist()}
        values = cells.column(name).to_pylist()
        places = pa.array([values.index(value) for value in sorted(lacking, key=str)], pa.int64())
        sample = pa.concat_tables([sample, cells.take(places)])
    return sample


def _present(rows: pa.Table, required: Sequence[str]) -> pa.Table:
    for name in required:
        rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows


def _codes(column: pa.ChunkedArray, known: dict[object, int]) -> Codes:
    """A number for each value, the same in every part of the file; 0 is a missing one."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    parts = [np.empty(0, dtype=np.int32)]
    for chunk in coded.chunks:
        words = chunk.dictionary.to_pylist()
        numbers = [0 if word is None else known.setdefault(word, len(known) + 1) for word in words]
        # the last stands for a missing value, -1
        table = np.array([*numbers, 0], dtype=np.int32)
        indices = pc.fill_null(chunk.indices, -1) if chunk.indices.null_count else chunk.indices
        parts.append(table[indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(parts)


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    try:
        numbers = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # text: whoever reads the first row of a cell says what is wrong with it
        return np.full(len(column), np.nan)
    return np.asarray(numbers.to_numpy())


def _decisions(scores: list[NDArray[np.float64]], threshold: float | None) -> Codes:
    """A code of what the scores decide; 0 where they are no probabilities."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if len(scores) == 1:
            (p,) = scores
            limit = 0.5 if threshold is None else threshold
            # a tie is decided by the order of the classes, which is not that of the columns
            other = p > limit if threshold is None else 1 - p >= limit
            code = (p >= limit) + 2 * other.view(np.int8) + np.int32(1)
            return np.where((p >= 0) & (p <= 1), code, np.int32(0))
        proba = np.column_stack(scores)
        good = ((proba >= 0) & (proba <= 1)).all(axis=1)
        proba /= proba.sum(axis=1, keepdims=True)
        above = proba == proba.max(axis=1, keepdims=True) if threshold is None else proba >= threshold
        return np.where(good, 1 + (above << np.arange(len(scores))).sum(axis=1), 0).astype(np.int32)


def _counted(codes: list[Codes], known: Container[Cell]) -> Iterator[tuple[Cell, int, int]]:
    """Each combination of codes, its number of rows, and the place of its first row where it is not known."""
    if not len(codes[0]):
        return
    shape = tuple(int(code.max()) + 1 for code in codes)
    if np.prod([float(size) for size in shape]) > 100 * MAX_CELLS:
        _, places, inverse = np.unique(np.column_stack(codes), axis=0, return_index=True, return_inverse=True)
        for at, count in zip(places, np.bincount(inverse.ravel()), strict=True):
            yield tuple(int(code[at]) for code in codes), int(count), int(at)
        return
    flat = codes[0]
    for code, size in zip(codes[1:], shape[1:], strict=True):
        flat = flat * np.int32(size) + code
    counts = np.bincount(flat)
    for index in np.flatnonzero(counts):
        cell = tuple(int(code) for code in np.unravel_index(index, shape))
        yield cell, int(counts[index]), 0 if cell in known else int((flat == index).argmax())
