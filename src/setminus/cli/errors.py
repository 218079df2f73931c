"""Which errors a user can mend, in two lines: what is wrong, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CommandError", "check_file", "check_folder", "explanation"]


class CommandError(Exception):
    """A command cannot go on; the two arguments say what is wrong and what to do."""

    def __init__(self, wrong: str, remedy: str):
        super().__init__(wrong, remedy)
        self.lines = (wrong, remedy)


def explanation(error: Exception) -> tuple[str, str] | None:
    """What to tell the user instead of a traceback; None where the mistake is ours.

    Examples
    --------
    >>> print(*explanation(CommandError("the file is empty", "give one with rows")), sep="; ")
    Error: the file is empty; give one with rows
    >>> explanation(KeyError("x")) is None
    True
    """
    # not at the top: --help must not wait for it
    from setminus.datasets.sources import ChecksumError, DataUnavailableError

    problem, advice = getattr(error, "problem", None), getattr(error, "advice", None)
    if problem is not None and advice is not None:
        # a TableError: asked by its parts, since its module needs pyarrow
        return f"Error: {problem}.", str(advice)
    match error:
        case CommandError(lines=(wrong, remedy)):
            pass
        case ValueError() | FileNotFoundError() | TypeError() if not isinstance(error, ChecksumError):
            # the library's errors say what came and what to do around a colon
            wrong, _, remedy = str(error).partition(": ")
            remedy = remedy[:1].upper() + remedy[1:] or "Mend the input, and try again."
        case DataUnavailableError():
            # between the first and the last line is the list of what was tried
            wrong, *_, remedy = str(error).splitlines()
        case ChecksumError():
            wrong, remedy = str(error), "Or unset SETMINUS_DATA: the file is then fetched anew."
        case PermissionError() | NotADirectoryError():
            wrong, remedy = f"{error.filename}: {error.strerror}.", "Choose a file or folder that you may use."
        case ImportError() if "setminus[" in str(error):
            wrong, remedy = str(error).split(": ", 1)
        case _:
            return None
    return f"Error: {wrong}", remedy


def check_file(path: Path, option: str, *inputs: Path) -> None:
    """Raise before any long work where a file cannot be written, or is one of those that are read."""
    if any(path.resolve() == other.resolve() for other in inputs):
        raise CommandError(f"{path} is read, and would be lost.", f"Name another file: {option} FILE")
    if path.is_dir():
        raise CommandError(f"{path} is a folder.", f"Name a file: {option} {path / 'NAME'}")
    check_folder(path.parent, option)
    if path.exists() and not os.access(path, os.W_OK):
        raise CommandError(f"{path} may not be overwritten.", f"Choose another file: {option} FILE")


def check_folder(folder: Path, option: str) -> None:
    """Make a folder, and raise before any long work where nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".setminus-write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CommandError(
            f"cannot write to {folder}: {error.strerror or error}.",
            f"Choose a folder that you may write to: {option} FOLDER",
        ) from error
