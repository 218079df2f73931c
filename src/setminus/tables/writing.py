"""Tables written to files that appear whole or not at all; text that a spreadsheet would run is neutralized."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from setminus.errors import UserError
from setminus.files import destination, scratch_folder
from setminus.tables.columns import is_text
from setminus.tables.numerals import NUMBER
from setminus.tables.reading import ENDINGS, Kind, named_kind

__all__ = ["TableWriter", "neutralized", "original_words", "writing"]


FORMULA = "'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""How a formula begins, also in wide letters; after apostrophes too, so that one more can be removed again."""


@contextmanager
def writing(
    path: str | os.PathLike[str],
    *,
    compression: str = "snappy",
    dictionary: Sequence[str] | bool = True,
    neutralize: bool = False,
) -> Iterator[TableWriter]:
    """Write a table part by part to a file beside `path`, which is renamed when it is complete.

    A target that cannot be written raises at once. After an exception or an interrupt nothing is left behind, and the
    file that was at `path` before is still there.

    Parameters
    ----------
    path : path
        The ending gives the format: .parquet, .arrow, .feather, .csv, .tsv or .csv.gz.
    compression : str, default="snappy"
        Parquet: compression of its pages.
    dictionary : sequence of str or bool, default=True
        Parquet: the columns to store in a dictionary, those whose values repeat.
    neutralize : bool, default=False
        CSV: whether an apostrophe goes before names and text that a spreadsheet would run as a formula.

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
        raise UserError(
            f"the ending of {target.name} is of no format that can be written", do=f"use one of {', '.join(ENDINGS)}."
        )
    with ExitStack() as stack:
        with _refusing(target):
            if target.is_dir():
                raise UserError(f"{target} is a folder", do="give the name of a file to write.")
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
    """Writes parts of a table, all of one schema; made by `writing`."""

    def __init__(self, target: Path, sink: Any, kind: Kind, parquet: dict[str, Any], neutralize: bool):
        self._target = target
        self._file = sink
        self._sink = pa.CompressedOutputStream(sink, "gzip") if kind.gzip else sink
        self._kind = kind
        self._parquet = parquet
        self._neutralize = neutralize
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Write one part; in Parquet it is a separate row group."""
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
            raise UserError(f"there is nothing to write to {self._target.name}", do="give a table with rows.")
        with _refusing(self._target):
            self._writer.close()
            if self._sink is not self._file:
                self._sink.close()
            self._file.close()

    def abandon(self) -> None:
        """Close a file that will not be completed."""
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
        raise UserError(f"there is no folder {target.parent}", do="make it, or write somewhere else.") from error
    except OSError as error:
        raise UserError(
            f"cannot write {target}: {error.strerror or error}", do="write to a place with room that you may write to."
        ) from error
    except pa.ArrowException as error:
        raise UserError(
            f"{target.name} cannot hold such a table: {str(error).splitlines()[0]}", do="write it as Parquet instead."
        ) from error


def neutralized(table: pa.Table) -> pa.Table:
    """Put an apostrophe before each name and text that a spreadsheet would run; numbers stay as they are.

    Examples
    --------
    >>> neutralized(pa.table({"@x": ["=1+1", "-3.5", "'=y", "high"]})).to_pydict()
    {"'@x": ["'=1+1", '-3.5', "''=y", 'high']}
    """
    columns = [_column(column) if is_text(column.type) else column for column in table.columns]
    names = [f"'{name}" if _is_formula(name) else name for name in table.column_names]
    return pa.table(columns, names=names)


def original_words(words: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Undo `neutralized`: map each word of a column to the word before.

    Where `known`, the words that the column may hold, covers all of its words, the column was not changed.

    Examples
    --------
    >>> original_words(["'=high", "low"], {"=high", "low"})
    {"'=high": '=high', 'low': 'low'}
    >>> original_words(["'=high"], {"'=high", "low"})
    {"'=high": "'=high"}
    """
    found = list(dict.fromkeys(words))
    if {*found} <= {*known}:
        return {word: word for word in found}
    return {word: word[1:] if word.startswith("'") and _is_formula(word) else word for word in found}


def _column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # as written: a space before a formula is part of the text
    words = (column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column).cast(pa.string())
    # few words come again and again: they are looked at once
    if not any(_is_formula(word) for word in pc.unique(words).to_pylist() if word is not None):
        return words
    formula = pc.and_not(
        pc.match_substring_regex(words, f"^{FORMULA}"), pc.match_substring_regex(words, f"^(?:{NUMBER})$")
    )
    return pc.if_else(formula, pc.replace_substring_regex(words, "^'*", r"'\0", max_replacements=1), words)


def _is_formula(text: str) -> bool:
    return re.match(FORMULA, text) is not None and re.fullmatch(NUMBER, text, re.ASCII) is None
