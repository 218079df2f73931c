"""The page of table 3 from records: a data frame, gains over VADA, tables, charts, and the values of its template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from statistics import fmean, linear_regression
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from setminus.adaptation.label_shift import mix_distance
from setminus.charts.chart import SIGNS, Bars, Chart, Line, Mark, Points, Rule, kind_colours
from setminus.charts.vega import Figure, figures
from setminus.report.page import same_experiment
from setminus_paper.reproduce import title_of
from setminus_paper.tables import Record, by_scale, mean_spread, paired_difference, points, spread, to_frame

RULES = ("information", "test_oracle")
"""The selected evaluation of a run: without labels of the target, or by them. Columns of the frame."""
PAPER_SHIFT = 0.7
"""Shares of the two halves of the classes in the paper: 70 and 30 percent, reversed on the target."""
ESTIMATES = {
    "vada_orthogonal_em": "EM",
    "vada_orthogonal_bbse": "BBSE",
    "vada_orthogonal_shrunk": "shrunk pseudo-labels",
    "vada_orthogonal_pseudo": "pseudo-labels",
}
"""The rows that differ in the estimate of the target's class frequencies."""
PAPERS = "vada_orthogonal_pseudo"
"""The paper's estimate."""
CHOSEN = "vada_orthogonal_chosen"
"""The row of the chosen estimate: of `ESTIMATES` the one with the most information on a pair, the same for all seeds.
The best estimate of each seed would compare the best of several networks with one of VADA's."""
ORDER = ("source_only", "dann", "adda", "cycada", "vada", "vada_iw", *ESTIMATES, CHOSEN)
KEY = ["pair", "shift", "method"]
MANY_CLASSES = 12
"""A chart of more is as wide as the page, and has fewer bars for each."""
SIGNED = ("source_only", "vada", CHOSEN, *ESTIMATES, "vada_iw")
"""Methods in the order in which they take their signs, the same in all charts."""
OURS, PAPER = "ours", "paper, by test_oracle"
PREDICTED, TRUTH = "VADA: its predictions", "true"
SOURCE, TARGET = "source", "target"
AXIS = "first half's share of the source, %"


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """One row per pair, shift, method and seed, and rows of the chosen estimate; pairs with several seeds first.

    Columns: pair, shift, method, seed, label, picked (the chosen estimate), paper, the accuracy by each of `RULES`,
    mutual_information, seconds, and metrics, the metrics of the record.
    """
    given = to_frame(records)
    paper = pd.to_numeric(given["row.paper"]) if "row.paper" in given else np.nan
    frame = pd.DataFrame(
        {
            **{name: given[name] for name in ("pair", "shift", "method", "seed", "seconds")},
            "label": given["row.label"],
            "picked": "",
            "paper": np.where(given["shift"] == PAPER_SHIFT, paper, np.nan),
            RULES[0]: given["accuracy"],
            RULES[1]: given["test_oracle.accuracy"],
            "mutual_information": given["information"],
            "metrics": [record["metrics"] for record in records],
            "place": given.groupby(["pair", "shift"], sort=False).ngroup(),
        }
    )
    # of a seed that was measured again, the last record counts
    frame = frame.drop_duplicates([*KEY, "seed"], keep="last")
    frame = pd.concat([frame, *(_chosen(own) for _, own in frame.groupby(["pair", "shift"], sort=False))])
    most = frame.groupby(KEY)["seed"].transform("nunique")
    repeated = most.groupby([frame["pair"], frame["shift"]]).transform("max") > 1
    method_place = frame.method.map({method: place for place, method in enumerate(ORDER)}).fillna(len(ORDER))
    order = np.lexsort([method_place, frame["place"], ~repeated])
    return frame.iloc[order].drop(columns="place").reset_index(drop=True)


def ours(own: pd.DataFrame) -> str:
    r"""The method that represents ``w_x \ w_1`` on a pair: the chosen estimate, or the only one."""
    return next((method for method in (CHOSEN, *ESTIMATES) if method in {*own.method}), "")


def difference(frame: pd.DataFrame, one: str, other: str, rule: str = RULES[0]) -> pd.DataFrame:
    """One method less another over paired seeds, by pair and shift: difference, low, high (95 %) and seeds."""
    return paired_difference(frame, rule, "method", one, other, by=["pair", "shift"])


