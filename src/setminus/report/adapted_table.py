"""The section on a model that was adapted to a user's second table: the class frequencies of both, and the checks."""

from __future__ import annotations

from typing import Any

from setminus.charts.chart import Bars, Chart
from setminus.charts.vega import figures

__all__ = ["DRAWN", "adapted_table_section", "mix_rows"]

HEADINGS = {
    "mix": ("Class frequencies", "Class frequencies in both tables"),
    "labelled": ("Labelled rows", "Accuracy on labelled target rows"),
    "recommended": ("Recommendation", "Which model to use"),
    "check": ("Conditions", "Does the method apply here?"),
    "use": ("Use", "How to use it"),
    "table": ("Table", "The table and its columns"),
}
COMPARED = (
    "Source only: logistic regression on the source rows. Corrected: its calibrated probabilities, for the class "
    "frequencies of the target. Adapted: the model of this page. Auto, where it is shown: the model of --method auto."
)
EARLIER = "The model without adaptation was trained on four fifths of the source rows."
"""The models of the comparison; records of earlier versions have another one."""
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
    recommended = metrics.get("recommended", "")
    left_out |= set() if recommended else {"recommended"}
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
        "recommended": recommended,
        "kept": metrics.get("kept"),
        "predicted": metrics.get("predicted", {}),
        "compared_models": COMPARED if recommended else EARLIER,
        "audit": {"verdict": metrics["verdict"], "findings": metrics["findings"]},
        "config": config,
        "for_target": config["method"] in ("vada_iw", "corrected")
        or config["predict_prior"] == "target"
        or (config["method"] == "auto" and config["predict_prior"] == "auto"),
        "usage": record.get("usage", ""),
        "usage_command": record.get("usage_command", ""),
        "figures": [plot],
    }


def mix_rows(record: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Each class, and its share in each mix that was measured, by the mix's name."""
    mixes = record["metrics"]["mixes"]
    return [
        (name, {mix: shares[place] for mix, shares in mixes.items()})
        for place, name in enumerate(record["task"]["classes"])
    ]
