"""The page ``docs/translators.md`` and its pictures, from the records of ``translators`` alone."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from setminus_paper.pages import markdown_table

from benchmarks.translators import FEW_LABELS_OF, LABELLED
from setminus.charts.chart import Chart, Line
from setminus.charts.picture import draw
from setminus.records import read_records

Record = dict[str, Any]
NAMES = {
    "colored_digits": "MNIST: color of the digit, keep the ground's color",
    "small_digits": "UCI digits: color of the digit, keep flat or striped ground",
    "shapes": "disc or cross, keep its color",
    "clothes": "wall or tiles behind clothes, keep the clothes' color",
    "faces": "CelebA: sex, keep the hair (blond or not)",
}
ARROWS = {"a_to_b": "A to B", "b_to_a": "B to A"}
GOOD = 0.9


def build(results: Path, docs: Path) -> list[Path]:
    """Write the page and its pictures."""
    records = read_records(results / "translators" / "records.jsonl")
    page = docs / "translators.md"
    page.write_text(write(records), encoding="utf-8")
    pictures = docs / "translators"
    pictures.mkdir(exist_ok=True)
    made = [page]
    for record in _pictured(records):
        made.append(pictures / f"{record['task']['source']}.png")
        made[-1].write_bytes(base64.b64decode(record["metrics"]["strips"]))
    few = _few_labels(records)
    if len(few):
        made.append(pictures / "labels.png")
        draw([_curve(few)], made[-1], columns=1)
    return made


def write(records: Sequence[Record]) -> str:
    """The page as Markdown."""
    # Markdown, not HTML: nothing in it comes from a user
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table"] = markdown_table
    rows = _rows(records)
    parts = {role: rows[(rows["role"] == role) & (rows["labels"] == LABELLED)] for role in ("development", "test")}
    shown = ["pictures", "seed", "direction", "changed", "reported changed", "kept", "reported kept", "verdict"]
    few = _few_labels(records)
    return (
        environment.get_template("translators.md.j2")
        .render(
            parts={role: own[shown] for role, own in parts.items() if len(own)},
            met={role: (int(own["met"].sum()), len(own)) for role, own in parts.items()},
            verdicts=_verdicts(rows),
            few=few[["labels", "direction", "changed", "kept", "verdict"]] if len(few) else None,
            pictured=[(one["task"]["source"], NAMES[one["task"]["source"]]) for one in _pictured(records)],
            seconds=(min(_seconds(records)), max(_seconds(records))),
        )
        .rstrip("\n")
        + "\n"
    )


def _seconds(records: Sequence[Record]) -> list[int]:
    return [round(one["metrics"]["cpu_seconds"]) for one in records]


def _rows(records: Sequence[Record]) -> pd.DataFrame:
    rows = []
    for record in records:
        for direction, arrow in ARROWS.items():
            found = record["metrics"][direction]
            own = found["reported"]
            rows.append(
                {
                    "pictures": NAMES[record["task"]["source"]],
                    "role": record["task"]["role"],
                    "source": record["task"]["source"],
                    "labels": record["task"]["labelled"],
                    "seed": record["seed"],
                    "direction": arrow,
                    **{name: f"{100 * found[name]:.1f}" for name in ("changed", "kept")},
                    **{f"reported {name}": f"{100 * own[name]:.1f}" for name in ("changed", "kept")},
                    "verdict": own["verdict"],
                    "met": min(found["changed"], found["kept"]) >= GOOD,
                }
            )
    return pd.DataFrame(rows)


def _verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """How often each verdict was given to directions that are at 90 % in both by the truth, and to others."""
    truth = rows["met"].map({True: "90 % changed and kept", False: "less"})
    counts = pd.crosstab(rows["verdict"], truth)
    return counts.reset_index()


def _few_labels(records: Sequence[Record]) -> pd.DataFrame:
    rows = _rows(records)
    found = rows[(rows["source"] == FEW_LABELS_OF) & (rows["seed"] == 0)].sort_values(["labels", "direction"])
    # one number of labels is no curve
    return found if found["labels"].nunique() > 1 else found[:0]


def _curve(few: pd.DataFrame) -> Chart:
    lines = [
        Line(own["labels"].tolist(), own[name].astype(float).tolist(), f"{name}, {arrow}")
        for arrow, own in few.groupby("direction")
        for name in ("changed", "kept")
    ]
    return Chart("MNIST in two colors, 1,400 pictures", "labelled pictures", "% of 600 other pictures", lines)


def _pictured(records: Sequence[Record]) -> list[Record]:
    return [one for one in records if one["seed"] == 0 and one["task"]["labelled"] == LABELLED]
