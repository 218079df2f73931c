"""A surface on a grid as layers of a chart: shades of its values, and the contour line at one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from setminus.charts.chart import SIGNS, Numbers, Surface, spread_evenly

__all__ = ["BOUNDARY", "contour", "surface_layers"]

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
