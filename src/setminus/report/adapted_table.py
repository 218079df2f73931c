"""The section on a model that was adapted to a user's second table: the class mix of both, and how far to trust it."""

from __future__ import annotations

from typing import Any

from setminus.report.charts.chart import Bars, Chart
from setminus.report.charts.numbers import chart_in_words
from setminus.report.charts.plotly_charts import plotly_figure
from setminus.report.charts.signs import places

__all__ = ["DRAWN", "adapted_table_section", "mix_rows"]

HEADINGS = {
    "mix": ("Class mix", "How often each class comes"),
    "labelled": ("Labelled rows", "On target rows with a label"),
    "check": ("Conditions", "Does the method apply here?"),
    "use": ("Use", "How to use it"),
    "table": ("Table", "What was read, and what was done with it"),
}
DRAWN = ("source", "target, estimated", "target, assumed", "target, decided", "target, labelled rows")
"""Of the class mixes those that are drawn; the table has all."""


def adapted_table_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``adapted_table.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "adapted_table".

    Returns
    -------
    dict
        Names of the template; `figures` maps the id of a figure to its plotly dictionary.
    """
    task, metrics, config = record["task"], record["metrics"], record["config"]
    rows = task["rows"]
    mixes = metrics["mixes"]
    chart = Chart(
        f"{task['label']} in both tables",
        "class",
        "share of the rows",
        [Bars(task["classes"], mixes[name], name) for name in DRAWN if name in mixes],
    )
    left_out = {"labelled"} if not metrics["accuracy"] else set()
    return {
        "template": "adapted_table.html.j2",
        "headings": {key: names for key, names in HEADINGS.items() if key not in left_out},
        "task": task,
        "rows": f"{rows['source']:,} rows with labels, {rows['target']:,} to adapt to",
        "title": f"Predicting {task['label']} where its classes come in another mix",
        "lead": f"{_lead(task['classes'], mixes)} {metrics['verdict']}",
        "mix_heads": list(mixes),
        "mix_rows": mix_rows(record),
        "plot": {"id": "mix", "chart": chart, "about": chart_in_words(chart)},
        "accuracy": metrics["accuracy"],
        "audit": {"verdict": metrics["verdict"], "findings": metrics["findings"]},
        "config": config,
        "for_target": config["method"] == "vada_iw" or config["predict_prior"] == "target",
        "usage": record.get("usage", ""),
        "usage_command": record.get("usage_command", ""),
        "figures": {"mix": plotly_figure(chart, places([chart])[0])},
    }


def mix_rows(record: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Each class, and its share in each mix that was measured, by the mix's name.

    Parameters
    ----------
    record : dict

    Returns
    -------
    list of (str, dict of str to float)
    """
    mixes = record["metrics"]["mixes"]
    return [
        (name, {mix: shares[place] for mix, shares in mixes.items()})
        for place, name in enumerate(record["task"]["classes"])
    ]


def _lead(classes: list[str], mixes: dict[str, list[float]]) -> str:
    """The class whose share changed most."""
    before, after = mixes["source"], mixes["target, estimated"]
    most = max(range(len(classes)), key=lambda k: abs(after[k] - before[k]))
    return (
        f"Of the labelled table {100 * before[most]:.1f} % are {classes[most]!r}, of the other one "
        f"{100 * after[most]:.1f} %, by estimate."
    )
