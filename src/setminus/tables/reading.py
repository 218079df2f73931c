"""One way into every table: CSV, Parquet or Arrow, whole or part by part."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from setminus.errors import UserError
from setminus.tables.columnar import ArrowSource, ParquetSource
from setminus.tables.delimited import CsvSource
from setminus.tables.errors import TableError, check_names, check_unique
from setminus.tables.formats import Format, check_kind, file_stamp
from setminus.tables.numerals import DecimalSign

__all__ = ["Table", "column", "open_table"]

Source = CsvSource | ParquetSource | ArrowSource


@dataclass(frozen=True)
class Table:
    """A table in a file, opened but not read.

    Attributes
    ----------
    path : Path
    format : {"csv", "parquet", "arrow"}
    names : tuple of str
        The columns.
    source : object
        The file behind it.
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
        """What was guessed, such as that there is no header; of a CSV, all of it once it is `scanned` or loaded."""
        return self.source.notes if isinstance(self.source, CsvSource) else ()

    @property
    def decimal(self) -> DecimalSign | None:
        """The decimal sign of a CSV that is `scanned` or loaded; None for other files."""
        found = self.source.found if isinstance(self.source, CsvSource) else None
        return None if found is None else found.decimal

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None for a CSV that has not been `scanned`."""
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
        """The same, to go with another table, such as that of a model: where no value proves the sign, as there."""
        if decimal is None or not isinstance(self.source, CsvSource):
            return self
        return replace(self, source=replace(self.source, like=decimal))

    def scanned(self) -> Table:
        """The same with types, rows and parts known: a CSV is read once for that, other files tell at once."""
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
            The same as `scanned`: its notes say what all rows decided.
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
        """The same with the values of a CSV as they stand there, and not as numbers; other files as they are."""
        return replace(self, source=self.source.as_text()) if isinstance(self.source, CsvSource) else self

    def seekable(self, folder: Path) -> Table:
        """The same table with parts that can be read in any order; a packed CSV is unpacked into `folder`."""
        if not isinstance(self.source, CsvSource):
            return self
        return replace(self, source=self.source.unpacked(folder / "unpacked.csv"))

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise where the file is no longer the one that was opened: what it was found to be may not hold."""
        try:
            yield
        except TableError:
            self._check_stamp()
            raise
        self._check_stamp()

    def _check_stamp(self) -> None:
        if file_stamp(self.path) != self.stamp:
            raise TableError(
                f"{self.path.name} changed while it was read", "Wait until it is written, and start again."
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
    r"""Open a table; everything that can be told without reading all of it is checked.

    Parameters
    ----------
    path : path
        CSV (comma, semicolon or tab; plain or gzipped), Parquet or Arrow IPC (Feather). An ending that is not known
        leaves it to the first bytes.
    header : bool, optional
        CSV: whether the first line holds the column names. By default it does unless it looks like data, which is
        then said in `Table.notes`.
    separator : str, optional
        CSV: by default the one of comma, semicolon and tab that fits the first lines.
    encoding : str, default="utf-8"
        CSV: what the text is encoded in.
    decimal : {".", ","}, optional
        CSV: the decimal sign. By default all rows decide: 1,234,567 proves that a comma groups thousands, and 7,5
        that it is the decimal sign. Where no value proves either, as in 59,915, it groups thousands: if that is
        wrong, every number is 1000 times too large, but 59,915 is never taken for less than 512. `Table.notes` says
        so. Where commas separate, one inside quotes is a decimal sign only if this says so.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        Where the file is not there, is empty, is not what its ending says or cannot be read.

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
        raise TableError(f"the separator is {separator!r}", "Give one character, such as ',' or ';'.")
    if decimal not in (None, ".", ","):
        raise TableError(f"the decimal sign is {decimal!r}", "Give '.' or ','.")
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
        raise TableError(f"{place.name} has no columns", "Give a table with columns and rows.")
    check_unique(names, place.name)
    if source.n_rows == 0:
        raise TableError(f"{place.name} has no rows", "Give a file with rows.")
    return Table(place, kind.format, names, source, stamp)


def column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of a table by its name; where there is none, the nearest name is suggested.

    Examples
    --------
    >>> column(pa.table({"sex": ["f"]}), "Sex")
    Traceback (most recent call last):
    setminus.tables.errors.TableError: the table has no column 'Sex'. Did you mean 'sex'?
    """
    check_names([name], table.column_names, "the table")
    return table.column(name)
