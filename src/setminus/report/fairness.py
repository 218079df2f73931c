"""The section on a model that was made to ignore something: a record to what its template shows."""

from __future__ import annotations

import re
from typing import Any

from setminus.report.lead import lead
from setminus.report.numbers import gap_key, gap_title
from setminus.report.pieces import audited
from setminus.report.trade import decision, frontier_figure, frontier_rows

__all__ = ["fairness_section"]

HEADINGS = {
    "ignored": ("Ignored", "What is ignored, and why leaving it out is not enough"),
    "compare": ("Before and after", "Before and after"),
    "trade": ("Cost", "What fairness costs here"),
    "reliability": ("Probabilities", "Do the probabilities mean what they say?"),
    "scores": ("Scores", "Where the scores of each group lie"),
    "check": ("Conditions", "Does the method apply here?"),
    "use": ("Use", "How to use it"),
    "table": ("Table", "What was read, and what was done with it"),
}


def fairness_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``fairness.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "fairness": `task`, `metrics` with the audited `models` (the first is the one before,
        the last the one to use), `frontier` and `betrayed`, and how to use it, `usage` and `usage_command`.

    Returns
    -------
    dict
        Names of the template; `figures` maps the id of a figure to its plotly dictionary.
    """
    task, metrics = record["task"], record["metrics"]
    frontier = metrics["frontier"]
    before, after = metrics["models"][0], metrics["models"][-1]
    gap = gap_key(frontier["gap_name"])
    shared = audited(record, [before, after], headings=HEADINGS, bounded=gap)
    tested = [point for model in (before, after) for point in _tested(model, gap, frontier["score_name"])]
    return {
        **shared,
        "template": "fairness.html.j2",
        "title": f"Predicting {task['label']}, ignoring {task['ignored']}",
        "rows": f"{task['rows']['train']:,} rows to learn from, {task['rows']['test']:,} to judge by",
        "lead": lead([before["audit"], after["audit"]], gap, shared["drawn"]),
        "betrayed": metrics["betrayed"],
        "telling": metrics["betrayed"] is not None and _telling(**metrics["betrayed"]),
        "sees_ignored": _sees_ignored(task),
        "groups_needed": task.get("groups_needed", False),
        "before": before,
        "after": after,
        "gap": gap,
        "gap_title": gap_title(gap),
        "frontier": frontier,
        "frontier_rows": frontier_rows(frontier, tested),
        "tested": bool(tested),
        "kept": frontier["chosen"]["gap"] <= frontier["tolerance"],
        "kept_on_test": (after["audit"][gap]["value"] or 0.0) <= frontier["tolerance"],
        "decision": decision(frontier["chosen"]),
        "figures": {**shared["figures"], "frontier": frontier_figure(frontier, tested)},
    }


def _tested(model: dict[str, Any], gap: str, score: str) -> list[tuple[str, float, float]]:
    """The frontier's two numbers on the test rows; none where the audit does not know that score."""
    measured = model["audit"].get(score)
    value = measured["value"] if isinstance(measured, dict) else measured
    found = model["audit"][gap]["value"]
    if value is None or found is None:
        return []
    return [(f"{model['title']}, on the test rows", found, value)]


def _sees_ignored(task: dict[str, Any]) -> bool:
    """Whether what is ignored, which may be several names in a row, is among the features."""
    names = {task["ignored"], *re.split(", | and ", task["ignored"])}
    return not names.isdisjoint(task["features"])


def _telling(accuracy: float, largest_group: float, auc: float | None) -> bool:
    """Whether the features tell the groups better than a guess."""
    return accuracy > largest_group + 0.02 or (auc is not None and auc > 0.6)
