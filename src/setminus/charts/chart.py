"""A chart as data: what is drawn, with which labels, how each series looks, and the same numbers as a table.

A series (a line, points, bars, dots) has a colour, and a dash and a shape that carry the same information in black
and white. The same name looks the same in all charts of an experiment (see `places`). Surfaces, areas, spans and rules
are grey background.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

__all__ = [
    "BOUNDARY",
    "SIGNS",
    "Area",
    "Bars",
    "Chart",
    "Dots",
    "Line",
    "Mark",
    "Points",
    "Rule",
    "Series",
    "Sign",
    "Span",
    "Surface",
    "chart_in_words",
    "chart_table",
    "contour",
    "kind_colours",
    "places",
    "sign_of",
    "spread_evenly",
    "surface_layers",
]

Numbers = Sequence[float | None]
"""None is a missing number, as in a record."""
Scale = Literal["linear", "log"]
Role = Literal["series", "reference", "before", "chosen"]
"""A reference is grey; `before` and `chosen` are the two points that a frontier compares."""


@dataclass(frozen=True)
class Line:
    """Points joined by a line; with `low` and `high` also error bars, or a band where there are many points.

    With `steps`, the line is the outline of a histogram whose bins have the middles `x`. `notes` are added to the
    label of each point.
    """

    x: Numbers
    y: Numbers
    name: str
    low: Numbers | None = None
    high: Numbers | None = None
    markers: bool = True
    steps: bool = False
    notes: Sequence[str] | None = None
    role: Role = "series"


@dataclass(frozen=True)
class Points:
    """A cloud of points of one shape; `kinds` are indices into the chart's kinds and give each point its colour."""

    x: Numbers
    y: Numbers
    name: str
    kinds: Sequence[int] | None = None
    notes: Sequence[str] | None = None
    role: Role = "series"
    open: bool = False
    small: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars at named places, or at numbers (a histogram whose `x` are the middles of equal bins)."""

    x: Sequence[float | None] | Sequence[str]
    y: Numbers
    name: str
    low: Numbers | None = None
    high: Numbers | None = None


@dataclass(frozen=True)
class Dots:
    """Values with intervals on named rows, one row below the other."""

    rows: Sequence[str]
    x: Numbers
    low: Numbers
    high: Numbers
    name: str
    notes: Sequence[str] | None = None
    role: Role = "series"


@dataclass(frozen=True)
class Span:
    """A band from `low` to `high` on each named row, behind the dots."""

    rows: Sequence[str]
    low: Numbers
    high: Numbers
    name: str


@dataclass(frozen=True)
class Surface:
    """A function of the plane, ``values[row][column]`` at ``(x[column], y[row])``, between `low` and `high`.

    Drawn as shades with the contour at `level`, such as a classifier's probability with its boundary.
    """

    x: Numbers
    y: Numbers
    values: Sequence[Numbers]
    name: str
    low: float = 0.0
    high: float = 1.0
    level: float | None = 0.5


@dataclass(frozen=True)
class Area:
    """The area between two curves, such as the interval that a claim allows."""

    x: Numbers
    low: Numbers
    high: Numbers
    name: str


@dataclass(frozen=True)
class Rule:
    """A straight line across the whole chart at one value, such as a known truth."""

    at: float
    name: str
    axis: Literal["x", "y"] = "y"


Series = Line | Points | Bars | Dots
Mark = Series | Surface | Area | Span | Rule


@dataclass(frozen=True)
class Chart:
    """One pair of axes.

    Attributes
    ----------
    title, x_label, y_label : str
    marks : sequence of marks
        In the order in which they are drawn and named in the legend.
    caption : str
        The paper's claim and the result.
    x_scale, y_scale : "linear" or "log"
    square : bool
        Draw both axes to the same scale, as for a plane of features.
    kinds : sequence of str
        Names of the kinds of points, where clouds have several: each has a colour.
    x_range, y_range : (float, float), optional
        Ends of the axis; by default all marks are in view.
    x_format, y_format : "" or "%"
        How the axis writes its numbers.
    height : int, optional
        Of the axes, in pixels.

    Examples
    --------
    >>> Chart("Gap", "rows", "gap", [Line([10, 100], [0.5, 0.25], "ours"), Rule(0.0, "fair")]).title
    'Gap'
    """

    title: str
    x_label: str
    y_label: str
    marks: Sequence[Mark]
    caption: str = ""
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    square: bool = False
    kinds: Sequence[str] = ()
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_format: Literal["", "%"] = ""
    y_format: Literal["", "%"] = ""
    height: int | None = None


# how series look


@dataclass(frozen=True)
class Sign:
    """How one series is drawn.

    Attributes
    ----------
    colour : str
    path : str
        The shape of its points, as an SVG path within -1 to 1.
    dashes : tuple of int
        Lengths of dashes and gaps of its line; empty for a solid line.
    """

    colour: str
    path: str
    dashes: tuple[int, ...]


CIRCLE = "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0Z"
STAR = "M0 -1.5L.36 -.48L1.43 -.46L.57 .18L.88 1.21L0 .6L-.88 1.21L-.57 .18L-1.43 -.46L-.36 -.48Z"
GREY, CHOSEN = "#8C8C8C", "#D55E00"
# Okabe and Ito's colours that are visible on white and on black
SIGNS = (
    Sign("#E08A00", CIRCLE, ()),
    Sign("#3A87C8", "M0 -1.2L1.2 0L0 1.2L-1.2 0Z", (7, 4)),
    Sign("#009E73", "M-.9 -.9H.9V.9H-.9Z", (2, 3)),
    Sign("#CC79A7", "M0 -1.1L1.15 .9H-1.15Z", (7, 3, 2, 3)),
    Sign("#D55E00", "M-.35 -1.1H.35V-.35H1.1V.35H.35V1.1H-.35V.35H-1.1V-.35H-.35Z", (11, 4)),
    Sign(
        "#7A6FD0",
        "M-1.1 -.6L-.6 -1.1L0 -.5L.6 -1.1L1.1 -.6L.5 0L1.1 .6L.6 1.1L0 .5L-.6 1.1L-1.1 .6L-.5 0Z",
        (10, 3, 2, 3),
    ),
)
ROLES = {"reference": Sign(GREY, CIRCLE, (2, 4)), "before": Sign(GREY, CIRCLE, ()), "chosen": Sign(CHOSEN, STAR, ())}
MAX_HUES = 6
"""More colours than these are hard to tell apart by hue alone."""


def sign_of(place: int) -> Sign:
    """The sign of the series at a place; the first 36 are different.

    Examples
    --------
    >>> len({(sign_of(place).colour, sign_of(place).dashes) for place in range(36)})
    36
    """
    own = SIGNS[place % len(SIGNS)]
    return Sign(own.colour, own.path, SIGNS[(place + place // len(SIGNS)) % len(SIGNS)].dashes)


def kind_colours(count: int) -> list[str]:
    """A colour for each kind of points, around the wheel: kinds that are near in their order look related.

    Examples
    --------
    >>> kind_colours(3)
    ['#cf3f3f', '#3fcf3f', '#3f3fcf']
    """
    colours = []
    for place in range(count):
        # as light as reads on white and on black; of many kinds every other one is darker
        light = 0.53 - 0.12 * (place % 2) * (count > MAX_HUES)
        red, green, blue = (round(255 * part) for part in hls_to_rgb(place / count, light, 0.6))
        colours.append(f"#{red:02x}{green:02x}{blue:02x}")
    return colours


def places(charts: Sequence[Chart]) -> list[dict[str, int]]:
    """For each chart, the place of each of its series by name.

    As long as there are signs enough, a name has one place in all charts; beyond that each chart starts anew.

    Examples
    --------
    >>> line = lambda name: Line([0], [0], name)
    >>> places([Chart("", "", "", [line("a"), line("b")]), Chart("", "", "", [line("b")])])
    [{'a': 0, 'b': 1}, {'b': 1}]
    """
    names = [
        list(
            dict.fromkeys(
                m.name for m in chart.marks if isinstance(m, Series) and getattr(m, "role", "series") == "series"
            )
        )
        for chart in charts
    ]
    every = list(dict.fromkeys(name for some in names for name in some))
    return [{name: (every if len(every) <= len(SIGNS) else some).index(name) for name in some} for some in names]


# the same chart in words and numbers, for those who do not see it and those who want to read it exactly

MAX_ROWS = 40
"""Rows of a series in the table, and cells of a surface: the record has them all."""


def chart_in_words(chart: Chart) -> str:
    """A few sentences with the first and last number of each mark.

    Examples
    --------
    >>> chart_in_words(Chart("Gap", "rows", "gap", [Line([10, 100], [0.5, 0.25], "ours"), Rule(0.0, "fair")]))
    'Gap. ours: 0.5 at 10 to 0.25 at 100. fair: 0. All numbers are in the table below.'
    """
    return " ".join([f"{chart.title}.", *map(_sentence, chart.marks), "All numbers are in the table below."])


def chart_table(chart: Chart) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The heads of a chart's columns, and its rows: the name of a mark, and the text of each cell.

    A long series is thinned evenly, keeping both ends; a surface is thinned to a coarse grid.

    Examples
    --------
    >>> chart_table(Chart("Gap", "rows", "gap", [Line([10], [0.5], "ours", low=[0.4], high=[0.6])]))
    (['rows', 'gap', 'from', 'to'], [('ours', ['10', '0.5', '0.4', '0.6'])])
    """
    cells = [(mark.name, row) for mark in chart.marks for row in _cells(mark, chart)]
    heads = (chart.x_label, chart.y_label, "value", "from", "to", "kind")
    used = [place for place in range(len(heads)) if any(row[place] is not None for _, row in cells)]
    return [heads[place] for place in used], [(name, [_text(row[place]) for place in used]) for name, row in cells]


