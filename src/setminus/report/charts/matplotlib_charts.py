"""Charts as one picture file, drawn with matplotlib."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setminus.errors import MissingExtraError, UserError
from setminus.files import atomic_write
from setminus.report.charts.chart import Area, Bars, Chart, Line, Numbers, Points, Rule, Surface
from setminus.report.charts.signs import BOUNDARY, DASHES, GREY, MANY_POINTS, kind_colours, look, places
from setminus.report.theme import SIGNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "save_figure"]

COLOURS = 128
"""Of a picture file of charts."""
NAME_WIDTH = 14
"""Letters of a line of a bar's name: longer ones run into each other."""

# what plotly calls these, in the same order as its signs
MARKERS = dict(zip(("circle", "diamond", "square", "triangle-up", "cross", "x"), "oDs^PX", strict=True))
STYLES: dict[str, Any] = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dot": (0, (1.2, 1.6)),
    "dashdot": (0, (5, 2, 1.2, 2)),
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 2.5, 1.2, 2.5)),
}


def draw(charts: Sequence[Chart], path: str | os.PathLike[str], *, columns: int = 3) -> None:
    """Draw charts side by side, with what each shows above it.

    The same charts give the same file.

    Parameters
    ----------
    charts : sequence of Chart
    path : path
        A PNG file.
    columns : int
        Charts in a row, at most.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("the picture", "matplotlib", extra="cli") from error
    if not charts:
        raise UserError("no charts came", do="a picture needs at least one.")
    # four would leave one alone below three
    columns = min(columns, len(charts)) if len(charts) != columns + 1 else -(-len(charts) // 2)
    rows = -(-len(charts) // columns)
    # not pyplot: that would ask for a display, and keep the figure
    lines = max(-(-len(chart.marks) // _legend_columns(chart)) for chart in charts)
    figure = Figure(figsize=(4.6 * columns, (3.4 + 0.19 * lines) * rows), dpi=110, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, chart, signs in zip(grid, charts, places(charts), strict=False):
        _draw_chart(axes, chart, signs)
    for axes in grid[len(charts) :]:
        axes.set_axis_off()
    save_figure(figure, Path(path))


def save_figure(figure: Figure, path: Path, *, colours: int = COLOURS) -> None:
    """Write a PNG with as few colours as charts have use for: a third of the bytes, and no difference to see."""
    from PIL import Image

    full = io.BytesIO()
    figure.savefig(full, format="png")
    with Image.open(full) as image, atomic_write(path) as partial:
        few = image.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        few.save(partial, format="PNG", optimize=True)


def _draw_chart(axes: Axes, chart: Chart, signs: Mapping[str, int]) -> None:
    # before the ticks: a new scale would forget their names
    axes.set(xscale=chart.x_scale, yscale=chart.y_scale)
    count = sum(isinstance(mark, Bars) for mark in chart.marks)
    n_bars = n_rules = n_surfaces = 0
    for mark in chart.marks:
        match mark:
            case Line():
                _draw_line(axes, mark, signs[mark.name])
            case Points():
                _draw_points(axes, mark, signs[mark.name], kind_colours(len(chart.kinds)))
            case Bars():
                _draw_bars(axes, mark, signs[mark.name], n_bars, count)
                n_bars += 1
            case Surface():
                _draw_surface(axes, mark, n_surfaces)
                n_surfaces += 1
            case Area():
                ends = _floats(mark.low), _floats(mark.high)
                axes.fill_between(_floats(mark.x), *ends, color=GREY, alpha=0.25, linewidth=0, label=_plain(mark.name))
            case Rule():
                line = axes.axhline if mark.axis == "y" else axes.axvline
                dashes = STYLES[DASHES[n_rules % len(DASHES)]]
                line(mark.at, color="0.45", linestyle=dashes, label=_plain(f"{mark.name} ({mark.at:.4g})"), zorder=1.5)
                n_rules += 1
    axes.set(xlabel=_plain(chart.x_label), ylabel=_plain(chart.y_label))
    for axis, scale in ((axes.xaxis, chart.x_scale), (axes.yaxis, chart.y_scale)):
        if scale == "log":
            _label_few_decades(axis)
    if chart.square:
        axes.set_aspect("equal")
    axes.spines[["top", "right"]].set_visible(False)
    # as the legend's own, so that the title stands above it
    axes.legend(
        title=_plain(fill(chart.title, 42)),
        title_fontproperties={"weight": "bold"},
        alignment="left",
        fontsize="small",
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        borderaxespad=0.2,
        ncols=_legend_columns(chart),
        frameon=False,
        columnspacing=1.2,
    )


def _legend_columns(chart: Chart) -> int:
    # what is added to the name of a contour or a rule needs room, too
    widths = [len(mark.name) + (8 if isinstance(mark, Surface | Rule) else 0) for mark in chart.marks]
    return 2 if len(widths) > 1 and max(widths) <= 22 else 1


def _draw_line(axes: Axes, line: Line, place: int) -> None:
    own = look(place)
    x, y = _floats(line.x), _floats(line.y)
    style: dict[str, Any] = {
        "color": own.colour,
        "linestyle": STYLES[SIGNS[own.dash].dash],
        "marker": MARKERS[SIGNS[own.symbol].symbol] if line.markers else None,
        "markersize": 4.5,
        "linewidth": 1.7,
        "label": _plain(line.name),
    }
    if line.low is None or line.high is None:
        axes.plot(x, y, **style)
    elif len(line.x) <= MANY_POINTS:
        axes.errorbar(x, y, yerr=_reach(line.y, line.low, line.high), capsize=2.5, elinewidth=1.2, **style)
    else:
        axes.fill_between(x, _floats(line.low), _floats(line.high), color=own.colour, alpha=0.22, linewidth=0)
        axes.plot(x, y, **style)


def _draw_points(axes: Axes, points: Points, place: int, colours: Sequence[str]) -> None:
    own = look(place)
    style: dict[str, Any] = {
        "s": 26 if len(points.x) <= 100 else 14,
        "marker": MARKERS[SIGNS[own.symbol].symbol],
        "alpha": 0.7,
    }
    x, y, name = _floats(points.x), _floats(points.y), _plain(points.name)
    if points.kinds is None:
        axes.scatter(x, y, c=own.colour, label=name, **style)
    else:
        axes.scatter(x, y, c=[colours[kind] for kind in points.kinds], **style)
        # in the legend the shape alone, and not the kind of the first point
        axes.scatter([], [], c=GREY, label=name, **style)


def _label_few_decades(axis: Any) -> None:
    """Plain numbers at 1, 2 and 5, where powers of ten would be too few: labels of all parts run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < low * 10**1.5:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def _draw_bars(axes: Axes, bars: Bars, place: int, number: int, count: int) -> None:
    own = look(place)
    names = [str(name) for name in bars.x] if any(isinstance(name, str) for name in bars.x) else None
    middles = np.arange(len(names), dtype=float) if names else _floats(bars.x)
    step = float(np.min(np.diff(np.sort(middles)))) if len(middles) > 1 else 1.0
    width = 0.84 * step / count
    reach = None if bars.low is None or bars.high is None else _reach(bars.y, bars.low, bars.high)
    axes.bar(
        middles + width * (number - (count - 1) / 2),
        _floats(bars.y),
        width,
        color=own.colour,
        hatch=own.hatch * 2,
        edgecolor="white",
        linewidth=0,
        yerr=reach,
        capsize=2.5,
        ecolor="0.3",
        label=_plain(bars.name),
    )
    if names:
        axes.set_xticks(middles, [fill(_plain(name), NAME_WIDTH) for name in names], fontsize="small")


