"""How a command ends: its exit codes, the two lines of an error, and which outputs it may write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path

from setminus.errors import UserError
from setminus.files import destination

__all__ = ["CommandError", "ExitCode", "check_folder", "check_outputs", "explanation"]

MOST_LETTERS = 800
"""Of a line of an error: a name or a value in it may be as long as a file."""
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


class CommandError(Exception):
    """A command cannot go on; the two arguments say what is wrong and what to do."""

    def __init__(self, wrong: str, remedy: str):
        super().__init__(wrong, remedy)
        self.lines = (wrong, remedy)


def explanation(error: Exception) -> tuple[ExitCode, str, str]:
    """The exit code and the two lines that stand for an error.

    Examples
    --------
    >>> print(*explanation(CommandError("the file is empty", "give one with rows"))[1:], sep="; ")
    Error: the file is empty; give one with rows
    >>> explanation(KeyError("x"))[0].name
    'UNJUDGED'
    """
    # not at the top: --help must not wait for it
    from setminus.datasets.sources import ChecksumError, DataUnavailableError

    problem, advice = getattr(error, "problem", None), getattr(error, "advice", None)
    code = ExitCode.INPUT
    match error:
        case _ if problem is not None and advice is not None:
            # a TableError: asked by its parts, since its module needs pyarrow
            wrong, remedy = f"{problem}.", str(advice)
        case CommandError(lines=(wrong, remedy)) | UserError(lines=(wrong, remedy)):
            pass
        case DataUnavailableError():
            # between the first and the last line is the list of what was tried
            wrong, *_, remedy = str(error).splitlines()
        case ChecksumError():
            wrong, remedy = str(error), "Or unset SETMINUS_DATA: the file is then fetched anew."
        case OSError(errno=int(), strerror=str()):
            wrong = f"{error.filename or 'the output'}: {error.strerror}."
            remedy = "Choose a file or folder that you may use, on a disk with room."
        case MemoryError():
            wrong, remedy = "the memory of this machine is not enough.", "Give fewer rows, or smaller pictures."
        case ValueError() | FileNotFoundError() | TypeError():
            # the library's errors say what came and what to do around a colon
            wrong, _, remedy = str(error).partition(": ")
            remedy = remedy[:1].upper() + remedy[1:] or "Mend the input, and try again."
        case ImportError() if "setminus[" in str(error):
            wrong, remedy = str(error).split(": ", 1)
        case _:
            code = ExitCode.UNJUDGED
            wrong = f"setminus failed with {type(error).__name__}: {error}"
            remedy = "Nothing was judged. Please report this; with SETMINUS_TRACEBACK=1 it shows where it happened."
    return code, _short(f"Error: {wrong}"), _short(remedy)


def _short(line: str) -> str:
    """A line without its middle where a value in it fills the screen."""
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS // 2]} ... {line[-MOST_LETTERS // 2 :]}"


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
            raise CommandError(
                f"{path} is an input, and would be overwritten by {what}.", f"Name another file: {option} FILE"
            )
        for other, place in taken.items():
            if _same(path, place):
                raise CommandError(f"{path} is both {other} and {what}.", f"Name another file: {option} FILE")
        taken[what] = path
        if path.is_dir():
            raise CommandError(f"{path} is a folder.", f"Name a file: {option} {path / 'NAME'}")
        try:
            check_folder(destination(path).parent, option)
        except OSError as error:
            raise CommandError(
                f"{path} is a link that leads to itself.", f"Remove it, or name another file: {option} FILE"
            ) from error
        if path.exists() and not os.access(path, os.W_OK):
            raise CommandError(f"{path} may not be overwritten.", f"Choose another file: {option} FILE")
    model = outputs.get("the model")
    if model is not None and model.name.lower().endswith(NO_MODEL):
        raise CommandError(
            f"{model} has the name of a table or a page, and would hold a model.",
            f"Give it another ending: {option} model.skops",
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
        raise CommandError(
            f"cannot write to {folder}: {error.strerror or error}.",
            f"Choose a folder that you may write to: {option} FOLDER",
        ) from error
