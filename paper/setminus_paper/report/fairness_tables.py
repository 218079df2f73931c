"""Tables 4 and 5 from records: every row beside the paper's, the order of rows, rivals beside ours, charts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from setminus.charts.chart import Bars, Chart, Line, Mark, Points, chart_in_words, chart_table
from setminus.charts.vega import Figure, figures
from setminus.report.page import same_experiment
from setminus_paper.reproduce import title_of
from setminus_paper.tables import mean_spread, to_frame

__all__ = [
    "KINDS",
    "METRICS",
    "RULES",
    "charts",
    "comparison",
    "fairness_tables_section",
    "order",
    "rows_of",
    "summary",
]

Record = dict[str, Any]

RULES = ("validation", "test_oracle")
"""The epoch of a row has the highest accuracy on validation rows, or on the test rows themselves."""
METRICS = ("accuracy", "dp_gap", "eo_gap")
NAMES = {"accuracy": "accuracy, %", "dp_gap": "demographic parity gap", "eo_gap": "equalized odds gap"}
KINDS = {"paper": "The paper's rows", "ours": "Ours beyond the paper", "peer": "Other libraries"}
ERRORS = 2
"""Standard errors beyond which two rows differ."""
AXES = ("equalized odds gap, sum", "accuracy")


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """One row per method and seed; a seed that was measured again counts once."""
    return to_frame(records).drop_duplicates(["method", "seed"], keep="last")


def rows_of(records: Sequence[Record], rule: str = RULES[0]) -> pd.DataFrame:
    """One row per method, indexed by it: the paper's first, the plain network before all, the others by name.

    Columns: label, kind, needs_group, encoding, seeds, seconds (median per seed), auc, and of each metric its mean,
    ``.std``, ``.paper``, and ``.low`` and ``.high``, the 95 % prediction interval of one more run: a number that was
    measured once, as the paper's, has to be compared with that interval, not with the interval of the mean.
    """
    frame = frame_of(records).sort_values("seed", kind="stable")
    first = frame.groupby("method", sort=False).last()
    found = pd.DataFrame(
        {
            "label": first["row.label"],
            "kind": first["row.kind"],
            "needs_group": first["row.needs_group"].astype(bool),
            "encoding": first["encoding"],
            "seeds": frame.groupby("method", sort=False)["seed"].nunique(),
            "seconds": frame.groupby("method", sort=False)["seconds_per_seed"].median(),
            "auc": mean_spread(frame, "method", f"{rule}.auc")["mean"],
        }
    )
    for metric in METRICS:
        spread = mean_spread(frame, "method", f"{rule}.{metric}")
        reach = stdtrit(spread["seeds"] - 1, 0.975) * spread["std"] * (1 + 1 / spread["seeds"]) ** 0.5
        paper = f"row.paper.{metric}"
        found[metric], found[f"{metric}.std"] = spread["mean"], spread["std"]
        # neither accuracy nor a gap can be negative
        found[f"{metric}.low"], found[f"{metric}.high"] = (spread["mean"] - reach).clip(lower=0), spread["mean"] + reach
        found[f"{metric}.paper"] = first.get(paper, np.nan)
    return found.iloc[sorted(range(len(found)), key=lambda place: _place(found.iloc[place]))]


def text(metric: str, value: float) -> str:
    """A number as the tables write it: accuracy in percent, a gap with three decimals.

    Examples
    --------
    >>> text("accuracy", 0.8412), text("eo_gap", -0.0001), text("eo_gap", float("nan"))
    ('84.1', '0.000', '')
    """
    if np.isnan(value):
        return ""
    # adding 0 makes a zero of minus zero
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{round(value, 3) + 0.0:.3f}"


def cells(row: pd.Series, metric: str) -> dict[str, str]:
    """Mean ± standard deviation, the prediction interval, and the paper's number with its digits."""
    value, std, low, high, paper = (row[f"{metric}{end}"] for end in ("", ".std", ".low", ".high", ".paper"))
    return {
        "text": text(metric, value) + ("" if np.isnan(std) else f" ± {text(metric, std)}"),
        "range": "" if np.isnan(low) else f"{text(metric, low)} to {text(metric, high)}",
        "paper": "" if np.isnan(paper) else text(metric, paper) if metric == "accuracy" else f"{paper:.2f}",
    }


