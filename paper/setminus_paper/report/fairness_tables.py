"""The section on a fairness table: every row beside the paper's, the trade of all, their time, and where we lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from setminus.charts.chart import Bars, Chart, Line, Mark, Points, chart_in_words, chart_table
from setminus.charts.vega import Figure, figures
from setminus.report.page import same_experiment
from setminus_paper.figures import title_of
from setminus_paper.report.fairness_rows import KINDS, METRICS, RULES, Row, estimate, rows_of
from setminus_paper.report.fairness_standing import (
    NAMES,
    frontier,
    near_the_paper,
    of_the_paper,
    order_of_rows,
    shown,
    standing,
)

__all__ = ["ABOUT_RULES", "charts", "fairness_tables_section", "summary"]

Record = dict[str, Any]

HEADINGS = {
    "validation": ("Table", "Every row beside the paper's"),
    "test_oracle": ("Paper's protocol", "The same by the paper's own protocol"),
    "trade": ("Trade", "Accuracy against fairness"),
    "standing": ("Where we lose", "Where we lose, and where not"),
    "seconds": ("Time", "How long it takes"),
    "repeat": ("Repeat", "Run it again"),
}
ABOUT_RULES = {
    "validation": (
        "Rule validation: of each row's epochs, the one with the highest accuracy on validation rows is measured on "
        "the test rows. This is how a model would be chosen in practice, and the rule of every comparison below."
    ),
    "test_oracle": (
        "Rule test_oracle: each row's epoch is the one with the highest accuracy on the test rows themselves, as in "
        "the code behind the paper. Nobody has that choice in practice, and it flatters every row; it is here so that "
        "the paper's numbers are compared like for like."
    ),
}
ABOUT_ROWS = {
    "table4": (
        "The test rows are those of Adult's own test file for every seed (15,060 without missing values; all 16,281 "
        "with gradient boosting, which can do with them): deviations are those of training and validation."
    ),
    "table5": (
        "Each seed has 200 other test rows, of which a group's label counts few: deviations are those of the sample, "
        "too, and most rows do not differ by more."
    ),
}
TRADE = ("equalized odds gap, sum", "accuracy")


def charts(records: Sequence[Record]) -> list[Chart]:
    """Accuracy against the gap: a chart for each kind of rows, of means with standard deviations, and one of all.

    Beside ours stands the plain network that they start from, beside other libraries the fairest of ours.
    """
    return [chart for chart, _ in _trades(rows_of(records))]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """For each rule and row: the paper's accuracy in percent and both gaps, and ours with standard deviations."""
    told = []
    for rule in RULES:
        told.append((f"{rule}: accuracy in %, DP gap, EO gap", "", ""))
        for row in rows_of(records):
            paper = [of_the_paper(metric, row.paper[metric]) for metric in METRICS] if row.paper else []
            measured = [spread(row, metric, rule) for metric in METRICS]
            told.append((f"  {row.label}", ", ".join(paper), ", ".join(measured)))
    return told


def spread(row: Row, metric: str, rule: str) -> str:
    """Mean and standard deviation as the tables write them."""
    found = estimate(row.measured[rule][metric])
    deviation = "" if found.deviation is None else f" ± {shown(metric, found.deviation)}"
    return shown(metric, found.mean) + deviation


def fairness_tables_section(records: Sequence[Record]) -> dict[str, Any]:
    """What the template ``fairness_tables.html.j2`` shows of a table.

    Parameters
    ----------
    records : sequence of dict
        All of one table, their job "fairness_tables".

    Returns
    -------
    dict
        Names of the template.
    """
    name, _ = same_experiment(records[0])
    rows = rows_of(records)
    seeds = sorted({seed for row in rows for seed in row.seeds})
    data = records[-1]["config"]["data"]
    trades = _trades(rows)
    plots = [*_trade_figures(trades), *figures([_seconds(rows)], "seconds")]
    return {
        "template": "fairness_tables.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": HEADINGS,
        "task": {"data": f"{name}, {data}"},
        "rows": f"{len(rows)} rows, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}",
        "title": f"{title_of(name)}: fairness on {data}",
        "headline": records[-1].get("claim", ""),
        "about_rows": ABOUT_ROWS.get(name, ""),
        "metrics": {metric: NAMES[metric] + (", %" if metric == "accuracy" else "") for metric in METRICS},
        "blocks": [_block(rule, rows) for rule in RULES],
        "plots": plots[:-1],
        "seconds": plots[-1],
        "standing": standing(rows, RULES[0]),
        "command": records[-1]["command"],
        "figures": plots,
    }


def _block(rule: str, rows: Sequence[Row]) -> dict[str, Any]:
    """One of the two tables, and what it says."""
    return {
        "rule": rule,
        "about": ABOUT_RULES[rule],
        "groups": [
            (title, [_cells(row, rule) for row in rows if row.kind == kind])
            for kind, title in KINDS.items()
            if any(row.kind == kind for row in rows)
        ],
        "near": near_the_paper(rows, rule),
        "order": order_of_rows(rows, rule),
    }


