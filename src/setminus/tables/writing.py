"""Tables to files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from setminus.files import destination, scratch_folder
from setminus.tables.errors import TableError
from setminus.tables.formats import ENDINGS, Kind, named_kind
from setminus.tables.formulas import neutralized

__all__ = ["TableWriter", "writing"]


@contextmanager
def writing(
    path: str | os.PathLike[str],
    *,
    compression: str = "snappy",
    dictionary: Sequence[str] | bool = True,
    neutralize: bool = False,
) -> Iterator[TableWriter]:
    """Write a table piece by piece: beside its place first, and renamed when it is complete.

    A target that cannot be written raises at once, before any work. After an exception or an interrupt nothing is
    left behind, and what was at `path` before is still there.

    Parameters
    ----------
    path : path
        Ends in .parquet, .arrow, .feather, .csv, .tsv or .csv.gz, which says the format.
    compression : str, default="snappy"
        Parquet: of its pages.
    dictionary : sequence of str or bool, default=True
        Parquet: the columns whose values repeat.
    neutralize : bool, default=False
        CSV: whether an apostrophe goes before names and text that a spreadsheet would run as a formula.

    Yields
    ------
    TableWriter

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing(Path(folder, "scores.csv")) as writer:
    ...         writer.write(pa.table({"score": [0.5]}))
    ...     Path(folder, "scores.csv").read_text().split()
    ['"score"', '0.5']
    """
    target = Path(path)
    kind = named_kind(target)
    if kind is None:
        raise TableError(
            f"the ending of {target.name} says no format that can be written", f"Use one of {', '.join(ENDINGS)}."
        )
    with ExitStack() as stack:
        with _refusing(target):
            if target.is_dir():
                raise TableError(f"{target} is a folder", "Give the name of a file to write.")
            place = destination(target)
            partial = stack.enter_context(scratch_folder(place.parent)) / target.name
            sink = partial.open("xb")
        parquet = {"compression": compression, "use_dictionary": dictionary}
        writer = TableWriter(target, sink, kind, parquet, neutralize and kind.format == "csv")
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise
        with _refusing(target):
            partial.replace(place)


class TableWriter:
    """Takes pieces of a table, all of one schema; made by `writing`.

    Parameters
    ----------
    target : Path
        What to call the file in an error.
    sink : binary file
    kind : Kind
    parquet : dict
        Options of the Parquet writer.
    neutralize : bool
        Whether text that a spreadsheet would run is kept from it.
    """

    def __init__(self, target: Path, sink: Any, kind: Kind, parquet: dict[str, Any], neutralize: bool):
        self._target = target
        self._file = sink
        self._sink = pa.CompressedOutputStream(sink, "gzip") if kind.gzip else sink
        self._kind = kind
        self._parquet = parquet
        self._neutralize = neutralize
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Write a piece; in Parquet it is a row group of its own."""
        with _refusing(self._target):
            if self._neutralize:
                table = neutralized(table)
            if self._writer is None:
                self._writer = self._begun(table.schema)
            if self._kind.format == "parquet":
                self._writer.write_table(table, row_group_size=max(1, table.num_rows))
            else:
                self._writer.write_table(table)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is None:
            raise TableError(f"there is nothing to write to {self._target.name}", "Give a table with rows.")
        with _refusing(self._target):
            self._writer.close()
            if self._sink is not self._file:
                self._sink.close()
            self._file.close()

    def abandon(self) -> None:
        """Let go of a file that will not be completed."""
        # pyarrow would complete it later, when the sink is gone
        with suppress(Exception):
            self._writer.close()
        with suppress(OSError):
            self._file.close()

    def _begun(self, schema: pa.Schema) -> Any:
        if self._kind.format == "parquet":
            return pq.ParquetWriter(self._sink, schema, **self._parquet)
        if self._kind.format == "arrow":
            return pa.ipc.new_file(self._sink, schema)
        separator = "\t" if ".tsv" in self._target.name.lower() else ","
        return pyarrow.csv.CSVWriter(self._sink, schema, write_options=pyarrow.csv.WriteOptions(delimiter=separator))


@contextmanager
def _refusing(target: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise TableError(f"there is no folder {target.parent}", "Make it, or write somewhere else.") from error
    except OSError as error:
        raise TableError(
            f"cannot write {target}: {error.strerror or error}", "Write to a place with room that you may write to."
        ) from error
    except pa.ArrowException as error:
        raise TableError(
            f"{target.name} cannot hold such a table: {str(error).splitlines()[0]}", "Write it as Parquet instead."
        ) from error
