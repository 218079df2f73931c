"""Random rows of a file of any size: their places, and the rows at some places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.progress import tracked
from setminus.scale.cells import check_cells, codes_of, combined, decoded, first_rows, keys_of
from setminus.tables.columns import check_names
from setminus.tables.reading import Table, ahead

__all__ = ["draw_rows", "gather"]

Codes = NDArray[np.intp]


def draw_rows(table: Table, by: Sequence[str], sizes: Sequence[int], seed: int = 0) -> list[NDArray[np.int64]]:
    """Disjoint random samples of the rows of a file, each with its share of every combination of some columns.

    Two passes over these columns: one counts, the other draws. Memory grows with the samples, not with the file.

    Parameters
    ----------
    table : Table
    by : sequence of str
        Columns of few distinct values.
    sizes : sequence of int
        Rows of each sample, together at most those of the file. Shares are rounded: a sample may have a row more or
        less of each combination.
    seed : int

    Returns
    -------
    list of ndarray of int
        Places of rows in rising order, for each sample.
    """
    check_names(by, table.names, table.path.name)
    table = table.scanned().coded()
    rng = np.random.default_rng(seed)
    places: dict[Any, int] = {}
    totals: list[int] = []

    def cells() -> Iterator[tuple[Codes, Codes, Codes]]:
        """For each part the places of its cells, the rows of each, and the rows in the order of their cells."""
        for rows in table.batches(by):
            if not rows.num_rows:
                yield (np.empty(0, np.intp),) * 3
                continue
            cell, counts = combined([codes_of(rows.column(name)) for name in by], table.path.name, by)
            firsts = decoded(rows.take(pa.array(first_rows(cell, len(counts)))))
            at = np.array([places.setdefault(key, len(places)) for key in keys_of(firsts, by)], np.intp)
            yield at, counts, np.argsort(cell, kind="stable")

    for at, counts, _ in cells():
        check_cells(len(places), table.path.name, by)
        totals += [0] * (len(places) - len(totals))
        for place, n in zip(at, counts, strict=True):
            totals[place] += int(n)
    left = np.array(totals)
    # which sample each drawn row of a cell goes to
    shares = np.array([np.floor(size * left / left.sum() + rng.random()) for size in sizes]).astype(np.int64)
    shares = np.minimum(np.cumsum(shares, axis=0), left)
    queues = [rng.permutation(np.repeat(np.arange(len(sizes)), np.diff(share, prepend=0))) for share in shares.T]
    drawn: list[list[NDArray[np.int64]]] = [[] for _ in sizes]
    start = 0
    for at, counts, order in cells():
        ends = np.cumsum(counts)
        for place, n, end in zip(at, counts, ends, strict=True):
            wanted = len(queues[place])
            # each row that is left is as likely to be drawn
            k = int(rng.hypergeometric(wanted, left[place] - wanted, n)) if 0 < wanted < left[place] else min(wanted, n)
            left[place] -= n
            rows = start + order[end - n : end][rng.permutation(n)[:k]]
            for sample, kept in enumerate(drawn):
                kept.append(rows[queues[place][:k] == sample])
            queues[place] = queues[place][k:]
        start += int(ends[-1]) if len(ends) else 0
    return [np.sort(np.concatenate([np.empty(0, np.int64), *one])) for one in drawn]


def gather(table: Table, samples: Sequence[NDArray[np.int64]]) -> list[pa.Table]:
    """The rows at some places, for each sample, in one pass over all columns."""
    found: list[list[pa.Table]] = [[] for _ in samples]
    start, table = 0, table.scanned().coded()
    reading = tracked(f"read {table.path.name}", total=table.starts[-1], unit="rows")
    with reading as progress, closing(ahead(table.batches())) as batches:
        for rows in batches:
            for sample, kept in zip(samples, found, strict=True):
                within = slice(*np.searchsorted(sample, [start, start + rows.num_rows]))
                kept.append(decoded(rows.take(pa.array(sample[within] - start))))
            start += rows.num_rows
            progress.advance(rows.num_rows)
    return [pa.concat_tables(parts) for parts in found]
