"""Table 3: accuracy on targets whose classes have other frequencies than the source's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setminus.report.charts.chart import Bars, Chart, Line
from setminus.report.laboratory.over_seeds import mean_and_deviation

__all__ = ["charts", "summary"]

Record = dict[str, Any]
PAPER_SHIFT = 0.7
"""Shares of the two halves of the classes in the paper: 70 and 30 percent, reversed on the target."""


def charts(records: Sequence[Record]) -> list[Chart]:
    """A chart of bars for each pair, and accuracy against the shift where several were measured."""
    drawn = [_bars(pair, _of(records, pair=pair, shift=PAPER_SHIFT)) for pair in _values(records, "pair")]
    for pair in _values(records, "pair"):
        some = _of(records, pair=pair)
        if len(_values(some, "shift")) > 1:
            drawn.append(_curve(pair, some))
    return [chart for chart in drawn if chart.marks]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, paper, measured): by the selection without target labels, and by the paper's with them."""
    rows = []
    for pair in _values(records, "pair"):
        for shift in _values(_of(records, pair=pair), "shift"):
            for method in _values(_of(records, pair=pair, shift=shift), "method"):
                some = _of(records, pair=pair, shift=shift, method=method)
                about, metrics = some[0]["metrics"]["row"], [record["metrics"] for record in some]
                paper = about["paper"] if shift == PAPER_SHIFT else None
                own = mean_and_deviation([100 * one["accuracy"] for one in metrics], ".1f")
                oracle = mean_and_deviation([100 * one["test_oracle"]["accuracy"] for one in metrics], ".1f")
                what = f"{pair}, {100 * shift:.0f}/{100 - 100 * shift:.0f}, {about['label']}: accuracy, %"
                rows.append((what, "" if paper is None else f"{100 * paper:.1f}", f"{own}; test_oracle {oracle}"))
    return rows


def _bars(pair: str, records: list[Record]) -> Chart:
    methods = _values(records, "method")
    labels = [_of(records, method=method)[0]["metrics"]["row"]["label"] for method in methods]
    found = [[one["metrics"]["accuracy"] for one in _of(records, method=method)] for method in methods]
    paper = [_of(records, method=method)[0]["metrics"]["row"]["paper"] for method in methods]
    marks = []
    if records:
        marks.append(Bars(labels, [float(np.mean(values)) for values in found], "ours"))
        known = [(label, value) for label, value in zip(labels, paper, strict=True) if value is not None]
        if known:
            marks.append(Bars([label for label, _ in known], [value for _, value in known], "paper, test_oracle"))
    return Chart(
        f"{pair}: target accuracy",
        "",
        "accuracy",
        marks,
        caption="Ours: the evaluation is picked without target labels. The paper's was picked with them.",
    )


def _curve(pair: str, records: list[Record]) -> Chart:
    marks = []
    for method in _values(records, "method"):
        some = _of(records, method=method)
        shifts = sorted(_values(some, "shift"))
        if len(shifts) > 1:
            means = [float(np.mean([one["metrics"]["accuracy"] for one in _of(some, shift=at)])) for at in shifts]
            marks.append(Line([100 * at for at in shifts], means, some[0]["metrics"]["row"]["label"]))
    return Chart(
        f"{pair}: accuracy against the shift",
        "share of the first half of the classes in the source, %",
        "accuracy",
        marks,
        caption="The target has the opposite share: at 50 there is no shift.",
    )


def _of(records: Sequence[Record], **wanted: Any) -> list[Record]:
    return [one for one in records if all(one["config"][key] == value for key, value in wanted.items())]


def _values(records: Sequence[Record], key: str) -> list[Any]:
    return list(dict.fromkeys(record["config"][key] for record in records))
