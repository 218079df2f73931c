"""Text tables, read in blocks that end where a row ends: memory does not grow with the file."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from setminus.errors import UserError
from setminus.files import within_memory
from setminus.tables.columns import MISSING, shown
from setminus.tables.layout import Findings, Layout, Survey, conformed, sniff
from setminus.tables.numerals import DecimalSign, other_sign, ungrouped

__all__ = ["CsvSource"]

BLOCK = 16 << 20
"""Bytes of a block: a few of them, parsed, are in memory at a time."""

MAX_BLOCKS = 8
"""Blocks that a single row may fill, before it is taken for a quote that never ends, or for no table."""

SAMPLE = 256 << 10

NO_TEXT = {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "charmap"}
"""Codecs of Python that turn text into text, or take no stream of bytes."""

Names = Sequence[str] | None


@dataclass(frozen=True)
class CsvSource:
    """A text table.

    `decimal` is the sign that the user gave. `like` is that of a related table, such as the training rows, used where
    no value proves it. `found`, the findings from all rows, is None until `scanned`. With `verbatim`, every value is
    read as text, as written in the file.
    """

    path: Path
    layout: Layout
    encoding: str
    gzip: bool
    block: int = BLOCK
    decimal: str | None = None
    like: DecimalSign | None = None
    found: Findings | None = None
    verbatim: bool = False

    @classmethod
    def open(
        cls,
        path: Path,
        gzip: bool,
        *,
        header: bool | None,
        separator: str | None,
        encoding: str,
        decimal: str | None,
    ) -> CsvSource:
        """Look at the first lines."""
        blank = cls(path, Layout(()), _known(encoding), gzip, decimal=decimal)
        with blank._refusing(), blank._open() as stream:
            sample = piece = stream.read(SAMPLE)
            # the line of names and a row at least, however many columns there are
            while piece and len(sample.splitlines()) < 3:
                if len(sample) >= MAX_BLOCKS * BLOCK:
                    raise blank._endless(len(sample))
                piece = stream.read(len(sample))
                sample += piece
            whole = not piece or not stream.read(1)
            # not final: a character may be cut in two at the end of the sample
            text = codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
            blank._check_text(sample)
        tabs = ".tsv" in path.name.lower()
        layout = sniff(text, whole, path.name, header=header, separator=separator, decimal=decimal, tabs=tabs)
        return replace(blank, layout=layout)

    @property
    def schema(self) -> Any:
        """Names and types; None before `scanned`."""
        if self.found is None:
            return None
        return pa.schema([(name, pa.string()) for name in self.layout.names]) if self.verbatim else self.found.schema

    @property
    def _findings(self) -> Findings:
        if self.found is None:
            raise RuntimeError("a text table that was not scanned has no findings: call scanned() first.")
        return self.found

    @property
    def starts(self) -> tuple[int, ...] | None:
        """The first row of each block; None before `scanned`."""
        return None if self.found is None else self.found.starts

    @property
    def n_rows(self) -> int | None:
        """Rows of the table; None before `scanned`."""
        return None if self.found is None else self.found.starts[-1]

    @property
    def notes(self) -> tuple[str, ...]:
        """Guesses to show to the user; complete after `scanned`."""
        return self.layout.notes if self.found is None else self.found.notes

    def scanned(self) -> CsvSource:
        """The same source with types, the decimal sign and the place of each block, from one pass over all rows."""
        return self if self.found is not None else self._surveyed(keep=False)[0]

    def as_text(self) -> CsvSource:
        """The same source with every value as written in the file: 007 is no number, and NA is not missing."""
        return replace(self.scanned(), verbatim=True)

    def unpacked(self, path: Path) -> CsvSource:
        """The same table as plain UTF-8 text at `path`, so that any block can be read on its own."""
        if self.encoding == "utf-8" and not self.gzip:
            return self
        with self._refusing(), self._open() as stream, path.open("wb") as file:
            while piece := stream.read(self.block):
                file.write(piece)
        return replace(self, path=path, encoding="utf-8", gzip=False)

    def load(self, columns: Names) -> tuple[CsvSource, pa.Table]:
        """The same as `scanned`, and all rows, from one pass over the file."""
        source, tables = (self, []) if self.found is not None else self._surveyed(keep=True)
        kept = [conformed(table, source._findings) for table in tables]
        if not kept or any(table is None for table in kept):
            tables.clear()
            kept = list(within_memory(source.stream(columns), self.path.name))
        whole = pa.concat_tables(kept)
        return source, whole if columns is None else whole.select(columns)

    def part(self, index: int, columns: Names) -> pa.Table:
        """One block."""
        start, stop = self.scanned()._findings.offsets[index : index + 2]
        with self._refusing(), self.path.open("rb") as file:
            file.seek(start)
            return self._parse(file.read(stop - start), index == 0, columns)

    def stream(self, columns: Names) -> Iterator[pa.Table]:
        """Every block in turn."""
        with self._refusing():
            for index, block in enumerate(self._blocks()):
                yield self._parse(block, index == 0, columns)

    def _surveyed(self, keep: bool) -> tuple[CsvSource, list[pa.Table]]:
        """The scanned source, and the parsed blocks if they are to be kept."""
        survey, tables = self._survey(self.layout.decimal, keep)
        tried = [survey.layout.decimal]
        while (sign := self._better_sign(survey, tried)) is not None:
            tables.clear()
            survey, tables = self._survey(sign, keep)
            tried.append(sign)
        if survey.n_rows == 0:
            raise UserError(f"{self.path.name} has no rows", do="give a file with rows below the column names.")
        like, sign = self.like, survey.layout.decimal
        assumed = self.decimal is None and survey.unclear and (like is None or like.assumed)
        if self.decimal is None and like is not None and like.assumed and sign != like.sign:
            raise UserError(
                f"{sign!r} is the decimal sign in {self.path.name}, and was taken to group thousands in the "
                "related table",
                do=f"say --decimal {sign} for both (decimal= in Python), and fit again.",
            )
        return replace(self, layout=survey.layout, found=survey.findings(assumed, self.path.name)), tables

    def _better_sign(self, survey: Survey, tried: Sequence[str]) -> str | None:
        """The decimal sign to try next, where the rows disprove the last one, or prove neither."""
        sign, other = survey.layout.decimal, other_sign(survey.layout.decimal)
        if self.decimal is not None:
            return None
        if survey.unclear and self.like is not None and self.like.sign == other and other not in tried:
            return other
        # where commas separate, one inside a number is a decimal sign only if the user says so
        if not survey.refuted or self.layout.separator == ",":
            return None
        # where rows prove both it is the point, so that no word is taken for a number
        return other if sign == "," or other not in tried else None

    def _survey(self, sign: str, keep: bool) -> tuple[Survey, list[pa.Table]]:
        layout = replace(self.layout, decimal=sign)
        survey = Survey(layout)

        def parsed() -> Iterator[pa.Table]:
            source = replace(self, layout=layout)
            for index, block in enumerate(source._blocks()):
                table = source._parse(block, first=index == 0)
                survey.add(table, len(block))
                yield table

        with self._refusing():
            if keep:
                return survey, list(within_memory(parsed(), self.path.name))
            for _ in parsed():
                pass
        return survey, []

    def _open(self) -> Any:
        # as bytes: a name need not be UTF-8
        file = pa.OSFile(os.fsencode(self.path))
        stream = pa.input_stream(file, compression="gzip" if self.gzip else None)
        return stream if self.encoding == "utf-8" else pa.transcoding_input_stream(stream, self.encoding, "utf-8")

    def _check_text(self, piece: bytes) -> None:
        if b"\x00" in piece:
            raise UserError(
                f"{self.path.name} is no text: it holds zero bytes",
                do="save the table as CSV or Parquet, or say --encoding utf-16-le if it is that (encoding= in Python).",
            )

    def _blocks(self) -> Iterator[memoryview]:
        """About `block` bytes of whole rows at a time."""
        with self._open() as stream:
            held = b""
            while piece := stream.read(self.block):
                self._check_text(piece)
                held += piece
                end = last_row_end(held, self.layout.separator, self.layout.line_end)
                if end:
                    # a view: a copy of a block is not small
                    yield memoryview(held)[:end]
                    held = held[end:]
                elif len(held) >= MAX_BLOCKS * self.block:
                    raise _unclosed(self.path.name) if b'"' in held else self._endless(len(held))
            if held:
                yield memoryview(held)

    def _parse(self, block: memoryview | bytes, first: bool, columns: Names = None) -> pa.Table:
        layout, found = self.layout, self.found
        # as if text were trimmed: a missing value is missing with a space beside it, too
        missing = [f"{before}{token}{after}" for token in MISSING for before in ("", " ") for after in ("", " ")]
        types, grouped = None, []
        if found is not None:
            types = dict(zip(self.schema.names, self.schema.types, strict=True))
            grouped = [name for name in columns or layout.names if name in found.grouped and not self.verbatim]
            types |= dict.fromkeys(grouped, pa.string())
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
                # 0 and 1 are numbers in every block, also where others have true and false
                true_values=["true", "TRUE", "True"],
                false_values=["false", "FALSE", "False"],
                decimal_point=layout.decimal,
                include_columns=columns,
            ),
        )
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise UnicodeDecodeError("utf-8", b"", 0, 0, "not UTF-8")
        if _ends_in_a_quote(table, block, layout):
            raise _unclosed(self.path.name)
        for name in grouped:
            index = table.column_names.index(name)
            table = table.set_column(index, name, ungrouped(table.column(index), layout.decimal))
        return _trimmed(table) if layout.padded and not self.verbatim else table

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn errors of reading into a `UserError`, and only then look for the line, from the beginning."""
        name = self.path.name
        try:
            yield
        except UserError:
            raise
        except UnicodeError as error:
            raise self._undecodable() from error
        except (pa.ArrowException, OSError, EOFError) as error:
            if "invalid UTF8" in str(error):
                raise self._undecodable() from error
            if self.gzip and isinstance(error, (OSError, EOFError)):
                raise UserError(
                    f"{name} cannot be unpacked: {error}", do="the gzip file may be damaged or cut off; fetch it again."
                ) from error
            raise self._malformed(str(error)) from error

    def _undecodable(self) -> UserError:
        name = self.path.name
        if self.encoding != "utf-8":
            return UserError(f"{name} is not {self.encoding} text", do="give the encoding that it was saved in.")
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
            head = file.read(4)
        marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
        likely = next((name for mark, name in marks.items() if head.startswith(mark)), "latin-1")
        return UserError(
            f"{name} is not UTF-8 text: the first byte that is not is byte {before} (line {lines + 1})",
            do=f"save it as UTF-8, or say --encoding {likely} (encoding= in Python).",
        )

    def _endless(self, length: int) -> UserError:
        return UserError(
            f"{self.path.name} has a line of more than {length >> 20} MiB", do="give a table with a line for each row."
        )

    def _malformed(self, said: str) -> UserError:
        name, width = self.path.name, len(self.layout.names)
        before = 0
        # where Python's parser fails too, pyarrow's message is shown
        with suppress(csv.Error, pa.ArrowException, OSError, ValueError):
            for block in self._blocks():
                reader = csv.reader(io.StringIO(str(block, "utf-8"), newline=""), delimiter=self.layout.separator)
                end = before
                for record in reader:
                    if record and len(record) != width:
                        return UserError(
                            f"line {end + 1} of {name} has {len(record)} values, expected {width}",
                            do="give every line the same number of values, and quote values that hold "
                            f"{self.layout.separator!r}.",
                        )
                    end = before + reader.line_num
                before = end
        return UserError(
            f"{name} cannot be read as CSV: {said}", do="check the separator, the quotes and the line ends."
        )


