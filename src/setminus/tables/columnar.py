"""Parquet and Arrow files: a part is a row group, or a record batch."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from setminus.errors import UserError
from setminus.files import available_memory, check_memory, within_memory
from setminus.tables.columns import familiar, familiar_type

__all__ = ["ArrowSource", "ParquetSource"]

Names = Sequence[str] | None


@dataclass(frozen=True)
class _ColumnarSource(ABC):
    """A file whose types and parts are known once it is opened."""

    path: Path
    schema: Any
    starts: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return self.starts[-1]

    def scanned(self) -> Self:
        """Itself: types and parts are known."""
        return self

    def load(self, columns: Names) -> tuple[Self, pa.Table]:
        """Itself, and all rows."""
        return self, pa.concat_tables(within_memory(self.stream(columns), self.path.name))

    def part(self, index: int, columns: Names) -> pa.Table:
        """One part."""
        return next(self._parts([index], columns))

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every part in turn, with the file opened once."""
        return self._parts(range(len(self.starts) - 1), columns)

    @abstractmethod
    def _parts(self, indices: Sequence[int], columns: Names) -> Iterator[pa.Table]: ...


@dataclass(frozen=True)
class ParquetSource(_ColumnarSource):
    """A Parquet file, with its compression and the columns whose values are stored in a dictionary."""

    compression: str
    dictionary: tuple[str, ...]
    coded: bool = False
    """Whether text is read as codes into a dictionary, as it is stored."""

    @classmethod
    def open(cls, path: Path) -> ParquetSource:
        """Read the footer."""
        with _parquet(path) as file:
            meta = file.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            chunks = [groups[0].column(k) for k in range(groups[0].num_columns)] if groups else []
            return cls(
                path,
                _familiar_schema(file.schema_arrow),
                tuple(itertools.accumulate((group.num_rows for group in groups), initial=0)),
                chunks[0].compression.lower().replace("uncompressed", "none") if chunks else "none",
                tuple(chunk.path_in_schema for chunk in chunks if _repeats(chunk)),
            )

    def _parts(self, indices: Sequence[int], columns: Names) -> Iterator[pa.Table]:
        width = sum(_width(field.type) for field in self.schema if columns is None or field.name in columns)
        with _parquet(self.path, self.dictionary if self.coded else ()) as file:
            for index in indices:
                # of a value that repeats a file of a few bytes can hold more than any memory
                size = file.metadata.row_group(index).num_rows * width
                check_memory(size, f"a row group of {self.path.name}", available_memory())
                # selected again: a name with a dot in it is a path to Parquet, and takes more than itself
                yield _selected(familiar(file.read_row_group(index, columns=columns)), columns)


@dataclass(frozen=True)
class ArrowSource(_ColumnarSource):
    """An Arrow IPC file, also known as Feather version 2."""

    @classmethod
    def open(cls, path: Path) -> ArrowSource:
        """Read the schema and the lengths of the record batches."""
        with _arrow(path) as file:
            schema = pa.ipc.open_file(file).schema
            # a file without columns has no first one
            some = pa.ipc.IpcReadOptions(included_fields=[0] if len(schema) else [])
            reader = pa.ipc.open_file(file, options=some)
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        return cls(path, _familiar_schema(schema), tuple(itertools.accumulate(sizes, initial=0)))

    def _parts(self, indices: Sequence[int], columns: Names) -> Iterator[pa.Table]:
        with _arrow(self.path) as file:
            reader = pa.ipc.open_file(file)
            for index in indices:
                batch = reader.get_batch(index)
                # Arrow trusts what it reads: offsets of a damaged file would lead out of the buffer
                batch.validate(full=True)
                yield familiar(_selected(pa.Table.from_batches([batch]), columns))


@contextmanager
def _parquet(path: Path, coded: Sequence[str] = ()) -> Iterator[Any]:
    # as bytes: a name need not be UTF-8
    with (
        _refusing_damage(path.name, "Parquet"),
        pa.OSFile(os.fsencode(path)) as file,
        pq.ParquetFile(file, read_dictionary=[*coded]) as parquet,
    ):
        yield parquet


@contextmanager
def _arrow(path: Path) -> Iterator[Any]:
    # not mapped: a file that is cut off meanwhile would end the process
    with _refusing_damage(path.name, "Arrow IPC"), pa.OSFile(os.fsencode(path)) as file:
        yield file


@contextmanager
def _refusing_damage(where: str, kind: str) -> Iterator[None]:
    """Turn the errors of pyarrow and of the system for a damaged file into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except pa.ArrowNotImplementedError as error:
        raise UserError(
            f"{where} holds a type that cannot be read: {str(error).splitlines()[0]}",
            do="write that column as numbers of 64 bits or as text, or leave it out.",
        ) from error
    # the last three: a type that pandas registered is made by code of pandas from words in the file
    except (pa.ArrowException, OSError, EOFError, KeyError, TypeError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(
            f"{where} cannot be read as {kind}: {first or type(error).__name__}",
            do="the file may be damaged or not complete; write it again, or fetch it again.",
        ) from error


def _familiar_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(familiar_type(field.type)) for field in schema], schema.metadata)


def _width(kind: pa.DataType) -> float:
    """Bytes of a value, at least."""
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        # where the value of each row begins
        return 4.0


def _selected(table: pa.Table, columns: Names) -> pa.Table:
    return table if columns is None else table.select(list(columns))


def _repeats(chunk: Any) -> bool:
    """Whether a dictionary saved space: pyarrow begins one everywhere, and gives up where values are many."""
    plain = chunk.num_values * {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}.get(chunk.physical_type, 0)
    return bool(chunk.has_dictionary_page and (not plain or chunk.total_uncompressed_size < 0.75 * plain))
