"""The page of table 3: its charts (gains, shifts, classes, frequencies, features) and the values of its template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from setminus.adaptation.label_shift import mix_distance
from setminus.charts.chart import SIGNS, Bars, Chart, Line, Mark, Points, Rule, kind_colours
from setminus.charts.vega import Figure, figures
from setminus.report.page import same_experiment
from setminus_paper.report.adaptation_tables import (
    CHOSEN,
    ESTIMATES,
    KEY,
    PAPER_SHIFT,
    RULES,
    Record,
    by_scale,
    commands,
    difference,
    distances,
    frame_of,
    from_equal,
    gain_rows,
    gains_by_shift,
    images,
    ours,
    pair_rows,
    reversed_rows,
    shift_rows,
    summary,
)
from setminus_paper.reproduce import title_of
from setminus_paper.tables import mean_spread

__all__ = [
    "MANY_CLASSES",
    "charts",
    "class_chart",
    "domain_adaptation_section",
    "feature_charts",
    "frequency_charts",
    "gain_charts",
    "shift_charts",
    "signs_of",
    "summary",
]

MANY_CLASSES = 12
"""A chart of more is as wide as the page, and has fewer bars for each."""
SIGNED = ("source_only", "vada", CHOSEN, *ESTIMATES, "vada_iw")
"""Methods in the order in which they take their signs, the same in all charts."""
OURS, PAPER = "ours", "paper, by test_oracle"
PREDICTED, TRUTH = "VADA: its predictions", "true"
SOURCE, TARGET = "source", "target"
AXIS = "first half's share of the source, %"


def charts(records: Sequence[Record]) -> list[Chart]:
    """The gain over VADA on each pair, and accuracy and gain against the shift of pairs with several."""
    return [
        replace(chart, title=f"{chart.title} ({scale} size)")
        for scale, part in by_scale(records).items()
        for made in (gain_charts, shift_charts)
        for chart in made(frame_of(part))
    ]


def domain_adaptation_section(records: Sequence[Record]) -> dict[str, Any]:
    """The values of the template ``domain_adaptation.html.j2`` for all records of table 3 at one scale."""
    name, scale = same_experiment(records[0])
    frame = frame_of(records)
    at_paper = frame[frame["shift"] == PAPER_SHIFT]
    several = at_paper.groupby("pair")["seed"].transform("nunique") > 1
    # the charts of single pairs show those with several seeds, if there are any
    close = [own for _, own in (at_paper[several] if several.any() else at_paper).groupby("pair", sort=False)]
    views = {own["pair"].iloc[0]: feature_charts(own) for own in close}
    parts = {
        "information": gain_charts(frame),
        "shift": shift_charts(frame),
        "classes": [chart for chart in map(class_chart, close) if chart],
        "frequencies": [chart for own in close for chart in frequency_charts(own)],
        "features": [chart for some in views.values() for chart in some],
    }
    signs = signs_of(frame)
    plots = {part: figures(some, part, signs) for part, some in parts.items()}
    headings = {
        "information": ("Table", "Every method beside the paper's"),
        "test_oracle": ("Paper's protocol", "The same by the paper's own protocol"),
        "shift": ("Shift", "Gain by the shift"),
        "classes": ("Classes", "Accuracy on each class"),
        "frequencies": ("Frequencies", "Estimates of the target's class frequencies"),
        "features": ("Features", "Features, before and after"),
        "repeat": ("Repeat", "Run it again"),
    }
    shown = {*RULES, "repeat", *(part for part, some in parts.items() if some)}
    seeds, minutes = frame.groupby(KEY)["seed"].nunique(), sum(record["seconds"] for record in records) / 60
    counts = f"{seeds.min()} to {seeds.max()}" if seeds.min() < seeds.max() else f"{seeds.max()}"
    rows = pair_rows(frame)
    return {
        "template": "domain_adaptation.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": {key: names for key, names in headings.items() if key in shown},
        "task": {"data": f"{name}, {scale} scale" if scale else name},
        "rows": f"pairs: {at_paper['pair'].nunique()}, seeds: {counts}, {minutes:.0f} min",
        "title": f"{title_of(name)}: domain adaptation under label shift",
        "headline": f"The paper's claim: {records[-1].get('claim', '')}",
        "blocks": [
            {
                "rule": rule,
                "tables": _html_tables(rows, rule),
                "gains": gain_rows(frame, rule).to_dict("records"),
                "reversed": reversed_rows(frame, rule),
            }
            for rule in RULES
        ],
        "config": records[-1]["config"],
        "images": images(frame),
        "distances": distances(frame),
        "shifts": shift_rows(frame),
        "plots": plots,
        "views": [_view(pair, some, plots["features"]) for pair, some in views.items() if some],
        "duration": f"{minutes:.0f} min",
        "command": "\n".join(commands(records)),
        "figures": [plot for some in plots.values() for plot in some],
    }


def signs_of(frame: pd.DataFrame) -> dict[str, int]:
    """The place of each name among the signs: a method's is the same in all charts, and no two of a chart are equal."""
    # VADA's predictions and the truth in the colour of no estimate; a circle and a cross for the domains
    signs = {OURS: 2, PAPER: 0, PREDICTED: len(SIGNS) + 2, TRUTH: len(SIGNS) + 2, SOURCE: 0, TARGET: 5}
    labels = frame.groupby("method")["label"].last()
    for place, method in enumerate(SIGNED):
        signs |= {labels[method]: place} if method in labels else {}
        signs |= {ESTIMATES[method]: place} if method in ESTIMATES else {}
    return signs


