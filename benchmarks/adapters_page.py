"""The page ``docs/adapters.md``, from the records of ``adapters`` alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from setminus_paper.pages import render
from setminus_paper.tables import to_frame

from setminus.adaptation.evidence import EXPECTED
from setminus.records import read_records

Record = dict[str, Any]

AUTO, CORRECTED, SOURCE_ONLY = "setminus auto", "logistic regression + EM", "setminus source_only"
PLAIN = "logistic regression"
SHORT = {
    AUTO: "auto",
    SOURCE_ONLY: "source only",
    PLAIN: "LR",
    CORRECTED: "LR + EM",
    "setminus corrected": "corrected",
    "skada MMDTarSReweight": "MMDTarS",
    "skada CORAL": "CORAL",
    "skada OTMapping": "OT",
    "skada JDOT": "JDOT",
    "skada SubspaceAlignment": "SA",
    "RLSbench DANN": "RLSbench",
    "setminus vada_orthogonal": "orthogonal",
    "setminus vada": "VADA",
    "setminus vada_iw": "IW",
    "setminus dann": "DANN",
}
"""The methods of the tables of single settings, and their heads there."""
TITLES = {
    "test": "Settings for test",
    "unseen": "Studies and reviews",
    "new": "New data",
    "last": "Newest data",
    "final": "Tables",
    "development": "Settings for development",
}
"""The parts of the settings, in the order of the page; "unchanged" is summed up in where-auto-fails.md."""
LIMIT = 0.02
"""How far below another method is counted; a smaller difference is neither harm nor help."""
VERDICT_HEADS = [
    "method",
    "settings",
    "runs",
    "a warning is",
    *(
        f"{beside}: warned where it {change}"
        for beside in ("source only", "corrected", "both")
        for change in ("hurts", "helps")
    ),
]


def build(results: Path, docs: Path) -> list[Path]:
    """Write the page."""
    docs.mkdir(parents=True, exist_ok=True)
    page = docs / "adapters.md"
    records, verdicts = (results / name / "records.jsonl" for name in ("adapters", "verdicts"))
    found = read_records(verdicts) if verdicts.exists() else []
    page.write_text(write(read_records(records), found), encoding="utf-8")
    return [page]


def write(records: Sequence[Record], verdicts: Sequence[Record] = ()) -> str:
    """The page as Markdown, from the records of ``adapters`` and of ``verdicts``."""
    frame = to_frame(records).drop_duplicates(["name", "task", "shift", "seed"], keep="last")
    frame["setting"] = frame["task"] + ", " + frame["shift"].map(_shift)
    parts = {part: _part(frame[frame["part"] == part]) for part in TITLES}
    found = {"parts": parts, "titles": TITLES, "verdicts": judged(verdicts), "heads": VERDICT_HEADS}
    return render(Path(__file__).parent / "adapters.md.j2", **found, limit=100 * LIMIT)


def _shift(share: float) -> str:
    if not share:
        return "as they came"
    return f"{100 * abs(share):.0f}/{100 - 100 * abs(share):.0f}" + (" in both" if share < 0 else "")


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """The records of each method with the seeds for which it has every setting."""
    counted = frame.groupby(["name", "seed"])["setting"].transform("nunique")
    return frame[counted == frame["setting"].nunique()]


def means(frame: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Mean accuracy over some seeds, with a row for each setting and a column for each method that has them all."""
    own = frame[frame["seed"].isin(seeds)]
    enough = own.groupby("name")["seed"].nunique() == len(seeds)
    own = own[own["name"].map(enough)]
    return own.pivot_table(index="setting", columns="name", values="accuracy", sort=False)