def spread_evenly(count: int, most: int) -> Sequence[int]:
    """At most so many of `count` indices, evenly and with both ends.

    Examples
    --------
    >>> spread_evenly(7, 3), list(spread_evenly(2, 3))
    ([0, 3, 6], [0, 1])
    """
    if count <= most:
        return range(count)
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _cells(mark: Mark, chart: Chart) -> Iterator[tuple[Any, Any, Any, Any, Any, Any]]:
    """For each number: x, y, value, low, high, kind."""
    match mark:
        case Surface():
            side = int(MAX_ROWS**0.5)
            for row in spread_evenly(len(mark.y), side):
                for column in spread_evenly(len(mark.x), side):
                    yield mark.x[column], mark.y[row], mark.values[row][column], None, None, None
        case Rule():
            x, y = (None, mark.at) if mark.axis == "y" else (mark.at, None)
            yield x, y, None, None, None, None
        case Area():
            for i in spread_evenly(len(mark.x), MAX_ROWS):
                yield mark.x[i], None, None, mark.low[i], mark.high[i], None
        case Span():
            for name, low, high in zip(mark.rows, mark.low, mark.high, strict=True):
                yield None, name, None, low, high, None
        case Dots():
            for name, x, low, high in zip(mark.rows, mark.x, mark.low, mark.high, strict=True):
                yield x, name, None, low, high, None
        case Points():
            for i in spread_evenly(len(mark.x), MAX_ROWS):
                kind = None if mark.kinds is None else chart.kinds[mark.kinds[i]]
                yield mark.x[i], mark.y[i], None, None, None, kind
        case Line() | Bars():
            for i in spread_evenly(len(mark.x), MAX_ROWS):
                ends = (None, None) if mark.low is None or mark.high is None else (mark.low[i], mark.high[i])
                yield mark.x[i], mark.y[i], None, *ends, None


