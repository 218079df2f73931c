"""Parquet and Arrow files: a part is a row group, or a record batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from setminus.tables.errors import refusing_damage

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
        with refusing_damage(path.name, "Parquet"), pq.ParquetFile(path) as file:
            meta = file.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            chunks = [groups[0].column(k) for k in range(groups[0].num_columns)] if groups else []
            return cls(
                path,
                file.schema_arrow,
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

    def read(self, columns: Names) -> pa.Table:
        """The whole file."""
        with refusing_damage(self.path.name, "Parquet"), pq.ParquetFile(self.path) as file:
            # selected again: a name with a dot in it is a path to Parquet, and takes more than itself
            return _selected(file.read(columns=columns), columns)

    def part(self, index: int, columns: Names) -> pa.Table:
        """One row group."""
        with refusing_damage(self.path.name, "Parquet"), pq.ParquetFile(self.path) as file:
            return _selected(file.read_row_group(index, columns=columns), columns)

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every row group in turn, the file opened once."""
        with refusing_damage(self.path.name, "Parquet"), pq.ParquetFile(self.path) as file:
            for index in range(file.num_row_groups):
                yield _selected(file.read_row_group(index, columns=columns), columns)


@dataclass(frozen=True)
class ArrowSource:
    """An Arrow IPC file, also known as Feather version 2."""

    path: Path
    schema: Any
    starts: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> ArrowSource:
        """Read the schema and the lengths of the record batches."""
        with refusing_damage(path.name, "Arrow IPC"), pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[0]))
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
            whole = pa.ipc.open_file(file).schema
        return cls(path, whole, tuple(itertools.accumulate(sizes, initial=0)))

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return self.starts[-1]

    def scanned(self) -> ArrowSource:
        """Itself: nothing is left to find out."""
        return self

    def read(self, columns: Names) -> pa.Table:
        """The whole file."""
        return pa.concat_tables(self.stream(columns))

    def part(self, index: int, columns: Names) -> pa.Table:
        """One record batch."""
        with refusing_damage(self.path.name, "Arrow IPC"), pa.OSFile(str(self.path)) as file:
            return self._batch(pa.ipc.open_file(file), index, columns)

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every record batch in turn, the file opened once."""
        with refusing_damage(self.path.name, "Arrow IPC"), pa.OSFile(str(self.path)) as file:
            reader = pa.ipc.open_file(file)
            for index in range(reader.num_record_batches):
                yield self._batch(reader, index, columns)

    def _batch(self, reader: Any, index: int, columns: Names) -> pa.Table:
        batch = reader.get_batch(index)
        # Arrow trusts what it maps: offsets of a damaged file would lead out of the buffer
        batch.validate(full=True)
        return _selected(pa.Table.from_batches([batch]), columns)


def _selected(table: pa.Table, columns: Names) -> pa.Table:
    return table if columns is None else table.select(list(columns))


def _repeats(chunk: Any) -> bool:
    """Whether a dictionary was worth its while: pyarrow begins one everywhere, and gives up where values are many."""
    plain = chunk.num_values * {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}.get(chunk.physical_type, 0)
    return bool(chunk.has_dictionary_page and (not plain or chunk.total_uncompressed_size < 0.75 * plain))
