"""Charts as Vega-Lite dictionaries: drawn by a script in the page, by vl-convert in a file.

Names that come from data reach a dictionary as data, titles and constant texts only: no expression contains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from textwrap import wrap
from typing import Any

from setminus.charts.chart import (
    BOUNDARY,
    GREY,
    ROLES,
    SIGNS,
    Area,
    Bars,
    Chart,
    Dots,
    Line,
    Mark,
    Numbers,
    Points,
    Rule,
    Sign,
    Span,
    Surface,
    chart_in_words,
    chart_table,
    kind_colours,
    places,
    sign_of,
    spread_evenly,
    surface_layers,
)

__all__ = ["CONFIG", "INK", "SCHEMA", "Figure", "Spec", "figures", "legend", "vega_lite", "view"]

Spec = dict[str, Any]
Layers = list[Spec]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Liberation Sans is what vl-convert brings along: pictures look the same on every machine
FONT = "system-ui, 'Liberation Sans', sans-serif"
INK, SOFT, GRIDLINE = "#1d2126", "#565d66", "#dcd9d3"
CONFIG: Spec = {
    # the page and the picture describe the figure as a whole
    "aria": False,
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12.5,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRIDLINE,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelLimit": 190,
        "titleLimit": 420,
        "tickSize": 4,
        "titlePadding": 7,
    },
}
MANY_POINTS = 12
"""A line with more points has a band around it instead of error bars."""
MANY_NAMES = 12
HOVER_POINTS = 200
"""Points of a line that have a label."""
HEIGHT = 280
"""Height of the axes of a chart, in pixels; in the page the width is that of its place."""


# one chart


def vega_lite(chart: Chart, signs: Mapping[str, int] | None = None) -> Spec:
    """The Vega-Lite dictionary of a chart, without title and legend.

    Parameters
    ----------
    chart : Chart
    signs : mapping of str to int, optional
        The place of each series, as `places` gives it for several charts; by default of this chart alone.

    Examples
    --------
    >>> spec = vega_lite(Chart("t", "n", "gap", [Line([1, 2], [0.5, 0.25], "measured")], y_scale="log"))
    >>> spec["layer"][0]["mark"]["type"], spec["layer"][0]["encoding"]["y"]["scale"]["type"]
    ('line', 'log')
    """
    spec = view(chart, places([chart])[0] if signs is None else signs, "container")
    # a chart to scale keeps its size, all others take the width of their place
    fitted = {} if chart.square else {"autosize": {"type": "fit-x", "contains": "padding"}}
    return {"$schema": SCHEMA, **fitted, "config": CONFIG, **spec}


def view(chart: Chart, signs: Mapping[str, int], width: int | str) -> Spec:
    """The layers of a chart, and the size of its axes."""
    axes = _Axes(chart)
    layers: Layers = []
    n_rules = n_surfaces = 0
    for mark in chart.marks:
        sign = _sign(mark, signs)
        match mark:
            case Line():
                layers += _line(axes, mark, sign)
            case Points():
                layers.append(_points(axes, mark, sign))
            case Bars():
                layers += _bars(axes, mark, sign)
            case Dots():
                layers += _dots(axes, mark, sign)
            case Span():
                layers += [_span(axes, mark)] if any(value is not None for value in mark.low) else []
            case Area():
                layers.append(_band(axes, mark.x, mark.low, mark.high, GREY))
            case Rule():
                layers.append(_rule(axes, mark, n_rules))
                n_rules += 1
            case Surface():
                layers += surface_layers(axes.at, mark, n_surfaces)
                n_surfaces += 1
    height = chart.height or axes.height
    if axes.ends:
        (left, right), (bottom, top) = axes.ends
        width, height = _square(right - left, top - bottom)
    return {"width": width, "height": height, "layer": layers or [axes.at("point", [], {})]}


class _Axes:
    """The encodings of both axes, the same in every layer."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.names = _names(chart)
        self.rows = list(dict.fromkeys(row for mark in chart.marks if isinstance(mark, Dots) for row in mark.rows))
        self.bars = [mark for mark in chart.marks if isinstance(mark, Bars)]
        dots = [mark for mark in chart.marks if isinstance(mark, Dots)]
        self.lanes = list(dict.fromkeys(mark.name for mark in dots))
        self.ends = _ends(chart) if chart.square else None
        self.height = max(58, 19 * len(self.lanes)) * len(self.rows) if self.rows else HEIGHT
        self.x = self._named_x() if self.names else self._numbers("x", chart.x_label, chart.x_scale, chart.x_format)
        self.y = self._named_y() if self.rows else self._numbers("y", chart.y_label, chart.y_scale, chart.y_format)

    def at(self, mark_type: str, values: Sequence[Spec], style: Spec, **encoding: Any) -> Spec:
        """A layer at the fields x and y of its values; None leaves a channel out."""
        encoding = {"x": {"field": "x", **self.x}, "y": {"field": "y", **self.y}, **encoding}
        return {
            "data": {"values": [{key: _short(value) for key, value in row.items()} for row in values]},
            "mark": {"type": mark_type, **({"clip": True} if self.clipped else {}), **style},
            "encoding": {channel: given for channel, given in encoding.items() if given is not None},
        }

    @property
    def clipped(self) -> bool:
        return bool(self.chart.x_range or self.chart.y_range) and not self.rows

    def known(self, value: Any, axis: str) -> bool:
        """Whether an axis can show a number."""
        if value is None or isinstance(value, str):
            return value is not None
        scale = self.chart.x_scale if axis == "x" else self.chart.y_scale
        # an infinite number is an error of the record, and refused where the page is written
        return value == value and (value > 0 or scale != "log")

    def label(self, series: str, x: Any, y: Any, interval: tuple[Any, Any] = (None, None), note: str = "") -> str:
        """The text that pointing at a mark shows."""
        low, high = interval
        ends = "" if low is None or high is None else f" ({self._text(low, 'y')} to {self._text(high, 'y')})"
        lines = [series, f"{self.chart.x_label} {self._text(x, 'x')}".strip()]
        lines.append(f"{self.chart.y_label} {self._text(y, 'y')}{ends}".strip())
        return "\n".join([*lines, *([note] if note else [])])

    def _text(self, value: Any, axis: str) -> str:
        return number_text(value, self.chart.x_format if axis == "x" else self.chart.y_format)

    def _numbers(self, axis: str, label: str, scale_type: str, form: str) -> Spec:
        reach = self.ends[axis == "y"] if self.ends else getattr(self.chart, f"{axis}_range")
        upright = axis == "y" and bool(self.bars)
        scale: Spec = {"type": scale_type}
        style: Spec = {"format": "~%"} if form else {}
        if scale_type == "log":
            style["values"] = _log_ticks(_shown(self.chart, axis))
            style.setdefault("format", "~g")
        else:
            scale["zero"] = upright
            style["tickCount"] = 6
        if reach:
            scale |= {"domain": list(reach), "nice": False}
        elif not upright:
            # so that no point sits on the frame
            scale["padding"] = 7
        if axis == "x":
            style["grid"] = bool(self.rows) or self.chart.square
        return {"type": "quantitative", "title": label or None, "scale": scale, "axis": style}

    def _named_x(self) -> Spec:
        longest = max(map(len, self.names))
        upright = len(self.names) * min(longest, 14) > 48
        axis: Spec = {"labelAngle": -40, "labelLimit": 150} if upright else {"labelAngle": 0}
        if not upright:
            # a fixed expression: the names themselves carry the line breaks
            axis["labelExpr"] = "split(datum.label, '\\n')"
        lines = {name: "\n".join(wrap(name, 14)) for name in self.names}
        # wrapping drops spaces, which may be all that two names differ by
        wrapped = not upright and len({*lines.values()}) == len(self.names)
        self.places = lines if wrapped else {name: name for name in self.names}
        return {
            "type": "nominal",
            "title": self.chart.x_label or None,
            "sort": None,
            "scale": {"domain": list(self.places.values())},
            "axis": axis,
        }

    def _named_y(self) -> Spec:
        return {
            "type": "nominal",
            "title": self.chart.y_label or None,
            "sort": None,
            "scale": {"domain": self.rows, "paddingInner": 0.12, "paddingOuter": 0.06},
            "axis": {"ticks": False, "domain": False, "labelLimit": 130},
        }