def gain_charts(frame: pd.DataFrame) -> list[Chart]:
    r"""The gain of ``w_x \ w_1`` over VADA, ours and the paper's: pairs with several seeds, then those with one."""
    own = frame[frame["shift"] == PAPER_SHIFT]
    made: dict[bool, list[tuple[str, list[float | None]]]] = {True: [], False: []}
    for pair, some in own.groupby("pair", sort=False):
        method = ours(some)
        gains = difference(some, method, "vada") if method else pd.DataFrame()
        if len(gains):
            papers = [some[some.method == one]["paper"].iloc[-1] for one in (method, "vada")]
            numbers = [*gains[["difference", "low", "high"]].iloc[0], papers[0] - papers[1]]
            repeated = some.groupby("method")["seed"].nunique().max() > 1
            made[bool(repeated)].append((pair, [_percent(one) for one in numbers]))
    charts = []
    for repeated, rows in made.items():
        if not rows:
            continue
        names = [pair for pair, _ in rows]
        mean, low, high, paper = ([numbers[k] for _, numbers in rows] for k in range(4))
        marks = [Bars(names, mean, OURS, **({"low": low, "high": high} if repeated else {}))]
        marks += [Bars(names, paper, PAPER)] if any(one is not None for one in paper) else []
        how = "Whiskers: 95 % interval of the mean over seeds." if repeated else "One seed: without an interval."
        title = f"Gain of w_x \\ w_1 over VADA, {'several seeds' if repeated else 'one seed'}"
        charts.append(Chart(title, "", "points of accuracy", marks, f"The chosen estimate less VADA. {how}"))
    return charts


def shift_charts(frame: pd.DataFrame) -> list[Chart]:
    """Accuracy against the shift, and the gain over VADA, of each pair that was measured at several."""
    charts = []
    for pair, by_method in gains_by_shift(frame).items():
        first, gains = next(iter(by_method.items()))
        own = frame[frame["pair"] == pair]
        lines: list[Mark] = []
        for method in ("source_only", "vada", first):
            some = mean_spread(own[own.method == method], "shift", RULES[0]).sort_index()
            if len(some) > 1:
                label = own[own.method == method]["label"].iloc[-1]
                line = Line([100 * shift for shift in some.index], (100 * some["mean"]).tolist(), label)
                ends = {sign: (100 * (some["mean"] + sign * some["std"])).tolist() for sign in (-1, 1)}
                lines.append(line if some["std"].isna().any() else replace(line, low=ends[-1], high=ends[1]))
        caption = (
            "Share of the first half of the classes in the source; the target has the opposite, and 50 is no shift. "
            "Mean over seeds; whiskers: standard deviation."
        )
        charts.append(Chart(f"{pair}: accuracy against the shift", AXIS, "accuracy, %", lines, caption))
        mean, low, high = ([_percent(one) for one in gains[key]] for key in ("difference", "low", "high"))
        label = own[own.method == first]["label"].iloc[-1]
        line = Line([100 * shift for shift in gains.index], mean, label)
        # whiskers of no length would mean that there is no spread
        line = line if None in low else replace(line, low=low, high=high)
        rule = Rule(0.0, "as accurate as VADA")
        caption = "Differences over paired seeds; whiskers: 95 % interval of their mean."
        charts.append(Chart(f"{pair}: gain over VADA", AXIS, "points of accuracy", [line, rule], caption))
    return charts


