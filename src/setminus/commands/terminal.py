"""What a command writes to the terminal: progress on stderr, results on stdout, safe for any name and any reader."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from typing import Any

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
from setminus.progress import Event

__all__ = ["CommandGroup", "Display", "echo", "flush", "protect_streams"]

MAX_LINES = 3
"""Pieces of work within each other that are shown at once."""
LINE_SECONDS = 10
"""Between two lines of progress where there is no terminal to draw on."""


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
    """Progress and results on stderr and stdout, or nothing at all.

    Parameters
    ----------
    quiet : bool
    """

    def __init__(self, quiet: bool = False):
        # progress is no result: stdout stays fit for a pipe
        self.progress = _PrintableConsole(stderr=True, quiet=quiet, highlight=False)
        self.results = _PrintableConsole(quiet=quiet, highlight=False)
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
            self._print_seconds(time.perf_counter() - self._start, f"{self._name}{within}, {_count(event)}")
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
                state = _label("  ".join(filter(None, (_count(event), event.detail))))
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
        """What each column of a user's table was taken for, and what was noted on the way."""
        rows: list[list[str | Text]] = []
        for column in task["columns"]:
            warning = f" ({column['warning']})" if column["warning"] else ""
            use = Text.assemble(printable(column["use"]), (printable(warning), "yellow"))
            rows.append([column["name"], column["kind"], f"{column['missing']:.0%}" if column["missing"] else "", use])
        self.table(("column", "kind", "missing", "what is done with it"), rows)
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
