"""The page ``docs/translators.md`` and its pictures, from the records of ``translators`` alone."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from setminus_paper.pages import render

from benchmarks.translators import FEW_LABELS_OF, FEW_STEPS, LABELLED, METHOD
from setminus.charts.chart import Chart, Line
from setminus.charts.picture import draw
from setminus.records import read_records
from setminus.transfer.fitting import DEFAULT_STEPS
from setminus.transfer.verdict import verdict

Record = dict[str, Any]
NAMES = {
    "colored_digits": "color of MNIST digits, keep the ground's",
    "small_digits": "color of UCI digits, keep flat or striped ground",
    "shapes": "disc or cross, keep its color",
    "clothes": "wall or tiles behind clothes, keep the clothes' color",
    "photographs": "color of UCI digits, keep temple or flower",
    "textures": "color of MNIST digits, keep clouds or wood",
    "landscapes": "color of MNIST digits, keep CIFAR-10's vehicles or animals",
    "usps_photographs": "color of USPS digits, keep temple or flower",
    "usps_scenes": "color of USPS digits, keep STL-10's vehicles or animals",
    "faces": "CelebA, 64 pixels: blond or not, keep the sex",
}
STEPS = {
    "earlier": "earlier: UNet and PatchGAN, width 32, batch 16",
    "equal": "now, width 32, batch 16",
    "default": "now, width 16, batch 8 (default)",
}
ARROWS = {"a_to_b": "A→B", "b_to_a": "B→A"}
GOOD = 0.9


def build(results: Path, docs: Path) -> list[Path]:
    """Write the page and its pictures."""
    records, *others = (
        read_records(results / name / "records.jsonl")
        for name in ("translators", "translator_speed", "translated_files", "translator_quality")
    )
    page = docs / "translators.md"
    page.write_text(write(records, *others), encoding="utf-8")
    pictures = docs / "translators"
    pictures.mkdir(exist_ok=True)
    made = [page, pictures / "few_labels.png"]
    draw(few_labels_charts(few_labels(records)), made[-1], columns=2)
    for record in _pictured(records):
        made.append(pictures / f"{record['task']['source']}.png")
        made[-1].write_bytes(base64.b64decode(record["metrics"]["strips"]))
    return made


def write(
    records: Sequence[Record],
    timed: Sequence[Record] = (),
    files: Sequence[Record] = (),
    compared: Sequence[Record] = (),
) -> str:
    """The page as Markdown, from the records of its four parts, in the order of `build`."""
    rows = _rows(records)
    usual = rows[rows["labels"] == LABELLED].sort_values(["pictures", "seed", "direction"])
    # of each set the newest method
    newest = usual[usual["method"] == usual.groupby("pictures")["method"].transform("max")]
    longest = newest[newest["steps"] == newest.groupby(["pictures", "seed"])["steps"].transform("max")]
    parts = {role: longest[longest["role"] == role] for role in ("development", "test")}
    shown = ["pictures", "steps", "seed", "direction", "changed", "reported changed", "kept", "reported kept"]
    shown += ["grain", "distance", "verdict"]
    return render(
        Path(__file__).parent / "translators.md.j2",
        parts={role: own[shown] for role, own in parts.items() if len(own)},
        met={role: _met(newest[newest["role"] == role]) for role in parts},
        verdicts=_verdicts(rows[(rows["source"] != "faces") & (rows["method"] == METHOD)]),
        earlier=", ".join(sorted(set(longest.loc[longest["method"] < METHOD, "pictures"]))),
        steps=DEFAULT_STEPS,
        few_steps=FEW_STEPS,
        judges=_judges(records),
        speed=_speed(timed[-1]) if timed else None,
        compared=_compared(compared[-1]) if compared else None,
        compared_pictures=compared[-1]["config"]["pictures"] if compared else 0,
        few=len(few_labels(records)) > 0,
        few_method=max(few_labels(records)["method"], default=METHOD),
        refused=[one for one in records if "refused" in one["metrics"] and one["task"].get("method", 1) == METHOD],
        files=files[-1] if files else None,
        pictured=[(one["task"]["source"], NAMES[one["task"]["source"]]) for one in _pictured(records)],
        seconds=_seconds(records),
    )


def _met(rows: pd.DataFrame) -> str:
    """How many directions reach the bar, after each number of steps."""
    counts = rows.groupby("steps")["met"].agg(["sum", "size"]).sort_index(ascending=False)
    return " ".join(
        f"After {steps:,} steps {met} of {n} directions reach the bar." for steps, (met, n) in counts.iterrows()
    )


def _seconds(records: Sequence[Record]) -> str:
    """The range of CPU seconds of pictures of 28 or 32 pixels, after the steps of the default."""
    found = [
        round(one["metrics"]["cpu_seconds"])
        for one in records
        if one["task"]["source"] != "faces"
        and one["task"]["steps"] == DEFAULT_STEPS
        and one["task"].get("method", 1) == METHOD
    ]
    return f"{min(found)} to {max(found)}" if found else "(not measured yet)"


def _rows(records: Sequence[Record]) -> pd.DataFrame:
    rows = []
    for record in records:
        for direction, arrow in ARROWS.items() if "refused" not in record["metrics"] else ():
            found = record["metrics"][direction]
            own = found["reported"]
            rows.append(
                {
                    "pictures": record["task"]["source"].replace("_", " "),
                    "role": record["task"]["role"],
                    "source": record["task"]["source"],
                    "labels": record["task"]["labelled"],
                    "steps": record["task"]["steps"],
                    # the first records have no number
                    "method": record["task"].get("method", 1),
                    "seed": record["seed"],
                    "direction": arrow,
                    **{name: f"{100 * found[name]:.1f}" for name in ("changed", "kept")},
                    **{f"reported {name}": f"{100 * own[name]:.1f}" for name in ("changed", "kept")},
                    "grain": f"{own['grain']:.2f}",
                    "distance": f"{own['distance']:.2f}",
                    # by the present rule, from the record's numbers
                    "verdict": verdict(own, found["curve"]),
                    "met": min(found["changed"], found["kept"]) >= GOOD,
                }
            )
    return pd.DataFrame(rows)


def _verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """How often each verdict was given to directions that are at 90 % in both by the truth, and to others."""
    truth = rows["role"] + rows["met"].map({True: ": 90 % changed and kept", False: ": less"})
    counts = pd.crosstab(rows["verdict"], truth)
    return counts.reset_index()


def _judges(records: Sequence[Record]) -> str:
    """The accuracies of what measures faces, on real faces: of both factors, over the seeds."""
    found = [one["metrics"]["measure_accuracy"] for one in records if one["task"]["source"] == "faces"]
    return " and ".join(f"{100 * min(values):.0f}" for values in zip(*found, strict=True))


def _speed(record: Record) -> pd.DataFrame:
    """CPU seconds of a step at each size, and how many times as fast as the earlier one."""
    return pd.DataFrame(
        {
            "pixels": size,
            "step": label,
            "CPU seconds": f"{found['cpu_seconds'][name]:.3f}",
            "times as fast": f"{found['times_as_fast'].get(name, 1.0):.2f}",
        }
        for size, found in record["metrics"].items()
        for name, label in STEPS.items()
    )


def _compared(record: Record) -> pd.DataFrame:
    """What both versions reach after as many pictures, and in which time."""
    return pd.DataFrame(
        {
            "pixels": size,
            "version": {"earlier": "earlier", "now": "now (default)"}[name],
            "CPU seconds": f"{versions[name]['cpu_seconds']:.0f}",
            **{
                f"{what}, {arrow}": f"{100 * versions[name][direction][what]:.1f}"
                for direction, arrow in ARROWS.items()
                for what in ("changed", "kept")
            },
        }
        for size, versions in record["metrics"].items()
        for name in ("earlier", "now")
    )


def few_labels(records: Sequence[Record]) -> pd.DataFrame:
    """The rows of few labels, where there are two numbers of labels or more."""
    rows = _rows(records)
    wanted = (rows["source"] == FEW_LABELS_OF) & (rows["steps"] == FEW_STEPS)
    # one method in one chart
    newest = rows["method"] == rows[wanted & (rows["labels"] < LABELLED)]["method"].max()
    found = rows[wanted & newest].sort_values(["labels", "seed", "direction"])
    # one number of labels is no comparison
    return found if found["labels"].nunique() > 1 else found[:0]


def few_labels_charts(rows: pd.DataFrame) -> list[Chart]:
    """Changed and kept against the number of labels: the mean of the seeds, with the smallest and the largest."""
    charts = []
    for name in ("changed", "kept"):
        lines = []
        for arrow, own in rows.astype({name: float}).groupby("direction"):
            of = own.groupby("labels")[name].agg(["mean", "min", "max"])
            mean, low, high = (of[one].tolist() for one in ("mean", "min", "max"))
            lines.append(Line(of.index.tolist(), mean, str(arrow), low, high))
        charts.append(
            Chart(
                name, "labelled pictures", "percent", lines, x_scale="log", x_range=(40.0, 500.0), y_range=(0.0, 105.0)
            )
        )
    return charts


def _pictured(records: Sequence[Record]) -> list[Record]:
    """For each source that may be shown, the record of seed 0 of the newest method with the most steps."""
    wanted = [one for one in records if one["seed"] == 0 and one["task"]["labelled"] == LABELLED]
    found: dict[str, Record] = {}
    for one in sorted(wanted, key=lambda one: (one["task"].get("method", 1), one["task"]["steps"])):
        if one["metrics"].get("strips"):
            found[one["task"]["source"]] = one
    return [found[name] for name in sorted(found)]
