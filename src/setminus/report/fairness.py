"""The section on a model that was made to ignore a group: a record to what its template shows."""

from __future__ import annotations

from html import escape
from typing import Any

from setminus.report.figures import (
    frontier_figure,
    group_name,
    histogram_figure,
    rates_figure,
    reliability_figure,
)

__all__ = ["fairness_section"]

NUMBERS = (
    ("accuracy", "Accuracy", "share of right decisions; more is better"),
    ("equalized_odds_sum", "Equalized odds gap", "difference of true plus of false positive rates; 0 is fair"),
    ("equalized_odds_max", "… the larger of the two", "as Fairlearn counts it; 0 is fair"),
    ("demographic_parity", "Demographic parity gap", "difference of selection rates; 0 is parity"),
)
RATES = ("true_positive_rate", "false_positive_rate")


def fairness_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``fairness.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "fairness": `task`, `metrics` with the audited `models` (the first is the one before,
        the last the one to use), `frontier` and `betrayed`, and `usage`.

    Returns
    -------
    dict
        Names of the template; `figures` maps the id of a figure to its plotly dictionary.
    """
    models = record["metrics"]["models"]
    frontier = record["metrics"]["frontier"]
    before, after = models[0], models[-1]
    groups = sorted({group_name(row["group"]) for row in after["audit"]["group_rates"]})
    colour_of = {escape(group): place for place, group in enumerate(groups)}
    figures = {
        **_rate_figures(models, colour_of),
        "frontier": frontier_figure(frontier, [_tested(before, frontier), _tested(after, frontier)]),
        **_reliability_figures(before, after, colour_of),
        **_histogram_figures(before, after, colour_of),
    }
    return {
        "template": "fairness.html.j2",
        "task": record["task"],
        "config": record["config"],
        "betrayed": record["metrics"]["betrayed"],
        "frontier": frontier,
        "models": models,
        "before": before,
        "after": after,
        "groups": [_story(group, before, after) for group in groups],
        "rows": [_row(models, *number) for number in NUMBERS] + _plain_rows(models),
        "labels": [_label(record, label) for label in after["audit"]["classes"]],
        "figures": figures,
        "usage": record["usage"],
    }


def _rate_figures(models: list[dict[str, Any]], colour_of: dict[str, int]) -> dict[str, Any]:
    shown = [(model["title"], model["audit"]["group_rates"]) for model in models]
    ends = {rate: _ends([row[rate] for _, rows in shown for row in rows]) for rate in RATES}
    # the same width for both, or a small gap in a small rate looks large
    width = 1.1 * max(high - low for low, high in ends.values())
    return {
        f"rates-{rate}": rates_figure(shown, rate, colour_of=colour_of, span=_span(low, high, width))
        for rate, (low, high) in ends.items()
    }


def _span(low: float, high: float, width: float) -> tuple[float, float]:
    """An axis of this width around both ends, not far below 0 or above 1."""
    start = min(max((low + high - width) / 2, -0.01), 1.01 - width)
    return start, start + width


def _ends(intervals: list[dict[str, Any]]) -> tuple[float, float]:
    known = [interval for interval in intervals if interval["value"] is not None]
    return min((one["low"] for one in known), default=0.0), max((one["high"] for one in known), default=1.0)


def _reliability_figures(before: Any, after: Any, colour_of: dict[str, int]) -> dict[str, Any]:
    return {
        f"reliability-{when}": reliability_figure(
            [curve for curve in model["audit"]["calibration"]["curves"] if curve["group"] is not None],
            colour_of=colour_of,
        )
        for when, model in (("before", before), ("after", after))
    }


def _histogram_figures(before: Any, after: Any, colour_of: dict[str, int]) -> dict[str, Any]:
    figures = {}
    for index, label in enumerate(after["audit"]["classes"]):
        drawn = {
            when: [one for one in model["audit"]["histograms"] if one["label"] == label]
            for when, model in (("before", before), ("after", after))
        }
        # one scale for both, or the eye compares axes instead of outlines
        shares = [share for some in drawn.values() for one in some for share in one["share"] if share > 0]
        span = (max(min(shares, default=0.001), 0.0005), 1.0)
        for when, histograms in drawn.items():
            name = f"scores-{index}-{when}"
            figures[name] = histogram_figure(histograms, colour_of=colour_of, span=span)
    return figures


def _row(models: list[dict[str, Any]], key: str, name: str, about: str) -> dict[str, Any]:
    return {"name": name, "about": about, "cells": [model["audit"][key] for model in models]}


def _plain_rows(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    audits = [model["audit"] for model in models]
    return [
        {
            "name": "ROC AUC",
            "about": "how well the probabilities rank; 1 is perfect",
            "cells": [{"value": audit["roc_auc"]} for audit in audits],
        },
        {
            "name": "Leakage",
            "about": "bits that the probability gives about the group beyond the label; 0 is none",
            "cells": [{"value": audit["leakage"]["bits"]} for audit in audits],
        },
    ]


def _tested(model: dict[str, Any], frontier: dict[str, Any]) -> tuple[str, float, float]:
    """The frontier's two numbers on the test rows."""
    name = frontier["gap_name"].replace(" (", "_").rstrip(")")
    gap = model["audit"][name]["value"]
    return f"{model['title']}, on the test rows", gap, model["audit"]["accuracy"]["value"]


def _story(group: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    found = [
        next(row for row in model["audit"]["group_rates"] if group_name(row["group"]) == group)
        for model in (before, after)
    ]
    return {"name": group, "before": found[0], "after": found[1]}


def _label(record: dict[str, Any], label: Any) -> str:
    names: dict[str, str] = record["task"].get("labels", {})
    return names.get(str(label), str(label))
