"""What commands share: configs from options, checks of the files they write, progress on stderr, results on stdout."""

from __future__ import annotations

import io
import math
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from setminus.errors import UserError, printable
from setminus.files import destination
from setminus.progress import Event

__all__ = [
    "CommandGroup",
    "Display",
    "beside",
    "check_folder",
    "check_outputs",
    "configured",
    "echo",
    "finite",
    "flush",
    "protect_streams",
    "typed_command",
    "usage",
]

Config = TypeVar("Config")

MAX_LINES = 3
"""Pieces of work within each other that are shown at once."""
MAX_COLUMNS = 30
"""Columns of a table that are listed."""
LINE_SECONDS = 10
"""Seconds between two lines of progress where there is no terminal to draw on."""
ENDINGS: dict[str, tuple[str, ...]] = {
    "model": (".skops",),
    "table": (".csv", ".tsv", ".gz", ".parquet", ".pq", ".arrow", ".feather", ".ipc"),
    "record": (".json", ".jsonl"),
    "page": (".html", ".htm"),
    "card": (".md", ".markdown"),
    "pdf": (".pdf",),
}
"""Endings of the names of what the commands read and write, by its kind."""
TITLES = {"table": "scored table", "junit": "JUnit report", "sarif": "SARIF report", "onnx": "ONNX file"}
"""Names of kinds of files in errors, where these differ from the kind."""


def finite(value: float | None) -> float | None:
    """Refuse infinity and nan, which the bounds of an option let pass."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def configured(kind: type[Config], given: Mapping[str, Any]) -> Config:
    """The config of a command from its options: each has the name of a field.

    Parameters
    ----------
    kind : type
        A dataclass of plain values.
    given : mapping
        The options by name, such as ``locals()`` at the start of the command. Paths become text, lists tuples.
    """
    found: dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        value = given[one.name]
        if value is None and one.default == ():
            # an option that can be repeated, and was not given
            value = ()
        found[one.name] = str(value) if isinstance(value, Path) else tuple(value) if isinstance(value, list) else value
    return kind(**found)


def typed_command(*left_out: str) -> str:
    """The command of this process, for records, without some of its words."""
    return shlex.join(["setminus", *(word for word in sys.argv[1:] if word not in left_out)])


class CommandGroup(TyperGroup):
    """All commands; the end of a file is an error like others, and not, as click takes it, that of a prompt."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise UserError("a file ends too early", do="it may be damaged or not complete: copy it again.") from error


