"""The section on a translation between a user's two folders: what changed, how reliable that is, samples and curves."""

from __future__ import annotations

import base64
import binascii
import shlex
from typing import Any

from setminus.charts.chart import Chart, Line
from setminus.charts.vega import figures
from setminus.records import RecordError

__all__ = ["checked_png", "summary", "translation_section"]

HEADINGS = {
    "scores": ("Result", "What changed and what stayed"),
    "samples": ("Images", "Held-out images and their translations"),
    "sure": ("Reliability", "How reliable these numbers are"),
    "curves": ("Training", "Training curves"),
    "use": ("Use", "How to use it"),
}
PNG = b"\x89PNG\r\n\x1a\n"
JUDGES = ("judge_domain", "judge_column", "rest", "column")
DIRECTIONS = ("a_to_b", "b_to_a")
GOOD = {"changed": 0.88, "kept": 0.85}
"""As in `setminus.transfer.verdict`, which needs torch."""
BADGES = {"good": "ok", "train longer": "warn", "do not use": "fail"}
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
    images, factor = task["images"], metrics["factors"]["column"]
    verb = "changing" if task["role"] == "change" else "keeping"
    also = f" and keeping {task['kept_column']}" if task["kept_column"] else ""
    a, b = task["folders"]
    plots = figures(_charts(record), "curve")
    return {
        "template": "translation.html.j2",
        "headings": HEADINGS,
        "task": task,
        "rows": f"{images['a'] + images['b']:,} training and {images['a_held'] + images['b_held']:,} held-out images",
        "title": f"{a} to {b} and back, {verb} {task['column']}{also}",
        "verdict": metrics["verdict"],
        "short": any(metrics["directions"][one][name] < least for one in DIRECTIONS for name, least in GOOD.items()),
        "badges": BADGES,
        "directions": _directions(record, "directions"),
        "baseline": _directions(record, "baseline") if metrics["baseline"] else [],
        "judges": [{"name": name, **metrics["accuracy"][name]} for name in JUDGES if name in metrics["accuracy"]],
        "given": [
            {"value": value, "a": factor["a"][place], "b": factor["b"][place]}
            for place, value in enumerate(task["values"])
        ],
        "samples": _samples(metrics["samples"], (a, b)),
        "baseline_samples": _samples(metrics["baseline_samples"], (a, b)) if metrics["baseline_samples"] else [],
        "training": record["config"],
        "seconds_per_step": metrics["seconds_per_step"],
        "usage": _usage(record),
        "plots": plots,
        "figures": plots,
    }


def summary(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A table for the terminal: heads, and a row for each direction, also of plain CycleGAN where it was trained."""
    heads = ["", "changed", "kept", "structure", "grain", "distance", "verdict"]
    parts = [("directions", "")] + ([("baseline", " (plain CycleGAN)")] if record["metrics"]["baseline"] else [])
    rows = [
        [
            f"{one['name']}{what}",
            f"{100 * one['changed']:.1f} %",
            f"{100 * one['kept']:.1f} %",
            f"{one['structure']:.2f}",
            # records of earlier versions have neither
            *(f"{one[name]:.2f}" if name in one else "-" for name in ("grain", "distance")),
            one["verdict"],
        ]
        for part, what in parts
        for one in _directions(record, part)
    ]
    return heads, rows


def _directions(record: dict[str, Any], part: str) -> list[dict[str, Any]]:
    a, b = record["task"]["folders"]
    names = dict(zip(DIRECTIONS, (f"{a} to {b}", f"{b} to {a}"), strict=True))
    return [{"id": one, "name": names[one], **record["metrics"][part][one]} for one in DIRECTIONS]


def _samples(strips: dict[str, str], folders: tuple[str, str]) -> list[dict[str, str]]:
    return [
        {"name": name, "before": checked_png(strips[domain]), "after": checked_png(strips[direction])}
        for name, domain, direction in zip(folders, "ab", DIRECTIONS, strict=True)
    ]


def _charts(record: dict[str, Any]) -> list[Chart]:
    curves, losses = record["metrics"]["curves"], record["metrics"]["losses"]
    lines = [
        Line(curves["step"], [scores[name] for scores in curves[one["id"]]], f"{name}, {one['name']}")
        for name in ("changed", "kept")
        for one in _directions(record, "directions")
    ]
    return [
        Chart(
            "What changes and what stays",
            "step",
            "fraction",
            lines,
            caption="Fractions of held-out images, at evaluations during the training.",
        ),
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


def checked_png(png: str) -> str:
    """The text of a PNG in base64; anything else that a record may hold does not reach an address of the page."""
    try:
        whole = base64.b64decode(png, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"a record's samples are no base64 ({error})", do="make the record again.") from error
    if not whole.startswith(PNG):
        raise RecordError("a record's samples are no PNG", do="make the record again.")
    return png
