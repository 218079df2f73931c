"""Which records exist already, so that a stopped run continues where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from setminus.records import append_record, read_records

Key = TypeVar("Key")


def existing_keys(records: Path, key: Callable[[dict[str, Any]], Key], again: str | None = None) -> set[Key]:
    """The keys of the existing records; those of methods with `again` in their name are removed first."""
    if not records.exists():
        return set()
    found = read_records(records)
    if again is not None:
        found = [record for record in found if again not in record["name"]]
        records.unlink()
        for record in found:
            append_record(records, record)
    return {key(record) for record in found}
