"""Open a table of any format (CSV, Parquet, Arrow) and read it as arrow tables, whole or part by part."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import pyarrow as pa

from setminus.errors import UserError
from setminus.tables.columnar import ArrowSource, ParquetSource
from setminus.tables.columns import check_names, check_unique
from setminus.tables.delimited import CsvSource
from setminus.tables.numerals import DecimalSign

__all__ = ["Format", "Kind", "Table", "ahead", "check_kind", "file_stamp", "named_kind", "open_table"]

Format = Literal["csv", "parquet", "arrow"]
Source = CsvSource | ParquetSource | ArrowSource
Part = TypeVar("Part")


class Kind(NamedTuple):
    """A format, and whether the file is gzipped."""

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
    """The kind of file by the ending of its name; None where the ending is not known.

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
    """The kind of file by its first bytes; raise where it is empty, foreign, or not what its ending says."""
    with _refusing(path), path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise UserError(f"{path.name} is empty", do="give a file with a line of column names and rows below it.")
    for beginning, what in FOREIGN.items():
        if head.startswith(beginning):
            raise UserError(f"{path.name} is {what}", do="save the table as CSV (which may be gzipped) or Parquet.")
    found = next((kind for beginning, kind in BEGINNINGS.items() if head.startswith(beginning)), Kind("csv"))
    said = named_kind(path)
    if said is not None and said != found:
        ending = next(ending for ending, kind in ENDINGS.items() if kind == found)
        looks = f"rename it to end in {ending}" if found != Kind("csv") else "rename it to end in .csv if it is text"
        raise UserError(
            f"{path.name} is not what its ending says: expected {said}, but it looks like {found}",
            do=f"give the right file, or {looks}.",
        )
    return found


def file_stamp(path: Path) -> tuple[int, int]:
    """Size and time of a file; raise where it does not exist or is not a regular file."""
    with _refusing(path):
        found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise UserError(f"{path} is a folder", do="give one file: CSV, Parquet or Arrow.")
    if not stat.S_ISREG(found.st_mode):
        # a pipe would have to be read twice
        raise UserError(f"{path} is no regular file, but a pipe or a device", do="write the table to a file first.")
    return found.st_size, found.st_mtime_ns


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"there is no file {path}", do="check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be opened: {reason}", do="check the path, and that you may read it.") from error


