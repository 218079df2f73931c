"""Interactive figures of an audit, as plain plotly dictionaries: the page's script draws them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log10
from typing import Any

from setminus.report.theme import BEFORE, SIGNS, Figure, group_name, layout, plot_text

__all__ = ["coarse", "group_name", "histogram_figure", "rates_figure", "reliability_figure"]

Rows = Sequence[dict[str, Any]]


def rates_figure(
    models: Sequence[tuple[str, Rows]],
    rate: str,
    *,
    places: dict[str, int],
    span: tuple[float, float],
) -> Figure:
    """One rate of each group, model under model: the band from the lowest to the highest group is the gap.

    Parameters
    ----------
    models : sequence of (title, group rates)
        In the order from top to bottom; the rates are those of one class.
    rate : str
        Which of the intervals in a group's rates to draw.
    places : dict of str to int
        Which groups have a sign of their own, and which; the others share a line, small and grey.
    span : (low, high)
        What the axis shows; give two rates the same width, so that gaps may be compared.
    """
    titles = [plot_text(title, 24) for title, _ in models]
    known = [[row for row in rows if row[rate]["value"] is not None] for _, rows in models]
    lines = len(places) + any(group_name(row["group"]) not in places for rows in known for row in rows)
    step = 0.72 / max(lines, 1)
    figure = layout(height=60 + max(56, 17 * lines) * len(models))
    data = []
    for group, place in places.items():
        # beside each other, or equal rates would hide one group
        level = 0.36 - step * (place + 0.5)
        points = [(i, row[rate]) for i, rows in enumerate(known) for row in rows if group_name(row["group"]) == group]
        data.append(
            {
                **_dots(group, titles, [(level - i, group, i, rate) for i, rate in points]),
                "marker": {"color": SIGNS[place].colour, "symbol": SIGNS[place].symbol, "size": 12},
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [point["high"] - point["value"] for _, point in points],
                    "arrayminus": [point["value"] - point["low"] for _, point in points],
                    "thickness": 1.5,
                    "width": 4,
                },
            }
        )
    others = [
        (-0.36 + step / 2 - i, group_name(row["group"]), i, row[rate])
        for i, rows in enumerate(known)
        for row in rows
        if group_name(row["group"]) not in places
    ]
    if others:
        data.append({**_dots("others", titles, others), "marker": {"color": BEFORE, "size": 7}})
    figure["shapes"] = [
        {
            "type": "rect",
            "layer": "below",
            "x0": min(row[rate]["value"] for row in rows),
            "x1": max(row[rate]["value"] for row in rows),
            "y0": -i - 0.4,
            "y1": -i + 0.4,
            "fillcolor": BEFORE,
            "opacity": 0.25,
            "line": {"width": 0},
        }
        for i, rows in enumerate(known)
        if rows
    ]
    figure["xaxis"] |= {"tickformat": ".0%", "range": list(span), "nticks": 6}
    figure["yaxis"] |= {
        "tickvals": [-i for i in range(len(models))],
        "ticktext": titles,
        "showgrid": False,
        "range": [0.5 - len(models), 0.5],
    }
    return {"data": data, "layout": figure}


def reliability_figure(curves: Rows, *, places: dict[str, int]) -> Figure:
    """Observed frequency against predicted probability, one curve for each group; the diagonal is exact."""
    data: list[dict[str, Any]] = [
        {
            "x": [0, 1],
            "y": [0, 1],
            "mode": "lines",
            "name": "exact",
            "line": {"color": BEFORE, "dash": "dot", "width": 1.5},
            "hoverinfo": "skip",
        }
    ]
    for curve in curves:
        name = plot_text(group_name(curve["group"]))
        sign = SIGNS[places[group_name(curve["group"])]]
        data.append(
            {
                "x": curve["predicted"],
                "y": curve["observed"],
                "customdata": curve["count"],
                "mode": "lines+markers",
                "name": name,
                "line": {"color": sign.colour, "dash": sign.dash, "width": 2},
                "marker": {"symbol": sign.symbol, "size": 7},
                "hovertemplate": f"{name}<br>predicted %{{x:.1%}}, observed %{{y:.1%}}<br>"
                "of %{customdata} rows<extra></extra>",
            }
        )
    figure = layout(height=330)
    figure["xaxis"] |= {"title": {"text": "predicted"}, "range": [-0.02, 1.02], "tickformat": ".0%"}
    figure["yaxis"] |= {"title": {"text": "observed"}, "range": [-0.02, 1.02], "tickformat": ".0%"}
    return {"data": data, "layout": figure}


def coarse(histogram: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Edges and shares with two neighbouring bins as one: fifty are noise to the eye.

    Examples
    --------
    >>> coarse({"edges": [0.0, 0.25, 0.5, 0.75, 1.0], "share": [0.125, 0.125, 0.25, 0.5]})
    ([0.0, 0.5, 1.0], [0.25, 0.75])
    """
    share = histogram["share"]
    return histogram["edges"][::2], [one + two for one, two in zip(share[::2], share[1::2], strict=True)]


def histogram_figure(histograms: Rows, *, places: dict[str, int], span: tuple[float, float]) -> Figure:
    """Where each group's scores lie among the rows of one label; equal outlines are what equalized odds asks.

    Parameters
    ----------
    histograms : sequence of dict
        `group`, `edges` and `share`.
    places : dict of str to int
        The sign of each group.
    span : (low, high)
        Shares that the axis shows, which is logarithmic: most scores are near 0 or 1, the rest decides.
    """
    data = []
    for histogram in histograms:
        name = plot_text(group_name(histogram["group"]))
        sign = SIGNS[places[group_name(histogram["group"])]]
        edges, share = coarse(histogram)
        data.append(
            {
                "x": [(low + high) / 2 for low, high in pairwise(edges)],
                "y": [one or None for one in share],
                "customdata": [[low, high] for low, high in pairwise(edges)],
                "mode": "lines",
                "name": name,
                "line": {"shape": "hvh", "color": sign.colour, "dash": sign.dash, "width": 2},
                "hovertemplate": f"{name}<br>%{{y:.1%}} from %{{customdata[0]:.2f}} to %{{customdata[1]:.2f}}"
                "<extra></extra>",
            }
        )
    figure = layout(height=250)
    figure["xaxis"] |= {"title": {"text": "score"}, "range": [0, 1]}
    figure["yaxis"] |= {
        "title": {"text": "share of rows (log)"},
        "type": "log",
        "range": [log10(share) for share in span],
        "tickvals": [0.001, 0.01, 0.1, 1],
        "ticktext": ["0.1%", "1%", "10%", "100%"],
    }
    return {"data": data, "layout": figure}


def _dots(name: str, titles: list[str], points: Sequence[tuple[float, str, int, dict[str, Any]]]) -> Figure:
    """Points of (level, group, model, interval), as a trace without style."""
    return {
        "x": [interval["value"] for _, _, _, interval in points],
        "y": [level for level, _, _, _ in points],
        "customdata": [
            [plot_text(group), titles[model], interval["low"], interval["high"]] for _, group, model, interval in points
        ],
        "mode": "markers",
        "cliponaxis": False,
        "name": plot_text(name),
        "hovertemplate": "%{customdata[0]}, %{customdata[1]}<br>%{x:.1%}, "
        "interval %{customdata[2]:.1%} to %{customdata[3]:.1%}<extra></extra>",
    }
