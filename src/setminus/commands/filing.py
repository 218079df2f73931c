"""The evidence that `fit` and `audit` write: the inputs by their hashes, who approved the choices, and the files."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setminus.errors import UserError, printable
from setminus.files import atomic_writes
from setminus.records import Record, write_json

__all__ = ["Filing", "write_outputs"]

MAX_NOTES = 100_000
"""Characters of a file of notes."""


@dataclass(frozen=True)
class Filing:
    """Who approved a result, and the reasons.

    Parameters
    ----------
    approved_by : str, optional
    notes : str, optional
        Markdown.
    """

    approved_by: str | None = None
    notes: str | None = None

    @classmethod
    def of(cls, approved_by: str | None, notes: Path | None, pdf: Path | None) -> Filing:
        """Read the notes and look for a browser, so that neither is missed after the long work."""
        if pdf is not None:
            from setminus.report.evidence import find_browser

            find_browser()
        if approved_by is not None and not approved_by.strip():
            raise UserError("--approved-by is empty", do="give a name, or leave it out.")
        text = None
        if notes is not None:
            try:
                text = notes.read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"{notes} is no text in UTF-8", do="save the notes as plain text.") from error
            if len(text) > MAX_NOTES:
                raise UserError(f"{notes} has {len(text):,} characters", expected=f"at most {MAX_NOTES:,}")
        return cls(None if approved_by is None else printable(approved_by.strip()), text)

    def provenance(
        self, command: str, config: Mapping[str, Any], chosen: Sequence[str], files: Mapping[str, str | None]
    ) -> dict[str, Any]:
        """For a record: the choices and where each was made, who approved them, and the files by their hashes.

        `command` is what the user typed. Of the settings in `config`, those in `chosen` are listed, which a reader must
        be able to question. `files` has what was read, by its role; None where there is no such file.
        """
        typed = {word.partition("=")[0] for word in shlex.split(command)}
        return {
            "settings": [
                {
                    "name": name,
                    "value": None if config[name] == () else config[name],
                    "typed": f"--{name.replace('_', '-')}" in typed,
                }
                for name in chosen
            ],
            "approved_by": self.approved_by,
            "notes": self.notes,
            "files": [
                _fingerprint(what, Path(path))
                for what, path in files.items()
                if path is not None and Path(path).is_file()
            ],
        }


def _fingerprint(what: str, path: Path, name: str | None = None) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"what": what, "name": name or path.name, "bytes": path.stat().st_size, "sha256": digest}


def write_outputs(
    record: Record, outputs: Mapping[str, Path | None], save_model: Callable[[Path], object] | None = None
) -> None:
    """Write the model, the record, the page and what else was asked for: all of them, or none.

    Parameters
    ----------
    record : dict
    outputs : mapping of str to Path or None
        By their kind: model, record, page, card, pdf, junit, sarif.
    save_model : callable, optional
        Writes the model to a path. It is written first, so that its hash is in the evidence.
    """
    from setminus.report.evidence import build_card, junit, print_page, sarif
    from setminus.report.page import write_page

    wanted = {kind: path for kind, path in outputs.items() if path is not None}
    with atomic_writes(*wanted.values()) as partials:
        parts = dict(zip(wanted, partials, strict=True))
        if save_model is not None:
            save_model(parts["model"])
            if "provenance" in record:
                found = _fingerprint("model", parts["model"], wanted["model"].name)
                record["provenance"]["files"].append(found)
        page = parts.get("page")
        if page is None and "pdf" in parts:
            page = parts["pdf"].with_name("page.html")
        if page is not None:
            write_page(page, [record])
        for kind, part in parts.items():
            if kind == "record":
                write_json(part, record)
            elif kind == "card":
                part.write_text(build_card(record), encoding="utf-8")
            elif kind == "pdf" and page is not None:
                print_page(page, part)
            elif kind == "junit":
                part.write_text(junit(record), encoding="utf-8")
            elif kind == "sarif":
                write_json(part, sarif(record))
