"""A chart as data: what is drawn, in which role, with which labels; renderers decide how.

A series (a line, points, bars) has a colour, and a dash, a shape and a hatching that say the same in black and white;
what has the same name looks the same in all charts of an experiment (see `signs`). Surfaces, areas and rules are the
ground that the series stand on, and grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Area", "Bars", "Chart", "Line", "Mark", "Points", "Rule", "Series", "Surface"]

Numbers = Sequence[float | None]
"""None is where there is no number, as in a record."""
Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Line:
    """Points joined by a line; with `low` and `high` also error bars, or around many points a band."""

    x: Numbers
    y: Numbers
    name: str
    low: Numbers | None = None
    high: Numbers | None = None
    markers: bool = True


@dataclass(frozen=True)
class Points:
    """A cloud of points of one shape; `kinds` are places among those of the chart, and give each point its colour."""

    x: Numbers
    y: Numbers
    name: str
    kinds: Sequence[int] | None = None


@dataclass(frozen=True)
class Bars:
    """Bars at named places, or at numbers (a histogram whose `x` are the middles of equal bins)."""

    x: Sequence[float | None] | Sequence[str]
    y: Numbers
    name: str
    low: Numbers | None = None
    high: Numbers | None = None


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
    """The area between two curves, for an interval that a claim allows."""

    x: Numbers
    low: Numbers
    high: Numbers
    name: str


@dataclass(frozen=True)
class Rule:
    """A straight line across the whole chart at one value, such as a truth to compare with."""

    at: float
    name: str
    axis: Literal["x", "y"] = "y"


Series = Line | Points | Bars
Mark = Series | Surface | Area | Rule


@dataclass(frozen=True)
class Chart:
    """One pair of axes.

    Attributes
    ----------
    title, x_label, y_label : str
    marks : sequence of marks
        In the order in which they are drawn and named in the legend.
    caption : str
        What the paper claims and what is seen.
    x_scale, y_scale : "linear" or "log"
    square : bool
        Draw both axes to the same scale, as for a plane of features.
    kinds : sequence of str
        Names of the kinds of points, where clouds have several: each has a colour.
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
