"""Parquet and Arrow files: a part is a row group, or a record batch."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from setminus.tables.errors import refusing_damage
from setminus.tables.memory import available_memory, check_memory, within_memory
from setminus.tables.values import familiar, familiar_type

__all__ = ["ArrowSource", "ParquetSource"]

Names = Sequence[str] | None


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file, with what its footer says."""

    path: Path
    schema: Any
    starts: tuple[int, ...]
    compression: str
    dictionary: tuple[str, ...]

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

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return self.starts[-1]

    def scanned(self) -> ParquetSource:
        """Itself: the footer has told everything."""
        return self

    def load(self, columns: Names) -> tuple[ParquetSource, pa.Table]:
        """Itself, and all rows."""
        return self, pa.concat_tables(within_memory(self.stream(columns), self.path.name))

    def part(self, index: int, columns: Names) -> pa.Table:
        """One row group."""
        with _parquet(self.path) as file:
            return self._group(file, index, columns)

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every row group in turn, the file opened once."""
        with _parquet(self.path) as file:
            for index in range(file.num_row_groups):
                yield self._group(file, index, columns)

    def _group(self, file: Any, index: int, columns: Names) -> pa.Table:
        # of a value that repeats a file of a few bytes can hold more than any memory
        rows = file.metadata.row_group(index).num_rows
        kinds = [field.type for field in self.schema if columns is None or field.name in columns]
        check_memory(rows * sum(map(_width, kinds)), f"a row group of {self.path.name}", available_memory())
        # selected again: a name with a dot in it is a path to Parquet, and takes more than itself
        return _selected(familiar(file.read_row_group(index, columns=columns)), columns)


@dataclass(frozen=True)
class ArrowSource:
    """An Arrow IPC file, also known as Feather version 2."""

    path: Path
    schema: Any
    starts: tuple[int, ...]

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

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return self.starts[-1]

    def scanned(self) -> ArrowSource:
        """Itself: nothing is left to find out."""
        return self

    def load(self, columns: Names) -> tuple[ArrowSource, pa.Table]:
        """Itself, and all rows."""
        return self, pa.concat_tables(within_memory(self.stream(columns), self.path.name))

    def part(self, index: int, columns: Names) -> pa.Table:
        """One record batch."""
        with _arrow(self.path) as file:
            return self._batch(pa.ipc.open_file(file), index, columns)

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every record batch in turn, the file opened once."""
        with _arrow(self.path) as file:
            reader = pa.ipc.open_file(file)
            for index in range(reader.num_record_batches):
                yield self._batch(reader, index, columns)

    def _batch(self, reader: Any, index: int, columns: Names) -> pa.Table:
        batch = reader.get_batch(index)
        # Arrow trusts what it reads: offsets of a damaged file would lead out of the buffer
        batch.validate(full=True)
        return familiar(_selected(pa.Table.from_batches([batch]), columns))


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    # as bytes: a name need not be UTF-8
    with refusing_damage(path.name, "Parquet"), pa.OSFile(os.fsencode(path)) as file, pq.ParquetFile(file) as parquet:
        yield parquet


@contextmanager
def _arrow(path: Path) -> Iterator[Any]:
    # not mapped: a file that is cut off meanwhile would end the process
    with refusing_damage(path.name, "Arrow IPC"), pa.OSFile(os.fsencode(path)) as file:
        yield file


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
    """Whether a dictionary was worth its while: pyarrow begins one everywhere, and gives up where values are many."""
    plain = chunk.num_values * {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}.get(chunk.physical_type, 0)
    return bool(chunk.has_dictionary_page and (not plain or chunk.total_uncompressed_size < 0.75 * plain))
