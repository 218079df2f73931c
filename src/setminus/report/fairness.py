"""The section and the picture of a model that ignores something, from its record alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from setminus.auditing.plot import choose_shown, rate_charts
from setminus.charts.chart import Chart, Line, Mark, Points, Rule, spread_evenly
from setminus.charts.vega import figures
from setminus.report.audit import GAPS, audited

__all__ = ["decision_text", "draw_picture", "fairness_section", "frontier_chart", "frontier_rows"]

HEADINGS = {
    "ignored": ("Ignored", "What the model ignores"),
    "compare": ("Before and after", "Before and after"),
    "trade": ("Cost", "What fairness costs here"),
    "reliability": ("Probabilities", "Are the probabilities calibrated?"),
    "scores": ("Scores", "Scores of each group"),
    "check": ("Conditions", "Does the method apply here?"),
    "use": ("Use", "How to use it"),
    "table": ("Table", "The table and its columns"),
}
GAP_KEYS = {
    "equalized_odds (sum)": "equalized_odds_sum",
    "equalized_odds (max)": "equalized_odds_max",
    "equal_opportunity": "equal_opportunity",
    "demographic_parity": "demographic_parity",
}
"""The names of gaps in a frontier, and their keys in an audit."""
FRONTIER_SIGNS = {"best trades": 31}
"""A solid blue line, which stands out from the chosen point."""
MAX_ROWS = 40
"""Best trades in the table; the figure has them all."""


def fairness_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``fairness.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "fairness": `task`, `metrics` with the audited `models` (the first is the one before,
        the last the one to use), `frontier` and `attribute_predictability` (`betrayed` in records of version
        0.1.0), and how to use it, `usage` and `usage_command`.

    Returns
    -------
    dict
        Names of the template.
    """
    task, metrics = record["task"], record["metrics"]
    frontier = metrics["frontier"]
    predictable = metrics.get("attribute_predictability", metrics.get("betrayed"))
    before, after = metrics["models"][0], metrics["models"][-1]
    gap = GAP_KEYS[frontier["gap_name"]]
    shared = audited(record, [before, after], gap, headings=HEADINGS)
    tested = _tested([before, after], gap, frontier["score_name"])
    (trade,) = figures([frontier_chart(frontier, tested)], "frontier", FRONTIER_SIGNS)
    return {
        **shared,
        "template": "fairness.html.j2",
        "title": f"Predicting {task['label']}, ignoring {task['ignored']}",
        "rows": f"{task['rows']['train']:,} training rows, {task['rows']['test']:,} test rows",
        "bounded": gap,
        "attribute": predictable,
        "attribute_predictable": predictable is not None and _better_than_guessing(**predictable),
        "sees_ignored": _sees_ignored(task),
        "groups_needed": task.get("groups_needed", False),
        "before": before,
        "after": after,
        "frontier": frontier,
        "frontier_rows": frontier_rows(frontier, tested),
        "trade": trade,
        "tested": bool(tested),
        "kept": frontier["chosen"]["gap"] <= frontier["tolerance"],
        "kept_on_test": (after["audit"][gap]["value"] or 0.0) <= frontier["tolerance"],
        "decision": decision_text(frontier["chosen"]),
        "figures": [*shared["figures"], trade],
    }


