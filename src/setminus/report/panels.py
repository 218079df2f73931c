"""Audited models to panels: figures side by side, what each shows in words, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from setminus.report.drawn import Drawn
from setminus.report.figures import coarse, histogram_figure, rates_figure, reliability_figure
from setminus.report.theme import Figure, group_name

__all__ = ["Panels", "rate_panels", "reliability_panels", "score_panels"]

Models = Sequence[dict[str, Any]]

RATES = {"true_positive_rate": "True positive rate", "false_positive_rate": "False positive rate"}


class Panels:
    """Figures by id, and panels of them for the template.

    Attributes
    ----------
    figures : dict of str to dict
    rows : list of dict
        Each `title` (of a class, empty where there is one only), `plots` with `id`, `title` and `about`, and
        whatever else its template shows.
    """

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.rows: list[dict[str, Any]] = []

    def add(self, title: str, plots: Sequence[tuple[str, str, str, Figure]], **more: Any) -> None:
        """One row of figures: (id, title, description, figure) each."""
        self.figures |= {name: figure for name, _, _, figure in plots}
        shown = [{"id": name, "title": heading, "about": about} for name, heading, about, _ in plots]
        self.rows.append({"title": title, "plots": shown, **more})


def rate_panels(models: Models, drawn: Drawn) -> Panels:
    """True and false positive rates of each group, for each class that is judged."""
    panels = Panels()
    for index, label in enumerate(drawn.judged):
        shown = [
            (model["title"], [row for row in model["audit"]["group_rates"] if row["label"] == label])
            for model in models
        ]
        ends = {rate: _ends([row[rate] for _, rows in shown for row in rows]) for rate in RATES}
        # the same width for both, or a small gap in a small rate looks large
        width = 1.1 * max(high - low for low, high in ends.values())
        plots = [
            (
                f"rates-{rate}-{index}",
                title,
                f"{title} of each group. {_in_words(shown, rate, drawn)} All numbers are in the table below.",
                rates_figure(shown, rate, places=drawn.places, span=_span(*ends[rate], width)),
            )
            for rate, title in RATES.items()
        ]
        panels.add(drawn.class_name(label) if len(drawn.judged) > 1 else "", plots)
    return panels


def reliability_panels(models: Models, drawn: Drawn) -> Panels:
    """Reliability curves of each drawn group and class, a figure for each model."""
    panels = Panels()
    for index, label in enumerate(drawn.judged):
        plots, table = [], []
        for number, model in enumerate(models):
            calibration = model["audit"]["calibration"]
            curves = [one for one in calibration["curves"] if one["label"] == label and drawn.has(one["group"])]
            errors = ", ".join(
                f"{group_name(error['group'])} {error['ece']:.3f}"
                for error in calibration["groups"]
                if drawn.has(error["group"])
            )
            plots.append(
                (
                    f"reliability-{index}-{number}",
                    model["title"],
                    f"Observed frequency against predicted probability, {model['title']}. "
                    f"Calibration error by group: {errors}. All points are in the table below.",
                    reliability_figure(curves, places=drawn.places),
                )
            )
            table += [
                {
                    "model": model["title"],
                    "group": group_name(curve["group"]),
                    "bin": place,
                    "predicted": predicted,
                    "observed": observed,
                    "count": count,
                }
                for curve in curves
                for place, (predicted, observed, count) in enumerate(
                    zip(curve["predicted"], curve["observed"], curve["count"], strict=True)
                )
            ]
        panels.add(drawn.class_name(label) if len(drawn.judged) > 1 else "", plots, label=label, table=table)
    return panels


def score_panels(models: Models, drawn: Drawn) -> Panels:
    """Histograms of each drawn group, a row of figures for each label, a figure for each model."""
    panels = Panels()
    for index, label in enumerate(drawn.labels):
        shown = [
            [one for one in model["audit"]["histograms"] if one["label"] == label and drawn.has(one["group"])]
            for model in models
        ]
        # one scale for all, or the eye compares axes instead of outlines
        shares = [share for some in shown for one in some for share in one["share"] if share > 0]
        span = (max(min(shares, default=0.001), 0.0005), 1.0)
        name = drawn.class_name(label)
        plots = [
            (
                f"scores-{index}-{number}",
                model["title"],
                f"Scores of each group among rows of {name}, {model['title']}: {_upper_halves(histograms)}. "
                "All shares are in the table below.",
                histogram_figure(histograms, places=drawn.places, span=span),
            )
            for number, (model, histograms) in enumerate(zip(models, shown, strict=True))
        ]
        columns = [
            {"model": model["title"], "group": group_name(one["group"]), "share": coarse(one)[1]}
            for model, histograms in zip(models, shown, strict=True)
            for one in histograms
        ]
        bins = [*pairwise(coarse(shown[0][0])[0])] if shown[0] else []
        panels.add(name, plots, label=label, columns=columns, bins=bins)
    return panels


def _in_words(shown: Sequence[tuple[str, Any]], rate: str, drawn: Drawn) -> str:
    sentences = []
    for title, rows in shown:
        values = [
            f"{group_name(row['group'])} {100 * row[rate]['value']:.1f} %"
            for row in rows
            if drawn.has(row["group"]) and row[rate]["value"] is not None
        ]
        sentences.append(f"{title}: {', '.join(values) or 'undefined'}.")
    return " ".join(sentences)


def _upper_halves(histograms: Sequence[dict[str, Any]]) -> str:
    """The share of each group's scores in the upper half of the bins."""
    return ", ".join(
        f"{group_name(one['group'])} {100 * sum(one['share'][len(one['share']) // 2 :]):.1f} % above 0.5"
        for one in histograms
    )


def _span(low: float, high: float, width: float) -> tuple[float, float]:
    """An axis of this width around both ends, not far below 0 or above 1."""
    room = 0.03 * width
    start = min(max((low + high - width) / 2, -room), 1 + room - width)
    return start, start + width


def _ends(intervals: list[dict[str, Any]]) -> tuple[float, float]:
    known = [interval for interval in intervals if interval["value"] is not None]
    return min((one["low"] for one in known), default=0.0), max((one["high"] for one in known), default=1.0)
