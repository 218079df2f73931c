"""The charts of table 3: what is gained on each pair and at each shift, classes one by one, frequencies, features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.adaptation.label_shift import mix_distance
from setminus.charts.chart import SIGNS, Bars, Chart, Line, Mark, Points, Rule
from setminus_paper.report.adaptation_estimates import from_equal
from setminus_paper.report.adaptation_rows import CHOSEN, ESTIMATES, Pair, Row, difference
from setminus_paper.report.adaptation_standing import gains_by_shift

__all__ = [
    "MANY_CLASSES",
    "class_chart",
    "feature_charts",
    "frequency_charts",
    "gain_charts",
    "shift_charts",
    "signs_of",
]

Floats = NDArray[np.float64]

MANY_CLASSES = 12
"""A chart of more is as wide as the page, and has fewer bars for each."""
DRAWN = ("source_only", "vada", CHOSEN, *ESTIMATES, "vada_iw")
"""Methods in the order in which they take their signs, the same in all charts."""
OURS, PAPER = "ours, by information", "paper, by test_oracle"
ANSWERS, TRUTH = "VADA: its answers", "true"
SOURCE, TARGET = "source", "target"


def signs_of(pairs: Sequence[Pair]) -> dict[str, int]:
    """The place of each name among the signs: a method's is the same in all charts, and no two of a chart are alike."""
    # VADA's answers and the truth in the colour of no estimate; a circle and a cross for the domains
    signs = {OURS: 2, PAPER: 0, ANSWERS: len(SIGNS) + 2, TRUTH: len(SIGNS) + 2, SOURCE: 0, TARGET: 5}
    for place, method in enumerate(DRAWN):
        signs |= {pair.rows[method].label: place for pair in pairs if method in pair.rows}
        signs |= {ESTIMATES[method]: place} if method in ESTIMATES else {}
    return signs


def gain_charts(pairs: Sequence[Pair]) -> list[Chart]:
    r"""By how much ``w_x \ w_1`` is above VADA, ours and the paper's: pairs with several seeds, then those with one."""
    return [
        chart
        for repeated in (True, False)
        if (chart := _gains([pair for pair in pairs if pair.repeated == repeated], repeated))
    ]


def shift_charts(pairs: Sequence[Pair]) -> list[Chart]:
    """Accuracy against the shift, and the gain over VADA, of each pair that was measured at several."""
    drawn = []
    axis = "first half's share of the source, %"
    for name, gains in gains_by_shift(pairs).items():
        some = sorted((pair for pair in pairs if pair.name == name), key=lambda pair: pair.shift)
        lines = []
        for method in ("source_only", "vada", gains[0].own.method):
            rows = [(pair.shift, pair.rows[method]) for pair in some if method in pair.rows]
            if len(rows) > 1:
                lines.append(_over_shifts(rows))
        caption = (
            "Shares of the first half of the classes; the target has the opposite one, and at 50 there is no shift. "
            "Mean over seeds; whiskers: standard deviation."
        )
        drawn.append(Chart(f"{name}: accuracy against the shift", axis, "accuracy, %", lines, caption))
        mean, low, high = ([_percent(getattr(one.found, end)) for one in gains] for end in ("mean", "low", "high"))
        line = Line([100 * one.shift for one in gains], mean, gains[0].own.label)
        # whiskers of no length would say that there is no spread
        line = line if None in low else replace(line, low=low, high=high)
        caption = "Differences seed by seed; whiskers: 95 % interval of their mean."
        rule = Rule(0.0, "as accurate as VADA")
        drawn.append(Chart(f"{name}: gain over VADA", axis, "points of accuracy", [line, rule], caption))
    return drawn


def class_chart(pair: Pair) -> Chart | None:
    r"""The accuracy on each class without adaptation, with VADA, and with ``w_x \ w_1``; means over seeds."""
    rows = [row for row in (pair.rows.get("source_only"), pair.rows.get("vada"), pair.ours) if row]
    if not rows:
        return None
    classes = _classes(rows[0])
    marks = [Bars(classes, _mean([one["class_accuracy"] for one in row.metrics.values()]), row.label) for row in rows]
    here, there = (f"{100 * share:.0f} %" for share in (pair.shift, 1 - pair.shift))
    caption = f"The first {len(classes) // 2} classes are {here} of the source, and {there} of the target."
    return Chart(f"{pair.name}: accuracy on each class", "class", "accuracy, %", marks, caption)


def frequency_charts(pair: Pair) -> list[Chart]:
    """How far the estimated class frequencies are from the true ones as training goes on, and where they end."""
    estimated = [row for row in pair.rows.values() if _has_estimate(row) and not row.picked]
    vada = pair.rows.get("vada")
    if not estimated:
        return []
    lines: list[Mark] = [_distance(row, "estimated", _short(row)) for row in estimated]
    if vada:
        lines.append(_distance(vada, "predicted", ANSWERS))
    priors = [one["prior"] for one in estimated[0].metrics.values()]
    of_source = fmean(mix_distance(one["source"], one["target"]) for one in priors)
    lines.append(Rule(round(of_source, 4), "the source's own frequencies"))
    lines.append(Rule(round(fmean(from_equal(one["target"]) for one in priors), 4), "equal frequencies"))
    caption = (
        "Half the sum of absolute differences: 0 is exact. VADA estimates nothing; how often it answers each class "
        "stands in for it. Mean over seeds; band or whiskers: standard deviation."
    )
    distance = Chart(f"{pair.name}: distance to the target's class frequencies", "step", "distance", lines, caption)
    classes = _classes(estimated[0])
    few = [row for row in estimated if row.method in ESTIMATES][:1] or estimated[:1]
    shown = few if len(classes) > MANY_CLASSES else estimated
    bars = [Bars(classes, _mean([one["target"] for one in priors]), TRUTH)]
    for row in shown:
        bars.append(Bars(classes, _mean([one["prior"]["estimated"][-1] for one in row.metrics.values()]), _short(row)))
    caption = "At the end of training, mean over seeds."
    return [distance, Chart(f"{pair.name}: the target's class frequencies", "class", "share, %", bars, caption)]


