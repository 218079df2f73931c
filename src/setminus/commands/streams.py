"""Standard output and error that a closed pipe, an odd encoding or a strange name cannot break."""

from __future__ import annotations

import io
import sys
from typing import Any

import typer

from setminus.text import printable

__all__ = ["echo", "flush", "protect_streams"]


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
