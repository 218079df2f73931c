"""The page again, from records alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from setminus.experiments.records import read_records
from setminus.report.page import EXPERIMENTS, write_page

__all__ = ["page_of"]

NAMES = ("records.jsonl", "audit.json", "adaptation.json")


def page_of(runs: Path, out: Path | None = None) -> Path:
    """Write the page of a folder of records, or of one file of them.

    Parameters
    ----------
    runs : Path
        A file of records, or a folder with such files, also in folders below it.
    out : Path, optional
        By default ``report.html`` beside the records.

    Returns
    -------
    Path
    """
    files = [runs] if runs.is_file() else sorted(file for name in NAMES for file in runs.rglob(name))
    if not files:
        raise ValueError(f"there are no records in {runs}: expected {' or '.join(NAMES)}, as the other commands write.")
    records = [record for file in files for record in _shown(file)]
    folder = runs.parent if runs.is_file() else runs
    return write_page(folder / "report.html" if out is None else out, records)


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
