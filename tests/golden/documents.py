"""The numbers of the tables in Markdown documents, row by row. Words are free, numbers are not."""

import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = (
    *("docs/tables/transfer.md", "docs/tables/adaptation.md", "docs/tables/fairness.md"),
    *("docs/laboratory.md", "docs/laboratory/limits.md", "docs/peers.md", "README.md"),
)
NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
"""Not the 1 of w_1 or the 10 of cifar10."""


def documents():
    """All pages that may hold a table today or after a move."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("paper/**/*.md"))]


def tables(text):
    """Each table as its heading and its rows of numbers, as they are written; rows without numbers are left out."""
    heading, found = "", []
    for is_table, lines in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        if is_table:
            rows = [row for row in map(row_numbers, list(lines)[2:]) if row]
            if rows:
                found.append({"heading": heading, "rows": rows})
        else:
            heading = next((line.lstrip("# ") for line in reversed(list(lines)) if line.startswith("#")), heading)
    return found


def row_numbers(line):
    """The numbers of a row; those in the words of its first cell belong to its label."""
    label, *cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    if NUMBER.fullmatch(label.strip()):
        cells.insert(0, label)
    return [
        found.replace(",", "").replace("\u2212", "-").lstrip("+") for cell in cells for found in NUMBER.findall(cell)
    ]


def within(wanted, given, holds=lambda one, other: one == other):
    """Whether all that is wanted comes in this order, with anything in between."""
    rest = iter(given)
    return all(any(holds(one, other) for other in rest) for one in wanted)


def holds_rows(wanted, given):
    """Whether a table holds the rows of another, in order, each with its numbers in order."""
    return within(wanted, given, within)


def expected():
    """The tables to keep, by document."""
    return {name: tables((ROOT / name).read_text()) for name in GENERATED}