def gains_by_shift(frame: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    r"""Of each pair with several shifts, the gains of each row of ``w_x \ w_1`` over VADA, indexed by the shift."""
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for pair, own in frame.groupby("pair", sort=False):
        for method in (CHOSEN, *ESTIMATES):
            gains = difference(own, method, "vada").droplevel("pair").sort_index()
            if len(gains) > 1:
                found.setdefault(pair, {})[method] = gains
    return found


def trend(frame: pd.DataFrame, pair: str, method: str, level: float = 0.95) -> tuple[float, float, float] | None:
    """The slope of the gain over VADA per 10 points of shift, by a line for each seed that all shifts have."""
    own = frame[frame["pair"] == pair]
    wide = own[own.method.isin([method, "vada"])].pivot(index=["shift", "seed"], columns="method", values=RULES[0])
    if method not in wide or "vada" not in wide:
        return None
    gains = (wide[method] - wide["vada"]).dropna().unstack("seed").dropna(axis=1)
    slopes = pd.Series([0.1 * linear_regression([*gains.index], gains[seed].tolist()).slope for seed in gains])
    mean, reach = slopes.mean(), stdtrit(len(slopes) - 1, (1 + level) / 2) * slopes.sem()
    return (mean, mean - reach, mean + reach) if len(slopes) else None


def split(shift: float) -> str:
    """A shift as the shares of both halves of the classes.

    Examples
    --------
    >>> split(0.85)
    '85/15'
    """
    return f"{100 * shift:.0f}/{100 - 100 * shift:.0f}"


def from_equal(truth: Sequence[float]) -> float:
    """The `mix_distance` of equal frequencies from the truth."""
    return mix_distance([1 / len(truth)] * len(truth), truth)


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
    # of each pair, whether the rows that the paper compares have its order here
    ordered: dict[str, list[bool]] = {}
    for pair, _, _, _, here, _ in _comparisons(frame, rule):
        ordered.setdefault(pair, []).append(here[0] > 0)
    lines = []
    for pair, some in own.groupby("pair", sort=False):
        method = ours(some)
        line: dict[str, Any] = {"pair": pair, "seeds": some.groupby("method")["seed"].nunique().max()}
        for who, one in (("ours", method), ("papers", PAPERS)):
            for rival in ("vada", "source_only"):
                gains = difference(some, one, rival, rule) if one else pd.DataFrame()
                line[f"{who}.{rival}"] = points(*gains[["difference", "low", "high"]].iloc[0]) if len(gains) else ""
        line["picked"] = (some[some.method == method]["picked"].iloc[0] or ESTIMATES[method]) if method else ""
        line["paper"] = _paper_gain(some, method)
        line["as_paper"] = f"{sum(ordered[pair])} of {len(ordered[pair])}" if pair in ordered else ""
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
        equal = np.mean([from_equal(prior["target"]) for prior in priors])
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


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (quantity, paper, measured): by the selection without target labels, and by the paper's with them."""
    return [
        (
            f"{pair}, {split(shift)}, {row.label}: accuracy, %",
            row.paper_text,
            f"{row[RULES[0]]}; {RULES[1]} {row[RULES[1]]}",
        )
        for part in by_scale(records).values()
        for (pair, shift, _), row in pair_rows(frame_of(part)).iterrows()
    ]


def images(frame: pd.DataFrame) -> list[list[str]]:
    """Numbers of images of each pair: source, held out, target and scored; and the paper's source, where it differs."""
    own = frame[frame["shift"] == PAPER_SHIFT]
    rows = []
    for pair, some in own.groupby("pair", sort=False):
        counts: dict[str, int] = next((metrics["rows"] for metrics in some.metrics if "rows" in metrics), {})
        others = [metrics["row"].get("other_source", "") for metrics in some.metrics]
        numbers = [f"{counts[key]:,}" if key in counts else "" for key in ("source", "held_out", "target", "scored")]
        rows.append([pair, *numbers, next(filter(None, others), "")])
    return rows


def _chosen(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of the estimate with the most information over the seeds that all have; it uses no target label."""
    if any(metrics["selection"] == "last" for metrics in own.metrics):
        # the estimate is fixed, and so is the evaluation
        return own[:0]
    wide = own[own.method.isin(ESTIMATES)].pivot(index="seed", columns="method", values="mutual_information").dropna()
    if wide.shape[1] < 2 or not len(wide):
        return own[:0]
    best = wide.mean()[[method for method in ESTIMATES if method in wide]].idxmax()
    rows = own[(own.method == best) & own.seed.isin(wide.index)].copy()
    rows["method"], rows["label"], rows["picked"] = CHOSEN, "VADA + w_x \\ w_1 (chosen estimate)", ESTIMATES[best]
    rows["seconds"] = np.nan
    return rows


def _comparisons(frame: pd.DataFrame, rule: str) -> list[tuple[Any, ...]]:
    """Pairs of rows with an order in the paper: the upper one there, the lower, and the difference here and there."""
    found = []
    own = frame[(frame["shift"] == PAPER_SHIFT) & frame.paper.notna()]
    for pair, some in own.groupby("pair", sort=False):
        # the estimates are one row in the paper: the chosen one represents them
        if CHOSEN in {*some.method}:
            some = some[~some.method.isin(ESTIMATES)]
        first = some.groupby("method", sort=False).last()
        for upper, lower in permutations(first.index, 2):
            expected = first.paper[upper] - first.paper[lower]
            if not expected > 0:
                continue
            gains = difference(some, upper, lower, rule)
            if len(gains):
                values = tuple(gains[["difference", "low", "high"]].iloc[0])
                found.append((pair, first.label, upper, lower, values, expected))
    return found


def _paper_gain(some: pd.DataFrame, method: str) -> str:
    papers = [some[some.method == one]["paper"] for one in (method, "vada")]
    known = all(len(one) and one.notna().all() for one in papers)
    return points(papers[0].iloc[0] - papers[1].iloc[0]) if known else ""


def _estimate_distance(metrics: dict[str, Any]) -> float:
    place, prior = metrics["curves"]["step"].index(metrics["step"]), metrics["prior"]
    return mix_distance(prior["estimated"][place], prior["target"])


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
    own = rows[rows.index.get_level_values("shift") == PAPER_SHIFT].droplevel("shift")
    own = own.assign(value=own[f"{rule}.value"], text=own[rule], vada=own[f"{rule}.vada"], paper=own.paper_text)
    most = own["seeds"].groupby(level="pair", sort=False).max()
    tables = []
    for some in (most[most > 1].index, most[most <= 1].index):
        by_method = own[own.index.isin(some, level="pair")].groupby(level="method", sort=False)
        lines = [
            {
                "method": method,
                "label": part.label.iloc[0],
                "cells": [
                    {**part.loc[pair, method], "pair": pair} if (pair, method) in part.index else None for pair in some
                ],
            }
            for method, part in sorted(by_method, key=lambda one: one[0] == CHOSEN)
        ]
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
    """Means in percent, over the runs that have a number."""
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
