"""The charts of audited models: rates, reliability and scores of each group, in notebooks and in the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from setminus.charts.chart import SIGNS, Chart, Dots, Line, Mark, Span

if TYPE_CHECKING:
    from setminus.auditing.audit import Audit
    from setminus.charts.picture import Plot

__all__ = ["Shown", "choose_shown", "label_name", "plot_audit", "rate_charts", "reliability_charts", "score_charts"]

Models = Sequence[tuple[str, Mapping[str, Any]]]
"""The title of each model and its audit, as `Audit.to_dict` gives it."""

MAX_CLASSES = 4
RATES = {
    "selection_rate": "Selection rate",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
    "accuracy": "Accuracy",
}
GAP, OTHERS, EXACT = "gap between the groups", "smaller groups", "exact"
COARSE = 2
"""Bins of a histogram that are drawn as one: fifty bins are noise to the eye."""


@dataclass(frozen=True)
class Shown:
    """The groups and classes that charts show: as many as can be distinguished.

    Attributes
    ----------
    groups : tuple of str
        All groups.
    signs : dict of str to int
        The largest groups, which have different signs, and the place of the sign of each.
    judged : tuple
        Classes with rates and a reliability curve: the second of two, the most frequent of more.
    labels : tuple
        Classes whose rows have histograms.
    n_judged : int
        How many classes could have rates.
    names : mapping of str to str
        Names of classes, where these differ from the labels.
    """

    groups: tuple[str, ...]
    signs: dict[str, int]
    judged: tuple[Any, ...]
    labels: tuple[Any, ...]
    n_judged: int
    names: Mapping[str, str]

    def class_name(self, label: Any) -> str:
        """The name of a class."""
        return self.names.get(str(label), str(label))


def label_name(label: Any) -> str:
    """A group's label as a record holds it, as text: where columns were crossed, it is a list.

    Examples
    --------
    >>> label_name("f"), label_name(["f", 30])
    ('f', 'f, 30')
    """
    return ", ".join(map(str, label)) if isinstance(label, list | tuple) else str(label)


def choose_shown(audit: Mapping[str, Any], names: Mapping[str, str] | None = None) -> Shown:
    """The largest groups and the most frequent classes of an audit.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict()`.
    names : mapping of str to str, optional
        Names of the classes.

    Examples
    --------
    >>> rates = [{"group": g, "label": 1, "n": n, "base_rate": 0.5} for g, n in zip("abcdefgh", range(8))]
    >>> shown = choose_shown({"classes": [0, 1], "group_rates": rates}, {"1": "yes"})
    >>> list(shown.signs), shown.class_name(1)
    (['c', 'd', 'e', 'f', 'g', 'h'], 'yes')
    """
    rates: Sequence[Mapping[str, Any]] = audit["group_rates"]
    sizes = {label_name(row["group"]): row["n"] for row in rates}
    largest = sorted(sizes, key=lambda group: -sizes[group])[: len(SIGNS)]
    groups = tuple(sorted(sizes))
    frequency: dict[Any, float] = {}
    for row in rates:
        frequency[row["label"]] = frequency.get(row["label"], 0.0) + row["n"] * (row["base_rate"] or 0.0)
    frequent = sorted(frequency, key=lambda label: -frequency[label])[:MAX_CLASSES]
    judged = tuple(label for label in frequency if label in frequent)
    return Shown(
        groups=groups,
        signs={group: place for place, group in enumerate(group for group in groups if group in largest)},
        judged=judged,
        labels=tuple(audit["classes"]) if len(audit["classes"]) == 2 else judged,
        n_judged=len(frequency),
        names=names or {},
    )


def rate_charts(models: Models, shown: Shown, label: Any, rates: Sequence[str]) -> list[Chart]:
    """Rates of each group for one class, a chart for each rate, the models below each other.

    All axes are equally wide, so that gaps can be compared; the band from the lowest to the highest group is the gap.

    Parameters
    ----------
    models : sequence of (title, audit)
    shown : Shown
    label
        The class.
    rates : sequence of str
        Keys of `RATES`.
    """
    rows = [(title, [row for row in audit["group_rates"] if row["label"] == label]) for title, audit in models]
    ends = {rate: _ends([row[rate] for _, some in rows for row in some]) for rate in rates}
    width = 1.1 * max(high - low for low, high in ends.values())
    return [_rate_chart(rows, rate, shown, _around(*ends[rate], width)) for rate in rates]


def _rate_chart(rows: Any, rate: str, shown: Shown, reach: tuple[float, float]) -> Chart:
    titles = [title for title, _ in rows]
    found = {
        title: {label_name(row["group"]): row[rate] for row in some if row[rate]["value"] is not None}
        for title, some in rows
    }
    values = [[interval["value"] for interval in found[title].values()] for title in titles]
    lows, highs = ([pick(some) if some else None for some in values] for pick in (min, max))
    marks: list[Mark] = [Span(titles, lows, highs, GAP)]
    undefined = {"value": None, "low": None, "high": None}
    for group in shown.signs:
        own = [found[title].get(group, undefined) for title in titles]
        marks.append(Dots(titles, *_columns(own), group))
    others = [(title, *one) for title in titles for one in found[title].items() if one[0] not in shown.signs]
    if others:
        names, intervals = [group for _, group, _ in others], [one for *_, one in others]
        rows = [title for title, *_ in others]
        marks.append(Dots(rows, *_columns(intervals), OTHERS, notes=names, role="reference"))
    return Chart(RATES[rate], RATES[rate].lower(), "", marks, x_range=reach, x_format="%")


def _columns(intervals: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    return [one["value"] for one in intervals], [one["low"] for one in intervals], [one["high"] for one in intervals]


def reliability_charts(models: Models, shown: Shown, label: Any) -> list[Chart]:
    """Observed frequency against predicted probability of one class, a chart for each model."""
    charts = []
    for title, audit in models:
        marks: list[Mark] = [Line([0, 1], [0, 1], EXACT, markers=False, role="reference")]
        for curve in audit["calibration"]["curves"]:
            if curve["label"] == label and label_name(curve["group"]) in shown.signs:
                notes = [f"{count:,} rows" for count in curve["count"]]
                marks.append(Line(curve["predicted"], curve["observed"], label_name(curve["group"]), notes=notes))
        reach = (-0.02, 1.02)
        charts.append(
            Chart(title, "predicted", "observed", marks, x_range=reach, y_range=reach, x_format="%", y_format="%")
        )
    return charts


def score_charts(models: Models, shown: Shown, label: Any) -> list[Chart]:
    """Histograms of the scores of each group among the rows of one label, a chart for each model.

    Equal outlines are what equalized odds asks. The axis of shares is logarithmic: most scores are near 0 or 1, and
    those between decide.
    """
    own = [
        [one for one in audit["histograms"] if one["label"] == label and label_name(one["group"]) in shown.signs]
        for _, audit in models
    ]
    # one scale for all, or the eye compares axes instead of outlines
    shares = [share for some in own for one in some for share in coarse(one)[1] if share > 0]
    reach = (0.9 * max(min(shares, default=0.001), 0.0005), 1.0)
    charts = []
    for (title, _), histograms in zip(models, own, strict=True):
        marks: list[Mark] = []
        for histogram in histograms:
            edges, share = coarse(histogram)
            bins = list(pairwise(edges))
            middles = [(low + high) / 2 for low, high in bins]
            notes = [f"score from {low:.2f} to {high:.2f}" for low, high in bins]
            name = label_name(histogram["group"])
            marks.append(Line(middles, share, name, markers=False, steps=True, notes=notes))
        charts.append(
            Chart(
                title,
                "score",
                "share of rows",
                marks,
                y_scale="log",
                y_format="%",
                x_range=(0.0, 1.0),
                y_range=reach,
                height=210,
            )
        )
    return charts


def coarse(histogram: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Edges and shares of a histogram with two neighbouring bins as one.

    Examples
    --------
    >>> coarse({"edges": [0.0, 0.25, 0.5, 0.75, 1.0], "share": [0.125, 0.125, 0.25, 0.5]})
    ([0.0, 0.5, 1.0], [0.25, 0.75])
    """
    share = list(histogram["share"])
    return list(histogram["edges"])[::COARSE], [a + b for a, b in zip(share[::2], share[1::2], strict=True)]


def plot_audit(audit: Audit) -> Plot:
    """Rates by group with intervals, reliability by group, and scores by group and label.

    At most six groups (the largest) and four classes (the most frequent) are drawn; the tables have all.

    Returns
    -------
    Plot
        Shown by a notebook; `save` writes it to a PNG or SVG file.
    """
    from setminus.charts.picture import plot

    record = audit.to_dict()
    shown = choose_shown(record)
    models: Models = [("", record)]
    several = len(shown.judged) > 1
    # without labels selection rates are all there is
    labelled = any(row["base_rate"] is not None for row in record["group_rates"])
    known = list(RATES) if labelled else ["selection_rate"]
    charts = [] if several else rate_charts(models, shown, shown.judged[0], known)
    for rate in known[:3] if several else ():
        for label in shown.judged:
            (chart,) = rate_charts(models, shown, label, [rate])
            charts.append(replace(chart, title=f"{chart.title} of {label}"))
    for label in shown.judged if audit.calibration is not None else ():
        (chart,) = reliability_charts(models, shown, label)
        charts.append(replace(chart, title=f"Reliability of P({label})"))
    for label in shown.labels if audit.histograms else ():
        (chart,) = score_charts(models, shown, label)
        charts.append(replace(chart, title=f"Scores of rows labelled {label}"))
    if several and labelled:
        # the same for all classes
        charts += rate_charts(models, shown, shown.judged[0], ["accuracy"])
    parts = [f"{audit.n:,} rows"]
    if len(shown.signs) < len(shown.groups):
        parts.append(f"the {len(shown.signs)} largest of {len(shown.groups)} groups")
    if len(shown.judged) < shown.n_judged:
        parts.append(f"the {len(shown.judged)} most frequent of {shown.n_judged} classes")
    parts.append(f"{100 * audit.confidence:g} % intervals")
    if audit.leakage is not None:
        parts.append(f"leakage {max(audit.leakage.bits, 0):.3f} bits")
    columns = len(shown.judged) if several else 4
    return plot(charts, columns=columns, widths=[210] * columns, title=", ".join(parts), signs=shown.signs)


def _around(low: float, high: float, width: float) -> tuple[float, float]:
    """An axis of this width around both ends, not far below 0 or above 1."""
    room = 0.03 * width
    start = min(max((low + high - width) / 2, -room), 1 + room - width)
    return start, start + width


def _ends(intervals: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    known = [interval for interval in intervals if interval["value"] is not None]
    return min((one["low"] for one in known), default=0.0), max((one["high"] for one in known), default=1.0)