def feature_charts(pair: Pair) -> list[Chart]:
    """What encoders make of both domains, before these meet and at the end; what two methods share is drawn once."""
    views: dict[str, tuple[dict[str, Any], list[Row]]] = {}
    for when in ("before", "after"):
        for row in pair.rows.values():
            for metrics in [] if row.picked else row.metrics.values():
                if "features" in metrics:
                    view = metrics["features"][when]
                    views.setdefault(f"{when} {view['xy']}", (view, []))[1].append(row)
    drawn = []
    for key, (view, rows) in views.items():
        when = "before the domains meet" if key.startswith("before") else "at the end"
        labels = ", ".join(dict.fromkeys(row.label for row in rows))
        drawn.append(_features(f"{pair.name}, {when}: {labels}", view, _classes(rows[0])))
    return drawn


def _features(title: str, view: dict[str, Any], classes: Sequence[str]) -> Chart:
    xy, kinds, domain = (np.array(view[name]) for name in ("xy", "class", "domain"))
    marks = [
        Points(xy[here, 0].tolist(), xy[here, 1].tolist(), name, kinds[here].tolist())
        for name, here in ((SOURCE, domain == 0), (TARGET, domain == 1))
    ]
    gaps = np.linalg.norm(xy[domain == 1][:, None] - xy[domain == 0][None], axis=-1)
    same = np.mean(kinds[domain == 0][gaps.argmin(axis=1)] == kinds[domain == 1])
    caption = f"{100 * same:.0f} % of the target's points have a source point of their own class as the nearest."
    return Chart(title, "t-SNE, first axis", "second axis", marks, caption, kinds=classes)


def _gains(pairs: Sequence[Pair], repeated: bool) -> Chart | None:
    names, found, paper = [], [], []
    for pair in pairs:
        own, vada = pair.ours, pair.rows.get("vada")
        gain = difference(own, vada) if own and vada else None
        if own and vada and gain:
            names.append(pair.name)
            found.append(gain)
            known = own.paper is not None and vada.paper is not None
            paper.append(_percent((own.paper or 0.0) - (vada.paper or 0.0)) if known else None)
    if not names:
        return None
    mean, low, high = ([_percent(getattr(gain, end)) for gain in found] for end in ("mean", "low", "high"))
    whiskers = {"low": low, "high": high} if repeated else {}
    marks = [Bars(names, mean, OURS, **whiskers)]
    marks += [Bars(names, paper, PAPER)] if any(one is not None for one in paper) else []
    how = "Whiskers: 95 % interval of the mean over seeds." if repeated else "One seed: without an interval."
    title = f"What w_x \\ w_1 gains over VADA, {'several seeds' if repeated else 'one seed'}"
    return Chart(title, "", "points of accuracy", marks, f"The chosen estimate less VADA. {how}")


def _over_shifts(rows: Sequence[tuple[float, Row]]) -> Line:
    x, means = [100 * shift for shift, _ in rows], [100 * row.mean() for _, row in rows]
    reach = [100 * one for _, row in rows if (one := row.deviation()) is not None]
    if len(reach) < len(rows):
        return Line(x, means, rows[0][1].label)
    low, high = ([mean + sign * one for mean, one in zip(means, reach, strict=True)] for sign in (-1, 1))
    return Line(x, means, rows[0][1].label, low, high)


def _distance(row: Row, what: str, name: str) -> Line:
    steps = next(iter(row.metrics.values()))["curves"]["step"]
    # a run that was planned with other steps has no place on this line
    found = [one["prior"] for one in row.metrics.values() if one["curves"]["step"] == steps]
    distances = np.array([[mix_distance(some, one["target"]) for some in one[what]] for one in found])
    mean = distances.mean(axis=0)
    if len(found) == 1:
        return Line(steps, _listed(mean), name, markers=False)
    reach = distances.std(axis=0, ddof=1)
    return Line(steps, _listed(mean), name, _listed(np.maximum(mean - reach, 0)), _listed(mean + reach), markers=False)


def _mean(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """In percent, over those that have a number."""
    columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    return [round(100 * float(np.mean(column)), 2) if column else None for column in columns]


def _short(row: Row) -> str:
    return ESTIMATES.get(row.method, row.label)


def _classes(row: Row) -> list[str]:
    return [str(name) for name in next(iter(row.metrics.values()))["classes"]]


def _has_estimate(row: Row) -> bool:
    return all(one["prior"]["estimated"] is not None for one in row.metrics.values())


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _listed(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in values]