def _draw_surface(axes: Axes, surface: Surface, number: int) -> None:
    x, y, values = _floats(surface.x), _floats(surface.y), np.array([_floats(row) for row in surface.values])
    if number == 0:
        shades = axes.pcolormesh(
            x,
            y,
            values,
            vmin=surface.low,
            vmax=surface.high,
            cmap=_shades(),
            shading="nearest",
            rasterized=True,
        )
        if axes.figure is not None:
            # beside the axes wherever these end up: square ones are narrower than their share
            scale = axes.figure.colorbar(shades, cax=axes.inset_axes((1.03, 0, 0.04, 1)))
            scale.set_label(_plain(surface.name), fontsize="small")
            scale.ax.tick_params(labelsize="small")
    if surface.level is not None:
        style = STYLES[SIGNS[number % len(SIGNS)].dash]
        axes.contour(x, y, values, levels=[surface.level], colors=BOUNDARY, linewidths=2, linestyles=[style])
        # a contour has no entry of its own
        axes.plot(
            [], [], color=BOUNDARY, linestyle=style, linewidth=2, label=_plain(f"{surface.name} = {surface.level:g}")
        )


def _shades() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("shades", ["#FAFAFA", "#A6A6A6"])


def _reach(y: Numbers, low: Numbers, high: Numbers) -> NDArray[np.float64]:
    """How far the whiskers go down and up."""
    middle = _floats(y)
    return np.stack([middle - _floats(low), _floats(high) - middle]).clip(min=0)


def _floats(numbers: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([np.nan if number is None else float(number) for number in numbers])


def _plain(text: str) -> str:
    """Text without formulas: a dollar would begin one."""
    return text.replace("$", r"\$")
