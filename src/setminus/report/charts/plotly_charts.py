"""A chart as a plain plotly dictionary: the page's script draws it."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from setminus.report.charts.chart import Area, Bars, Chart, Line, Numbers, Points, Rule, Surface
from setminus.report.charts.signs import BOUNDARY, DASHES, GREY, MANY_POINTS, kind_colours, look, places
from setminus.report.theme import SIGNS, Figure, layout, plot_text

__all__ = ["plotly_figure"]

# grey that lets the page through: it reads on white, on black and on paper
SHADES = ((0.0, "rgba(128,128,128,0.04)"), (1.0, "rgba(128,128,128,0.5)"))
NARROW = 44
"""Characters of a name in a legend, which on a phone has one line for each."""


def plotly_figure(chart: Chart, signs: Mapping[str, int] | None = None) -> Figure:
    """The plotly figure of a chart.

    Parameters
    ----------
    chart : Chart
    signs : mapping of str to int, optional
        The place of each series, as `signs.places` gives it for several charts; by default of this chart alone.

    Returns
    -------
    dict
        With `data` and `layout`.

    Examples
    --------
    >>> figure = plotly_figure(Chart("t", "n", "gap", [Line([1, 2], [0.5, 0.25], "measured")], y_scale="log"))
    >>> figure["data"][0]["y"], figure["layout"]["yaxis"]["type"]
    ([0.5, 0.25], 'log')
    """
    known = places([chart])[0] if signs is None else signs
    # the legend takes its room from the height
    figure = layout(height=(390 if chart.square else 310) + 15 * len(chart.marks))
    figure["showlegend"] = True
    figure["legend"] = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemwidth": 34}
    figure["barmode"], figure["bargap"] = "group", 0.12
    for axis, label, scale in (("xaxis", chart.x_label, chart.x_scale), ("yaxis", chart.y_label, chart.y_scale)):
        figure[axis] |= {"title": {"text": plot_text(label, 80)}, "type": scale}
        if scale == "log":
            figure[axis] |= {"exponentformat": "power", "dtick": _log_step(chart, axis[0])}
        elif any(isinstance(mark, Bars) and _named(mark) for mark in chart.marks) and axis == "xaxis":
            figure[axis] |= {"type": "category"}
    if chart.square:
        figure["yaxis"] |= {"scaleanchor": "x", "scaleratio": 1, "constrain": "domain"}
        figure["xaxis"] |= {"constrain": "domain"}
    data: list[Figure] = []
    shapes: list[Figure] = []
    n_surfaces = 0
    for mark in chart.marks:
        match mark:
            case Line():
                data += _line(mark, known[mark.name], chart)
            case Points():
                data += _points(mark, known[mark.name], chart)
            case Bars():
                data.append(_bars(mark, known[mark.name], chart))
            case Surface():
                data += _surface(mark, n_surfaces, chart)
                n_surfaces += 1
            case Area():
                data.append(_band(mark.x, mark.low, mark.high, GREY, plot_text(mark.name, NARROW), legend=True))
            case Rule():
                shapes.append(_rule(mark, len(shapes)))
    figure["shapes"] = shapes
    return {"data": data, "layout": figure}


def _log_step(chart: Chart, axis: str) -> int | str:
    """A label at each power of ten; where there are few of them, also at 2 and 5; where there are many, at some."""
    shown: list[float] = []
    for mark in chart.marks:
        if isinstance(mark, Rule):
            shown += [mark.at] if mark.axis == axis and mark.at > 0 else []
        else:
            parts = ("x",) if axis == "x" else ("y", "low", "high")
            shown += [value for part in parts for value in _list(getattr(mark, part, None)) if _positive(value)]
    decades = log10(max(shown) / min(shown)) if shown else 0.0
    return "D2" if decades < 1.5 else max(round(decades / 6), 1)


def _list(values: Any) -> list[Any]:
    return [] if values is None or isinstance(values, int | float) else list(values)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def _line(line: Line, place: int, chart: Chart) -> list[Figure]:
    own = look(place)
    name = plot_text(line.name, NARROW)
    trace = {
        **_told(line, chart),
        "mode": "lines+markers" if line.markers else "lines",
        "legendgroup": name,
        "line": {"color": own.colour, "dash": SIGNS[own.dash].dash, "width": 2},
        "marker": {"color": own.colour, "symbol": SIGNS[own.symbol].symbol, "size": 7},
    }
    if line.low is None or line.high is None:
        return [trace]
    if len(line.x) <= MANY_POINTS:
        return [{**trace, "error_y": {**_whiskers(line.y, line.low, line.high), "color": own.colour}}]
    return [_band(line.x, line.low, line.high, own.colour, name), trace]


def _points(points: Points, place: int, chart: Chart) -> list[Figure]:
    own = look(place)
    size = 7 if len(points.x) <= 100 else 6
    marker = {"color": own.colour, "symbol": SIGNS[own.symbol].symbol, "size": size, "opacity": 0.7}
    trace: Figure = {**_told(points, chart), "mode": "markers", "marker": marker}
    if points.kinds is None:
        return [trace]
    # in the legend the shape alone, and not the kind of the first point
    shape = {**trace, "x": [None], "y": [None], "marker": {**marker, "color": GREY}, "legendgroup": trace["name"]}
    colours = kind_colours(len(chart.kinds))
    return [
        shape,
        {
            **trace,
            "marker": {**marker, "color": [colours[kind] for kind in points.kinds]},
            "legendgroup": trace["name"],
            "showlegend": False,
            "customdata": [plot_text(chart.kinds[kind], NARROW) for kind in points.kinds],
            "hovertemplate": f"%{{customdata}}, {trace['name']}<extra></extra>",
        },
    ]


def _bars(bars: Bars, place: int, chart: Chart) -> Figure:
    own = look(place)
    # the hatching in the colour of the page would vanish on the other one
    pattern = {"shape": own.hatch, "fillmode": "overlay", "fgcolor": "#FFFFFF", "size": 7, "solidity": 0.25}
    trace = {**_told(bars, chart), "type": "bar", "marker": {"color": own.colour, "pattern": pattern}}
    if _named(bars):
        trace["x"] = [plot_text(str(name), 24) for name in bars.x]
    if bars.low is not None and bars.high is not None:
        trace["error_y"] = _whiskers(bars.y, bars.low, bars.high)
    return trace


def _surface(surface: Surface, number: int, chart: Chart) -> list[Figure]:
    name = plot_text(surface.name, NARROW)
    grid = {"x": list(surface.x), "y": list(surface.y), "z": [list(row) for row in surface.values]}
    shades = {
        **grid,
        "type": "heatmap",
        "name": name,
        "colorscale": [list(shade) for shade in SHADES],
        "zmin": surface.low,
        "zmax": surface.high,
        # a second one would hide the first, and its scale
        "showscale": number == 0,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": name, "side": "right"}},
        "visible": number == 0,
        "hovertemplate": f"{name} %{{z:.3f}}<br>{_axis(chart.x_label)} %{{x:.3g}}, {_axis(chart.y_label)} %{{y:.3g}}"
        "<extra></extra>",
    }
    if surface.level is None:
        return [shades]
    boundary = {
        **grid,
        "type": "contour",
        "name": plot_text(f"{surface.name} = {surface.level:g}", NARROW),
        "showscale": False,
        "showlegend": True,
        "hoverinfo": "skip",
        "contours": {
            "coloring": "none",
            "showlabels": False,
            "start": surface.level,
            "end": surface.level,
            # a single line: any step that leads beyond the last will do
            "size": 1,
        },
        "line": {"color": BOUNDARY, "width": 2.5, "dash": SIGNS[number % len(SIGNS)].dash},
    }
    return [shades, boundary]


def _band(x: Numbers, low: Numbers, high: Numbers, colour: str, name: str, *, legend: bool = False) -> Figure:
    """What lies between two curves, as one outline."""
    kept = [(a, b, c) for a, b, c in zip(x, low, high, strict=True) if None not in (a, b, c)]
    return {
        "x": [a for a, _, _ in kept] + [a for a, _, _ in reversed(kept)],
        "y": [b for _, b, _ in kept] + [c for _, _, c in reversed(kept)],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": _translucent(colour),
        "line": {"width": 0, "color": colour},
        "name": name,
        "legendgroup": name,
        "showlegend": legend,
        "hoverinfo": "skip",
    }


def _rule(rule: Rule, number: int) -> Figure:
    across = {"x": ("y", "x0", "x1", "y0", "y1"), "y": ("x", "y0", "y1", "x0", "x1")}[rule.axis]
    other, *ends = across
    return {
        "type": "line",
        f"{other}ref": f"{other} domain",
        **dict(zip(ends, (rule.at, rule.at, 0, 1), strict=True)),
        "line": {"color": GREY, "width": 2, "dash": DASHES[number % len(DASHES)]},
        "name": plot_text(f"{rule.name} ({rule.at:.4g})", NARROW),
        "showlegend": True,
    }


def _told(series: Line | Points | Bars, chart: Chart) -> Figure:
    """The numbers of a series, and what its label says of each."""
    name = plot_text(series.name, NARROW)
    trace: Figure = {"x": list(series.x), "y": list(series.y), "name": name, "showlegend": True}
    spread = ""
    if not isinstance(series, Points) and series.low is not None and series.high is not None:
        trace["customdata"] = [list(pair) for pair in zip(series.low, series.high, strict=True)]
        spread = " (%{customdata[0]:.4g} to %{customdata[1]:.4g})"
    x = "%{x}" if isinstance(series, Bars) and _named(series) else "%{x:.4g}"
    trace["hovertemplate"] = (
        f"{name}<br>{_axis(chart.x_label)} {x}<br>{_axis(chart.y_label)} %{{y:.4g}}{spread}<extra></extra>"
    )
    return trace


def _axis(label: str) -> str:
    return plot_text(label, 32)


def _whiskers(y: Numbers, low: Numbers, high: Numbers) -> Figure:
    known = [(a, b, c) for a, b, c in zip(y, low, high, strict=True)]
    return {
        "type": "data",
        "symmetric": False,
        "array": [None if a is None or c is None else c - a for a, _, c in known],
        "arrayminus": [None if a is None or b is None else a - b for a, b, _ in known],
        "thickness": 1.5,
        "width": 4,
    }


def _named(bars: Bars) -> bool:
    return any(isinstance(name, str) for name in bars.x)


def _translucent(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.22)"
