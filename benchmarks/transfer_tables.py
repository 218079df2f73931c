"""Tables 1, 2 and 6 beside the paper's, as a part of a page, from records alone."""

from __future__ import annotations

from typing import Any

from setminus_paper.report.style_transfer_notes import about, notes, scoring
from setminus_paper.report.style_transfer_rows import Cell, Row, compared, rows_of, scores_of, shown

TITLES = {
    "table1": "Table 1: colored digits, whose digit is to change its color and whose background is to keep it",
    "table2": "Table 2: CelebA-GH, men without and women with blond hair; the sex is to change, the hair to stay",
    "table6": "Table 6: CelebA, men and women; the sex is to change, the hair to stay",
}

HEAD = """\
## Style transfer

A row is a CycleGAN, plain or against the discriminator without what the principal classifier knows. Numbers are means ±
standard deviations over the seeds; the paper's stand beside them. Minutes are those of one run on one thread, the
classifiers that it needs included as far as no row before it had fitted them.
"""


def table(name: str, records: list[dict[str, Any]]) -> str:
    """A table, what comes out of it, and what to know about it."""
    scores, rows = scores_of(records), rows_of(records)
    heads = ["row"]
    for score in scores:
        heads += [score.heading, "paper"] if score.published else [score.heading]
    heads += ["seeds", "steps", "minutes"]
    lines = [f"### {TITLES[name]}", "", about(name).domains, ""]
    lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *map(_row, rows), ""]
    lines += [one for text in (compared(rows), scoring(records)) if text for one in (_plain(text), "")]
    lines += [f"- {_plain(note)}" for note in notes(records, rows)]
    if name != "table1":
        lines += [f"- {about(name).no_samples}"]
    # the last of those that name no part of the table
    command = min((one["command"] for one in reversed(records)), key=len)
    return "\n".join([*lines, "", f"`{command}`", ""])


def _row(row: Row) -> str:
    cells = [_plain(row.label)]
    for cell in row.cells.values():
        cells += [shown(cell.score, cell.value, cell.deviation), *([_paper(cell)] if cell.score.published else [])]
    minutes = sum(record["seconds"] for record in row.records) / len(row.records) / 60
    cells += [str(len(row.records)), " and ".join(f"{steps:,}" for steps in row.steps), f"{minutes:.0f}"]
    return f"| {' | '.join(cells)} |"


def _paper(cell: Cell) -> str:
    return "" if cell.paper is None else shown(cell.score, cell.paper)


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return text.replace("|", "\\|")