def order(records: Sequence[Record], rule: str) -> list[dict[str, Any]]:
    """For each metric, how the paper's rows compare with the paper.

    `inside` of `numbers` are within the prediction interval of one more run, `off` is the largest distance. Of
    `pairs` of rows that differ in the paper, `same` have the same order here, `unclear` differ by at most two standard
    errors over paired seeds, and `reversed` names the others, the upper row first.
    """
    rows = rows_of(records, rule)
    lines = []
    for metric in METRICS:
        wide = _by_method(records, f"{rule}.{metric}")
        known = rows[rows[f"{metric}.paper"].notna()]
        paper, half = known[f"{metric}.paper"], 0.0005 if metric == "accuracy" else 0.005
        # the paper's numbers are rounded
        inside = (known[f"{metric}.low"] - half <= paper) & (paper <= known[f"{metric}.high"] + half)
        off = (known[metric] - paper).abs().max()
        same = unclear = 0
        turned = []
        for one, other in combinations(known.index, 2):
            expected = paper[one] - paper[other]
            if expected == 0:
                continue
            found, error = _difference(wide, one, other)
            if abs(found) <= ERRORS * error:
                unclear += 1
            elif found * expected > 0:
                same += 1
            else:
                upper, lower = (one, other) if found > 0 else (other, one)
                turned.append(f"{rows.label[upper]} > {rows.label[lower]}")
        lines.append(
            {
                "metric": NAMES[metric],
                "numbers": len(known),
                "inside": int(inside.sum()),
                "off": "" if np.isnan(off) else f"{100 * off:.1f}" if metric == "accuracy" else f"{off:.2f}",
                "pairs": same + unclear + len(turned),
                "same": same,
                "unclear": unclear,
                "reversed": "; ".join(turned),
            }
        )
    return lines


