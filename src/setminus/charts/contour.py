"""Contour lines of a surface on a grid, by marching through its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.charts.chart import Numbers

__all__ = ["contour"]


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


def _between(start: Any, end: Any, part: float) -> float:
    return round(float(start + part * (end - start)), 5)


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
