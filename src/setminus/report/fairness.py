"""The sections on an audited score and on a model that ignores something, and its picture, from a record alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from setminus.auditing.plot import (
    Shown,
    choose_shown,
    coarse,
    label_name,
    rate_charts,
    reliability_charts,
    score_charts,
)
from setminus.charts.chart import Chart, Line, Mark, Points, Rule, spread_evenly
from setminus.charts.vega import Figure, figures
from setminus.core import Gap
from setminus.core.gaps import GAP_NAMES, gap_key

__all__ = [
    "GAPS",
    "audit_section",
    "audited",
    "decision_text",
    "draw_picture",
    "fairness_section",
    "frontier_chart",
    "frontier_rows",
    "group_shares",
    "outcome",
]

Models = Sequence[dict[str, Any]]
Outcome = Literal["certified", "certified as it was", "within noise", "not certified", "nothing promised"]
"""What a fit ended with: certified after a change or without one; left alone since the gap is within the noise, which
certifies nothing; not certified; or no confidence was asked for."""

Rate = Literal["true_positive_rate", "false_positive_rate", "selection_rate"]
RATES: tuple[Rate, ...] = ("true_positive_rate", "false_positive_rate", "selection_rate")

AUDIT_HEADINGS = {
    "compare": ("Groups", "Decisions by group"),
    "impact": ("Impact ratios", "Selection rates and impact ratios"),
    "certificate": ("Certificate", "Does the gap hold for new rows?"),
    "reliability": ("Probabilities", "Are the probabilities calibrated?"),
    "scores": ("Scores", "Scores of each group"),
    "check": ("Findings", "Does the score depend on the group?"),
    "use": ("Use", "What to do next"),
    "evidence": ("Evidence", "Who chose what, and from which files"),
    "table": ("Table", "The table and its columns"),
}
GAPS_SHOWN: tuple[Gap, ...] = ("equalized_odds_sum", "equalized_odds_max", "equal_opportunity", "demographic_parity")
GAPS: dict[Gap, str] = {key: GAP_NAMES[key].capitalize() for key in GAPS_SHOWN}
OTHER_METRICS = {
    "roc_auc": "ROC AUC",
    "log_loss": "Log loss",
    "leakage.bits": "Leakage",
    "calibration.overall.ece": "Calibration error",
}
MAX_NAMED = 3
"""Groups that the headline names; of more it names the two extreme ones."""

POINT = ("predicted", "observed", "count")
HEADINGS = {
    "compare": ("Before and after", "Before and after"),
    "impact": ("Impact ratios", "Selection rates and impact ratios"),
    "ignored": ("Method", "What the method removes"),
    "trade": ("Cost", "What fairness costs here"),
    "reliability": ("Probabilities", "Are the probabilities calibrated?"),
    "scores": ("Scores", "Scores of each group"),
    "check": ("Conditions", "Does the method apply here?"),
    "use": ("Use", "How to use it"),
    "evidence": ("Evidence", "Who chose what, and from which files"),
    "table": ("Table", "The table and its columns"),
}
FRONTIER_SIGNS = {"best trades": 31}
"""A solid blue line, which stands out from the chosen point."""
MAX_ROWS = 40
"""Best trades in the table; the figure has them all."""


def audit_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``audit.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "audit": `task`, `metrics` with one audited model, and where a limit was set, `limit`.

    Returns
    -------
    dict
        Names of the template.
    """
    task, models, limit = record["task"], record["metrics"]["models"], record.get("limit")
    audit = models[0]["audit"]
    certificate = audit.get("certificate")
    gap: Gap = "equalized_odds_max" if audit["equalized_odds_max"]["value"] is not None else "demographic_parity"
    if certificate:
        gap = gap_key(certificate["constraint"], certificate["agg"])
    if limit:
        gap = limit["name"]
    usable = record.get("usage") or record.get("usage_command")
    left_out = ({"use"} if not usable else set()) | ({"certificate"} if not certificate else set())
    headings = {key: names for key, names in AUDIT_HEADINGS.items() if key not in left_out}
    return {
        **audited(record, models, gap, headings=headings),
        "template": "audit.html.j2",
        "title": f"Audit of {task['score']}: {task['label']} by {task['ignored']}",
        "rows": f"{task['rows']['test']:,} rows",
        "score": models[0],
        "bounded": gap if limit or certificate else None,
        "limit": limit,
        "certificate": certificate,
        "certificate_rows": _certificate_rows(audit, certificate, task.get("labels", {})) if certificate else [],
        "floor": audit.get("noise_floors", {}).get(gap),
    }


