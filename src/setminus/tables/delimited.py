"""Text tables, read in blocks that end where a row ends: memory does not grow with the file."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from setminus.tables.errors import TableError
from setminus.tables.row_ends import last_row_end
from setminus.tables.sniffing import MISSING, Layout, sniff

__all__ = ["CsvSource"]

BLOCK = 16 << 20
"""Bytes of a block: a few of them, parsed, are in memory at a time."""

LONGEST = 32
"""Blocks that a single row may fill, before it is taken for a quote that never ends."""

SAMPLE = 256 << 10

Names = Sequence[str] | None


@dataclass(frozen=True)
class CsvSource:
    """A text table; what only a look at every row can tell is None until `scanned`.

    With `verbatim` every value is the text that the file has for it.
    """

    path: Path
    layout: Layout
    encoding: str
    gzip: bool
    block: int = BLOCK
    schema: Any = None
    starts: tuple[int, ...] | None = None
    offsets: tuple[int, ...] = ()
    verbatim: bool = False

    @classmethod
    def open(
        cls, path: Path, gzip: bool, *, header: bool | None, separator: str | None, encoding: str, block: int = BLOCK
    ) -> CsvSource:
        """Look at the first lines."""
        blank = cls(path, Layout(()), _known(encoding), gzip, block)
        with blank._refusing(), blank._open() as stream:
            sample = stream.read(SAMPLE)
            whole = len(sample) < SAMPLE
            # not final: a character may be cut in two at the end of the sample
            text = codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
        tabs = ".tsv" in path.name.lower()
        layout = sniff(text, whole, path.name, header=header, separator=separator, tabs=tabs)
        return replace(blank, layout=layout)

    @property
    def n_rows(self) -> int | None:
        """Rows of the table; None before `scanned`."""
        return None if self.starts is None else self.starts[-1]

    def scanned(self) -> CsvSource:
        """The same with types that hold for every row, and the place of each block."""
        if self.schema is not None:
            return self
        with self._refusing():
            schemas, sizes, lengths = [], [], []
            for index, block in enumerate(self._blocks()):
                table = self._parse(block, first=index == 0)
                schemas.append(table.schema)
                sizes.append(table.num_rows)
                lengths.append(len(block))
        if sum(sizes) == 0:
            raise self._no_rows()
        return replace(
            self,
            schema=_joined(schemas),
            starts=tuple(itertools.accumulate(sizes, initial=0)),
            offsets=tuple(itertools.accumulate(lengths, initial=0)),
        )

    def as_text(self) -> CsvSource:
        """The same with every value as it stands in the file: 007 is no number, and NA is not missing."""
        schema = None if self.schema is None else pa.schema([(name, pa.string()) for name in self.layout.names])
        return replace(self, verbatim=True, schema=schema)

    def unpacked(self, path: Path) -> CsvSource:
        """The same table as plain UTF-8 text at `path`, where any block can be read on its own."""
        if self.encoding == "utf-8" and not self.gzip:
            return self
        with self._refusing(), self._open() as stream, path.open("wb") as file:
            while piece := stream.read(self.block):
                file.write(piece)
        return replace(self, path=path, encoding="utf-8", gzip=False)

    def read(self, columns: Names) -> pa.Table:
        """The whole table."""
        with self._refusing():
            tables = [self._parse(block, i == 0, columns, self.schema) for i, block in enumerate(self._blocks())]
            schema = _joined([table.schema for table in tables])
            if any(table.schema != schema for table in tables):
                tables = [self._parse(block, i == 0, columns, schema) for i, block in enumerate(self._blocks())]
        whole = pa.concat_tables(tables)
        if whole.num_rows == 0:
            raise self._no_rows()
        return whole

    def part(self, index: int, columns: Names) -> pa.Table:
        """One block."""
        start, stop = self.offsets[index : index + 2]
        with self._refusing(), self.path.open("rb") as file:
            file.seek(start)
            return self._parse(file.read(stop - start), index == 0, columns, self.schema)

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every block in turn."""
        with self._refusing():
            for index, block in enumerate(self._blocks()):
                yield self._parse(block, index == 0, columns, self.schema)

    def _open(self) -> Any:
        stream = pa.input_stream(str(self.path), compression="gzip" if self.gzip else None)
        return stream if self.encoding == "utf-8" else pa.transcoding_input_stream(stream, self.encoding, "utf-8")

    def _blocks(self) -> Iterator[memoryview]:
        """About `block` bytes of whole rows at a time."""
        with self._open() as stream:
            held = b""
            while piece := stream.read(self.block):
                held += piece
                end = last_row_end(held, self.layout.separator, self.layout.line_end)
                if end:
                    # a view: a copy of a block is not small
                    yield memoryview(held)[:end]
                    held = held[end:]
                elif len(held) >= LONGEST * self.block:
                    raise _unclosed(self.path.name)
            if held:
                yield memoryview(held)

    def _parse(self, block: memoryview | bytes, first: bool, columns: Names = None, schema: Any = None) -> pa.Table:
        layout = self.layout
        # as if text were trimmed: a missing value is missing with a space beside it, too
        missing = [f"{before}{token}{after}" for token in MISSING for before in ("", " ") for after in ("", " ")]
        types = dict.fromkeys(layout.names, pa.string()) if self.verbatim else schema
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block),
            pyarrow.csv.ReadOptions(
                column_names=layout.names,
                # empty lines count here, though they are no rows elsewhere
                skip_rows_after_names=layout.blank + 1 if first and layout.header else 0,
                # in one piece: the rows of a block never straddle anything
                block_size=len(block) + 1,
            ),
            pyarrow.csv.ParseOptions(delimiter=layout.separator, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                column_types=types,
                null_values=missing,
                strings_can_be_null=not self.verbatim,
                decimal_point=layout.decimal,
                include_columns=columns,
            ),
        )
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise UnicodeDecodeError("utf-8", b"", 0, 0, "not UTF-8")
        if _ends_in_a_quote(table, block, layout):
            raise _unclosed(self.path.name)
        return _trimmed(table) if layout.padded and not self.verbatim else table

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn what went wrong into a `TableError`; only then is the line looked for, from the beginning."""
        name = self.path.name
        try:
            yield
        except TableError:
            raise
        except UnicodeError as error:
            raise self._undecodable() from error
        except (pa.ArrowException, OSError, EOFError) as error:
            if "invalid UTF8" in str(error):
                raise self._undecodable() from error
            if self.gzip and isinstance(error, (OSError, EOFError)):
                raise TableError(
                    f"{name} cannot be unpacked: {error}", "The gzip file may be damaged or cut off; fetch it again."
                ) from error
            raise self._malformed(str(error)) from error

    def _undecodable(self) -> TableError:
        name = self.path.name
        if self.encoding != "utf-8":
            return TableError(f"{name} is not {self.encoding} text", "Give the encoding that it was saved in.")
        decoder = codecs.getincrementaldecoder("utf-8")()
        before = lines = 0
        with self._open() as stream:
            while True:
                piece = stream.read(BLOCK)
                held = len(decoder.getstate()[0])
                try:
                    decoder.decode(piece, final=not piece)
                except UnicodeDecodeError as error:
                    lines += piece[: max(0, error.start - held)].count(self.layout.line_end)
                    before += error.start - held
                    break
                if not piece:
                    break
                before += len(piece)
                lines += piece.count(self.layout.line_end)
        with self.path.open("rb") as file:
            utf16 = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
        return TableError(
            f"{name} is not UTF-8 text: the first byte that is not is byte {before} (line {lines + 1})",
            f"Save it as UTF-8, or say --encoding {'utf-16' if utf16 else 'latin-1'} (encoding= in Python).",
        )

    def _no_rows(self) -> TableError:
        return TableError(f"{self.path.name} has no rows", "Give a file with rows below the column names.")

    def _malformed(self, said: str) -> TableError:
        name, width = self.path.name, len(self.layout.names)
        # where the parser here stumbles too, what pyarrow said stands
        with (
            suppress(csv.Error, pa.ArrowException, OSError, ValueError),
            self._open() as stream,
            io.TextIOWrapper(stream, encoding="utf-8", newline="") as text,
        ):
            reader = csv.reader(text, delimiter=self.layout.separator)
            before = 0
            for record in reader:
                if record and len(record) != width:
                    return TableError(
                        f"line {before + 1} of {name} has {len(record)} values, expected {width}",
                        "Give every line the same number of values, and quote values that hold "
                        f"{self.layout.separator!r}.",
                    )
                before = reader.line_num
        return TableError(f"{name} cannot be read as CSV: {said}", "Check the separator, the quotes and the line ends.")


def _joined(schemas: Sequence[Any]) -> Any:
    """The narrowest types that hold for every block."""
    types = [_joined_type(kinds) for kinds in zip(*(schema.types for schema in schemas), strict=True)]
    return pa.schema(list(zip(schemas[0].names, types, strict=True)))


def _joined_type(kinds: Iterable[Any]) -> Any:
    found = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(found) <= 1:
        return found.pop() if found else pa.null()
    if found == {pa.int64(), pa.float64()}:
        return pa.float64()
    if all(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in found):
        zoned = {getattr(kind, "tz", None) for kind in found}
        # no finer than needed: nanoseconds end in the year 2262
        unit = "ns" if "ns" in {getattr(kind, "unit", None) for kind in found} else "s"
        return pa.timestamp(unit, tz=zoned.pop()) if len(zoned) == 1 else pa.string()
    return pa.string()


def _trimmed(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(index, field.name, pc.utf8_trim_whitespace(table.column(index)))
    return table


def _ends_in_a_quote(table: pa.Table, block: memoryview | bytes, layout: Layout) -> bool:
    """Whether the last value goes over several lines and no quote ends it: it has swallowed the rows after it."""
    last = table.schema.field(table.num_columns - 1)
    if table.num_rows == 0 or last.name != layout.names[-1] or not pa.types.is_string(last.type):
        return False
    value = table.column(table.num_columns - 1)[-1].as_py() or ""
    return len(value.splitlines()) > 1 and not bytes(block[-64:]).rstrip().endswith(b'"')


def _unclosed(name: str) -> TableError:
    return TableError(
        f"{name} has a quote that is opened and never closed, so that the rows after it are part of one value",
        'Close it, or double a quote that is part of a value ("").',
    )


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise TableError(f"there is no text encoding {encoding!r}", "Say utf-8 or latin-1.") from None
