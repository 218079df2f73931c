"""The numbers and pictures of docs/laboratory.md, between its marks, from records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setminus_paper.figures import draw_picture, seeds_in_words, summary_of

from setminus.records import read_records

NAMES = ("fig1", *(f"prop{k}" for k in range(1, 8)), "fig2a", "fig2b", "fig2c", "fig3", "fig4", "theorem1", "pitfalls")
RECORDS_OF = {"fig3": "table1", "fig4": "table1"}
"""Where a picture is drawn from the records of another experiment."""


def run(results: Path, docs: Path) -> None:
    """Write every block for which there are records, and its picture."""
    page = docs / "laboratory.md"
    text = page.read_text(encoding="utf-8")
    (docs / "laboratory").mkdir(exist_ok=True)
    for name in NAMES:
        path = records_of(name, results)
        if path.exists():
            records = read_records(path)
            text = with_block(text, name, block(name, records))
            draw_picture(name, records, docs / "laboratory" / f"{name}.png")
    page.write_text(text, encoding="utf-8")
    print(f"wrote {page} and its pictures")


def records_of(name: str, results: Path) -> Path:
    """The file that a block is made from."""
    return results / RECORDS_OF.get(name, name) / "records.jsonl"


def block(name: str, records: list[dict[str, Any]]) -> str:
    """The picture, the paper's claim, what was expected and what was measured, and the command."""
    if name in RECORDS_OF:
        return images_block(name)
    first = records[0]
    rows = [f"| {what} | {expected} | {measured} |" for what, expected, measured in summary_of(records)]
    return "\n".join(
        [
            f"![{name}](laboratory/{name}.png)",
            "",
            f"**Claim.** {first['claim']}",
            "",
            "<details><summary>The numbers</summary>",
            "",
            "| what | paper, or exact | measured |",
            "|---|---|---|",
            *(row.replace("\\", "\\\\") for row in rows),
            "",
            "</details>",
            "",
            f"`{first['command']}`, {seeds_in_words(records)}.",
            "",
        ]
    )


def images_block(name: str) -> str:
    """The picture, and where it is from: the numbers are in the table."""
    source = RECORDS_OF[name]
    return (
        f"![{name}](laboratory/{name}.png)\n\n"
        f"`setminus reproduce {name}`, from the records of [{source}](tables.md), which it measures where they are "
        "missing.\n"
    )


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a block."""
    return f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"


def with_block(text: str, name: str, content: str) -> str:
    """The page with another block between its marks."""
    start, end = marks(name)
    before, rest = text.split(start)
    _, after = rest.split(end)
    return f"{before}{start}{content}{end}{after}"
