"""Tasks for the parts of a table, run by Spark, and the rows of a Spark DataFrame scored where they lie."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from setminus.errors import MissingExtraError, UserError
from setminus.scale.part_files import RunTasks
from setminus.scale.scorers import Scorer, score_rows
from setminus.tables.reading import Table

__all__ = ["score_frame", "spark_tasks"]

WORKERS = 2
PARTS_PER_WORKER = 4
"""Parts that each worker is given at a time: their scores lie on disk until they are read."""


@contextmanager
def spark_tasks(master: str | None) -> Iterator[RunTasks]:
    """A function that runs a task for some parts of a table on workers, and gives the results in order.

    Parameters
    ----------
    master : str or None
        Spark's address of a cluster. None takes the session that is active, or starts 2 threads here.
    """
    with _session(master) as session:
        context = session.sparkContext
        at_once = PARTS_PER_WORKER * max(WORKERS, context.defaultParallelism)

        def run(task: Callable[[int], Any], table: Table, indices: list[int]) -> Iterator[Any]:
            for start in range(0, len(indices), at_once):
                some = indices[start : start + at_once]
                for outcome in context.parallelize(some, len(some)).map(functools.partial(_outcome, task)).collect():
                    if isinstance(outcome, UserError):
                        raise outcome
                    yield outcome

        yield run


def _outcome(task: Callable[[int], Any], index: int) -> Any:
    """The result of a part, or the error: Spark would try a part again, and give the error back as text."""
    try:
        return task(index)
    except UserError as error:
        return error


def score_frame(frame: Any, scorer: Scorer) -> Any:
    """Add scores to a Spark DataFrame, where its rows lie (`mapInArrow`); nothing runs before Spark asks for rows.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With the columns that the scorer needs.
    scorer : ModelScorer or ProbabilityScorer
        A model file must be at the same path for every worker.

    Returns
    -------
    pyspark.sql.DataFrame
        The same columns, and those of the scores.

    Examples
    --------
    ``score_frame(spark.read.parquet("s3://bucket/people"), ModelScorer("/shared/model.skops")).write.parquet(...)``
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    # the names and types of the scores are those of one row
    first = frame.limit(1).toArrow()
    if not first.num_rows:
        raise UserError("the DataFrame has no rows", do="give one with rows.")
    return frame.mapInArrow(
        functools.partial(_scored_batches, scorer), from_arrow_schema(_with_scores(scorer, first).schema)
    )


def _scored_batches(scorer: Scorer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield from _with_scores(scorer, pa.Table.from_batches([batch])).combine_chunks().to_batches()


def _with_scores(scorer: Scorer, rows: pa.Table) -> pa.Table:
    scores, _ = score_rows(scorer, rows, 0, "a batch of the DataFrame")
    for name in scores.column_names:
        if name in rows.column_names:
            raise UserError(f"the DataFrame has a column {name!r} already", do="drop or rename it.")
        rows = rows.append_column(name, scores.column(name))
    return rows


@contextmanager
def _session(master: str | None) -> Iterator[Any]:
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError('engine="spark"', "pyspark", extra="spark") from error
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise UserError("Spark needs Java, which is not installed", do="install Java 17 or later, or set JAVA_HOME.")
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        yield active
        return
    if active is not None:
        raise UserError(f"a Spark session is active, and master is {master!r}", do="leave master out, or stop it.")
    builder = SparkSession.builder.master(master or f"local[{WORKERS}]").appName("setminus")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.SETMINUS_THREADS": "1",
    }
    if master is None or master.startswith("local"):
        # nobody else has to reach it
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if master is None or re.fullmatch(r"local(\[.*\])?", master):
        # others on this machine neither: Spark makes a key for the run, in these modes alone
        settings["spark.authenticate"] = "true"
    for name, value in settings.items():
        builder = builder.config(name, value)
    # workers must have this library: by default they take the first python3 of the path
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        session = builder.getOrCreate()
    # Java's own errors have a class of py4j's
    except (PySparkException, OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"no Spark session could be started at {master or 'local'}: {str(error).splitlines()[0]}",
            do="check the address, and that its Spark has the version of pyspark here.",
        ) from error
    try:
        session.sparkContext.setLogLevel("ERROR")
        yield session
    finally:
        session.stop()
