"""Interactive figures of an audit, as plain plotly dictionaries: the page's script draws them.

Colours of text, axes and grid are left to the page's style sheet, which knows about dark pages and paper. plotly
reads tags in labels, hence every text that comes from data passes through `html.escape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import log10
from typing import Any

__all__ = ["frontier_figure", "group_name", "histogram_figure", "rates_figure", "reliability_figure"]

Figure = dict[str, Any]

# Okabe and Ito's colours that stand out from white and from black alike; shapes repeat what colours say
COLOURS = ("#E08A00", "#3A87C8", "#009E73", "#CC79A7", "#D55E00", "#8C8C8C")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
BEFORE, AFTER = "#8C8C8C", "#3A87C8"


def group_name(label: Any) -> str:
    """A group's label as a record holds it, as text: where columns were crossed, it is a list.

    Examples
    --------
    >>> group_name("f"), group_name(["f", 30])
    ('f', 'f, 30')
    """
    return ", ".join(map(str, label)) if isinstance(label, list) else str(label)


def rates_figure(
    models: Sequence[tuple[str, Sequence[dict[str, Any]]]],
    rate: str,
    *,
    colour_of: dict[str, int],
    span: tuple[float, float],
) -> Figure:
    """One rate of each group, model under model: the line between the groups is the gap.

    Parameters
    ----------
    models : sequence of (title, group rates)
        In the order from top to bottom.
    rate : str
        Which of the intervals in a group's rates to draw.
    colour_of : dict of str to int
        Place of each group in the palette.
    span : (low, high)
        What the axis shows; give two rates the same width, so that gaps may be compared.
    """
    titles = [escape(title) for title, _ in models]
    data: list[dict[str, Any]] = []
    for title, (_, rows) in zip(titles, models, strict=True):
        values = [row[rate]["value"] for row in rows if row[rate]["value"] is not None]
        data.append(
            {
                "x": values,
                "y": [title] * len(values),
                "mode": "lines",
                "line": {"color": BEFORE, "width": 3},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    for group, place in colour_of.items():
        points = [
            (title, row[rate])
            for title, (_, rows) in zip(titles, models, strict=True)
            for row in rows
            if _text(row["group"]) == group and row[rate]["value"] is not None
        ]
        data.append(
            {
                "x": [point["value"] for _, point in points],
                "y": [title for title, _ in points],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [point["high"] - point["value"] for _, point in points],
                    "arrayminus": [point["value"] - point["low"] for _, point in points],
                    "thickness": 1.5,
                    "width": 4,
                },
                "customdata": [[point["low"], point["high"]] for _, point in points],
                "mode": "markers",
                "name": group,
                # each smaller than the one below it, so that equal rates do not hide a group
                "marker": {
                    "color": _pick(COLOURS, place),
                    "symbol": _pick(SYMBOLS, place),
                    "size": max(15 - 4 * place, 6),
                },
                "hovertemplate": f"{group}, %{{y}}: %{{x:.1%}}, "
                "interval %{customdata[0]:.1%} to %{customdata[1]:.1%}<extra></extra>",
            }
        )
    layout = _layout(height=130 + 52 * len(models))
    layout["xaxis"] |= {"tickformat": ".0%", "range": list(span)}
    layout["yaxis"] |= {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": titles[::-1],
        "showgrid": False,
        "range": [-0.6, len(models) - 0.4],
    }
    return {"data": data, "layout": layout}


def frontier_figure(frontier: dict[str, Any], tested: Sequence[tuple[str, float, float]]) -> Figure:
    """Score against gap: the best trades, the tolerance, the chosen point, and what became of it on new rows.

    Parameters
    ----------
    frontier : dict
        `best` (a list of points), `chosen`, `untouched`, `tolerance`, `score_name` and `gap_name`.
    tested : sequence of (title, gap, score)
        The same two numbers on rows that the choice has not seen.
    """
    score, gap = (escape(frontier[name].replace("_", " ")) for name in ("score_name", "gap_name"))

    def points(name: str, some: list[dict[str, float]], **style: Any) -> dict[str, Any]:
        return {
            "x": [point["gap"] for point in some],
            "y": [point["score"] for point in some],
            "customdata": [[point["strength"], point["threshold"]] for point in some],
            "name": name,
            "hovertemplate": f"{name}<br>{score} %{{y:.4f}}, gap %{{x:.4f}}<br>"
            "strength %{customdata[0]:.2f}, threshold %{customdata[1]:.3f}<extra></extra>",
            **style,
        }

    best = {"mode": "lines+markers", "line": {"color": AFTER, "width": 2}, "marker": {"size": 5}}
    data = [
        points("best trades", frontier["best"], **best),
        points("as it was", [frontier["untouched"]], mode="markers", marker={"color": BEFORE, "size": 13}),
        points(
            "chosen",
            [frontier["chosen"]],
            mode="markers",
            marker={"color": COLOURS[4], "size": 18, "symbol": "star", "line": {"width": 1, "color": "#ffffff"}},
        ),
    ]
    for (title, x, y), symbol in zip(tested, ("diamond-open", "star-open", "square-open"), strict=False):
        colour = COLOURS[4] if symbol == "star-open" else BEFORE
        data.append(
            {
                "x": [x],
                "y": [y],
                "mode": "markers",
                "name": escape(title),
                "marker": {"symbol": symbol, "size": 14, "color": colour, "line": {"width": 2}},
                "hovertemplate": f"{escape(title)}<br>{score} %{{y:.4f}}, gap %{{x:.4f}}<extra></extra>",
            }
        )
    layout = _layout(height=430)
    layout["xaxis"] |= {"title": {"text": f"gap: {gap}"}, "rangemode": "tozero"}
    layout["yaxis"] |= {"title": {"text": score}, "tickformat": ".1%", "range": _score_range(frontier, tested)}
    layout["shapes"] = [
        {
            "type": "line",
            "yref": "paper",
            "x0": frontier["tolerance"],
            "x1": frontier["tolerance"],
            "y0": 0,
            "y1": 1,
            "line": {"dash": "dot", "width": 1.5, "color": BEFORE},
        }
    ]
    layout["annotations"] = [
        {
            "x": frontier["tolerance"],
            "y": 0,
            "yref": "paper",
            "text": f" tolerance {frontier['tolerance']:g}",
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "bottom",
        }
    ]
    return {"data": data, "layout": layout}


def reliability_figure(curves: Sequence[dict[str, Any]], *, colour_of: dict[str, int]) -> Figure:
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
        group = _text(curve["group"])
        place = colour_of[group]
        data.append(
            {
                "x": curve["predicted"],
                "y": curve["observed"],
                "customdata": curve["count"],
                "mode": "lines+markers",
                "name": group,
                "line": {"color": _pick(COLOURS, place), "dash": _pick(DASHES, place), "width": 2},
                "marker": {"symbol": _pick(SYMBOLS, place), "size": 7},
                "hovertemplate": f"{group}: predicted %{{x:.1%}}, observed %{{y:.1%}} "
                "of %{customdata} rows<extra></extra>",
            }
        )
    layout = _layout(height=360)
    layout["xaxis"] |= {"title": {"text": "predicted"}, "range": [-0.02, 1.02], "tickformat": ".0%"}
    layout["yaxis"] |= {"title": {"text": "observed"}, "range": [-0.02, 1.02], "tickformat": ".0%"}
    return {"data": data, "layout": layout}


def histogram_figure(
    histograms: Sequence[dict[str, Any]], *, colour_of: dict[str, int], span: tuple[float, float]
) -> Figure:
    """Where each group's scores lie among the rows of one label; equal outlines are what equalized odds asks.

    Parameters
    ----------
    histograms : sequence of dict
        `group`, `edges` and `share`; two neighbouring bins are drawn as one.
    colour_of : dict of str to int
        Place of each group in the palette.
    span : (low, high)
        Shares that the axis shows, which is logarithmic: most scores are near 0 or 1, the rest decides.
    """
    data = []
    for histogram in histograms:
        group = _text(histogram["group"])
        place = colour_of[group]
        edges, share = histogram["edges"][::2], histogram["share"]
        data.append(
            {
                "x": [(low + high) / 2 for low, high in pairwise(edges)],
                "y": [one + two or None for one, two in zip(share[::2], share[1::2], strict=True)],
                "mode": "lines",
                "name": group,
                "line": {
                    "shape": "hvh",
                    "color": _pick(COLOURS, place),
                    "dash": _pick(DASHES, place),
                    "width": 2,
                },
                "hovertemplate": f"{group}: %{{y:.1%}} near %{{x:.2f}}<extra></extra>",
            }
        )
    layout = _layout(height=280)
    layout["xaxis"] |= {"title": {"text": "score"}, "range": [0, 1]}
    layout["yaxis"] |= {
        "title": {"text": "share of rows, log scale"},
        "type": "log",
        "range": [log10(share) for share in span],
        "tickvals": [0.001, 0.01, 0.1, 1],
        "ticktext": ["0.1%", "1%", "10%", "100%"],
    }
    return {"data": data, "layout": layout}


def _layout(height: int) -> Figure:
    axis = {"automargin": True, "zeroline": False, "showline": True}
    return {
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hoverlabel": {"align": "left"},
        # a finger that scrolls the page must not drag the figure
        "dragmode": False,
        "xaxis": {**axis},
        "yaxis": {**axis},
    }


def _score_range(frontier: dict[str, Any], tested: Sequence[tuple[str, float, float]]) -> list[float]:
    """From the lowest point that says something to the highest; guessing is far below and of no interest."""
    marked = [frontier["chosen"]["score"], frontier["untouched"]["score"], *(score for _, _, score in tested)]
    high = max(marked)
    low = min([*marked, high - 0.02])
    return [low - 0.1 * (high - low), high + 0.15 * (high - low)]


def _pick(palette: Sequence[str], place: int) -> str:
    return palette[place % len(palette)]


def _text(label: Any) -> str:
    return escape(group_name(label))
