"""The files that a command writes: checked before any long work, and how to use them afterwards."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from setminus.errors import UserError
from setminus.files import destination

__all__ = ["check_folder", "check_outputs", "usage"]

ENDINGS = {
    "model": (".skops",),
    "table": (".csv", ".tsv", ".gz", ".parquet", ".pq", ".arrow", ".feather", ".ipc"),
    "record": (".json", ".jsonl"),
    "page": (".html", ".htm"),
}
"""Endings of the names of what the commands read and write."""


def check_outputs(outputs: Mapping[str, Path], inputs: Iterable[Path] = (), *, option: str = "--out") -> None:
    """Raise before any long work where an output is an input or another output, or cannot be written.

    Parameters
    ----------
    outputs : mapping of str to Path
        Each file to be written, by what it is; the last word may be a kind of `ENDINGS`.
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
    for what, path in outputs.items():
        own = what.rpartition(" ")[2]
        for kind, endings in ENDINGS.items():
            if own in ENDINGS and kind != own and path.name.lower().endswith(endings):
                raise UserError(
                    f"{path} has the name of a {kind}, and would hold a {own}",
                    do=f"give it another ending: {option} NAME{ENDINGS[own][0]}",
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


def usage(model: Path, needs: str = "") -> tuple[str, str]:
    """How to use a model file in Python, and on the command line; `needs` is a remark on its columns."""
    remark = f"  # {needs}" if needs else ""
    python = f'from setminus import load\n\nmodel = load("{model.name}")\nmodel.predict_proba(frame){remark}'
    return python, f"setminus apply {shlex.quote(model.name)} new.csv --out scored.csv"
