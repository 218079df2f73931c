"""The section on a translation between a user's two folders: what changed, how sure that is, samples and curves."""

from __future__ import annotations

import base64
import binascii
import shlex
from typing import Any

from setminus.records import RecordError
from setminus.report.charts.chart import Chart, Line
from setminus.report.charts.numbers import chart_in_words, chart_table
from setminus.report.charts.plotly_charts import plotly_figure
from setminus.report.charts.signs import places

__all__ = ["summary", "translation_section"]

HEADINGS = {
    "scores": ("Result", "What changed, and what stayed"),
    "samples": ("Pictures", "Held-out pictures and their translations"),
    "sure": ("How sure", "How far these numbers can be trusted"),
    "curves": ("Training", "How it came about"),
    "use": ("Use", "How to use it"),
}
PNG = b"\x89PNG\r\n\x1a\n"
NETWORKS = {"unet": "UNet and PatchGAN", "digit": "the small networks for digits"}
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
        Names of the template; `figures` maps the id of a figure to its plotly dictionary.
    """
    task, metrics = record["task"], record["metrics"]
    charts = _charts(record)
    plots = []
    for number, chart in enumerate(charts):
        heads, rows = chart_table(chart)
        plots.append(
            {"id": f"curve-{number}", "chart": chart, "about": chart_in_words(chart), "heads": heads, "rows": rows}
        )
    images = task["images"]
    verb = "changing" if task["role"] == "change" else "keeping"
    training = record["config"]["translation"]
    return {
        "template": "translation.html.j2",
        "headings": HEADINGS,
        "task": task,
        "rows": f"{images['a'] + images['b']:,} pictures to learn from, "
        f"{images['a_held'] + images['b_held']:,} to judge by",
        "title": f"{task['folders'][0]} to {task['folders'][1]} and back, {verb} {task['column']}",
        "lead": _lead(record),
        "scores": _score_rows(record),
        "judges": _judges(record),
        "given": [
            {"value": value, "a": metrics["given"]["a"][place], "b": metrics["given"]["b"][place]}
            for place, value in enumerate(task["values"])
        ],
        "samples": [
            {
                "title": title,
                "strips": [{"label": label, "png": _checked(metrics["samples"][key])} for label, key in two],
            }
            for title, two in (
                (f"From {task['folders'][0]}", (("Pictures", "a"), ("Translated", "a_to_b"))),
                (f"From {task['folders'][1]}", (("Pictures", "b"), ("Translated", "b_to_a"))),
            )
        ],
        "settings": (
            f"{training['steps']:,} steps of {training['batch_size']} pictures of each folder at a rate of "
            f"{training['rate']:g}, {metrics['seconds_per_step']:.2f} s each; {record['config']['size']} pixels a "
            f"side, {training['width']} channels in the first layers, {NETWORKS[task['network']]}."
        ),
        "usage": _usage(record),
        "plots": plots,
        "figures": {
            plot["id"]: plotly_figure(chart, signs)
            for plot, chart, signs in zip(plots, charts, places(charts), strict=True)
        },
    }


def summary(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Rows of what became of held-out pictures: what, the share of them, and who says so.

    Parameters
    ----------
    record : dict

    Returns
    -------
    list of (str, str, str)
    """
    return [(row["what"], f"{100 * row['both']:.1f} %", row["judge"]) for row in _score_rows(record)]


def _score_rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """For each verdict the share that did what it should: of both directions, and of each."""
    task, changed = record["task"], record["metrics"]["changed"]
    column, change = task["column"], task["role"] == "change"
    rows = []
    for name, what, wanted in (
        ("domain", "seen in the other folder", True),
        ("column", f"{column} {'changes' if change else 'stays'}", change),
        ("rest", f"all but {column} {'stays' if change else 'changes'}", not change),
    ):
        shares = {
            group: changed[group][name] if wanted else 1 - changed[group][name]
            for group in ("both", "a_to_b", "b_to_a")
        }
        told = record["metrics"]["accuracy"]["rest" if name == "rest" else f"judge_{name}"]
        truth = f"folders without {column}" if name == "rest" else "untouched ones"
        judge = f"the judge is right on {100 * told['accuracy']:.1f} % of {told['n']:,} {truth}"
        rows.append({"name": name, "what": what, "judge": judge, **shares})
    return rows


def _lead(record: dict[str, Any]) -> str:
    _, column, rest = _score_rows(record)
    verb = "changed" if record["task"]["role"] == "change" else "stayed"
    other = "stayed" if verb == "changed" else "changed"
    return (
        f"{record['task']['column']} {verb} in {100 * column['both']:.1f} % of the held-out pictures, and what else "
        f"tells the folders apart {other} in {100 * rest['both']:.1f} %, as far as classifiers can tell."
    )


def _judges(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The classifiers, what each tells, and how often it is right on held-out pictures."""
    column, accuracy = record["task"]["column"], record["metrics"]["accuracy"]
    about = {
        "judge_domain": ("which folder a picture is from", "judges"),
        "judge_column": (f"{column}, from pictures of which nothing else tells it", "judges"),
        "rest": ("which folder, by all but that: the first without the second", "judges"),
        "column": (f"{column} again, from other first weights", "tells the generators"),
    }
    return [{"name": name, "tells": tells, "use": use, **accuracy[name]} for name, (tells, use) in about.items()]


def _charts(record: dict[str, Any]) -> list[Chart]:
    curves, losses, column = record["metrics"]["curves"], record["metrics"]["losses"], record["task"]["column"]
    names = (("domain", "folder"), ("column", column), ("rest", f"all but {column}"))
    lines = [Line(curves["step"], curves[name], label) for name, label in names]
    caption = "Share of held-out pictures of which a classifier says something else after their translation."
    return [
        Chart("What changes", "step", "share that changes", lines, caption=caption),
        Chart(
            "Losses",
            "step",
            "loss",
            [Line(losses["step"], losses[name], label, markers=False) for name, label in LOSSES],
            caption="On one batch at a time. Two players keep each other busy: these need not fall.",
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