def _part(frame: pd.DataFrame) -> dict[str, Any] | None:
    """The tables of some settings; None without a seed of ours on all of them."""
    frame = complete(frame)
    # the seeds that ours has
    frame = frame[frame["seed"].isin(frame.loc[frame["name"] == AUTO, "seed"])]
    if frame.empty:
        return None
    seconds = frame.groupby("name")["seconds"].median()
    seeds_of = {name: sorted(own["seed"].unique()) for name, own in frame.groupby("name")}
    own_means = {name: means(frame, seeds)[name] for name, seeds in seeds_of.items()}
    summary = []
    for name in sorted(own_means, key=lambda name: -own_means[name].mean()):
        # the others on the same seeds
        accuracy = means(frame, seeds_of[name])
        row = [name, str(len(seeds_of[name])), f"{100 * accuracy[name].mean():.1f}"]
        row.append("" if name == AUTO else f"{100 * accuracy[AUTO].mean():.1f}")
        for other in (CORRECTED, SOURCE_ONLY, PLAIN):
            row += _below(accuracy[name] - accuracy[other]) if other in accuracy and name != other else ["", ""]
        summary.append([*row, f"{seconds[name]:.1f}"])
    shown = pd.DataFrame({name: own_means[name] for name in SHORT if name in own_means})
    rows = [
        [setting, *(_bold(100 * value, value == own.max()) for value in own)]
        for setting, own in shown.loc[own_means[AUTO].index].iterrows()
    ]
    return {
        "seeds": len(seeds_of[AUTO]),
        "settings": len(shown),
        "summary": summary,
        "rows": rows,
        "heads": ["setting", *(SHORT[name] for name in shown)],
        "few": sorted(SHORT[name] for name in shown if len(seeds_of[name]) < len(seeds_of[AUTO])),
    }


def judged(records: Sequence[Record]) -> list[list[str]]:
    """How often the verdict advises against adaptation where it hurts and where it helps.

    One row for each method, part and rule. Runs are counted beside each of two models without adaptation, and once for
    each of them.
    """
    rows = []
    for method, part in itertools.product(sorted({record["name"] for record in records}), TITLES):
        own = [one for one in records if one["name"] == method and one["config"]["part"] == part]
        for rule, warns in WARNS.items() if own else ():
            row = [method, TITLES[part], str(len(own)), rule]
            for references in (("source only",), ("corrected",), ("source only", "corrected")):
                for sign in (-1, 1):
                    warned = [_warned(own, reference, warns, sign) for reference in references]
                    row.append(_of(list(itertools.chain(*warned))))
            rows.append(row)
    return rows


WARNS: dict[str, Callable[[Record], bool]] = {
    "any failed check (first)": lambda metrics: any(
        status == "fail" and name not in LATER for name, status in metrics["findings"].items()
    ),
    "predictions unlike those of auto (before)": lambda metrics: metrics["measures"]["agreement_with_auto"] < 0.5,
    "another model is recommended": lambda metrics: metrics["recommended"] != "adapted",
}
"""When a verdict counts as a warning."""
LATER = ("rows of a class differ between the tables", EXPECTED)
"""Checks that the first verdict did not have, or that could not fail."""


def _warned(records: Sequence[Record], reference: str, warns: Callable[[Record], bool], sign: int) -> list[bool]:
    """Whether the runs are warned of that adaptation changes by more than `LIMIT` in the direction of `sign`."""
    return [
        warns(one["metrics"])
        for one in records
        if sign * (one["metrics"]["accuracy"]["adapted"] - one["metrics"]["accuracy"][reference]) > LIMIT
    ]


def _of(warned: Sequence[bool]) -> str:
    share = f" ({100 * sum(warned) / len(warned):.0f} %)" if warned else ""
    return f"{sum(warned)} of {len(warned)}{share}"


def _below(gain: pd.Series) -> list[str]:
    """The smallest gain in points, and the number of settings that are more than `LIMIT` below."""
    return [f"{100 * gain.min():+.1f}", str(int(np.sum(gain < -LIMIT)))]


def _bold(value: float, best: bool) -> str:
    return f"**{value:.1f}**" if best else f"{value:.1f}"