def draw_picture(record: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw the cost of fairness, and the rates of each group before and after.

    Parameters
    ----------
    record : dict
        Of a run whose job is "fairness", as `setminus demo` writes it.
    path : path
        A PNG or SVG file.
    """
    from setminus.charts.picture import plot

    models = [record["metrics"]["models"][0], record["metrics"]["models"][-1]]
    frontier = record["metrics"]["frontier"]
    gap = GAP_KEYS[frontier["gap_name"]]
    trade = frontier_chart(frontier, _tested(models, gap, frontier["score_name"]))
    shown = choose_shown(models[-1]["audit"], record["task"].get("labels", {}))
    titled = [(title, model["audit"]) for title, model in zip(("before", "after"), models, strict=True)]
    rates = rate_charts(titled, shown, shown.judged[0], ["true_positive_rate", "false_positive_rate"])
    height = 230
    charts = [replace(chart, height=height) for chart in (trade, *rates)]
    plot(charts, widths=[400, 210, 210], signs={**shown.signs, **FRONTIER_SIGNS}).save(path)


def frontier_rows(frontier: dict[str, Any], tested: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points of the figure, for its table: `name`, `point` (a name for scripts), `gap`, `score` and more."""
    best = frontier["best"]
    rows = [
        {"name": "chosen", "point": "chosen", **frontier["chosen"]},
        {"name": "before", "point": "untouched", **frontier["untouched"]},
        *({"point": "tested", **one} for one in tested),
    ]
    rows += [
        {"name": f"best trade {i + 1} of {len(best)}", "point": f"best-{i}", **best[i]}
        for i in spread_evenly(len(best), MAX_ROWS)
    ]
    # the column names the kind already
    return [{**row, "decision": decision_text(row).split(" ", 1)[1] if "strength" in row else ""} for row in rows]


def decision_text(point: Mapping[str, Any]) -> str:
    """How a point decides: a threshold for two classes, an offset for each of more.

    Examples
    --------
    >>> decision_text({"threshold": 0.4912})
    'threshold 0.491'
    >>> decision_text({"offsets": [0.0, -0.5, 0.25]})
    'offsets 0, -0.5, 0.25'
    """
    if "threshold" in point:
        return f"threshold {point['threshold']:.3f}"
    return "offsets " + ", ".join(f"{offset:g}" for offset in point["offsets"])


def frontier_chart(frontier: Mapping[str, Any], tested: Sequence[Mapping[str, Any]]) -> Chart:
    """Score against gap: the best trades, the model before, the chosen point, both on the test rows, the tolerance.

    Parameters
    ----------
    frontier : mapping
        `best` (a list of points), `chosen`, `untouched`, `tolerance`, `score_name` and `gap_name`.
    tested : sequence of mappings
        `name`, `gap` and `score` on the test rows, before and after.

    Returns
    -------
    Chart
    """

    def note(point: Mapping[str, Any]) -> str:
        return f"strength {point['strength']:.2f}, {decision_text(point)}" if "strength" in point else ""

    best = frontier["best"]
    gaps, scores = [point["gap"] for point in best], [point["score"] for point in best]
    marked: list[tuple[str, Any, Mapping[str, Any]]] = [
        ("before", "before", frontier["untouched"]),
        ("chosen", "chosen", frontier["chosen"]),
        *((one["name"], role, one) for one, role in zip(tested, ("before", "chosen"), strict=False)),
    ]
    marks: list[Mark] = [Line(gaps, scores, "best trades", notes=[note(point) for point in best])]
    for name, role, point in marked:
        hollow = "strength" not in point
        marks.append(Points([point["gap"]], [point["score"]], name, notes=[note(point)], role=role, open=hollow))
    marks.append(Rule(frontier["tolerance"], "tolerance", axis="x"))
    # from the lowest marked score: guessing is far below and of no interest
    compared = [point["score"] for _, _, point in marked]
    high = max([*compared, *scores])
    low = min([*compared, high - 0.02])
    widest = max([*(point["gap"] for _, _, point in marked), *gaps, frontier["tolerance"], 0.01])
    score = frontier["score_name"].replace("_", " ")
    return Chart(
        f"{score.capitalize()} against gap",
        GAPS[GAP_KEYS[frontier["gap_name"]]].lower(),
        score,
        marks,
        x_range=(0.0, 1.06 * widest),
        y_range=(low - 0.1 * (high - low), high + 0.15 * (high - low)),
        y_format="%" if frontier["score_name"].endswith("accuracy") else "",
        height=330,
    )


def _tested(models: Sequence[dict[str, Any]], gap: str, score: str) -> list[dict[str, Any]]:
    """The frontier's two numbers on the test rows, of models whose audit has that score."""
    found = []
    for model in models:
        value = model["audit"].get(score)
        value = value["value"] if isinstance(value, dict) else value
        own = {"name": f"{model['title']}, test rows", "gap": model["audit"][gap]["value"], "score": value}
        found += [own] if own["gap"] is not None and value is not None else []
    return found


def _sees_ignored(task: dict[str, Any]) -> bool:
    """Whether what is ignored, which may be several names in a row, is among the features."""
    # records of an earlier version have one text in place of a list
    names = set(task.get("ignored_columns") or (task["ignored"], *re.split(", | and ", task["ignored"])))
    return not names.isdisjoint(task["features"])


def _better_than_guessing(accuracy: float, largest_group: float, auc: float | None) -> bool:
    """Whether the features predict the group better than a guess."""
    return accuracy > largest_group + 0.02 or (auc is not None and auc > 0.6)