@dataclass(frozen=True)
class Table:
    """A table in a file, opened but not read.

    Attributes
    ----------
    path : Path
    format : {"csv", "parquet", "arrow"}
    names : tuple of str
        The names of the columns.
    source : CsvSource, ParquetSource or ArrowSource
        How its format is read.
    stamp : tuple of int
        Size and time of the file when it was opened.
    """

    path: Path
    format: Format
    names: tuple[str, ...]
    source: Source
    stamp: tuple[int, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """Guesses to show to the user; for a CSV complete once it is `scanned` or loaded."""
        return self.source.notes if isinstance(self.source, CsvSource) else ()

    @property
    def decimal(self) -> DecimalSign | None:
        """The decimal sign of a CSV that is `scanned` or loaded; None for other files."""
        found = self.source.found if isinstance(self.source, CsvSource) else None
        return None if found is None else found.decimal

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None for a CSV that has not been `scanned`."""
        return self.source.n_rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types; a CSV must be `scanned` first."""
        if self.source.schema is None:
            raise UserError(f"the types of {self.path.name} are not known yet", do="call scanned() first.")
        return self.source.schema

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each part, and the number of rows at the end; a CSV must be `scanned` first."""
        if self.source.starts is None:
            raise UserError(f"the parts of {self.path.name} are not known yet", do="call scanned() first.")
        return self.source.starts

    def like(self, decimal: DecimalSign | None) -> Table:
        """The same table, read with the decimal sign of another one where none of its values proves the sign."""
        if decimal is None or not isinstance(self.source, CsvSource):
            return self
        return replace(self, source=replace(self.source, like=decimal))

    def scanned(self) -> Table:
        """The same table with types, rows and parts known: a CSV is read once for that."""
        with self._unchanged():
            return replace(self, source=self.source.scanned())

    def load(self, columns: Sequence[str] | None = None) -> tuple[Table, pa.Table]:
        """Read the whole table, or some columns of it, into memory.

        Parameters
        ----------
        columns : sequence of str, optional
            All by default.

        Returns
        -------
        table : Table
            The same as `scanned`.
        rows : pyarrow.Table
        """
        wanted = self._checked(columns)
        with self._unchanged():
            source, rows = self.source.load(wanted)
        return replace(self, source=source), rows

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows that `load` gives."""
        return self.load(columns)[1]

    def part(self, index: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read one part: a row group, a record batch, or a block of a plain CSV."""
        with self._unchanged():
            return self.source.part(index, self._checked(columns))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Every part in turn; no more than one is in memory at a time."""
        table, wanted = self.scanned(), self._checked(columns)
        with self._unchanged():
            yield from table.source.stream(wanted)

    def as_text(self) -> Table:
        """The same table with the values of a CSV as text, as written in the file."""
        return replace(self, source=self.source.as_text()) if isinstance(self.source, CsvSource) else self

    def coded(self) -> Table:
        """The same table with the text of a Parquet file as codes, where it is stored so: read in half the time."""
        return (
            replace(self, source=replace(self.source, coded=True)) if isinstance(self.source, ParquetSource) else self
        )

    def seekable(self, folder: Path) -> Table:
        """The same table with parts that can be read in any order; a gzipped CSV is unpacked into `folder`."""
        if not isinstance(self.source, CsvSource):
            return self
        return replace(self, source=self.source.unpacked(folder / "unpacked.csv"))

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise where the file changed since it was opened: its types and parts may be others."""
        try:
            yield
        except UserError:
            self._check_stamp()
            raise
        self._check_stamp()

    def _check_stamp(self) -> None:
        if file_stamp(self.path) != self.stamp:
            raise UserError(
                f"{self.path.name} changed while it was read", do="wait until it is written, and start again."
            )

    def _checked(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None:
            return None
        check_names(columns, self.names, self.path.name)
        return list(columns)


def open_table(
    path: str | os.PathLike[str],
    *,
    header: bool | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    decimal: str | None = None,
) -> Table:
    r"""Open a table, and check what can be checked without reading all of it.

    Parameters
    ----------
    path : path
        CSV (comma, semicolon or tab; plain or gzipped), Parquet or Arrow IPC (Feather). Where the ending is not known,
        the first bytes decide.
    header : bool, optional
        CSV: whether the first line holds the column names. By default it does unless it looks like data, which
        `Table.notes` then reports.
    separator : str, optional
        CSV: by default the one of comma, semicolon and tab that fits the first lines.
    encoding : str, default="utf-8"
        CSV: the encoding of the text.
    decimal : {".", ","}, optional
        CSV: the decimal sign. By default all rows decide: 1,234,567 proves that a comma groups thousands, and 7,5
        that it is the decimal sign. Where no value proves either, as in 59,915, it groups thousands, which
        `Table.notes` reports. Where commas separate, a comma inside quotes is a decimal sign only if given here.

    Raises
    ------
    UserError
        Where the file does not exist, is empty, is not what its ending says or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,sex\n39,m\n?,f\n")
    ...     table = open_table(path)
    ...     table.names, table.read().to_pydict()
    (('age', 'sex'), {'age': [39, None], 'sex': ['m', 'f']})
    """
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n'):
        raise UserError(f"the separator is {separator!r}", do="give one character, such as ',' or ';'.")
    if decimal not in (None, ".", ","):
        raise UserError(f"the decimal sign is {decimal!r}", do="give '.' or ','.")
    place = Path(path).absolute()
    stamp = file_stamp(place)
    kind = check_kind(place)
    source: Source
    if kind.format == "parquet":
        source = ParquetSource.open(place)
    elif kind.format == "arrow":
        source = ArrowSource.open(place)
    else:
        source = CsvSource.open(
            place, kind.gzip, header=header, separator=separator, encoding=encoding, decimal=decimal
        )
    names = source.layout.names if isinstance(source, CsvSource) else tuple(source.schema.names)
    if not names:
        raise UserError(f"{place.name} has no columns", do="give a table with columns and rows.")
    check_unique(names, place.name)
    if source.n_rows == 0:
        raise UserError(f"{place.name} has no rows", do="give a file with rows.")
    return Table(place, kind.format, names, source, stamp)


def ahead(batches: Iterator[Part]) -> Generator[Part]:
    """The same batches, each read while the one before it is worked on.

    Examples
    --------
    >>> list(ahead(iter([1, 2])))
    [1, 2]
    """
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, batches, None)
        while (rows := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield rows
