"""Which series looks how: the same name, the same sign, in every chart of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass

from setminus.report.charts.chart import Bars, Chart, Line, Points
from setminus.report.theme import SIGNS

__all__ = ["BOUNDARY", "DASHES", "GREY", "HATCHES", "MANY_POINTS", "Look", "kind_colours", "look", "places"]

GREY, BOUNDARY = "#8C8C8C", "#C2255C"
"""Of areas and rules, and of a surface's contour, which no series has."""
HATCHES = ("", "/", "x", "-", ".", "\\")
"""Of bars, in names that plotly and matplotlib share."""
DASHES = ("dot", "dash", "longdash", "dashdot")
"""Of rules, which have no colour of their own."""
MANY_POINTS = 12
"""A line with more has a band around it instead of error bars."""

MANY_KINDS = 6
"""More hues than these are hard to tell by hue alone."""


@dataclass(frozen=True)
class Look:
    """How a series is drawn: a place among `SIGNS` for its colour and shape, one for its dash, one for its hatching."""

    colour: str
    symbol: int
    dash: int
    hatch: str


def look(place: int) -> Look:
    """The look of the series at a place; no two of the first 36 are alike.

    Examples
    --------
    >>> len({(look(place).colour, look(place).dash) for place in range(36)})
    36
    """
    turn = place + place // len(SIGNS)
    symbol = place % len(SIGNS)
    return Look(SIGNS[symbol].colour, symbol, turn % len(SIGNS), HATCHES[turn % len(HATCHES)])


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
        light = 0.53 - 0.12 * (place % 2) * (count > MANY_KINDS)
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
        list(dict.fromkeys(mark.name for mark in chart.marks if isinstance(mark, Line | Points | Bars)))
        for chart in charts
    ]
    every = list(dict.fromkeys(name for some in names for name in some))
    return [{name: (every if len(every) <= len(SIGNS) else some).index(name) for name in some} for some in names]
