"""A chart in words and numbers, for those who do not see it and those who want to read it exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from setminus.report.charts.chart import Area, Bars, Chart, Line, Points, Rule, Surface

__all__ = ["chart_in_words", "chart_table"]

MOST_ROWS = 40
"""Points of a series, and values along a side of a surface times that of the other: the record has them all."""
Row = tuple[str, list[str]]


def chart_in_words(chart: Chart) -> str:
    """What a chart shows, in a few sentences.

    Examples
    --------
    >>> chart_in_words(Chart("Gap", "rows", "gap", [Line([10, 100], [0.5, 0.25], "ours"), Rule(0.0, "fair")]))
    'Gap. ours: 0.5 at 10 to 0.25 at 100. fair: 0. All numbers are in the table below.'
    """
    return " ".join([f"{chart.title}.", *map(_sentence, chart.marks), "All numbers are in the table below."])


def chart_table(chart: Chart) -> tuple[list[str], list[Row]]:
    """The heads of a chart's columns, and its rows: the name of a mark, and the text of each cell.

    Of long series some rows are taken, evenly and with both ends; of a surface, a coarse grid.

    Examples
    --------
    >>> chart_table(Chart("Gap", "rows", "gap", [Line([10], [0.5], "ours", low=[0.4], high=[0.6])]))
    (['rows', 'gap', 'from', 'to'], [('ours', ['10', '0.5', '0.4', '0.6'])])
    """
    cells = [(mark.name, row) for mark in chart.marks for row in _cells(mark, chart)]
    heads = (chart.x_label, chart.y_label, "value", "from", "to", "kind")
    used = [place for place in range(len(heads)) if any(row[place] is not None for _, row in cells)]
    return [heads[place] for place in used], [(name, [_text(row[place]) for place in used]) for name, row in cells]


def _cells(mark: Any, chart: Chart) -> Iterator[tuple[Any, Any, Any, Any, Any, Any]]:
    """Of each number: x, y, value, low, high, kind."""
    match mark:
        case Surface():
            side = int(MOST_ROWS**0.5)
            for row in _spread(len(mark.y), side):
                for column in _spread(len(mark.x), side):
                    yield mark.x[column], mark.y[row], mark.values[row][column], None, None, None
        case Rule():
            x, y = (None, mark.at) if mark.axis == "y" else (mark.at, None)
            yield x, y, None, None, None, None
        case Area():
            for place in _spread(len(mark.x), MOST_ROWS):
                yield mark.x[place], None, None, mark.low[place], mark.high[place], None
        case Points():
            for place in _spread(len(mark.x), MOST_ROWS):
                kind = None if mark.kinds is None else chart.kinds[mark.kinds[place]]
                yield mark.x[place], mark.y[place], None, None, None, kind
        case Line() | Bars():
            low, high = mark.low, mark.high
            for place in _spread(len(mark.x), MOST_ROWS):
                ends = (None, None) if low is None or high is None else (low[place], high[place])
                yield mark.x[place], mark.y[place], None, *ends, None


def _sentence(mark: Any) -> str:
    match mark:
        case Rule():
            return f"{mark.name}: {_text(mark.at)}."
        case Surface():
            found = [value for row in mark.values for value in row if value is not None]
            return f"{mark.name}: from {_text(min(found, default=None))} to {_text(max(found, default=None))}."
        case Points():
            return f"{mark.name}: {len(mark.x)} points."
        case Area():
            first, last = (f"{_text(mark.low[i])} to {_text(mark.high[i])} at {_text(mark.x[i])}" for i in (0, -1))
        case _ if not len(mark.x):
            return f"{mark.name}: nothing."
        case _:
            first, last = (f"{_text(mark.y[i])} at {_text(mark.x[i])}" for i in (0, -1))
    return f"{mark.name}: {first} to {last}."


def _spread(count: int, most: int) -> Sequence[int]:
    if count <= most:
        return range(count)
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    # adding 0 makes a zero of minus zero
    return value if isinstance(value, str) else f"{value + 0.0:.4g}"
