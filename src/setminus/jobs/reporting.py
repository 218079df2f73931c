"""The page again, from records alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setminus.experiments.records import read_records
from setminus.report.page import EXPERIMENTS, write_page

__all__ = ["record_files", "write_records_page"]

NAMES = ("records.jsonl", "audit.json", "adaptation.json")


def record_files(runs: Path) -> list[Path]:
    """The files of records in a folder, also in folders below it; or the one file that was given."""
    files = [runs] if runs.is_file() else sorted(file for name in NAMES for file in runs.rglob(name))
    if not files:
        raise ValueError(f"there are no records in {runs}: expected {' or '.join(NAMES)}, as the other commands write.")
    return files


def write_records_page(files: Sequence[Path], out: Path) -> Path:
    """Write the page of files of records.

    Parameters
    ----------
    files : sequence of Path
        See `record_files`.
    out : Path

    Returns
    -------
    Path
    """
    return write_page(out, [record for file in files for record in _shown(file)])


def _shown(file: Path) -> list[dict[str, Any]]:
    """All records of experiments, which belong together; of other jobs the newest of a file."""
    if file.suffix == ".jsonl":
        records = read_records(file)
        if not records:
            raise ValueError(f"{file} is empty: expected at least one record.")
        last = len(records) - 1
        return [record for i, record in enumerate(records) if record.get("job") in EXPERIMENTS or i == last]
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no record ({error}): expected what `setminus fit` or `audit` wrote.") from error
    if not isinstance(record, dict) or "job" not in record:
        raise ValueError(f"{file} is no record: expected what `setminus fit` or `audit` wrote.")
    return [record]
