"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside `path` to write to, renamed to it when the block ends; after an error nothing is left of it.

    Whoever reads `path` meanwhile sees the old file, and whoever interrupts loses nothing.

    Parameters
    ----------
    path : path
        In a folder that exists.

    Yields
    ------
    Path
        In a folder of its own, on the same disk.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder, "answer.txt")) as partial:
    ...         _ = partial.write_text("42")
    ...     Path(folder, "answer.txt").read_text()
    '42'
    """
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
        partial = Path(folder, target.name)
        yield partial
        partial.replace(target)
