"""``setminus report``: write the page again, from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from setminus.commands import options
from setminus.commands.terminal import check_outputs, echo
from setminus.errors import UserError
from setminus.records import RecordError, read_record, read_records

__all__ = ["record_files", "report", "write_records_page"]

NAMES = ("records.jsonl", "audit.json", "adaptation.json")
"""Names of files of records, also with the name of a model before them, as in model.audit.json."""


def report(
    runs: Annotated[
        Path,
        typer.Argument(
            help="A file records.jsonl, MODEL.audit.json or MODEL.adaptation.json, or a folder that holds such files.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="HTML page to write. By default report.html in the folder of the records.")
    ] = None,
    force: options.Force = False,
) -> None:
    """Write the HTML page again from saved results, without computing them again.

    Example: setminus report runs/
    """
    files = record_files(runs)
    page = (runs.parent if runs.is_file() else runs) / "report.html" if out is None else out
    check_outputs({"page": page}, files, force=force)
    echo(write_records_page(files, page).resolve())


def record_files(runs: Path) -> list[Path]:
    """The files of records in a folder, also in folders below it; or the one file that was given."""
    likes = [like for name in NAMES for like in (name, f"*.{name}")]
    files = [runs] if runs.is_file() else sorted({file for like in likes for file in runs.rglob(like)})
    if not files:
        raise UserError(
            f"there are no records in {runs}", expected=f"{' or '.join(NAMES)}, as the other commands write"
        )
    return files


def write_records_page(files: Sequence[Path], out: Path) -> Path:
    """Write the page of files of records, see `record_files`, and return its path."""
    from setminus.datasets.images import show_names
    from setminus.report.page import write_page

    records = [record for file in files for record in _shown(file)]
    try:
        return write_page(out, records)
    except (ImportError, MemoryError, OSError, RecordError):
        raise
    except Exception as error:
        # records of another version, or edited ones: the cause is in the files
        broken = [str(file) for file in files if not _can_show(file)] or [*map(str, files)]
        raise UserError(
            f"the page cannot show {show_names(broken)}, where a value is missing or of another kind",
            do="restore the file, or make the records again; SETMINUS_TRACEBACK=1 shows which value it is.",
        ) from error


def _can_show(file: Path) -> bool:
    from setminus.report.page import build_page

    try:
        build_page(_shown(file))
    except Exception:
        return False
    return True


def _shown(file: Path) -> list[dict[str, Any]]:
    """All records of experiments, which belong together; of other jobs the newest of a file."""
    from setminus.report.page import experiment_sections

    if file.suffix != ".jsonl":
        return [read_record(file)]
    records = read_records(file)
    if not records:
        raise UserError(f"{file} is empty", expected="at least one record")
    last, experiments = len(records) - 1, experiment_sections()
    return [record for i, record in enumerate(records) if str(record.get("job")) in experiments or i == last]
