"""Which kind of file it is: what its ending says, and what its first bytes say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from setminus.tables.errors import TableError

__all__ = ["Format", "Kind", "check_kind", "file_stamp", "named_kind"]

Format = Literal["csv", "parquet", "arrow"]


class Kind(NamedTuple):
    """A format, and whether gzip is around it."""

    format: Format
    gzip: bool = False

    def __str__(self) -> str:
        return TITLES[self.format] + (" in gzip" if self.gzip else "")


TITLES = {"csv": "CSV", "parquet": "Parquet", "arrow": "Arrow IPC"}

ENDINGS: dict[str, Kind] = {
    ".csv": Kind("csv"),
    ".tsv": Kind("csv"),
    ".csv.gz": Kind("csv", gzip=True),
    ".tsv.gz": Kind("csv", gzip=True),
    ".parquet": Kind("parquet"),
    ".pq": Kind("parquet"),
    ".arrow": Kind("arrow"),
    ".feather": Kind("arrow"),
    ".ipc": Kind("arrow"),
}

BEGINNINGS: dict[bytes, Kind] = {
    b"PAR1": Kind("parquet"),
    b"ARROW1": Kind("arrow"),
    b"\x1f\x8b": Kind("csv", gzip=True),
}

FOREIGN = {
    b"PK\x03\x04": "a zip archive, perhaps an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"FEA1": "a Feather file of version 1",
    b"SQLite format 3": "an SQLite database",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"%PDF": "a PDF",
}


def named_kind(path: str | os.PathLike[str]) -> Kind | None:
    """What the ending of a file's name says; None where it is none of ours.

    Examples
    --------
    >>> named_kind("people.CSV.gz")
    Kind(format='csv', gzip=True)
    >>> named_kind("adult.data") is None
    True
    """
    name = Path(path).name.lower()
    fitting = [ending for ending in ENDINGS if name.endswith(ending)]
    return ENDINGS[max(fitting, key=len)] if fitting else None


def check_kind(path: Path) -> Kind:
    """What the file is by its first bytes; raise where it is nothing, or not what its ending says."""
    head = _head(path)
    if not head:
        raise TableError(f"{path.name} is empty", "Give a file with a line of column names and rows below it.")
    for beginning, what in FOREIGN.items():
        if head.startswith(beginning):
            raise TableError(f"{path.name} is {what}", "Save the table as CSV (which may be gzipped) or Parquet.")
    found = next((kind for beginning, kind in BEGINNINGS.items() if head.startswith(beginning)), Kind("csv"))
    said = named_kind(path)
    if said is not None and said != found:
        ending = next(ending for ending, kind in ENDINGS.items() if kind == found)
        looks = f"rename it to end in {ending}" if found != Kind("csv") else "rename it to end in .csv if it is text"
        raise TableError(
            f"{path.name} is not what its ending says: expected {said}, but it looks like {found}",
            f"Give the right file, or {looks}.",
        )
    return found


def file_stamp(path: Path) -> tuple[int, int]:
    """Size and time of a file; raise where it is none, or not there."""
    with _refusing(path):
        found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise TableError(f"{path} is a folder", "Give one file: CSV, Parquet or Arrow.")
    if not stat.S_ISREG(found.st_mode):
        # a pipe would have to be read twice
        raise TableError(f"{path} is no regular file, but a pipe or a device", "Write the table to a file first.")
    return found.st_size, found.st_mtime_ns


def _head(path: Path) -> bytes:
    with _refusing(path), path.open("rb") as file:
        return file.read(16)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"there is no file {path}", "Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"{path} cannot be opened: {reason}", "Check the path, and that you may read it.") from error
