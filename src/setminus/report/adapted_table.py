"""The section on a model that was adapted to a user's second table: the class frequencies of both, and the checks."""

from __future__ import annotations

from typing import Any

from setminus.charts.chart import Bars, Chart
from setminus.charts.vega import figures

__all__ = ["DRAWN", "adapted_table_section", "mix_rows"]

HEADINGS = {
    "mix": ("Class frequencies", "Class frequencies in both tables"),
    "labelled": ("Labelled rows", "Accuracy on labelled target rows"),
    "check": ("Conditions", "Does the method apply here?"),
    "use": ("Use", "How to use it"),
    "table": ("Table", "The table and its columns"),
}
DRAWN = ("source", "target, estimated", "target, assumed", "target, decided", "target, labelled rows")
"""The class frequencies that are drawn; the table has all."""


def adapted_table_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``adapted_table.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "adapted_table".

    Returns
    -------
    dict
        Names of the template.
    """
    task, metrics, config = record["task"], record["metrics"], record["config"]
    rows = task["rows"]
    mixes = metrics["mixes"]
    chart = Chart(
        f"{task['label']} in both tables",
        "class",
        "share of rows",
        [Bars(task["classes"], mixes[name], name) for name in DRAWN if name in mixes],
        y_format="%",
    )
    (plot,) = figures([chart], "mix")
    classes, before, after = task["classes"], mixes["source"], mixes["target, estimated"]
    changed = max(range(len(classes)), key=lambda k: abs(after[k] - before[k]))
    left_out = {"labelled"} if not metrics["accuracy"] else set()
    return {
        "template": "adapted_table.html.j2",
        "headings": {key: names for key, names in HEADINGS.items() if key not in left_out},
        "task": task,
        "rows": f"{rows['source']:,} source rows with labels, {rows['target']:,} target rows",
        "title": f"Predicting {task['label']} under other class frequencies",
        "changed": {"name": classes[changed], "before": before[changed], "after": after[changed]},
        "mix_heads": list(mixes),
        "mix_rows": mix_rows(record),
        "plot": plot,
        "accuracy": metrics["accuracy"],
        "audit": {"verdict": metrics["verdict"], "findings": metrics["findings"]},
        "config": config,
        "for_target": config["method"] == "vada_iw" or config["predict_prior"] == "target",
        "usage": record.get("usage", ""),
        "usage_command": record.get("usage_command", ""),
        "figures": [plot],
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