def _certificate_rows(
    audit: dict[str, Any], certificate: dict[str, Any], names: dict[str, str]
) -> list[dict[str, Any]]:
    """The rows behind a certificate and the rows that it lacks, by group."""
    needed = audit.get("rows_needed") or [0] * len(audit["groups"])
    labels = {"demographic_parity": ["all"], "equal_opportunity": audit["classes"][1:]}.get(
        certificate["constraint"], audit["classes"]
    )
    by_label = [names.get(str(label), str(label)) for label in labels]
    return [
        {"group": label_name(group), "rows": dict(zip(by_label, rows, strict=False)), "needed": more}
        for group, rows, more in zip(audit["groups"], certificate["rows"], needed, strict=True)
    ]


def audited(
    record: dict[str, Any], compared: Models, gap: Gap, *, headings: dict[str, tuple[str, str]]
) -> dict[str, Any]:
    """The names of the template that every section with audited models has.

    Parameters
    ----------
    record : dict
        With a `task` and ``metrics["models"]``.
    compared : sequence of dict
        The models whose curves are drawn; tables and rates show all.
    gap : str
        The key of the gap that matters.
    headings : dict of str to (short, long)
        The parts of the section, in order: their titles in the list of contents, and above the part.
    """
    task, models = {"notes": [], "columns": [], **record["task"]}, record["metrics"]["models"]
    last = compared[-1]["audit"]
    shown = choose_shown(last, task.get("labels", {}))
    scored = all(model["audit"]["calibration"] is not None for model in compared)
    rates = _rates(models, shown)
    reliability, scores = (_reliability(compared, shown), _scores(compared, shown)) if scored else ([], [])
    empty = {"table"} if not (task["notes"] or task["columns"]) else set()
    empty |= set() if scored else {"reliability", "scores"}
    impact = _impact(compared, "impact")
    empty |= set() if impact else {"impact"}
    command = record.get("usage_command", "")
    return {
        "task": task,
        "headings": {key: names for key, names in headings.items() if key not in empty},
        "scored": scored,
        "models": models,
        "level": f"{100 * last['confidence']:g}\N{NO-BREAK SPACE}%",
        "two_classes": len(last["classes"]) == 2,
        "positive": shown.class_name(last["classes"][1]),
        "gap": gap,
        "gap_title": GAPS[gap],
        "shares": {rate: [group_shares(model["audit"], rate) for model in compared] for rate in RATES},
        "impact": impact,
        "scoring": _impact(compared, "scoring"),
        "median_score": last.get("median_score"),
        "provenance": {"settings": [], "files": [], "approved_by": None, "notes": None, **record.get("provenance", {})},
        "date": record.get("date"),
        "favorable": task.get("favorable"),
        "shown": shown,
        "numbers": _number_rows(models, gap),
        "group_rows": _group_rows(models, shown),
        "rates": rates,
        "reliability": reliability,
        "scores": scores,
        "figures": [figure for panel in (*rates, *reliability, *scores) for figure in panel["figures"]],
        "usage": record.get("usage", ""),
        "usage_command": command if isinstance(command, str) else "\n".join(command),
    }


def group_shares(audit: dict[str, Any], rate: Rate) -> list[tuple[str, float]]:
    """For two classes, a rate of each group; of many groups the lowest and the highest.

    Examples
    --------
    >>> rates = [{"group": g, "true_positive_rate": {"value": v}} for g, v in (("f", 0.5), ("m", 0.75))]
    >>> group_shares({"classes": [0, 1], "group_rates": rates}, "true_positive_rate")
    [('f', 0.5), ('m', 0.75)]
    """
    if len(audit["classes"]) > 2:
        return []
    known = [(label_name(row["group"]), row[rate]["value"]) for row in audit["group_rates"]]
    known = [(group, value) for group, value in known if value is not None]
    if len(known) <= MAX_NAMED:
        return known
    by_value = sorted(known, key=lambda one: one[1])
    return [by_value[0], by_value[-1]]