def _cells(row: Row, rule: str) -> dict[str, Any]:
    cells = []
    for metric in METRICS:
        found = estimate(row.measured[rule][metric])
        paper = row.paper[metric] if row.paper else None
        cells.append(
            {
                "metric": metric,
                "found": {"value": found.mean, "low": found.low, "high": found.high},
                "text": spread(row, metric, rule),
                "range": "" if found.low is None else f"{shown(metric, found.low)} to {shown(metric, found.high)}",
                "paper": "" if paper is None else of_the_paper(metric, paper),
            }
        )
    return {"row": row, "cells": cells}


def _trades(rows: Sequence[Row]) -> list[tuple[Chart, list[Points]]]:
    """Each chart of means, and its rows' seeds as clouds of the same names."""
    kinds = {kind: [row for row in rows if row.kind == kind] for kind in KINDS}
    plain = [row for row in rows if row.method == "vanilla"]
    fairest = sorted((row for row in kinds["ours"] if row.encoding != "raw"), key=lambda row: row.mean("eo_gap"))[:1]
    # so few families in each chart that no two signs are alike
    beside = {"paper": [], "ours": plain, "peer": fairest}
    return [
        *(_trade(KINDS[kind], [*beside[kind], *some]) for kind, some in kinds.items() if some),
        _trade_of_all(rows),
    ]


def _trade(title: str, rows: Sequence[Row]) -> tuple[Chart, list[Points]]:
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row.family, []).append(row)
    marks = [_means(some, family) for family, some in families.items()]
    caption = "Up is more accurate, left is fairer. Two settings of one method are joined."
    chart = Chart(f"{title}: accuracy against the gap", *TRADE, marks, caption)
    return chart, [_cloud(some, family) for family, some in families.items()]


def _trade_of_all(rows: Sequence[Row]) -> tuple[Chart, list[Points]]:
    best = frontier(rows, RULES[0])
    others = [row for row in rows if row not in best]
    marks: list[Mark] = [_means(best, "no row is better in both")]
    if others:
        marks.append(Points([row.mean("eo_gap") for row in others], [row.mean("accuracy") for row in others], "others"))
    caption = f"Those that no row beats in both, from the left: {', '.join(row.label for row in best)}."
    clouds = [_cloud(some, mark.name) for some, mark in zip((best, others), marks, strict=False)]
    return Chart("All rows: accuracy against the gap", *TRADE, marks, caption), clouds


def _means(rows: Sequence[Row], name: str) -> Line:
    found = [estimate(row.measured[RULES[0]]["accuracy"]) for row in rows]
    line = Line([row.mean("eo_gap") for row in rows], [one.mean for one in found], name)
    if any(one.deviation is None for one in found):
        return line
    low, high = ([one.mean + sign * (one.deviation or 0.0) for one in found] for sign in (-1, 1))
    return replace(line, low=low, high=high)


def _cloud(rows: Sequence[Row], name: str) -> Points:
    gaps, accuracies = (
        [value for row in rows for value in row.measured[RULES[0]][metric]] for metric in ("eo_gap", "accuracy")
    )
    return Points(gaps, accuracies, name)


def _trade_figures(trades: Sequence[tuple[Chart, list[Points]]]) -> list[Figure]:
    """Each chart with its seeds as small points below the means, all with the same axes."""
    ends = []
    for axis in ("x", "y"):
        values = [v for chart, clouds in trades for mark in (*chart.marks, *clouds) for v in getattr(mark, axis)]
        margin = 0.06 * (max(values) - min(values)) or 0.01
        ends.append((min(values) - margin, max(values) + margin))
    charts = []
    for chart, clouds in trades:
        # the cloud itself is the spread
        means = [replace(mark, low=None, high=None) if isinstance(mark, Line) else mark for mark in chart.marks]
        small = [replace(cloud, small=True) for cloud in clouds]
        charts.append(replace(chart, marks=[*small, *means], x_range=ends[0], y_range=ends[1]))
    made = []
    for figure, (chart, clouds) in zip(figures(charts), trades, strict=True):
        seeds = [replace(cloud, name=f"{cloud.name}, each seed") for cloud in clouds]
        heads, rows = chart_table(replace(chart, marks=[*chart.marks, *seeds]))
        made.append(replace(figure, about=chart_in_words(chart), heads=heads, rows=rows))
    return made


def _seconds(rows: Sequence[Row]) -> Chart:
    bars = Bars([row.label for row in rows], [row.seconds for row in rows], "seconds for one seed")
    caption = (
        "Training and everything else that the row needs, on one thread; seeds of a network are trained together, and "
        "share the time. Medians."
    )
    return Chart("Seconds for one seed", "", "seconds", [bars], caption)
