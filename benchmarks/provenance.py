"""Where a benchmark's record comes from."""

from __future__ import annotations

from typing import Any


def provenance(command: str, *packages: str) -> dict[str, Any]:
    """The versions, those of more `packages` among them, the commit and the command of a record."""
    # not at the top: some benchmarks measure what imports cost
    from setminus_paper.run import source_commit

    from setminus.records import versions

    return {"versions": versions(*packages), "commit": source_commit(), "command": command}