def _sentence(mark: Mark) -> str:
    match mark:
        case Rule():
            return f"{mark.name}: {_text(mark.at)}."
        case Surface():
            found = [value for row in mark.values for value in row if value is not None]
            return f"{mark.name}: from {_text(min(found, default=None))} to {_text(max(found, default=None))}."
        case Points() if len(mark.x) != 1:
            return f"{mark.name}: {len(mark.x)} points."
        case Span():
            bands = zip(mark.rows, mark.low, mark.high, strict=True)
            spans = [f"{row} {_text(low)} to {_text(high)}" for row, low, high in bands]
            return f"{mark.name}: {', '.join(spans)}."
        case Dots():
            values = [f"{row} {_text(x) or 'undefined'}" for row, x in zip(mark.rows, mark.x, strict=True)]
            return f"{mark.name}: {', '.join(values)}."
        case _ if not len(mark.x):
            return f"{mark.name}: nothing."
        case Area():
            ends = [f"{_text(mark.low[i])} to {_text(mark.high[i])} at {_text(mark.x[i])}" for i in (0, -1)]
        case _:
            ends = [f"{_text(mark.y[i])} at {_text(mark.x[i])}" for i in (0, -1)]
    return f"{mark.name}: {' to '.join(ends[: len(mark.x)])}."


def _text(value: Any) -> str:
    if value is None:
        return ""
    # adding 0 makes a zero of minus zero
    return value if isinstance(value, str) else f"{value + 0.0:.4g}"


Spec = dict[str, Any]
Layer = Callable[..., Spec]
"""Makes a layer of a chart from a type of mark, its values, its style and more encodings."""
BOUNDARY = "#C2255C"
"""The colour of contour lines."""
CELLS = 41
"""Along a side of a drawn surface."""


