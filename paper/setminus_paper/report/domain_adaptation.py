"""Table 3 from records: every pair and method beside the paper's, gains over VADA, and the section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from setminus.adaptation.label_shift import mix_distance
from setminus.charts.chart import Chart, kind_colours
from setminus.charts.vega import Figure, figures
from setminus.report.page import same_experiment
from setminus_paper.figures import title_of
from setminus_paper.report import adaptation_charts
from setminus_paper.report.adaptation_frame import (
    CHOSEN,
    ESTIMATES,
    PAPER_SHIFT,
    PAPERS,
    RULES,
    Record,
    difference,
    frame_of,
    gains_by_shift,
    ours,
    points,
    split,
    spread,
    trend,
)
from setminus_paper.tables import mean_spread

__all__ = [
    "charts",
    "commands",
    "distances",
    "domain_adaptation_section",
    "gain_rows",
    "pair_rows",
    "reversed_rows",
    "summary",
]

KEY = ["pair", "shift", "method"]


def pair_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per pair, shift and method, indexed by these: texts of both rules, the paper's number, seeds, minutes."""
    first = frame.groupby(KEY, sort=False).last()
    found = first[["label", "picked", "paper"]].copy()
    for rule in RULES:
        # fmean is exact: the last digit must not depend on the order of the sum
        spreads = mean_spread(frame, KEY, rule).assign(mean=frame.groupby(KEY, sort=False)[rule].agg(fmean))
        found[rule], found[f"{rule}.value"] = spread(spreads), spreads["mean"]
        found[f"{rule}.vada"] = ""
        for method in {*frame.method} - {"vada"}:
            gains = difference(frame, method, "vada", rule)
            index = pd.MultiIndex.from_tuples([(*place, method) for place in gains.index], names=KEY)
            found.loc[index, f"{rule}.vada"] = [points(*gain) for gain in gains[["difference", "low", "high"]].values]
    found["seeds"] = mean_spread(frame, KEY, RULES[0])["seeds"]
    found["minutes"] = frame.groupby(KEY, sort=False)["seconds"].mean() / 60
    found["paper_text"] = ["" if np.isnan(one) else f"{100 * one:.1f}" for one in found.paper]
    return found


def gain_rows(frame: pd.DataFrame, rule: str = RULES[0]) -> pd.DataFrame:
    r"""One row per pair at the paper's shift: ``w_x \ w_1`` less VADA and less no adaptation, in points.

    `ours` is the chosen estimate, `papers` the paper's own; `as_paper` of `compared` comparisons of two rows have the
    order of the paper.
    """
    own = frame[frame["shift"] == PAPER_SHIFT]
    turned, counts = reversed_rows(frame, rule), _compared(frame, rule)
    lines = []
    for pair, some in own.groupby("pair", sort=False):
        method = ours(some)
        line: dict[str, Any] = {"pair": pair, "seeds": some.groupby("method")["seed"].nunique().max()}
        for who, one in (("ours", method), ("papers", PAPERS)):
            for rival in ("vada", "source_only"):
                gains = difference(some, one, rival, rule) if one else pd.DataFrame()
                line[f"{who}.{rival}"] = points(*gains[["difference", "low", "high"]].iloc[0]) if len(gains) else ""
        line["picked"] = some[some.method == method]["picked"].iloc[0] if method else ""
        line["paper"] = _paper_gain(some, method)
        count = counts.get(pair, 0)
        line["as_paper"] = f"{count - sum(one['pair'] == pair for one in turned)} of {count}" if count else ""
        lines.append(line)
    return pd.DataFrame(lines)


def reversed_rows(frame: pd.DataFrame, rule: str = RULES[0]) -> list[dict[str, str]]:
    """Comparisons of two rows whose order is not the paper's: pair, comparison, the difference here and there."""
    return [
        {
            "pair": pair,
            "comparison": f"{labels[upper]} less {labels[lower]}",
            "here": points(*found),
            "paper": points(expected),
            "clear": "one seed" if np.isnan(found[1]) else "no" if found[1] <= 0 <= found[2] else "yes",
        }
        for pair, labels, upper, lower, found, expected in _comparisons(frame, rule)
        if found[0] <= 0
    ]


