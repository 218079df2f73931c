"""A file in, a file with scores out, one part at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
from threadpoolctl import threadpool_limits

from setminus.errors import UserError
from setminus.progress import tracked
from setminus.scale import Engine
from setminus.scale.part_files import worker_parts
from setminus.scale.scorers import Parts, Scorer, score_rows
from setminus.tables.columnar import ParquetSource
from setminus.tables.delimited import CsvSource
from setminus.tables.drift import ColumnDrift, Drift, drift_text, merge_drift, unranged_text
from setminus.tables.reading import Table, ahead, named_kind, open_table
from setminus.tables.writing import neutralized, writing

__all__ = ["Scored", "score_file"]


@dataclass(frozen=True)
class Scored:
    """The result of `score_file`.

    Attributes
    ----------
    path : Path
    n_rows : int
    scores : tuple of str
        The columns that were added.
    drift : mapping of str to ColumnDrift
        How the rows differ from those of training, by column; empty where the scorer does not know.
    notes : tuple of str
        Guesses about the source, see `Table.notes`.
    """

    path: Path
    n_rows: int
    scores: tuple[str, ...]
    drift: Drift = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def score_file(
    source: str | os.PathLike[str] | Table,
    out: str | os.PathLike[str],
    scorer: Scorer,
    *,
    neutralize: bool | None = None,
    engine: Engine = "arrow",
    scheduler: str | None = None,
    master: str | None = None,
    strict: bool = False,
) -> Scored:
    r"""Score every row of a file, in order; memory does not grow with the file.

    A row group of Parquet, a record batch of Arrow and a block of about 16 MiB of CSV are one task on every
    engine, and each task has one thread for its linear algebra: all engines give the same bits.

    Parameters
    ----------
    source : path or Table
        The rows to score; `open_table` has options for CSV.
    out : path
        The file to write, in the format of its ending. It appears when it is complete.
    scorer : Scorer
        `ProbabilityScorer` or `ModelScorer`.
    neutralize : bool, optional
        CSV: whether an apostrophe goes before text that a spreadsheet would run as a formula. By default before the
        words of the scorer, and not before those of the source, which stay as they are.
    engine : {"arrow", "dask", "spark"}, default="arrow"
        "dask" works in 2 processes of this machine, or on the cluster at `scheduler`; "spark" in the active session, in
        2 threads, or on the cluster at `master`. Source, output and model must be at the same path for every worker.
    scheduler : str, optional
        Address of a running Dask scheduler, such as "tls://10.0.0.1:8786".
    master : str, optional
        Spark's address of a cluster, such as "spark://10.0.0.1:7077".
    strict : bool, default=False
        Refuse a file with values that training did not have, instead of counting them in `Scored.drift`. It is read
        once more for that, before it is scored.

    Raises
    ------
    UserError
        Where the source, the scores or the output are refused; the error names the range of rows of a bad value.
        Nothing is then written.

    Examples
    --------
    >>> import tempfile
    >>> from setminus.scale.scorers import ProbabilityScorer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     given, scored = Path(folder, "given.csv"), Path(folder, "scored.csv")
    ...     _ = given.write_text("id,p,q\n7,0.8,0.6\n")
    ...     done = score_file(given, scored, ProbabilityScorer(["p"], ["q"], "uniform"))
    ...     print(done.scores, scored.read_text(), sep="\n")
    ('orthogonal',)
    "id","p","q","orthogonal"
    "7","0.8","0.6",0.727...
    """
    if engine not in get_args(Engine):
        raise UserError(f"engine is {engine!r}", expected="'arrow', 'dask' or 'spark'")
    if scheduler is not None and engine != "dask":
        raise UserError(f"scheduler is {scheduler!r} with engine={engine!r}", do="it goes with engine='dask'.")
    if master is not None and engine != "spark":
        raise UserError(f"master is {master!r} with engine={engine!r}", do="it goes with engine='spark'.")
    table = source if isinstance(source, Table) else open_table(source)
    target = Path(out).absolute()
    if target.exists() and target.samefile(table.path):
        raise UserError(f"{target.name} is both the source and the output", do="write to another file.")
    as_csv = getattr(named_kind(target), "format", "") == "csv"
    with writing(target, **_like(table), neutralize=bool(neutralize)) as writer:
        table = table.scanned()
        needed = scorer.columns(table)
        if strict:
            _refuse_drift(_whole_drift(table, scorer, needed), table.path.name)
        # from CSV to CSV a value is kept as written: 007 would be 7, and NA empty
        as_text = isinstance(table.source, CsvSource) and as_csv
        if engine == "arrow":
            parts = _arrow_parts(table, scorer, needed, as_text)
        else:
            parts = worker_parts(table, scorer, needed, as_text, target, engine, scheduler, master)
        done, names, drift = 0, (), dict[str, ColumnDrift]()
        scoring = tracked(f"score {table.path.name}", total=table.starts[-1], unit="rows")
        with scoring as progress, closing(parts), ThreadPoolExecutor(1) as pool:
            # one part is written while the next is scored
            written: Future[None] | None = None
            for rows, scores, found in parts:
                names, drift = tuple(scores.column_names), merge_drift(drift, found)
                # a model file may come from anybody
                whole = _appended(rows, neutralized(scores) if as_csv and neutralize is None else scores)
                if written is not None:
                    written.result()
                written = pool.submit(writer.write, whole)
                done += whole.num_rows
                progress.advance(whole.num_rows)
            if written is not None:
                written.result()
    return Scored(target, done, names, drift, table.notes)


def _arrow_parts(table: Table, scorer: Scorer, needed: list[str], as_text: bool) -> Parts:
    """Rows, their scores and their drift, part by part, in this process."""
    read = _read(table, needed, as_text)
    with threadpool_limits(1, user_api="blas"), closing(ahead(read)) as batches:
        for start, (copied, rows) in zip(table.starts, batches, strict=False):
            # a Parquet file may have row groups of no rows
            if rows.num_rows:
                yield copied, *score_rows(scorer, rows, start, table.path.name)


def _whole_drift(table: Table, scorer: Scorer, needed: list[str]) -> Drift:
    drift: dict[str, ColumnDrift] = {}
    for rows in table.batches(needed):
        if rows.num_rows:
            drift = merge_drift(drift, scorer.drift(rows))
    return drift


def _refuse_drift(drift: Drift, where: str) -> None:
    """Raise where a column has unseen values, or where that is unknown."""
    unseen, unranged = drift_text(drift), unranged_text(drift)
    if unseen:
        raise UserError(
            f"{where} has values that training did not have: {unseen}",
            do="mend or leave out those rows, or score them as they are without --strict.",
        )
    if unranged or not drift:
        raise UserError(
            f"{where} cannot be compared with the training rows: the model does not hold "
            + (f"the range of {unranged}" if unranged else "their values"),
            do="fit it again with setminus fit or adapt, or leave out --strict.",
        )


def _read(table: Table, needed: list[str], as_text: bool) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The rows to write and the columns to score, part by part; from one pass where they are read the same way."""
    if as_text:
        yield from zip(table.as_text().batches(), table.batches(needed), strict=True)
        return
    for rows in table.batches():
        yield rows, rows.select(needed)


def _appended(rows: pa.Table, scores: pa.Table) -> pa.Table:
    for name in scores.column_names:
        if name in rows.column_names:
            raise UserError(
                f"the source has a column {name!r} already, which is what a score is called",
                do="rename that column, or leave it out of the file.",
            )
        rows = rows.append_column(name, scores.column(name))
    return rows


def _like(table: Table) -> dict[str, Any]:
    """Parquet options of the source; scores hardly repeat, so that a dictionary of them is wasted work."""
    if isinstance(table.source, ParquetSource):
        return {"compression": table.source.compression, "dictionary": table.source.dictionary or False}
    return {"dictionary": table.names}
