"""The pages of the laboratory: each claim with its picture, its numbers and its command, from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from setminus.files import atomic_write
from setminus.records import read_records
from setminus_paper.claims.over_seeds import Summary
from setminus_paper.figures import reduce_colors, seeds_of
from setminus_paper.pages import render
from setminus_paper.reproduce import LABORATORY, draw_picture, load_view, records_of

__all__ = ["RECORDS", "build"]

PICTURES = ("fig3", "fig4")
"""Figures without numbers: images of table 1."""
RECORDS = (*LABORATORY, *PICTURES, "table1")


@dataclass(frozen=True)
class Result:
    """What the templates show of a claim."""

    claim: str
    rows: Summary
    seeds: str
    command: str

    def rows_of(self, quantities: Sequence[str]) -> Summary:
        """The rows of some quantities; one that was not measured is an error."""
        by_quantity = {row[0]: row for row in self.rows}
        return [by_quantity[quantity] for quantity in quantities]


def build(results: Path, docs: Path) -> list[Path]:
    """Write the pages, and the picture of each claim that has records; return their paths."""
    (docs / "laboratory").mkdir(parents=True, exist_ok=True)
    claims: dict[str, Result] = {}
    pictures = []
    for name in (*LABORATORY, *PICTURES):
        file = results / records_of(name) / "records.jsonl"
        if file.exists():
            records, view = read_records(file), load_view(name)
            rows = [] if name in PICTURES else view.summary(records)
            claims[name] = Result(view.CLAIM, rows, seeds_of(records), records[0]["command"])
            picture = docs / "laboratory" / f"{name}.png"
            if draw_picture(name, records, picture):
                # those of images have more colors, and are small
                if name not in PICTURES:
                    reduce_colors(picture)
                pictures.append(picture)
    pages = [docs / "laboratory.md", docs / "laboratory" / "limits.md", docs / "laboratory" / "numbers.md"]
    for page in pages:
        folder = "laboratory/" if page.parent == docs else ""
        with atomic_write(page) as partial:
            partial.write_text(render(f"{page.name}.j2", claims=claims, folder=folder), encoding="utf-8")
    return [*pages, *pictures]