def _short(value: Any) -> Any:
    """A number with as many digits as can be seen: the page holds thousands of them."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def number_text(value: Any, form: str = "") -> str:
    """A number as labels show it.

    Examples
    --------
    >>> number_text(0.12345678), number_text(0.25, "%"), number_text("name")
    ('0.1235', '25.0 %', 'name')
    """
    if value is None or isinstance(value, str):
        return value or ""
    return f"{100 * value:.1f} %" if form else f"{value + 0.0:.4g}"


def _sign(mark: Mark, signs: Mapping[str, int]) -> Sign:
    role = getattr(mark, "role", "series")
    return ROLES[role] if role in ROLES else sign_of(signs.get(mark.name, 0))


# marks


def _line(axes: _Axes, line: Line, sign: Sign) -> Layers:
    rows = _labelled(axes, line)
    stroke: Spec = {"color": sign.colour, "strokeWidth": 2 if line.role == "series" else 1.6}
    if sign.dashes:
        stroke["strokeDash"] = list(sign.dashes)
    if line.steps:
        stroke["interpolate"] = "step"
    layers: Layers = []
    if line.low is not None and line.high is not None:
        if len(line.x) > MANY_POINTS:
            layers.append(_band(axes, line.x, line.low, line.high, sign.colour))
        else:
            layers += _whiskers(axes, [row for row in rows if row.get("high") is not None], sign.colour)
    # a line keeps the order of its points, also where it turns back
    order = {"field": "i", "type": "quantitative"}
    path = [
        {"x": x, "y": y if axes.known(y, "y") else None, "i": i}
        for i, (x, y) in enumerate(zip(line.x, line.y, strict=True))
        if axes.known(x, "x")
    ]
    layers.append(axes.at("line", path, stroke, order=order))
    if line.role != "reference":
        # without markers there are still places to point at
        shown = {"opacity": 1, "size": 46} if line.markers else {"opacity": 0, "size": 70}
        layers.append(_symbols(axes, [rows[i] for i in spread_evenly(len(rows), HOVER_POINTS)], sign, shown))
    return layers


def _points(axes: _Axes, points: Points, sign: Sign) -> Spec:
    rows = _labelled(axes, points)
    many = len(points.x) > 100
    shown: Spec = {"size": 30 if many else 46, "opacity": 0.7}
    if points.role in ("before", "chosen"):
        shown = {"size": 120, "opacity": 1}
    elif points.role == "reference":
        shown = {"size": 16, "opacity": 0.7}
    elif points.small:
        shown = {"size": 13, "opacity": 0.5}
    if points.open:
        shown |= {"filled": False, "strokeWidth": 1.8}
    if points.kinds is None:
        return _symbols(axes, rows, sign, shown)
    colour = {"field": "colour", "type": "nominal", "scale": None}
    return _symbols(axes, rows, sign, shown, color=colour)


def _symbols(axes: _Axes, rows: Sequence[Spec], sign: Sign, style: Spec, **encoding: Any) -> Spec:
    own = {"shape": sign.path, "color": sign.colour, "filled": True, **style}
    return axes.at("point", rows, own, tooltip={"field": "label"}, **encoding)


def _labelled(axes: _Axes, series: Line | Points) -> list[Spec]:
    """A row for each number that can be drawn, with its label."""
    low, high = getattr(series, "low", None), getattr(series, "high", None)
    kinds = getattr(series, "kinds", None)
    colours = kind_colours(len(axes.chart.kinds))
    rows = []
    for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if not axes.known(x, "x") or not axes.known(y, "y"):
            continue
        ends = (None, None) if low is None or high is None else (low[i], high[i])
        note = series.notes[i] if series.notes else ""
        row = {"x": x, "y": y, "label": axes.label(series.name, x, y, ends, note)}
        if axes.known(ends[0], "y") and axes.known(ends[1], "y"):
            row |= {"low": ends[0], "high": ends[1]}
        if kinds is not None:
            kind = kinds[i]
            row |= {"colour": colours[kind], "label": f"{axes.chart.kinds[kind]}, {series.name}"}
        rows.append(row)
    return rows


def _whiskers(axes: _Axes, rows: Sequence[Spec], colour: str, **encoding: Any) -> Layers:
    values = [{key: value for key, value in row.items() if key != "label"} for row in rows]
    ends = {"y": {"field": "low", **axes.y}, "y2": {"field": "high"}, **encoding}
    caps = {"orient": "horizontal", "size": 7, "thickness": 1.4, "color": colour}
    return [
        axes.at("rule", values, {"color": colour, "strokeWidth": 1.4}, **ends),
        axes.at("tick", values, caps, y={"field": "low", **axes.y}, **encoding),
        axes.at("tick", values, caps, y={"field": "high", **axes.y}, **encoding),
    ]


def _band(axes: _Axes, x: Numbers, low: Numbers, high: Numbers, colour: str) -> Spec:
    values = [
        {"x": a, "low": b, "high": c}
        for a, b, c in zip(x, low, high, strict=True)
        if axes.known(a, "x") and axes.known(b, "y") and axes.known(c, "y")
    ]
    ends = {"y": {"field": "low", **axes.y}, "y2": {"field": "high"}}
    return axes.at("area", values, {"color": colour, "opacity": 0.22}, **ends)


def _bars(axes: _Axes, bars: Bars, sign: Sign) -> Layers:
    number, count = next(n for n, one in enumerate(axes.bars) if one is bars), len(axes.bars)
    style: Spec = {"color": sign.colour, "orient": "vertical"}
    named = bool(axes.names)
    if named:
        offset = {"field": "s", "type": "nominal", "scale": {"domain": list(range(count)), "paddingInner": 0.08}}
        encoding: Spec = {"xOffset": offset} if count > 1 else {}
        rows = [{"x": axes.places[str(x)], "s": number, "name": str(x)} for x in bars.x]
    else:
        middles = [float(x) for x in bars.x if x is not None and not isinstance(x, str)]
        step = min((b - a for a, b in pairwise(middles)), default=1.0)
        width = 0.9 * step / count
        starts = [x - 0.45 * step + width * number for x in middles]
        encoding = {"x2": {"field": "x2"}}
        rows = [
            {"x": start, "x2": start + width, "middle": start + width / 2, "name": number_text(x)}
            for start, x in zip(starts, middles, strict=True)
        ]
    low, high = bars.low, bars.high
    whiskers = []
    for i, (row, y) in enumerate(zip(rows, bars.y, strict=True)):
        ends = (None, None) if low is None or high is None else (low[i], high[i])
        row |= {"y": y, "label": axes.label(bars.name, row.pop("name"), y, ends)}
        if axes.known(y, "y") and axes.known(ends[0], "y") and axes.known(ends[1], "y"):
            whiskers.append({**row, "x": row.get("middle", row["x"]), "low": ends[0], "high": ends[1]})
    known = [row for row in rows if axes.known(row["y"], "y")]
    layers = [axes.at("bar", known, style, tooltip={"field": "label"}, **encoding)]
    if whiskers:
        layers += _whiskers(axes, whiskers, SOFT, **(encoding if named else {}))
    return layers


def _dots(axes: _Axes, dots: Dots, sign: Sign) -> Layers:
    lane = {
        "field": "s",
        "type": "nominal",
        "scale": {"domain": list(range(len(axes.lanes))), "paddingOuter": 0.3},
    }
    form = axes.chart.x_format
    rows = []
    for i, (row, x, low, high) in enumerate(zip(dots.rows, dots.x, dots.low, dots.high, strict=True)):
        if not axes.known(x, "x"):
            continue
        name = dots.notes[i] if dots.notes else dots.name
        ends = (
            "" if low is None or high is None else f"\ninterval {number_text(low, form)} to {number_text(high, form)}"
        )
        label = f"{name}, {row}".rstrip(", ") + f"\n{axes.chart.x_label} {number_text(x, form)}{ends}"
        rows.append({"x": x, "y": row, "s": axes.lanes.index(dots.name), "low": low, "high": high, "label": label})
    offset = {"yOffset": lane} if len(axes.lanes) > 1 else {}
    if dots.role == "reference":
        return [_symbols(axes, rows, sign, {"size": 34, "opacity": 0.8}, **offset)]
    across = {"x": {"field": "low", **axes.x}, "x2": {"field": "high"}, **offset}
    whole = [{k: v for k, v in row.items() if k != "label"} for row in rows if row["low"] is not None]
    return [
        axes.at("rule", whole, {"color": sign.colour, "strokeWidth": 1.8}, **across),
        _symbols(axes, rows, sign, {"size": 95, "opacity": 1}, **offset),
    ]


def _span(axes: _Axes, span: Span) -> Spec:
    rows = zip(span.rows, span.low, span.high, strict=True)
    values = [{"x": low, "x2": high, "y": row} for row, low, high in rows if axes.known(low, "x")]
    return axes.at("bar", values, {"color": GREY, "opacity": 0.25}, x2={"field": "x2"})


def _rule(axes: _Axes, rule: Rule, number: int) -> Spec:
    style = {"color": GREY, "strokeWidth": 1.8, "strokeDash": _rule_dashes(number)}
    if rule.axis == "x":
        return axes.at("rule", [{"x": rule.at}], style, y=None)
    return axes.at("rule", [{"y": rule.at}], style, x=None)


def _rule_dashes(number: int) -> list[int]:
    # not solid, which is a series
    return list(SIGNS[(2, 1, 4, 3)[number % 4]].dashes)


# ranges


def _names(chart: Chart) -> list[str]:
    """The named places of the bars."""
    every = [x for mark in chart.marks if isinstance(mark, Bars) for x in mark.x]
    return list(dict.fromkeys(map(str, every))) if any(isinstance(x, str) for x in every) else []


def _shown(chart: Chart, axis: str) -> list[float]:
    """The numbers along an axis."""
    found: list[Any] = []
    for mark in chart.marks:
        if isinstance(mark, Rule):
            found += [mark.at] if mark.axis == axis else []
            continue
        parts = ("x",) if axis == "x" else ("y", "low", "high")
        for part in parts:
            values = getattr(mark, part, None)
            found += [] if values is None or isinstance(values, int | float) else list(values)
    return [float(value) for value in found if isinstance(value, int | float) and isfinite(value)]


def _ends(chart: Chart) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of both axes of a square chart: of its surfaces, or around its points."""
    ends = []
    for axis in "xy":
        values = _shown(chart, axis) or [0.0, 1.0]
        room = 0.0 if any(isinstance(mark, Surface) for mark in chart.marks) else 0.04 * (max(values) - min(values))
        low, high = min(values) - room, max(values) + room
        ends.append((low, high) if low < high else (low - 0.5, high + 0.5))
    return ends[0], ends[1]


