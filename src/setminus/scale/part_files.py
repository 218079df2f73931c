"""The scores of each part of a file in a separate file: workers write them, the client reads them in order."""

from __future__ import annotations

import functools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from setminus.scale import Engine
from setminus.scale.scorers import Parts, Scorer, score_rows
from setminus.tables.drift import Drift
from setminus.tables.reading import Table, open_table
from setminus.tables.writing import writing

__all__ = ["RunTasks", "engine_tasks", "limit_blas", "worker_parts"]

RunTasks = Callable[[Callable[[int], Any], Table, list[int]], Iterator[Any]]
"""The results in order, from a task for a part, a table and the indices of parts."""


@contextmanager
def engine_tasks(engine: Engine, scheduler: str | None, master: str | None, folder: Path) -> Iterator[RunTasks]:
    """What runs tasks on the workers of "dask" or "spark"; processes that are started here keep files in `folder`."""
    if engine == "spark":
        from setminus.scale.spark_parts import spark_tasks

        with spark_tasks(master) as run:
            yield run
    else:
        from setminus.scale.dask_parts import dask_tasks

        with dask_tasks(scheduler, folder) as run:
            yield run


def worker_parts(
    table: Table,
    scorer: Scorer,
    needed: list[str],
    as_text: bool,
    target: Path,
    engine: Engine,
    scheduler: str | None,
    master: str | None,
) -> Parts:
    """Rows, their scores and their drift, part by part in order, scored by workers.

    A task reads one part, scores it, writes the scores to a file of a fixed name and returns the drift. Repeated
    after a worker died, it writes the same file again. The client reads each file once.

    Parameters
    ----------
    table : Table
    scorer : Scorer
    needed : list of str
        The columns that the scorer needs.
    as_text : bool
        Whether to give the rows as written in a CSV.
    target : Path
        The output; the folder of the parts is made next to it.
    engine, scheduler, master
        See `score_file`.
    """
    with part_folder(target) as folder, engine_tasks(engine, scheduler, master, folder) as run:
        table = table.seekable(folder)
        task = functools.partial(score_part, table, scorer, needed, folder)
        written = table.as_text() if as_text else table
        # a Parquet file may have row groups of no rows
        indices = [index for index, (first, last) in enumerate(pairwise(table.starts)) if last > first]
        for index, drift in zip(indices, run(task, table, indices), strict=True):
            scores = _part_path(folder, index)
            yield written.part(index), open_table(scores).read(), drift
            scores.unlink()


def score_part(table: Table, scorer: Scorer, needed: list[str], folder: Path, index: int) -> Drift:
    """Score one part and write the scores; repeated after a worker died, it writes the same file again."""
    limit_blas()
    scores, drift = score_rows(scorer, table.part(index, needed), table.starts[index], table.path.name)
    with writing(_part_path(folder, index)) as writer:
        writer.write(scores)
    return drift


@functools.cache
def limit_blas() -> None:
    """One thread for the linear algebra of this process."""
    # for good: tasks on other threads of this worker must not see the limit come and go
    threadpool_limits(1, user_api="blas")


def _part_path(folder: Path, index: int) -> Path:
    """Where the scores of a part are."""
    return folder / f"part-{index:08d}.arrow"


@contextmanager
def part_folder(target: Path) -> Iterator[Path]:
    """A folder beside the output, removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".parts"))
    try:
        yield folder
    finally:
        # a worker of another machine may still be leaving a file; once the folder is gone it cannot
        for _ in range(10):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)
