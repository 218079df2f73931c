"""The page ``docs/adapters.md``, from the records of ``adapters`` alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from setminus_paper.pages import markdown_table
from setminus_paper.tables import to_frame

from setminus.records import read_records

Record = dict[str, Any]

AUTO, CORRECTED, SOURCE_ONLY = "setminus auto", "logistic regression + EM", "setminus source_only"
TODAY = "setminus vada_orthogonal"
SHORT = {
    AUTO: "auto",
    TODAY: "orthogonal",
    SOURCE_ONLY: "source only",
    "logistic regression": "LR",
    CORRECTED: "LR + EM",
    "skada MMDTarSReweight": "MMDTarS",
    "skada CORAL": "CORAL",
    "skada OTMapping": "OT",
    "skada JDOT": "JDOT",
    "skada SubspaceAlignment": "SA",
    "RLSbench DANN": "RLSbench",
}
"""The methods of the tables of single settings, and their heads there."""
LIMIT = 0.02
"""How far below another method is counted."""


def build(results: Path, docs: Path) -> list[Path]:
    """Write the page."""
    docs.mkdir(parents=True, exist_ok=True)
    page = docs / "adapters.md"
    page.write_text(write(read_records(results / "adapters" / "records.jsonl")), encoding="utf-8")
    return [page]


def write(records: Sequence[Record]) -> str:
    """The page as Markdown."""
    frame = to_frame(records).drop_duplicates(["name", "task", "shift", "seed"], keep="last")
    frame["setting"] = (
        frame["task"] + ", " + frame["shift"].map(lambda share: f"{100 * share:.0f}/{100 - 100 * share:.0f}")
    )
    # Markdown, not HTML: nothing in it comes from a user
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table"] = markdown_table
    parts = {part: _part(frame[frame["part"] == part]) for part in ("test", "development")}
    return environment.get_template("adapters.md.j2").render(parts=parts, limit=100 * LIMIT).rstrip("\n") + "\n"


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy with a row for each setting and a column for each method that has every setting and seed."""
    seeds = frame["seed"].nunique()
    table = frame.pivot_table(index="setting", columns="name", values="accuracy", aggfunc=["mean", "count"], sort=False)
    complete = [name for name in table["count"] if (table["count"][name] == seeds).all()]
    return table["mean"][complete]


def _part(frame: pd.DataFrame) -> dict[str, Any] | None:
    """The tables of one half of the settings; None without records."""
    if frame.empty:
        return None
    ours = frame[frame["name"] == AUTO].groupby("seed")["setting"].nunique()
    # the seeds that ours has for every setting: all methods are compared on these
    whole = ours.index[ours == frame["setting"].nunique()]
    frame = frame[frame["seed"].isin(whole)] if len(whole) else frame
    accuracy = means(frame)
    seconds = frame.groupby("name")["seconds"].median()
    order = accuracy.mean().sort_values(ascending=False)
    summary = []
    for name, mean in order.items():
        row = [name, f"{100 * mean:.1f}"]
        for other in (CORRECTED, SOURCE_ONLY):
            row += _below(accuracy[name] - accuracy[other]) if other in accuracy and name != other else ["", ""]
        summary.append([*row, f"{seconds[name]:.1f}"])
    shown = [name for name in SHORT if name in accuracy]
    rows = [
        [setting, *(_bold(100 * own[name], name == own[shown].idxmax()) for name in shown)]
        for setting, own in accuracy.iterrows()
    ]
    return {
        "seeds": frame["seed"].nunique(),
        "settings": len(accuracy),
        "summary": summary,
        "rows": rows,
        "heads": ["setting", *(SHORT[name] for name in shown)],
        "command": str(frame["command"].iloc[-1]) if "command" in frame else "python -m benchmarks adapters",
    }


def _below(gain: pd.Series) -> list[str]:
    """The smallest gain in points, and the number of settings that are more than `LIMIT` below."""
    return [f"{100 * gain.min():+.1f}", str(int(np.sum(gain < -LIMIT)))]


def _bold(value: float, best: bool) -> str:
    return f"**{value:.1f}**" if best else f"{value:.1f}"
