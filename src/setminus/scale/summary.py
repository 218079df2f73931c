"""A file of any size in one pass: how often each combination of values occurs, and a random sample of the rows.

Counts are additive: each part of the file is counted separately, here or on another machine, and the counts are added.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setminus.auditing.calibration import N_BINS, BinnedScores, score_bins
from setminus.progress import tracked
from setminus.scale.cells import BLOCK, blocks, check_cells, codes_of, combined, decoded, first_rows
from setminus.scale.part_files import RunTasks
from setminus.tables.columns import check_names
from setminus.tables.reading import Table, ahead

__all__ = ["Summary", "distinct_values", "summarize"]

MAX_BINNED = 1000
"""Combinations of values whose scores are counted in fine bins, in about 100 MB."""

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Score = Callable[[list[Floats]], Floats]
"""The score that is counted in bins, from the columns of probabilities."""


@dataclass(frozen=True)
class Summary:
    """What one pass over a file keeps.

    Attributes
    ----------
    cells : pyarrow.Table
        The first row of each combination of values and decision.
    counts : ndarray of int
        How many rows of the file each of them represents.
    binned : BinnedScores or None
        The scores of these rows, where they are asked for and the combinations are at most `MAX_BINNED`.
    sample : pyarrow.Table
        Random rows, and a first row for each value of a required column that none of them has.
    n_rows : int
        Rows of the file.
    """

    cells: pa.Table
    counts: NDArray[np.int64]
    binned: BinnedScores | None
    sample: pa.Table
    n_rows: int


def summarize(
    table: Table,
    values: Sequence[str],
    scores: Sequence[str] = (),
    *,
    threshold: float | None = None,
    decide: bool = True,
    score: Score | None = None,
    required: Sequence[str] = (),
    kept: Sequence[str] = (),
    max_rows: int,
    seed: int = 0,
    run: RunTasks | None = None,
) -> Summary:
    """Count the combinations of values and decisions of a file, and draw rows from it, in one pass.

    Memory does not grow with the file: it holds two parts of it, the cells and the sample.

    Parameters
    ----------
    table : Table
    values : sequence of str
        Columns of few distinct values: the label, groups, decisions.
    scores : sequence of str
        Columns of probabilities. Two rows of one cell have the same most probable column, and are on the same side of
        the threshold in each. Rows of values that are no probabilities are in separate cells.
    threshold : float, optional
    decide : bool
        Whether the scores decide; otherwise a column of `values` does.
    score : callable, optional
        From the arrays of `scores` to one array of numbers from 0 to 1, which is counted in bins.
    required : sequence of str
        Columns of `values` that must not be missing: rows without them are in no sample, and in cells of their own.
    kept : sequence of str
        Other columns of the sample.
    max_rows : int
        Rows of the sample.
    seed : int
    run : callable, optional
        Counts each part where it lies: `dask_tasks` or `spark_tasks` give it. By default this process counts.

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
    count = _Count(table.path.name, tuple(values), tuple(scores), threshold, decide, score, tuple(required))
    whole = _Whole(count)
    reading = tracked(f"read {table.path.name}", total=n_rows, unit="rows")
    parts = _here(table, used, count, chosen) if run is None else _elsewhere(table, used, count, chosen, run)
    with reading as progress, closing(parts):
        for part in parts:
            whole.add(part)
            progress.advance(int(part.counts.sum()))
    return whole.summary(n_rows)


def _here(table: Table, used: list[str], count: _Count, chosen: Codes) -> Generator[_Part]:
    """What is kept of each part, in this process."""
    with closing(ahead(table.batches(used))) as batches:
        for (start, stop), rows in zip(pairwise(table.starts), batches, strict=True):
            if rows.num_rows:
                yield count(rows, _within(chosen, start, stop))


def _elsewhere(table: Table, used: list[str], count: _Count, chosen: Codes, run: RunTasks) -> Generator[_Part]:
    """The same, by tasks."""
    indices = [index for index, (start, stop) in enumerate(pairwise(table.starts)) if stop > start]
    yield from run(partial(_task, table, used, count, chosen), table, indices)


def _task(table: Table, used: list[str], count: _Count, chosen: Codes, index: int) -> _Part:
    return count(table.part(index, used), _within(chosen, *table.starts[index : index + 2]))


def _within(chosen: Codes, start: int, stop: int) -> Codes:
    """The chosen rows of a part, counted from its first."""
    return chosen[slice(*np.searchsorted(chosen, [start, stop]))] - start


def distinct_values(table: Table, name: str) -> pa.ChunkedArray:
    """The values of a column, in one pass over it."""
    check_names([name], table.names, table.path.name)
    found: list[pa.Array] = []
    for rows in table.scanned().coded().batches([name]):
        for chunk in rows.column(name).chunks:
            found.append((chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk).unique())
    return pa.chunked_array(found).unique()


@dataclass(frozen=True)
class _Part:
    """What is kept of one part of a file: the first row of each cell with its decision, its rows and its scores."""

    cells: pa.Table
    decisions: Codes
    counts: NDArray[np.int64]
    binned: BinnedScores | None
    sample: pa.Table