def class_chart(own: pd.DataFrame) -> Chart | None:
    r"""The accuracy on each class without adaptation, with VADA, and with ``w_x \ w_1``; means over seeds."""
    rows = [own[own.method == method] for method in ("source_only", "vada", ours(own))]
    rows = [row for row in rows if len(row)]
    if not rows:
        return None
    classes = _classes(rows[0])
    marks = [Bars(classes, _mean([one["class_accuracy"] for one in row.metrics]), row.label.iloc[0]) for row in rows]
    shift = own["shift"].iloc[0]
    here, there = (f"{100 * share:.0f} %" for share in (shift, 1 - shift))
    caption = f"The first {len(classes) // 2} classes are {here} of the source, and {there} of the target."
    return Chart(f"{own['pair'].iloc[0]}: accuracy on each class", "class", "accuracy, %", marks, caption)


def frequency_charts(own: pd.DataFrame) -> list[Chart]:
    """Distance of the estimated class frequencies to the true ones by step, and the frequencies at the end."""
    with_estimate = own[own.metrics.map(lambda one: one["prior"]["estimated"] is not None) & (own.picked == "")]
    estimated = [row for _, row in with_estimate.groupby("method", sort=False)]
    vada, pair = own[own.method == "vada"], own["pair"].iloc[0]
    if not estimated:
        return []
    lines: list[Mark] = [_distance(row, "estimated", _short(row)) for row in estimated]
    if len(vada):
        lines.append(_distance(vada, "predicted", PREDICTED))
    priors = [one["prior"] for one in estimated[0].metrics]
    of_source = float(np.mean([mix_distance(one["source"], one["target"]) for one in priors]))
    of_equal = float(np.mean([from_equal(one["target"]) for one in priors]))
    lines += [Rule(round(of_source, 4), "the source's frequencies"), Rule(round(of_equal, 4), "equal frequencies")]
    caption = (
        "Half the sum of absolute differences: 0 is exact. VADA has no estimate; the line shows how often it predicts "
        "each class. Mean over seeds; band or whiskers: standard deviation."
    )
    distance = Chart(f"{pair}: distance to the target's class frequencies", "step", "distance", lines, caption)
    classes = _classes(estimated[0])
    few = [row for row in estimated if row.method.iloc[0] in ESTIMATES][:1] or estimated[:1]
    bars = [Bars(classes, _mean([one["target"] for one in priors]), TRUTH)]
    for row in few if len(classes) > MANY_CLASSES else estimated:
        bars.append(Bars(classes, _mean([one["prior"]["estimated"][-1] for one in row.metrics]), _short(row)))
    caption = "At the end of training, mean over seeds."
    return [distance, Chart(f"{pair}: the target's class frequencies", "class", "share, %", bars, caption)]


def feature_charts(own: pd.DataFrame) -> list[Chart]:
    """Features of both domains, before adaptation and at the end; a view that two methods share is drawn once."""
    views: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {}
    for when in ("before", "after"):
        for row in own[own.picked == ""].itertuples():
            if "features" in row.metrics:
                view = row.metrics["features"][when]
                classes = [str(name) for name in row.metrics["classes"]]
                views.setdefault(f"{when} {view['xy']}", (view, [], classes))[1].append(row.label)
    charts = []
    for key, (view, labels, classes) in views.items():
        when = "before adaptation" if key.startswith("before") else "at the end"
        title = f"{own['pair'].iloc[0]}, {when}: {', '.join(dict.fromkeys(labels))}"
        charts.append(_features(title, view, classes))
    return charts