def surface_layers(at: Layer, surface: Surface, number: int) -> list[Spec]:
    """The layers of a surface: shades where it is the first of a chart, and the contour at its level."""
    layers: list[Spec] = []
    if number == 0:
        # a second one would hide the first
        layers.append(_shades(at, surface))
    if surface.level is not None:
        dashes = SIGNS[number % len(SIGNS)].dashes
        style: Spec = {"color": BOUNDARY, "strokeWidth": 2.2, **({"strokeDash": list(dashes)} if dashes else {})}
        paths = contour(surface.x, surface.y, surface.values, surface.level)
        points = [{"x": x, "y": y, "i": i, "path": n} for n, path in enumerate(paths) for i, (x, y) in enumerate(path)]
        each = {"detail": {"field": "path"}, "order": {"field": "i", "type": "quantitative"}}
        layers.append(at("line", points, style, **each))
    return layers


def _shades(at: Layer, surface: Surface) -> Spec:
    columns, rows = (spread_evenly(len(side), CELLS) for side in (surface.x, surface.y))
    xs, ys = [surface.x[c] for c in columns], [surface.y[r] for r in rows]
    cells = []
    for row, (y, y2) in zip(rows, _edges(ys), strict=True):
        for column, (x, x2) in zip(columns, _edges(xs), strict=True):
            value = surface.values[row][column]
            if value is not None:
                label = f"{surface.name} {value:.3f}"
                cell = {"x": x, "x2": x2, "y": y, "y2": y2, "value": round(value, 4), "label": label}
                cells.append(cell)
    # grey that lets the page through: it reads on white, on black and on paper
    shade = {
        "field": "value",
        "type": "quantitative",
        "legend": None,
        "scale": {"domain": [surface.low, surface.high], "range": [0.04, 0.5]},
    }
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "opacity": shade, "tooltip": {"field": "label"}}
    return at("rect", cells, {"color": "#808080", "strokeWidth": 0, "clip": True}, **ends)


def _edges(middles: Sequence[Any]) -> list[tuple[float, float]]:
    """The ends of the cells around their middles; the outer ones end at theirs."""
    inner = [(a + b) / 2 for a, b in pairwise(middles)]
    edges = [middles[0], *inner, middles[-1]]
    return [(round(a, 5), round(b, 5)) for a, b in pairwise(edges)]


def contour(x: Numbers, y: Numbers, values: Sequence[Numbers], level: float) -> list[list[tuple[float, float]]]:
    """The lines along which a surface has one value, by marching through its cells.

    Examples
    --------
    >>> contour([0, 1], [0, 1], [[0.0, 1.0], [0.0, 1.0]], 0.25)
    [[(0.25, 0.0), (0.25, 1.0)]]
    """
    segments = []
    for r in range(len(y) - 1):
        for c in range(len(x) - 1):
            corners = [(c, r), (c + 1, r), (c + 1, r + 1), (c, r + 1)]
            known = [values[j][i] for i, j in corners]
            if any(value is None for value in known):
                continue
            cuts = []
            for k in range(4):
                (i, j), (i2, j2) = corners[k], corners[(k + 1) % 4]
                a, b = float(values[j][i] or 0.0), float(values[j2][i2] or 0.0)
                if (a < level) != (b < level):
                    t = (level - a) / (b - a)
                    ends = [float(side or 0.0) for side in (x[i], x[i2], y[j], y[j2])]
                    cuts.append(
                        (round(ends[0] + t * (ends[1] - ends[0]), 5), round(ends[2] + t * (ends[3] - ends[2]), 5))
                    )
            # a level that only touches a corner has no length there
            segments += [tuple(cuts[k : k + 2]) for k in range(0, len(cuts), 2) if cuts[k] != cuts[k + 1]]
    return _joined(segments)


def _joined(segments: Sequence[tuple[Any, ...]]) -> list[list[tuple[float, float]]]:
    """Segments end to end, as paths: dashes run on across them."""
    ends: dict[Any, list[int]] = {}
    for number, segment in enumerate(segments):
        for point in segment:
            ends.setdefault(point, []).append(number)
    left = set(range(len(segments)))
    paths = []

    def follow(point: Any) -> list[Any]:
        path = [point]
        while found := [number for number in ends[path[-1]] if number in left]:
            left.remove(found[0])
            a, b = segments[found[0]]
            path.append(b if a == path[-1] else a)
        return path

    # from open ends first, then around closed ones
    for point in sorted(ends, key=lambda point: len(ends[point]) != 1):
        path = follow(point)
        if len(path) > 1:
            paths.append(path)
    return paths
