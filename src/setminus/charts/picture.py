"""Charts as a picture: a notebook shows it, and a PNG or SVG file keeps it."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from setminus.charts.chart import Chart, places
from setminus.charts.vega import CONFIG, INK, SCHEMA, Spec, legend, view
from setminus.errors import MissingExtraError, UserError
from setminus.files import atomic_write

__all__ = ["Plot", "draw", "plot"]

Layers = list[Spec]

WIDTH = 330
"""Width of the axes of a chart, in pixels."""
LINE_HEIGHT = 17
"""Height of a line of the legend and the title, in pixels."""
FILLS: dict[str, tuple[float, ...]] = {"bar": (1.0,), "band": (0.3,), "shades": (0.1, 0.25, 0.4)}
"""How opaque the parts of a swatch are."""


def plot(
    charts: Sequence[Chart],
    *,
    columns: int = 3,
    widths: Sequence[int] | None = None,
    title: str = "",
    signs: Mapping[str, int] | None = None,
) -> Plot:
    """Charts side by side, each below its title and its legend.

    Parameters
    ----------
    charts : sequence of Chart
    columns : int
        Charts in a row, at most.
    widths : sequence of int, optional
        Of the axes of each column, in pixels.
    title : str
        Above all of them.
    signs : mapping of str to int, optional
        The place of each series among the signs.

    Examples
    --------
    >>> from setminus.charts.chart import Line
    >>> plot([Chart("Gap", "rows", "gap", [Line([10, 100], [0.5, 0.25], "ours")])])
    Plot: shown by a notebook, written to a file by save('plot.png')
    """
    if not charts:
        raise UserError("there are no charts", do="a picture needs at least one.")
    # four would leave one alone below three
    columns = min(columns, len(charts)) if len(charts) != columns + 1 else -(-len(charts) // 2)
    widths = widths or [WIDTH] * columns
    cells = []
    own = places(charts) if signs is None else [signs] * len(charts)
    before: list[Spec] = []
    for number, (chart, known) in enumerate(zip(charts, own, strict=True)):
        axes, entries = view(chart, known, widths[number % columns]), legend(chart, known)
        # beside a chart with the same legend there is no need to repeat it
        repeated = number % columns > 0 and entries == before
        cells.append((axes, _above(chart, [] if repeated else entries, axes["width"])))
        before = entries
    rows = []
    for start in range(0, len(cells), columns):
        row = cells[start : start + columns]
        # the same room above all of a row, so that the axes begin at one height
        room = max(height for _, (height, _) in row)
        views = [{**axes, "layer": [*axes["layer"], *place(room)]} for axes, (_, place) in row]
        rows.append({"hconcat": views, "spacing": 34})
    whole = rows[0] if len(rows) == 1 else {"vconcat": rows, "spacing": 30}
    above = (
        {"title": {"text": title, "anchor": "start", "offset": 14, "fontSize": 13, "fontWeight": "normal"}}
        if title
        else {}
    )
    # by the name of the font that vl-convert brings along: the picture is the same on every machine
    config = {**CONFIG, "background": "white", "font": "Liberation Sans, Arial, sans-serif"}
    return Plot({"$schema": SCHEMA, "config": config, "padding": 14, **above, **whole})


def draw(charts: Sequence[Chart], path: str | os.PathLike[str], *, columns: int = 3) -> None:
    """Draw charts side by side, each below its title and its legend. The same charts give the same file.

    Parameters
    ----------
    charts : sequence of Chart
    path : path
        A PNG or SVG file.
    columns : int
        Charts in a row, at most.
    """
    plot(charts, columns=columns).save(path)


class Plot:
    """A drawn picture: a notebook shows it, and `save` writes it to a file.

    Parameters
    ----------
    spec : dict
        In Vega-Lite.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a PNG or SVG file."""
        target = Path(path)
        if target.suffix.lower() not in (".png", ".svg"):
            raise UserError(f"the picture is to be {target.name!r}", expected="a name that ends in .png or .svg")
        content = self.png() if target.suffix.lower() == ".png" else self.svg().encode()
        with atomic_write(target) as partial:
            partial.write_bytes(content)

    def png(self) -> bytes:
        """The picture as the bytes of a PNG file."""
        return _repacked(_vl_convert().vegalite_to_png(self.spec, scale=1.5))

    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        made: str = _vl_convert().vegalite_to_svg(self.spec)
        return made

    def __repr__(self) -> str:
        return "Plot: shown by a notebook, written to a file by save('plot.png')"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "image/png": base64.b64encode(self.png()).decode()}


def _repacked(png: bytes) -> bytes:
    """The same pixels in a third of the bytes: vl-convert compresses for speed."""
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    pixels = zlib.decompress(b"".join(content for kind, content in chunks if kind == b"IDAT"))
    (header,) = [content for kind, content in chunks if kind == b"IHDR"]
    parts = [png[:8]]
    for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")):
        parts += [struct.pack(">I", len(content)), kind, content, struct.pack(">I", zlib.crc32(kind + content))]
    return b"".join(parts)


def _vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("a picture", "vl-convert-python", extra="cli") from error
    return vl_convert


def _above(chart: Chart, entries: Sequence[Spec], width: int) -> tuple[int, Any]:
    """How much room title and legend need above the axes, and what places them in a given room."""
    spots, x, line = [], 0, 0
    for entry in entries:
        length = 50 + round(6.4 * len(entry["name"]))
        if x and x + length > width + 30:
            x, line = 0, line + 1
        spots.append((x, line))
        x += length
    lines = line + bool(entries)
    titles = wrap(chart.title, max(width // 7, 20))
    room = LINE_HEIGHT * (lines + len(titles)) + 12

    def place(given: int) -> Layers:
        layers = []
        if titles:
            style = {"fontWeight": "bold", "fontSize": 13, "lineHeight": LINE_HEIGHT, "baseline": "top"}
            layers.append(_fixed("text", x=0, y=-given, text=titles, align="left", color=INK, **style))
        for entry, (left, number) in zip(entries, spots, strict=True):
            layers += _entry(entry, left, -LINE_HEIGHT * (lines - number) + 2)
        return layers

    return room, place


def _entry(entry: Spec, x: int, y: int) -> Layers:
    layers = []
    colour = entry["colour"]
    if "dashes" in entry:
        dashes = {"strokeDash": entry["dashes"]} if entry["dashes"] else {}
        layers.append(_fixed("rule", x=x, x2=x + 28, y=y, y2=y, color=colour, strokeWidth=2, **dashes))
    if "path" in entry:
        style = {"filled": not entry.get("open"), "opacity": 1, "strokeWidth": 1.6}
        layers.append(_fixed("point", x=x + 14, y=y, shape=entry["path"], size=70, color=colour, **style))
    for part, opacity in enumerate(FILLS.get(entry.get("fill", ""), ())):
        width = 18 if entry["fill"] != "shades" else 6
        start = x + 5 + width * part
        ends = {"x": start, "x2": start + width, "y": y - 6, "y2": y + 6}
        layers.append(_fixed("rect", color=colour, opacity=opacity, strokeWidth=0, **ends))
    name = entry["name"]
    text = {"text": name, "align": "left", "baseline": "middle", "fontSize": 12, "color": INK}
    return [*layers, _fixed("text", x=x + 34, y=y, **text)]


def _fixed(mark_type: str, **style: Any) -> Spec:
    """A mark at pixels instead of numbers."""
    at = {channel: {"value": style.pop(channel)} for channel in ("x", "x2", "y", "y2") if channel in style}
    return {"data": {"values": [{}]}, "mark": {"type": mark_type, "clip": False, **style}, "encoding": at}