def _html_tables(rows: pd.DataFrame, rule: str) -> list[dict[str, Any]]:
    """Pairs with several seeds in one table, the others in the next."""
    own = rows.xs(PAPER_SHIFT, level="shift") if PAPER_SHIFT in rows.index.get_level_values("shift") else rows[:0]
    most = own["seeds"].groupby(level="pair", sort=False).max() if len(own) else pd.Series(dtype=int)
    tables = []
    for some in (most[most > 1].index, most[most <= 1].index):
        part = own[own.index.get_level_values("pair").isin(some)]
        methods = [*dict.fromkeys(part.index.get_level_values("method"))]
        methods.sort(key=lambda method: method == CHOSEN)
        lines = []
        for method in methods:
            cells = [part.loc[pair, method] if (pair, method) in part.index else None for pair in some]
            found = [
                None
                if cell is None
                else {
                    "pair": pair,
                    "value": cell[f"{rule}.value"],
                    "text": cell[rule],
                    "vada": cell[f"{rule}.vada"],
                    "paper": cell.paper_text,
                    "picked": cell.picked,
                    "seeds": cell.seeds,
                }
                for pair, cell in zip(some, cells, strict=True)
            ]
            label = next(cell.label for cell in cells if cell is not None)
            lines.append({"method": method, "label": label, "cells": found})
        tables += [{"heads": [*some], "rows": lines}] if lines else []
    return tables


def _view(pair: str, shown: Sequence[Chart], plots: Sequence[Figure]) -> dict[str, Any]:
    """The features of a pair, and the colour of each class where they are few enough to be distinguished."""
    kinds = shown[0].kinds if len(shown[0].kinds) <= MANY_CLASSES else ()
    return {
        "pair": pair,
        "plots": [plot for plot in plots if any(plot.chart is chart for chart in shown)],
        "legend": [
            {"name": name, "colour": colour} for name, colour in zip(kinds, kind_colours(len(kinds)), strict=True)
        ],
        "n_classes": len(shown[0].kinds),
    }


def _features(title: str, view: dict[str, Any], classes: Sequence[str]) -> Chart:
    xy, kinds, domain = (np.array(view[name]) for name in ("xy", "class", "domain"))
    marks = [
        Points(xy[here, 0].tolist(), xy[here, 1].tolist(), name, kinds[here].tolist())
        for name, here in ((SOURCE, domain == 0), (TARGET, domain == 1))
    ]
    gaps = np.linalg.norm(xy[domain == 1][:, None] - xy[domain == 0][None], axis=-1)
    same = np.mean(kinds[domain == 0][gaps.argmin(axis=1)] == kinds[domain == 1])
    caption = f"For {100 * same:.0f} % of the target's points the nearest source point has the same class."
    return Chart(title, "t-SNE, first axis", "second axis", marks, caption, kinds=classes)


def _distance(row: pd.DataFrame, key: str, name: str) -> Line:
    steps = row.metrics.iloc[0]["curves"]["step"]
    # a run with other steps has no place on this line
    found = [one["prior"] for one in row.metrics if one["curves"]["step"] == steps]
    distances = np.array([[mix_distance(some, one["target"]) for some in one[key]] for one in found])
    mean = distances.mean(axis=0)
    if len(found) == 1:
        return Line(steps, _listed(mean), name, markers=False)
    reach = distances.std(axis=0, ddof=1)
    return Line(steps, _listed(mean), name, _listed(np.maximum(mean - reach, 0)), _listed(mean + reach), markers=False)


def _mean(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """In percent, over those that have a number."""
    columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    return [round(100 * float(np.mean(column)), 2) if column else None for column in columns]


def _short(row: pd.DataFrame) -> str:
    return str(ESTIMATES.get(row.method.iloc[0], row.label.iloc[0]))


def _classes(row: pd.DataFrame) -> list[str]:
    return [str(name) for name in row.metrics.iloc[0]["classes"]]


def _percent(value: float) -> float | None:
    return None if np.isnan(value) else round(100 * value, 2)


def _listed(values: NDArray[np.float64]) -> list[float]:
    return [round(float(value), 4) for value in values]
