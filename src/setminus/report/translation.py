"""The section on a translation between a user's two folders: what changed, how reliable that is, samples and curves."""

from __future__ import annotations

import base64
import binascii
import shlex
from typing import Any

from setminus.charts.chart import Chart, Line
from setminus.charts.vega import figures
from setminus.records import RecordError

__all__ = ["summary", "translation_section"]

HEADINGS = {
    "scores": ("Result", "What changed and what stayed"),
    "samples": ("Images", "Held-out images and their translations"),
    "sure": ("Reliability", "How reliable these numbers are"),
    "curves": ("Training", "Training curves"),
    "use": ("Use", "How to use it"),
}
PNG = b"\x89PNG\r\n\x1a\n"
JUDGES = ("judge_domain", "judge_column", "rest", "column")
LOSSES = (("generators", "generators"), ("discriminators", "discriminators"), ("cycle", "cycle"))


def translation_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``translation.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "translation".

    Returns
    -------
    dict
        Names of the template.
    """
    task, metrics = record["task"], record["metrics"]
    images, samples = task["images"], metrics["samples"]
    verb = "changing" if task["role"] == "change" else "keeping"
    a, b = task["folders"]
    plots = figures(_charts(record), "curve")
    return {
        "template": "translation.html.j2",
        "headings": HEADINGS,
        "task": task,
        "rows": f"{images['a'] + images['b']:,} training and {images['a_held'] + images['b_held']:,} held-out images",
        "title": f"{a} to {b} and back, {verb} {task['column']}",
        "scores": _score_rows(record),
        "judges": [{"name": name, **metrics["accuracy"][name]} for name in JUDGES],
        "given": [
            {"value": value, "a": metrics["given"]["a"][place], "b": metrics["given"]["b"][place]}
            for place, value in enumerate(task["values"])
        ],
        "samples": [
            {"name": a, "images": _checked(samples["a"]), "translated": _checked(samples["a_to_b"])},
            {"name": b, "images": _checked(samples["b"]), "translated": _checked(samples["b_to_a"])},
        ],
        "training": record["config"]["translation"],
        "size": record["config"]["size"],
        "seconds_per_step": metrics["seconds_per_step"],
        "usage": _usage(record),
        "plots": plots,
        "figures": plots,
    }


def summary(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Rows for the terminal: a result on held-out images, its fraction, the accuracy of the classifier behind it."""
    column, change = record["task"]["column"], record["task"]["role"] == "change"
    what = (
        "classified as the other folder",
        f"{column} {'changes' if change else 'stays'}",
        f"all except {column} {'stays' if change else 'changes'}",
    )
    rows = []
    for name, row in zip(what, _score_rows(record), strict=True):
        judge = f"classifier accuracy {100 * row['judge']['accuracy']:.1f} % of {row['judge']['n']:,}"
        rows.append((name, f"{100 * row['both']:.1f} %", judge))
    return rows


def _score_rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """For each verdict the fraction of images that did as asked, in both directions and in each, and its classifier."""
    changed, change = record["metrics"]["changed"], record["task"]["role"] == "change"
    accuracy = record["metrics"]["accuracy"]
    rows = []
    for name, wanted in (("domain", True), ("column", change), ("rest", not change)):
        fractions = {
            group: changed[group][name] if wanted else 1 - changed[group][name]
            for group in ("both", "a_to_b", "b_to_a")
        }
        rows.append({"name": name, "judge": accuracy["rest" if name == "rest" else f"judge_{name}"], **fractions})
    return rows


def _charts(record: dict[str, Any]) -> list[Chart]:
    curves, losses, column = record["metrics"]["curves"], record["metrics"]["losses"], record["task"]["column"]
    names = (("domain", "folder"), ("column", column), ("rest", f"all except {column}"))
    lines = [Line(curves["step"], curves[name], label) for name, label in names]
    caption = "Fraction of held-out images whose prediction changes by the translation."
    return [
        Chart("What changes", "step", "fraction that changes", lines, caption=caption),
        Chart(
            "Losses",
            "step",
            "loss",
            [Line(losses["step"], losses[name], label, markers=False) for name, label in LOSSES],
            caption="Each value is of one batch. Generators and discriminators compete, so their losses need not fall.",
            y_scale="log",
        ),
    ]


def _usage(record: dict[str, Any]) -> str:
    """Commands for either direction, beside the page."""
    a, b = record["task"]["folders"]
    return "\n".join(
        f"setminus transfer apply . NEW_PICTURES --direction {direction} --out {shlex.quote(f'translated-to-{name}')}"
        for direction, name in (("a-to-b", b), ("b-to-a", a))
    )


def _checked(png: str) -> str:
    """The text of a PNG in base64; anything else that a record may hold does not reach an address of the page."""
    try:
        whole = base64.b64decode(png, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"a record's samples are no base64 ({error})", do="fit the model again.") from error
    if not whole.startswith(PNG):
        raise RecordError("a record's samples are no PNG", do="fit the model again.")
    return png
