"""How a command ends: its exit codes, the two lines of an error, and which outputs it may write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path

from setminus.errors import MissingExtraError, UserError
from setminus.files import destination

__all__ = ["ExitCode", "check_folder", "check_outputs", "explanation"]

MAX_LETTERS = 800
"""The longest line of an error: a name or a value in it may be as long as a file."""
NO_MODEL = (".csv", ".tsv", ".gz", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".json", ".jsonl", ".html")
"""Endings of what the commands read and write besides models."""


class ExitCode(IntEnum):
    """What the exit code of a command means."""

    DONE = 0
    GAP_TOO_LARGE = 1
    """The gap is above ``audit --fail-above``; nothing else ends with 1."""
    INPUT = 2
    """The input, the options or the machine (a full disk, no memory) stopped it: the message says what to change."""
    UNJUDGED = 3
    """Could not judge: the gap is undefined, or setminus itself failed."""
    INTERRUPTED = 130


def explanation(error: Exception) -> tuple[ExitCode, str, str]:
    """The exit code and the two lines that stand for an error.

    Examples
    --------
    >>> print(*explanation(UserError("the file is empty", do="give one with rows."))[1:])
    Error: the file is empty. Give one with rows.
    >>> explanation(KeyError("x"))[0].name
    'UNJUDGED'
    """
    code = ExitCode.INPUT
    match error:
        case UserError() | MissingExtraError():
            wrong, remedy = error.lines
        case OSError(errno=int(), strerror=str()):
            wrong = f"{error.filename or 'the output'}: {error.strerror}."
            remedy = "Choose a file or folder that you may use, on a disk with room."
        case MemoryError():
            wrong, remedy = "the memory of this machine is not enough.", "Give fewer rows, or smaller pictures."
        case ValueError() | FileNotFoundError() | TypeError():
            # of another library: its own words, of which the first line says what is wrong
            wrong = (str(error).strip() or type(error).__name__).splitlines()[0]
            remedy = "Change the input or the options, and try again; SETMINUS_TRACEBACK=1 shows where it happened."
        case _:
            code = ExitCode.UNJUDGED
            wrong = f"setminus failed with {type(error).__name__}: {error}"
            remedy = "Nothing was judged. Please report this; with SETMINUS_TRACEBACK=1 it shows where it happened."
    return code, _short(f"Error: {wrong}"), _short(remedy)


def _short(line: str) -> str:
    """A line without its middle where a value in it fills the screen."""
    return line if len(line) <= MAX_LETTERS else f"{line[: MAX_LETTERS // 2]} ... {line[-MAX_LETTERS // 2 :]}"


def check_outputs(outputs: Mapping[str, Path], inputs: Iterable[Path] = (), *, option: str = "--out") -> None:
    """Raise before any long work where an output is an input or another output, or cannot be written.

    Parameters
    ----------
    outputs : mapping of str to Path
        Each file to be written, by what it is.
    inputs : iterable of Path
    option : str
        The option that decides where they are.
    """
    read = list(inputs)
    taken: dict[str, Path] = {}
    for what, path in outputs.items():
        if any(_same(path, other) for other in read):
            raise UserError(
                f"{path} is an input, and would be overwritten by {what}", do=f"name another file: {option} FILE"
            )
        for other, place in taken.items():
            if _same(path, place):
                raise UserError(f"{path} is both {other} and {what}", do=f"name another file: {option} FILE")
        taken[what] = path
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
    model = outputs.get("the model")
    if model is not None and model.name.lower().endswith(NO_MODEL):
        raise UserError(
            f"{model} has the name of a table or a page, and would hold a model",
            do=f"give it another ending: {option} model.skops",
        )


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