def outcome(metrics: Mapping[str, Any]) -> Outcome:
    """What a fit ended with.

    Examples
    --------
    >>> outcome({"choice": "left alone", "certificate": {"certified": False}})
    'within noise'
    """
    certificate, alone = metrics.get("certificate"), metrics.get("choice") == "left alone"
    if certificate is None:
        return "nothing promised"
    if certificate["certified"]:
        return "certified as it was" if alone else "certified"
    return "within noise" if alone else "not certified"


def _impact(models: Models, key: Literal["impact", "scoring"]) -> list[dict[str, Any]]:
    """The impact tables of the last model, each row with the numbers of the first one beside it."""
    tables = models[-1]["audit"].get(key) or []
    before = models[0]["audit"].get(key) or []
    found = []
    for number, table in enumerate(tables):
        was = {row["group"]: row for row in before[number]["rows"]} if len(models) > 1 and number < len(before) else {}
        found.append({**table, "rows": [{**row, "before": was.get(row["group"])} for row in table["rows"]]})
    return found


def _rates(models: Models, shown: Shown) -> list[dict[str, Any]]:
    """True and false positive rates of each group, or selection rates without labels; a panel for each class."""
    titled = [(model["title"], model["audit"]) for model in models]
    panels = []
    labelled = any(
        row["true_positive_rate"]["value"] is not None for _, audit in titled for row in audit["group_rates"]
    )
    drawn = ["true_positive_rate", "false_positive_rate"] if labelled else ["selection_rate"]
    for index, label in enumerate(shown.judged):
        charts = rate_charts(titled, shown, label, drawn)
        panels.append(_panel(shown, label, figures(charts, f"rates-{index}", shown.signs)))
    return panels


def _reliability(models: Models, shown: Shown) -> list[dict[str, Any]]:
    """Reliability curves, a panel for each class that is judged and a figure for each model."""
    titled = [(model["title"], model["audit"]) for model in models]
    panels = []
    for index, label in enumerate(shown.judged):
        charts = reliability_charts(titled, shown, label)
        table = [
            {"model": title, "group": label_name(curve["group"]), "bin": place, **dict(zip(POINT, point, strict=True))}
            for title, audit in titled
            for curve in audit["calibration"]["curves"]
            if curve["label"] == label and label_name(curve["group"]) in shown.signs
            for place, point in enumerate(zip(*(curve[key] for key in POINT), strict=True))
        ]
        panels.append(_panel(shown, label, figures(charts, f"reliability-{index}", shown.signs), table=table))
    return panels


def _scores(models: Models, shown: Shown) -> list[dict[str, Any]]:
    """Histograms, a panel for each label and a figure for each model."""
    titled = [(model["title"], model["audit"]) for model in models]
    panels = []
    for index, label in enumerate(shown.labels):
        drawn = [
            (title, one)
            for title, audit in titled
            for one in audit["histograms"]
            if one["label"] == label and label_name(one["group"]) in shown.signs
        ]
        columns = [{"model": title, "group": label_name(one["group"]), "share": coarse(one)[1]} for title, one in drawn]
        bins = [*pairwise(coarse(drawn[0][1])[0])] if drawn else []
        charts = score_charts(titled, shown, label)
        panel = _panel(shown, label, figures(charts, f"scores-{index}", shown.signs), columns=columns, bins=bins)
        panels.append(panel)
    return panels


def _panel(shown: Shown, label: Any, drawn: list[Figure], **more: Any) -> dict[str, Any]:
    entries = {entry["name"]: entry for figure in drawn for entry in figure.legend}
    return {
        "label": label,
        "name": shown.class_name(label),
        "figures": drawn,
        "legend": list(entries.values()),
        **more,
    }


