"""What the sections of a page share: the names that ``pieces.html.j2`` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.report.drawn import Drawn, choose_drawn
from setminus.report.numbers import number_rows
from setminus.report.panels import rate_panels, reliability_panels, score_panels
from setminus.report.theme import BEFORE, SIGNS, group_name

__all__ = ["audited"]

Models = Sequence[dict[str, Any]]


def audited(
    record: dict[str, Any], compared: Models, *, headings: dict[str, tuple[str, str]], bounded: str | None = None
) -> dict[str, Any]:
    """The names of the template that every section with audited models has.

    Parameters
    ----------
    record : dict
        With a `task` and ``metrics["models"]``.
    compared : sequence of dict
        The models whose curves are drawn; tables and rates show all.
    headings : dict of str to (short, long)
        The parts of the section, in order: what to call them in the list of contents, and above the part.
    bounded : str, optional
        The gap that was to be small.

    Returns
    -------
    dict
        `figures` maps the id of a figure to its plotly dictionary.
    """
    task, models = record["task"], record["metrics"]["models"]
    last = compared[-1]["audit"]
    drawn = choose_drawn(last, task.get("labels", {}))
    rates = rate_panels(models, drawn)
    reliability, scores = reliability_panels(compared, drawn), score_panels(compared, drawn)
    task = {"notes": [], "columns": [], **task}
    kept = {key: names for key, names in headings.items() if key != "table" or task["notes"] or task["columns"]}
    command = record.get("usage_command", "")
    return {
        "task": task,
        "headings": kept,
        "models": models,
        "level": f"{100 * last['confidence']:g} %",
        "two_classes": len(last["classes"]) == 2,
        "drawn": drawn,
        "legend": _legend(drawn),
        "numbers": number_rows(models, bounded),
        "group_rows": _group_rows(models, drawn),
        "rates": rates.rows,
        "reliability": reliability.rows,
        "scores": scores.rows,
        "figures": {**rates.figures, **reliability.figures, **scores.figures},
        "usage": record.get("usage", ""),
        "usage_command": command if isinstance(command, str) else "\n".join(command),
    }


def _group_rows(models: Models, drawn: Drawn) -> list[dict[str, Any]]:
    """Every group's rates, those of one group and class next to each other."""
    rows = [
        {**row, "model": model["title"], "group": group_name(row["group"]), "class": drawn.class_name(row["label"])}
        for model in models
        for row in model["audit"]["group_rates"]
    ]
    labels = [*dict.fromkeys(str(row["label"]) for row in rows)]
    return sorted(rows, key=lambda row: (labels.index(str(row["label"])), row["group"]))


def _legend(drawn: Drawn) -> list[dict[str, str]]:
    entries = [
        {"name": group, "colour": SIGNS[place].colour, "path": SIGNS[place].path, "dashes": SIGNS[place].dashes}
        for group, place in drawn.places.items()
    ]
    others = len(drawn.groups) - len(drawn.places)
    if others:
        grey = {"colour": BEFORE, "path": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0", "dashes": "0 99"}
        entries.append({"name": f"{others} smaller groups", **grey})
    return entries
