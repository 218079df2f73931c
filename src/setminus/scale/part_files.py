"""The scores of each part of a file in a file of its own: workers write them, the client reads them in order."""

from __future__ import annotations

import functools
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import threadpool_limits

from setminus.scale.scorers import Scorer, score_rows
from setminus.tables.drift import Drift
from setminus.tables.reading import Table
from setminus.tables.writing import writing

__all__ = ["limit_blas", "part_folder", "part_path", "score_part"]


def score_part(table: Table, scorer: Scorer, needed: list[str], folder: Path, index: int) -> Drift:
    """Score one part and write the scores; repeated after a worker died, it writes the same file again."""
    limit_blas()
    scores, drift = score_rows(scorer, table.part(index, needed), table.starts[index], table.path.name)
    with writing(part_path(folder, index)) as writer:
        writer.write(scores)
    return drift


@functools.cache
def limit_blas() -> None:
    """One thread for the linear algebra of this process."""
    # for good: tasks on other threads of this worker must not see the limit come and go
    threadpool_limits(1, user_api="blas")


def part_path(folder: Path, index: int) -> Path:
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