def _square(across: float, up: float) -> tuple[int, int]:
    """Width and height of axes with one scale, within the room of a phone."""
    scale = min(290 / across, 290 / up)
    return max(round(across * scale), 60), max(round(up * scale), 60)


def _log_ticks(values: Iterable[float]) -> list[float]:
    """Powers of ten; where there are few of them, also twice and five times these; where there are many, some."""
    positive = [value for value in values if value > 0] or [1.0]
    first, last = floor(log10(min(positive))), ceil(log10(max(positive)))
    if log10(max(positive) / min(positive)) < 1.5:
        return [float(f"{part}e{power}") for power in range(first, last + 1) for part in (1, 2, 5)]
    step = max(round((last - first) / 6), 1)
    return [float(f"1e{power}") for power in range(first, last + 1, step)]


# the legend


def legend(chart: Chart, signs: Mapping[str, int]) -> list[Spec]:
    """The entries of a chart's legend: `name`, `colour`, and `path` of a point, `dashes` of a line or a `fill`.

    Examples
    --------
    >>> legend(Chart("", "", "", [Line([0], [0], "ours"), Rule(0.5, "truth")]), {"ours": 0})[1]
    {'name': 'truth (0.5)', 'colour': '#8C8C8C', 'dashes': [2, 3]}
    """
    entries: dict[str, Spec] = {}
    n_rules = n_surfaces = 0
    entry: Spec
    for mark in chart.marks:
        sign = _sign(mark, signs)
        match mark:
            case Rule():
                entry = {"name": f"{mark.name} ({number_text(mark.at, _form(chart, mark.axis))})", "colour": GREY}
                entry |= {"dashes": _rule_dashes(n_rules)}
                n_rules += 1
            case Surface():
                dashes = list(SIGNS[n_surfaces % len(SIGNS)].dashes)
                if n_surfaces == 0:
                    shade = f"{mark.name}, {mark.low:g} (light) to {mark.high:g} (dark)"
                    entries[shade] = {"name": shade, "colour": GREY, "fill": "shades"}
                n_surfaces += 1
                if mark.level is None:
                    continue
                entry = {"name": f"{mark.name} = {mark.level:g}", "colour": BOUNDARY, "dashes": dashes}
            case Area() | Span():
                entry = {"name": mark.name, "colour": GREY, "fill": "band"}
            case Bars():
                entry = {"name": mark.name, "colour": sign.colour, "fill": "bar"}
            case Line():
                entry = {"name": mark.name, "colour": sign.colour, "dashes": list(sign.dashes)}
                entry |= {"path": sign.path} if mark.markers and mark.role == "series" else {}
            case Points() | Dots():
                colour = GREY if isinstance(mark, Points) and mark.kinds is not None else sign.colour
                entry = {"name": mark.name, "colour": colour, "path": sign.path, "open": getattr(mark, "open", False)}
        # a cloud and a line of the same name are one entry
        entries[entry["name"]] = {**entries.get(entry["name"], {}), **entry}
    return list(entries.values())