@dataclass(frozen=True)
class _Count:
    """What to count, as `summarize` describes it."""

    name: str
    values: tuple[str, ...]
    scores: tuple[str, ...]
    threshold: float | None
    decide: bool
    score: Score | None
    required: tuple[str, ...]

    def __call__(self, rows: pa.Table, chosen: Codes) -> _Part:
        """Count the rows of a part, and take the chosen ones."""
        coded = [codes_of(rows.column(name)) for name in self.values]
        scores = [_floats(rows.column(name)) for name in self.scores]
        if self.scores:
            decisions = np.empty(rows.num_rows, np.int32)
            for at in blocks(rows.num_rows):
                decisions[at] = _decisions([one[at] for one in scores], self.threshold, self.decide)
            coded.append((decisions, 1 + 2 ** max(2, len(scores))))
        cell, counts = combined(coded, self.name, self.values)
        first = first_rows(cell, len(counts))
        return _Part(
            decoded(rows.take(pa.array(first))),
            decisions[first] if self.scores else np.zeros(len(first), np.intp),
            counts,
            self._binned(cell, scores, len(counts)),
            _present(decoded(rows.take(pa.array(chosen))), self.required),
        )

    def _binned(self, cell: Codes, scores: list[Floats], n_cells: int) -> BinnedScores | None:
        if self.score is None or n_cells > MAX_BINNED:
            return None
        size, shape = n_cells * N_BINS, (n_cells, N_BINS)
        counts, sums = np.zeros(size, np.int64), np.zeros(size)
        # as many rows as there are counts to add, at least
        for rows in blocks(len(cell), max(BLOCK, size)):
            with np.errstate(invalid="ignore", divide="ignore"):
                score = self.score([one[rows] for one in scores])
                # what is no probability is refused by its decision
                if not (score.min() >= 0 and score.max() <= 1):
                    score = np.where((score >= 0) & (score <= 1), score, 0.0)
            at = cell[rows] * N_BINS
            at += score_bins(score)
            counts += np.bincount(at, minlength=size)
            sums += np.bincount(at, score, minlength=size)
        return BinnedScores(counts.reshape(shape), sums.reshape(shape))


class _Whole:
    """The sum of parts."""

    def __init__(self, count: _Count):
        self.count = count
        self.places: dict[Any, int] = {}
        self.first: list[pa.Table] = []
        self.counts = np.zeros(0, np.int64)
        self.binned: BinnedScores | None = BinnedScores(np.zeros((0, N_BINS), np.int64), np.zeros((0, N_BINS)))
        self.samples: list[pa.Table] = []

    def add(self, part: _Part) -> None:
        """Add the counts of a part, and its sample."""
        columns = [part.cells.column(name).to_pylist() for name in self.count.values]
        # NaN is not equal to itself
        keys = [
            tuple("NaN" if one != one else one for one in key) for key in zip(*columns, part.decisions, strict=True)
        ]
        known = len(self.places)
        at = np.array([self.places.setdefault(key, len(self.places)) for key in keys], np.intp)
        new = len(self.places) - known
        check_cells(len(self.places), self.count.name, self.count.values)
        if new:
            self.first.append(part.cells.filter(pa.array(at >= known)))
            self.counts = np.concatenate([self.counts, np.zeros(new, np.int64)])
        np.add.at(self.counts, at, part.counts)
        if part.binned is None or len(self.places) > MAX_BINNED:
            self.binned = None
        elif self.binned is not None:
            # no cell occurs twice in one part
            self.binned = self.binned.plus(part.binned, at, len(self.places))
        self.samples.append(part.sample)

    def summary(self, n_rows: int) -> Summary:
        """All of it."""
        cells, required = pa.concat_tables(self.first).combine_chunks(), self.count.required
        sample = _completed(pa.concat_tables(self.samples), _present(cells, required), required)
        return Summary(cells, self.counts, self.binned, sample, n_rows)


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


def _floats(column: pa.ChunkedArray) -> Floats:
    try:
        numbers = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # text: whoever reads the first row of a cell says what is wrong with it
        return np.full(len(column), np.nan)
    return np.asarray(numbers.to_numpy())


def _decisions(scores: list[Floats], threshold: float | None, decide: bool) -> Codes:
    """A code of what the scores decide; 0 where they are no probabilities."""
    with np.errstate(invalid="ignore", divide="ignore"):
        good = np.logical_and.reduce([(p >= 0) & (p <= 1) for p in scores])
        if not decide:
            return np.asarray(good, np.intp)
        if len(scores) == 1:
            (p,) = scores
            limit = 0.5 if threshold is None else threshold
            # a tie is decided by the order of the classes, which is not that of the columns
            above = [p >= limit, p > limit if threshold is None else 1 - p >= limit]
        else:
            total = sum(scores[1:], scores[0])
            shares = [p / total for p in scores]
            limit = np.maximum.reduce(shares) if threshold is None else threshold
            above = [share >= limit for share in shares]
        code = np.ones(len(scores[0]), np.intp)
        for k, one in enumerate(above):
            code += one.astype(np.intp) << k
        code *= good
        return code
