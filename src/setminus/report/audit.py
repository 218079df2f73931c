"""The section on an audited score, and what every section with audited models shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from setminus.auditing.plot import (
    Shown,
    choose_shown,
    coarse,
    label_name,
    rate_charts,
    reliability_charts,
    score_charts,
)
from setminus.charts.vega import Figure, figures

__all__ = ["GAPS", "audit_section", "audited", "group_shares"]

Models = Sequence[dict[str, Any]]

HEADINGS = {
    "compare": ("Groups", "Decisions by group"),
    "reliability": ("Probabilities", "Are the probabilities calibrated?"),
    "scores": ("Scores", "Scores of each group"),
    "check": ("Findings", "Does the score depend on the group?"),
    "use": ("Use", "What to do next"),
    "table": ("Table", "The table and its columns"),
}
GAPS = {
    "equalized_odds_sum": "Equalized odds gap (sum)",
    "equalized_odds_max": "Equalized odds gap (max)",
    "equal_opportunity": "Equal opportunity gap",
    "demographic_parity": "Demographic parity gap",
}
OTHER_METRICS = {
    "roc_auc": "ROC AUC",
    "log_loss": "Log loss",
    "leakage.bits": "Leakage",
    "calibration.overall.ece": "Calibration error",
}
MAX_NAMED = 3
"""Groups that the headline names; of more it names the two extreme ones."""


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
    gap = limit["name"] if limit else "equalized_odds_max"
    usable = record.get("usage") or record.get("usage_command")
    headings = {key: names for key, names in HEADINGS.items() if key != "use" or usable}
    return {
        **audited(record, models, gap, headings=headings),
        "template": "audit.html.j2",
        "title": f"Audit of {task['score']}: {task['label']} by {task['ignored']}",
        "rows": f"{task['rows']['test']:,} rows",
        "score": models[0],
        "bounded": gap if limit else None,
        "limit": limit,
    }


def audited(
    record: dict[str, Any], compared: Models, gap: str, *, headings: dict[str, tuple[str, str]]
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

    Returns
    -------
    dict
    """
    task, models = {"notes": [], "columns": [], **record["task"]}, record["metrics"]["models"]
    last = compared[-1]["audit"]
    shown = choose_shown(last, task.get("labels", {}))
    rates, reliability, scores = _rates(models, shown), _reliability(compared, shown), _scores(compared, shown)
    command = record.get("usage_command", "")
    return {
        "task": task,
        "headings": {
            key: names for key, names in headings.items() if key != "table" or task["notes"] or task["columns"]
        },
        "models": models,
        "level": f"{100 * last['confidence']:g}\N{NO-BREAK SPACE}%",
        "two_classes": len(last["classes"]) == 2,
        "positive": shown.class_name(last["classes"][1]),
        "gap": gap,
        "gap_title": GAPS[gap],
        "shares": [group_shares(model["audit"], gap) for model in compared],
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


def group_shares(audit: dict[str, Any], gap: str) -> list[tuple[str, float]]:
    """For two classes, the rate of each group that a gap compares; of many groups the lowest and the highest.

    Examples
    --------
    >>> rates = [{"group": g, "true_positive_rate": {"value": v}} for g, v in (("f", 0.5), ("m", 0.75))]
    >>> group_shares({"classes": [0, 1], "group_rates": rates}, "equalized_odds_max")
    [('f', 0.5), ('m', 0.75)]
    """
    if len(audit["classes"]) > 2:
        return []
    rate = "selection_rate" if gap == "demographic_parity" else "true_positive_rate"
    known = [(label_name(row["group"]), row[rate]["value"]) for row in audit["group_rates"]]
    known = [(group, value) for group, value in known if value is not None]
    if len(known) <= MAX_NAMED:
        return known
    by_value = sorted(known, key=lambda one: one[1])
    return [by_value[0], by_value[-1]]


def _rates(models: Models, shown: Shown) -> list[dict[str, Any]]:
    """True and false positive rates of each group, a panel for each class that is judged."""
    titled = [(model["title"], model["audit"]) for model in models]
    panels = []
    for index, label in enumerate(shown.judged):
        charts = rate_charts(titled, shown, label, ["true_positive_rate", "false_positive_rate"])
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


POINT = ("predicted", "observed", "count")


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


def _number_rows(models: Models, first: str) -> list[dict[str, Any]]:
    """The numbers of each model, the gap that matters before the others."""
    gaps = {key: GAPS[key] for key in sorted(GAPS, key=lambda key: key != first)}
    return [
        {"metric": metric, "name": name, "cells": [_interval(model["audit"], metric) for model in models]}
        for metric, name in {"accuracy": "Accuracy", **gaps, **OTHER_METRICS}.items()
    ]


def _interval(audit: dict[str, Any], metric: str) -> dict[str, Any]:
    """A number of an audit by its dotted path, as an interval whose ends may be missing."""
    found: Any = audit
    for key in metric.split("."):
        found = found[key]
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