def comparison(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Each rival beside our rows with the same features that do not need the group where the rival does not.

    "win": one of ours is better in accuracy or in the equalized odds gap by more than two standard errors and not worse
    in the other. "level": one of ours is not clearly worse in either. "lose": neither; then `ours` is the row of the
    nearest gap.
    """
    rows = rows_of(records)
    accuracy, gaps = (_by_method(records, f"validation.{metric}") for metric in ("accuracy", "eo_gap"))
    ours = rows[(rows.kind == "ours") | rows.index.str.startswith("orthogonal")].sort_values("eo_gap", kind="stable")
    found = []
    for name, rival in rows.drop(index=[*ours.index, *({"vanilla"} & {*rows.index})]).iterrows():
        near = ours[(ours.encoding == rival.encoding) & (rival.needs_group | ~ours.needs_group)]
        outcome, best = "lose", near.index[(near.eo_gap - rival.eo_gap).abs().argmin()] if len(near) else ""
        for wanted in ("win", "level"):
            for row in near.index if outcome == "lose" else ():
                gain, gain_error = _difference(accuracy, row, name)
                less, less_error = _difference(gaps, name, row)
                limits = ERRORS * gain_error, ERRORS * less_error
                wins = min(gain, less) >= 0 and (gain > limits[0] or less > limits[1])
                level = gain >= -limits[0] and less >= -limits[1]
                if wins if wanted == "win" else level:
                    outcome, best = wanted, row
                    break
        if len(near):
            numbers = {
                f"{who}.{metric}": text(metric, one[metric])
                for who, one in (("rival", rival), ("ours", rows.loc[best]))
                for metric in ("accuracy", "eo_gap")
            }
            found.append({"rival": rival.label, "outcome": outcome, "ours": rows.label[best], **numbers})
    return sorted(found, key=lambda one: ("lose", "level", "win").index(one["outcome"]))


def charts(records: Sequence[Record]) -> list[Chart]:
    """Accuracy against the gap: a chart for each kind of rows, of means with standard deviations, and one of all.

    The plain network is shown with our rows, the fairest of ours with other libraries.
    """
    return [chart for chart, _ in _frontier_charts(records)]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """For each rule and row: the paper's accuracy in percent and both gaps, and ours with standard deviations."""
    lines = []
    for rule in RULES:
        lines.append((f"{rule}: accuracy in %, DP gap, EO gap", "", ""))
        for _, row in rows_of(records, rule).iterrows():
            own = [cells(row, metric) for metric in METRICS]
            paper, measured = (", ".join(filter(None, (one[key] for one in own))) for key in ("paper", "text"))
            lines.append((f"  {row.label}", paper, measured))
    return lines


def fairness_tables_section(records: Sequence[Record]) -> dict[str, Any]:
    """The values of the template ``fairness_tables.html.j2`` for all records of one table."""
    name, _ = same_experiment(records[0])
    seeds, data = frame_of(records)["seed"].nunique(), records[-1]["config"]["data"]
    rows = rows_of(records)
    plots = [*_frontier_figures(_frontier_charts(records)), *figures([_seconds(rows)], "seconds")]
    return {
        "template": "fairness_tables.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": {
            "validation": ("Table", "Every row beside the paper's"),
            "test_oracle": ("Paper's protocol", "The same by the paper's own protocol"),
            "frontier": ("Accuracy and gap", "Accuracy against fairness"),
            "comparison": ("Where we lose", "Where we lose, and where not"),
            "seconds": ("Time", "How long it takes"),
            "repeat": ("Repeat", "Run it again"),
        },
        "task": {"data": f"{name}, {data}"},
        "rows": f"{len(rows)} rows, {seeds} seed{'s' if seeds > 1 else ''}",
        "title": f"{title_of(name)}: fairness on {data}",
        "headline": records[-1].get("claim", ""),
        "name": name,
        "metrics": NAMES,
        "blocks": [{"rule": rule, "groups": _groups(records, rule), "order": order(records, rule)} for rule in RULES],
        "comparison": comparison(records),
        "plots": plots[:-1],
        "seconds": plots[-1],
        "command": records[-1]["command"],
        "figures": plots,
    }


def _groups(records: Sequence[Record], rule: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of one of the two tables, by kind."""
    rows = rows_of(records, rule)
    made = []
    for kind, title in KINDS.items():
        own = [
            {
                "method": method,
                "label": row.label,
                "needs_group": row.needs_group,
                "cells": [
                    {
                        "metric": metric,
                        "found": {
                            key: None if np.isnan(row[name]) else row[name]
                            for key, name in (("value", metric), ("low", f"{metric}.low"), ("high", f"{metric}.high"))
                        },
                        **cells(row, metric),
                    }
                    for metric in METRICS
                ],
            }
            for method, row in rows[rows.kind == kind].iterrows()
        ]
        made += [(title, own)] if own else []
    return made


def _by_method(records: Sequence[Record], value: str) -> pd.DataFrame:
    """A metric with a row for each seed and a column for each method."""
    return frame_of(records).pivot(index="seed", columns="method", values=value)


def _difference(wide: pd.DataFrame, one: str, other: str) -> tuple[float, float]:
    """The first less the second over paired seeds, and the standard error; infinite for fewer than two seeds."""
    paired = (wide[one] - wide[other]).dropna()
    if len(paired) < 2:
        return wide[one].mean() - wide[other].mean(), float("inf")
    return float(paired.mean()), float(paired.sem())


def _place(row: pd.Series) -> tuple[int, bool, list[tuple[bool, float, str]]]:
    known = list(KINDS)
    # numbers within a name by their size: 50 before 100
    parts = re.split(r"(\d+(?:\.\d+)?)", row.label)
    return (
        known.index(row.kind) if row.kind in known else len(known),
        row.name != "vanilla",
        [(True, float(p), "") if i % 2 else (False, 0.0, p) for i, p in enumerate(parts)],
    )


def _frontier_charts(records: Sequence[Record]) -> list[tuple[Chart, list[Points]]]:
    """Each chart of means, and the seeds of its rows as clouds of the same names."""
    frame, rows = frame_of(records), rows_of(records)
    plain = rows[rows.index == "vanilla"]
    ours = rows[(rows.kind == "ours") & (rows.encoding != "raw")]
    # few families in each chart, so that all signs differ
    beside = {"paper": plain[:0], "ours": plain, "peer": ours.sort_values("eo_gap", kind="stable")[:1]}
    made = []
    for kind, title in KINDS.items():
        some = rows[rows.kind == kind]
        if len(some):
            shown = pd.concat([beside[kind], some])
            families = shown.groupby(shown.label.str.split(" (", regex=False).str[0], sort=False)
            caption = "Up is more accurate, left is fairer. Two settings of one method are joined."
            marks: list[Mark] = [_means(own, family) for family, own in families]
            chart = Chart(f"{title}: accuracy against the gap", *AXES, marks, caption)
            made.append((chart, [_cloud(frame, own, family) for family, own in families]))
    best = _frontier(rows)
    others = rows.drop(index=best.index)
    marks = [_means(best, "no row is better in both")]
    marks += [Points(others.eo_gap.tolist(), others.accuracy.tolist(), "others")] if len(others) else []
    caption = f"Rows that no row beats in both, from the left: {', '.join(best.label)}."
    clouds = [_cloud(frame, own, mark.name) for own, mark in zip((best, others), marks, strict=False)]
    return [*made, (Chart("All rows: accuracy against the gap", *AXES, marks, caption), clouds)]


def _frontier(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that no other beats in both accuracy and equalized odds, from the smallest gap to the largest."""
    by_gap = rows.sort_values(["eo_gap", "accuracy"], ascending=[True, False], kind="stable")
    before = by_gap.accuracy.cummax().shift(fill_value=-1.0)
    return by_gap[by_gap.accuracy > before]


def _means(rows: pd.DataFrame, name: str) -> Line:
    line = Line(rows.eo_gap.tolist(), rows.accuracy.tolist(), name)
    std = rows["accuracy.std"]
    if std.isna().any():
        return line
    return replace(line, low=(rows.accuracy - std).tolist(), high=(rows.accuracy + std).tolist())


def _cloud(frame: pd.DataFrame, rows: pd.DataFrame, name: str) -> Points:
    own = pd.concat([frame[frame.method == method] for method in rows.index])
    return Points(own["validation.eo_gap"].tolist(), own["validation.accuracy"].tolist(), name)


def _frontier_figures(drawn: Sequence[tuple[Chart, list[Points]]]) -> list[Figure]:
    """Each chart with its seeds as small points below the means, all with the same axes."""
    ends = []
    for axis in ("x", "y"):
        values = [v for chart, clouds in drawn for mark in (*chart.marks, *clouds) for v in getattr(mark, axis)]
        margin = 0.06 * (max(values) - min(values)) or 0.01
        ends.append((min(values) - margin, max(values) + margin))
    shown = []
    for chart, clouds in drawn:
        # the cloud itself is the spread
        means = [replace(mark, low=None, high=None) if isinstance(mark, Line) else mark for mark in chart.marks]
        small = [replace(cloud, small=True) for cloud in clouds]
        shown.append(replace(chart, marks=[*small, *means], x_range=ends[0], y_range=ends[1]))
    made = []
    for figure, (chart, clouds) in zip(figures(shown), drawn, strict=True):
        seeds = [replace(cloud, name=f"{cloud.name}, each seed") for cloud in clouds]
        heads, rows = chart_table(replace(chart, marks=[*chart.marks, *seeds]))
        made.append(replace(figure, about=chart_in_words(chart), heads=heads, rows=rows))
    return made


def _seconds(rows: pd.DataFrame) -> Chart:
    bars = Bars(rows.label.tolist(), rows.seconds.tolist(), "seconds for one seed")
    caption = (
        "Training and everything else that the row needs, on one thread; the seeds of a network are trained together, "
        "and share the time. Medians."
    )
    return Chart("Seconds for one seed", "", "seconds", [bars], caption)