def distances(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: of 100 target images, how many need another class for an estimate to be true, mean over seeds."""
    known = [method for method in ESTIMATES if method in {*frame.method}]
    rows = []
    for (pair, shift), own in frame[frame.method.isin(known)].groupby(["pair", "shift"], sort=False):
        priors = [metrics["prior"] for metrics in own.metrics]
        source = np.mean([mix_distance(prior["source"], prior["target"]) for prior in priors])
        equal = np.mean([adaptation_charts.from_equal(prior["target"]) for prior in priors])
        estimates = [own[own.method == method].metrics.map(_estimate_distance).mean() for method in known]
        numbers = ["" if np.isnan(one) else f"{100 * one:.0f}" for one in (source, equal, *estimates)]
        rows.append([f"{pair}, {split(shift)}", *numbers])
    return ["pair", "source's", "equal", *(ESTIMATES[method] for method in known)], rows


def shift_rows(frame: pd.DataFrame) -> list[tuple[list[str], list[list[str]]]]:
    """Heads and rows of each pair with several shifts: the gain of each estimate over VADA at each, and its slope."""
    tables = []
    for pair, by_method in gains_by_shift(frame).items():
        shifts = sorted({shift for gains in by_method.values() for shift in gains.index})
        rows = []
        for method, gains in by_method.items():
            texts = {shift: points(*gain) for shift, gain in gains[["difference", "low", "high"]].iterrows()}
            slope = trend(frame, pair, method)
            label = frame[frame.method == method]["label"].iloc[-1]
            rows.append([label, *(texts.get(shift, "") for shift in shifts), points(*slope) if slope else ""])
        tables.append(([pair, *map(split, shifts), "slope per 10 points of shift"], rows))
    return tables


def commands(records: Sequence[Record]) -> list[str]:
    """The commands that repeat the records: that of the table, and those of more seeds or other shifts."""
    given = {record["command"] for record in records}
    if len(given) == 1:
        return [*given]
    frame = frame_of(records)
    own = frame[frame.method != CHOSEN]
    seeds = own.groupby(KEY, sort=False)["seed"].nunique()
    most = seeds.groupby(level=["pair", "shift"], sort=False).max()
    several = most[(most > 1) & (most.index.get_level_values("shift") == PAPER_SHIFT)]
    usual = int(several.min()) if len(several) else 1
    shifts_of: dict[tuple[int, str, tuple[str, ...]], list[float]] = {}
    partial = set()
    for (pair, shift), counts in seeds.groupby(level=["pair", "shift"], sort=False):
        for count in sorted({*counts}):
            if shift != PAPER_SHIFT or count > usual:
                part = count, pair, tuple(counts.index.get_level_values("method")[counts == count])
                shifts_of.setdefault(part, []).append(shift)
                partial |= {part} if counts.nunique() > 1 else set()
    start = f"setminus reproduce table3 --scale {records[-1]['config']['scale']} --seeds"
    lines = [f"{start} {usual}"] if (frame["shift"] == PAPER_SHIFT).any() else []
    for (count, pair, methods), shifts in shifts_of.items():
        chosen = f" --methods {','.join(methods)}" if (count, pair, methods) in partial else ""
        lines.append(f"{start} {count} --pairs {pair} --shifts {','.join(map(str, sorted(shifts)))}{chosen}")
    return lines


def charts(records: Sequence[Record]) -> list[Chart]:
    """The gain over VADA on each pair, and accuracy and gain against the shift of pairs with several."""
    frame = frame_of(records)
    return [*adaptation_charts.gain_charts(frame), *adaptation_charts.shift_charts(frame)]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (quantity, paper, measured): by the selection without target labels, and by the paper's with them."""
    return [
        (
            f"{pair}, {split(shift)}, {row.label}: accuracy, %",
            row.paper_text,
            f"{row[RULES[0]]}; {RULES[1]} {row[RULES[1]]}",
        )
        for (pair, shift, _), row in pair_rows(frame_of(records)).iterrows()
    ]


def domain_adaptation_section(records: Sequence[Record]) -> dict[str, Any]:
    """The values of the template ``domain_adaptation.html.j2`` for all records of table 3 at one scale."""
    name, scale = same_experiment(records[0])
    frame = frame_of(records)
    at_paper = frame[frame["shift"] == PAPER_SHIFT]
    several = at_paper.groupby("pair")["seed"].transform("nunique") > 1
    # the charts of single pairs show those with several seeds, if there are any
    close = [own for _, own in (at_paper[several] if several.any() else at_paper).groupby("pair", sort=False)]
    views = {own["pair"].iloc[0]: adaptation_charts.feature_charts(own) for own in close}
    parts = {
        "information": adaptation_charts.gain_charts(frame),
        "shift": adaptation_charts.shift_charts(frame),
        "classes": [chart for chart in map(adaptation_charts.class_chart, close) if chart],
        "frequencies": [chart for own in close for chart in adaptation_charts.frequency_charts(own)],
        "features": [chart for some in views.values() for chart in some],
    }
    signs = adaptation_charts.signs_of(frame)
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


def images(frame: pd.DataFrame) -> list[list[str]]:
    """Of each pair: images of the source, held out, of the target and scored, and what the paper had as source."""
    own = frame[frame["shift"] == PAPER_SHIFT]
    rows = []
    for pair, some in own.groupby("pair", sort=False):
        counts: dict[str, int] = next((metrics["rows"] for metrics in some.metrics if "rows" in metrics), {})
        others = [metrics["row"].get("other_source", "") for metrics in some.metrics]
        numbers = [f"{counts[key]:,}" if key in counts else "" for key in ("source", "held_out", "target", "scored")]
        rows.append([pair, *numbers, next(filter(None, others), "")])
    return rows


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


def _comparisons(frame: pd.DataFrame, rule: str) -> list[tuple[Any, ...]]:
    """Pairs of rows with an order in the paper: the upper one there, the lower, and the difference here and there."""
    found = []
    own = frame[(frame["shift"] == PAPER_SHIFT) & frame.paper.notna()]
    for pair, some in own.groupby("pair", sort=False):
        # the estimates are one row in the paper: the chosen one stands for them
        if CHOSEN in {*some.method}:
            some = some[~some.method.isin(ESTIMATES)]
        first = some.groupby("method", sort=False).last()
        for upper, lower in permutations(first.index, 2):
            expected = first.paper[upper] - first.paper[lower]
            gains = difference(some, upper, lower, rule)
            if expected > 0 and len(gains):
                values = tuple(gains[["difference", "low", "high"]].iloc[0])
                found.append((pair, first.label, upper, lower, values, expected))
    return found


def _compared(frame: pd.DataFrame, rule: str) -> dict[str, int]:
    pairs = [pair for pair, *_ in _comparisons(frame, rule)]
    return {pair: pairs.count(pair) for pair in pairs}


def _paper_gain(some: pd.DataFrame, method: str) -> str:
    papers = [some[some.method == one]["paper"] for one in (method, "vada")]
    known = all(len(one) and one.notna().all() for one in papers)
    return points(papers[0].iloc[0] - papers[1].iloc[0]) if known else ""


def _estimate_distance(metrics: dict[str, Any]) -> float:
    place, prior = metrics["curves"]["step"].index(metrics["step"]), metrics["prior"]
    return mix_distance(prior["estimated"][place], prior["target"])


def _view(pair: str, shown: Sequence[Chart], plots: Sequence[Figure]) -> dict[str, Any]:
    """The features of a pair, and the colour of each class where they are few enough to be distinguished."""
    kinds = shown[0].kinds if len(shown[0].kinds) <= adaptation_charts.MANY_CLASSES else ()
    return {
        "pair": pair,
        "plots": [plot for plot in plots if any(plot.chart is chart for chart in shown)],
        "legend": [
            {"name": name, "colour": colour} for name, colour in zip(kinds, kind_colours(len(kinds)), strict=True)
        ],
        "n_classes": len(shown[0].kinds),
    }