class _PrintableConsole(Console):
    """A console on which names from a table cannot move the cursor, change colours or begin a line."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str("\n".join(map(printable, text.split("\n"))), **options)


class Display:
    """Progress and results on stderr and stdout, or nothing at all."""

    def __init__(self, quiet: bool = False):
        # progress is no result: stdout stays fit for a pipe
        self.progress: Console = _PrintableConsole(stderr=True, quiet=quiet, highlight=False)
        self.results: Console = _PrintableConsole(quiet=quiet, highlight=False)
        self._lines: dict[int, TaskID] = {}
        self._next_line = 0.0

    def __call__(self, event: Event) -> None:
        """Show an event of `setminus.progress`: how far the work is, and how long it took when it is done."""
        if self.progress.is_terminal and not self.progress.quiet:
            self._draw(event)
        elif event.kind == "started" and event.depth == 0:
            self._name, self._start = event.name, time.perf_counter()
            self._next_line = self._start + LINE_SECONDS
        elif event.kind == "advanced" and time.perf_counter() >= self._next_line:
            within = "" if event.depth == 0 else f": {event.name}"
            state = ", ".join(filter(None, (_count(event), _rate(event), _left(event))))
            self._print_seconds(time.perf_counter() - self._start, f"{self._name}{within}, {state}")
            self._next_line = time.perf_counter() + LINE_SECONDS
        if event.kind == "finished" and event.depth == 0:
            self._print_seconds(event.seconds, event.name)

    def _draw(self, event: Event) -> None:
        """One line for each piece of work that is under way."""
        if event.kind == "started" and event.depth == 0:
            columns = (
                SpinnerColumn("line"),
                TextColumn("{task.description}"),
                BarColumn(20),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
                _TimeLeft(),
            )
            self._bars = Progress(*columns, console=self.progress, transient=True)
            self._bars.start()
        if event.kind == "advanced":
            if event.depth in self._lines:
                state = _label("  ".join(filter(None, (_count(event), _rate(event), event.detail))))
                self._bars.update(self._lines[event.depth], completed=event.done, state=state)
            return
        if event.kind != "started" and event.depth == 0:
            self._bars.stop()
            self._lines.clear()
        for depth in [depth for depth in self._lines if depth >= event.depth]:
            self._bars.remove_task(self._lines.pop(depth))
        if event.kind == "started" and event.depth < MAX_LINES:
            name = _label("  " * event.depth + event.name)
            self._lines[event.depth] = self._bars.add_task(name, total=event.total, state="")

    def _print_seconds(self, seconds: float, text: str) -> None:
        self.progress.print(f"{seconds:6.1f} s  {text}", markup=False, soft_wrap=True)

    def warn(self, line: str) -> None:
        """A line beside the progress."""
        self.progress.print(line, markup=False, soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
        """A table; cells are text, in which a `rich.text.Text` may have a style."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(heads))
        for head in heads:
            table.add_column(escape(head), overflow="fold")
        for row in rows:
            table.add_row(*(escape(cell) if isinstance(cell, str) else cell for cell in row))
        self.results.print()
        self.results.print(table)

    def columns(self, task: dict[str, Any]) -> None:
        """What each column of a user's table was taken for, and what was noted on the way.

        Many columns share a line where all but the name is the same, lines with a warning or a column left out come
        first, and the page has all.
        """
        from setminus.tables.columns import KEPT

        lines: dict[tuple[str, ...], list[str]] = {}
        few = len(task["columns"]) <= MAX_COLUMNS
        for column in task["columns"]:
            missing = f"{column['missing']:.0%}" if column["missing"] else ""
            alone = column["name"] if few else ""
            key = (column["kind"], missing, column["use"], column["warning"] or "", alone)
            lines.setdefault(key, []).append(column["name"])
        order = list(lines) if few else sorted(lines, key=lambda line: (not line[3], line[0] in KEPT))
        rows: list[list[str | Text]] = []
        for line in order[:MAX_COLUMNS]:
            kind, missing, use, warning, _ = line
            first, *others = lines[line]
            name = f"{first} and {len(others):,} more" if others else first
            warned = (printable(f" ({warning})" if warning else ""), "yellow")
            rows.append([name, kind, missing, Text.assemble(printable(use), warned)])
        self.table(("column", "kind", "missing", "what is done with it"), rows)
        unlisted = sum(len(lines[line]) for line in order[MAX_COLUMNS:])
        if unlisted:
            self.say(f"{unlisted:,} more columns are listed on the page.")
        for note in task["notes"]:
            self.results.print(f"Note: {escape(note)}")

    def say(self, *lines: str) -> None:
        """Plain lines."""
        for line in lines:
            self.results.print(printable(line), markup=False, soft_wrap=True)

    def text(self, text: str) -> None:
        """A text of several lines, as it is laid out."""
        self.say(*text.split("\n"))


def _label(text: str) -> str:
    # a progress bar takes markup, and does not ask the console
    return escape(printable(text))


class _TimeLeft(TimeRemainingColumn):
    def render(self, task: Any) -> Text:
        return Text("") if task.total is None else super().render(task)


def _count(event: Event) -> str:
    total = "" if event.total is None else f" of {event.total:,}"
    return f"{event.done:,}{total} {event.unit}".rstrip()


def _rate(event: Event) -> str:
    """Rows per second; steps and fits are slow enough to be counted by eye."""
    known = event.unit == "rows" and event.done and event.seconds > 0
    return f"{event.done / event.seconds:,.0f} rows/s" if known else ""


def _left(event: Event) -> str:
    known = event.total is not None and 0 < event.done < event.total and event.seconds > 0
    return f"about {event.seconds * (cast(int, event.total) / event.done - 1):,.0f} s left" if known else ""