def _trimmed(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(index, field.name, pc.utf8_trim_whitespace(table.column(index)))
    return table


def _ends_in_a_quote(table: pa.Table, block: memoryview | bytes, layout: Layout) -> bool:
    """Whether the last value spans several lines and no quote ends it: the rows after it are part of it."""
    last = table.schema.field(table.num_columns - 1)
    if table.num_rows == 0 or last.name != layout.names[-1] or not pa.types.is_string(last.type):
        return False
    value = table.column(table.num_columns - 1)[-1].as_py() or ""
    return len(value.splitlines()) > 1 and not bytes(block[-64:]).rstrip().endswith(b'"')


def _unclosed(name: str) -> UserError:
    return UserError(
        f"{name} has a quote that is opened and never closed, so that the rows after it are part of one value",
        do='close it, or double a quote that is part of a value ("").',
    )


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        name = None
    if name is None or name in NO_TEXT:
        raise UserError(f"there is no text encoding {shown(encoding)}", do="say utf-8 or latin-1.")
    return name


def last_row_end(block: bytes, separator: str, line_end: bytes) -> int:
    r"""Where the last whole row of a block ends; 0 where there is none. The block begins with a row.

    Examples
    --------
    >>> last_row_end(b'1,"two\nlines"\n2,"cut\noff', ",", b"\n")
    14
    """
    if b'"' not in block:
        return block.rfind(line_end) + 1
    data = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    # a quote opens a value at its beginning only, or goes on after a doubled one
    opening = quotes[0::2]
    before = data[np.maximum(opening - 1, 0)]
    legal = np.isin(before, np.frombuffer(b'\n\r"' + separator.encode(), dtype=np.uint8)) | (opening == 0)
    if not legal.all():
        return end_by_reading(block, separator)
    end = len(block)
    while (end := block.rfind(line_end, 0, end)) >= 0:
        if np.searchsorted(quotes, end) % 2 == 0:
            return end + 1
    return 0


def end_by_reading(block: bytes, separator: str) -> int:
    """`last_row_end` by a parser, for blocks with quotes inside values."""
    lines = block.splitlines(keepends=True)
    ends = list(itertools.accumulate(map(len, lines), initial=0))
    # latin-1: any byte is a character, and none of ours changes its meaning
    reader = csv.reader((line.decode("latin-1") for line in lines), delimiter=separator)
    last = before = 0
    # a value too long for the parser: the rows before it are whole all the same
    with suppress(csv.Error):
        for _ in reader:
            before, last = last, reader.line_num
    # the last record may only have ended because the block did
    return ends[before]