def _number_rows(models: Models, first: Gap) -> list[dict[str, Any]]:
    """The numbers of each model, the gap that matters before the others."""
    gaps: dict[str, str] = {key: GAPS[key] for key in sorted(GAPS, key=lambda key: key != first)}
    named: dict[str, str] = {"accuracy": "Accuracy", **gaps, **OTHER_METRICS}
    rows: list[dict[str, Any]] = [
        {
            "metric": metric,
            "name": name,
            "cells": [_interval(model["audit"], metric) for model in models],
            "floors": [model["audit"].get("noise_floors", {}).get(metric) for model in models],
        }
        for metric, name in named.items()
    ]
    measured = any(row["metric"] in GAPS and row["cells"][0]["value"] is not None for row in rows)
    # what needs labels or scores is left out where there are none; a gap that is undefined for want of rows is shown
    return [row for row in rows if not measured or any(found["value"] is not None for found in row["cells"])]


def _interval(audit: dict[str, Any], metric: str) -> dict[str, Any]:
    """A number of an audit by its dotted path, as an interval whose ends may be missing."""
    found: Any = audit
    for key in metric.split("."):
        found = None if found is None else found[key]
    return found if isinstance(found, dict) else {"value": found, "low": None, "high": None}


def _group_rows(models: Models, shown: Shown) -> list[dict[str, Any]]:
    """Every group's rates, those of one group and class next to each other."""
    rows = [
        {**row, "model": model["title"], "group": label_name(row["group"]), "class": shown.class_name(row["label"])}
        for model in models
        for row in model["audit"]["group_rates"]
    ]
    labels = [*dict.fromkeys(str(row["label"]) for row in rows)]
    return sorted(rows, key=lambda row: (labels.index(str(row["label"])), row["group"]))


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
    gap = gap_key(record["config"]["constraint"], record["config"]["agg"])
    shared = audited(record, [before, after], gap, headings=HEADINGS)
    tested = _tested([before, after], gap, frontier["score_name"])
    (trade,) = figures([frontier_chart(frontier, gap, tested)], "frontier", FRONTIER_SIGNS)
    return {
        **shared,
        "template": "fairness.html.j2",
        "title": f"Predicting {task['label']}: fairness by {task['ignored']}",
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
        "certificate": metrics.get("certificate"),
        "outcome": outcome(metrics),
        "left_alone": metrics.get("choice") == "left alone",
        "warnings": record.get("warnings", []),
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
    gap = gap_key(record["config"]["constraint"], record["config"]["agg"])
    trade = frontier_chart(frontier, gap, _tested(models, gap, frontier["score_name"]))
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
    return [{**row, "decision": _decision(row)[1] if "strength" in row else ""} for row in rows]


def decision_text(point: Mapping[str, Any]) -> str:
    """How a point decides: a threshold for two classes, an offset for each of more.

    Examples
    --------
    >>> decision_text({"threshold": 0.4912})
    'threshold 0.491'
    >>> decision_text({"offsets": [0.0, -0.5, 0.25]})
    'offsets 0, -0.5, 0.25'
    """
    return " ".join(_decision(point))


def _decision(point: Mapping[str, Any]) -> tuple[str, str]:
    if "threshold" in point:
        return "threshold", f"{point['threshold']:.3f}"
    return "offsets", ", ".join(f"{offset:g}" for offset in point["offsets"])


def frontier_chart(frontier: Mapping[str, Any], gap: Gap, tested: Sequence[Mapping[str, Any]]) -> Chart:
    """Score against gap: the best trades, the model before, the chosen point, both on the test rows, the tolerance.

    Parameters
    ----------
    frontier : mapping
        `best` (a list of points), `chosen`, `untouched`, `tolerance` and `score_name`.
    gap : str
        The gap that is bounded.
    tested : sequence of mappings
        `name`, `gap` and `score` on the test rows, before and after.
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
        GAPS[gap].lower(),
        score,
        marks,
        x_range=(0.0, 1.06 * widest),
        y_range=(low - 0.1 * (high - low), high + 0.15 * (high - low)),
        y_format="%" if frontier["score_name"].endswith("accuracy") else "",
        height=330,
    )


def _tested(models: Sequence[dict[str, Any]], gap: Gap, score: str) -> list[dict[str, Any]]:
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
    return accuracy > largest_group + 0.02 if auc is None else auc > 0.6