def _form(chart: Chart, axis: str) -> str:
    return chart.x_format if axis == "x" else chart.y_format


# figures of a page


@dataclass(frozen=True)
class Figure:
    """What a template needs to show one chart.

    Attributes
    ----------
    id : str
        Unique within a section.
    chart : Chart
    about : str
        The chart in words.
    legend : list of dict
    heads, rows
        The table of its numbers, see `chart_table`.
    spec : dict
        In Vega-Lite.
    """

    id: str
    chart: Chart
    about: str
    legend: list[Spec]
    heads: list[str]
    rows: list[tuple[str, list[str]]]
    spec: Spec

    @property
    def wide(self) -> bool:
        """Whether the chart has so many named places that it needs the width of the page."""
        return len(_names(self.chart)) > MANY_NAMES


def figures(charts: Sequence[Chart], name: str = "chart", signs: Mapping[str, int] | None = None) -> list[Figure]:
    """Charts as figures of a page, with the same sign for the same name in all of them.

    Parameters
    ----------
    charts : sequence of Chart
    name : str
        What their ids begin with.
    signs : mapping of str to int, optional
        The place of each series among the signs.

    Examples
    --------
    >>> (figure,) = figures([Chart("Gap", "rows", "gap", [Line([10, 100], [0.5, 0.25], "ours")])])
    >>> figure.id, figure.rows
    ('chart-0', [('ours', ['10', '0.5']), ('ours', ['100', '0.25'])])
    """
    own = places(charts) if signs is None else [signs] * len(charts)
    return [
        Figure(
            f"{name}-{number}",
            chart,
            chart_in_words(chart),
            legend(chart, known),
            *chart_table(chart),
            vega_lite(chart, known),
        )
        for number, (chart, known) in enumerate(zip(charts, own, strict=True))
    ]