class _Pipe(io.FileIO):
    """A stream whose reader may go away: ``setminus audit --json | head`` still exits with its verdict."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def protect_streams() -> None:
    """Let standard output and error outlive their reader, and show as escapes what their encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            number = stream.fileno()
        except (AttributeError, OSError):
            # closed, or a test's
            continue
        stream.flush()
        raw = io.BufferedWriter(_Pipe(number, "wb", closefd=False))
        immediate = name == "stderr" or stream.isatty()
        setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, errors="backslashreplace", line_buffering=immediate))


def echo(*lines: object, err: bool = False) -> None:
    """Print lines; control characters in them are shown, not obeyed."""
    for line in lines:
        typer.echo(printable(str(line)), err=err)


def flush() -> None:
    """Write what is still buffered, while an error can be reported."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Path | None] = (),
    *,
    option: str = "--out",
    force: bool = True,
) -> None:
    """Raise before any long work where an output is an input or another output, or cannot be written.

    Parameters
    ----------
    outputs : mapping of str to Path or None
        Each file to be written, by its kind, such as those of `ENDINGS`; None where it is not asked for.
    inputs : iterable of Path or None
    option : str
        The option that decides where they are.
    force : bool
        Whether a file that exists may be overwritten.
    """
    read = [path for path in inputs if path is not None]
    wanted = {kind: path for kind, path in outputs.items() if path is not None}
    named = {kind: f"the {TITLES.get(kind, kind)}" for kind in wanted}
    taken: dict[str, Path] = {}
    for kind, path in wanted.items():
        if any(_same(path, other) for other in read):
            raise UserError(
                f"{path} is an input, and would be overwritten by {named[kind]}",
                do=f"name another file: {option} FILE",
            )
        for other, place in taken.items():
            if _same(path, place):
                raise UserError(
                    f"{path} is both {named[other]} and {named[kind]}", do=f"name another file: {option} FILE"
                )
        taken[kind] = path
        if path.is_dir():
            raise UserError(f"{path} is a folder", do=f"name a file: {option} {path / 'NAME'}")
        try:
            check_folder(destination(path).parent, option)
        except OSError as error:
            raise UserError(
                f"{path} is a link that leads to itself", do=f"remove it, or name another file: {option} FILE"
            ) from error
        if path.exists() and not os.access(path, os.W_OK):
            raise UserError(f"{path} may not be overwritten", do=f"choose another file: {option} FILE")
    for kind, path in wanted.items():
        for other, endings in ENDINGS.items():
            if kind in ENDINGS and other != kind and path.name.lower().endswith(endings):
                raise UserError(
                    f"{path} has the name of a {other}, and would hold a {kind}",
                    do=f"give it another ending: {option} NAME{ENDINGS[kind][0]}",
                )
    for kind, path in wanted.items():
        if path.is_file() and not force:
            raise UserError(
                f"{path} exists, and would be overwritten by {named[kind]}",
                do=f"name another file with {option}, or add --force to overwrite it.",
            )


def beside(model: Path, ending: str) -> Path:
    """A file named after a model.

    Examples
    --------
    >>> beside(Path("fair.skops"), "audit.json").name
    'fair.audit.json'
    """
    return model.with_name(f"{model.name.removesuffix('.skops')}.{ending}")


def _same(path: Path, other: Path) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    # two names of one file, by a link or by upper and lower case
    return path.exists() and other.exists() and path.samefile(other)


def check_folder(folder: Path, option: str) -> None:
    """Make a folder, and raise before any long work where nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # of a name that nobody can have put there before
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}, {error.strerror or error}",
            do=f"choose a folder that you may write to: {option} FOLDER",
        ) from error


def usage(model: Path, needs: str = "", trusted: Sequence[str] = ()) -> tuple[str, str]:
    """How to use a model file in Python, and on the command line; `needs` is a remark on its columns."""
    remark = f"  # {needs}" if needs else ""
    allowed = f", trusted={[*trusted]}" if trusted else ""
    options = "".join(f" --trust {shlex.quote(name)}" for name in trusted)
    python = f'from setminus import load\n\nmodel = load("{model.name}"{allowed})\nmodel.predict_proba(frame){remark}'
    return python, f"setminus apply {shlex.quote(model.name)} new.csv --out scored.csv{options}"
