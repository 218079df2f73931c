"""What all figures share: signs for groups, axes, and text that plotly cannot take for markup.

Colours of text, axes and grid are left to the page's style sheet, which knows about dark pages and paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

__all__ = ["AFTER", "BEFORE", "CHOSEN", "SIGNS", "Figure", "Sign", "group_name", "layout", "plot_text"]

Figure = dict[str, Any]

BEFORE, AFTER, CHOSEN = "#8C8C8C", "#3A87C8", "#D55E00"


@dataclass(frozen=True)
class Sign:
    """How one group is drawn: a colour, and a shape and a dash that say the same without it.

    Attributes
    ----------
    colour : str
    symbol, dash : str
        Names that plotly knows.
    path, dashes : str
        The same for the legend, as a path around (0, 0) and as stroke-dasharray.
    """

    colour: str
    symbol: str
    path: str
    dash: str
    dashes: str


# Okabe and Ito's colours that stand out from white and from black alike
SIGNS = (
    Sign("#E08A00", "circle", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", "solid", "none"),
    Sign("#3A87C8", "diamond", "M0 -6L6 0L0 6L-6 0Z", "dash", "7 4"),
    Sign("#009E73", "square", "M-5 -5H5V5H-5Z", "dot", "2 3"),
    Sign("#CC79A7", "triangle-up", "M0 -6L6 5H-6Z", "dashdot", "7 3 2 3"),
    Sign("#D55E00", "cross", "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z", "longdash", "11 4"),
    Sign("#7A6FD0", "x", "M-6 -3L-3 -6L0 -3L3 -6L6 -3L3 0L6 3L3 6L0 3L-3 6L-6 3L-3 0Z", "longdashdot", "10 3 2 3"),
)


def group_name(label: Any) -> str:
    """A group's label as a record holds it, as text: where columns were crossed, it is a list.

    Examples
    --------
    >>> group_name("f"), group_name(["f", 30])
    ('f', 'f, 30')
    """
    return ", ".join(map(str, label)) if isinstance(label, list) else str(label)


def plot_text(text: str, width: int = 60) -> str:
    """Text that plotly shows as it is: it reads tags in labels, and fields in templates.

    Examples
    --------
    >>> plot_text("<b>x</b> %{y}")
    '&lt;b&gt;x&lt;/b&gt; %&#123;y}'
    >>> plot_text("a very long name", width=7)
    'a very…'
    """
    short = text if len(text) <= width else text[: width - 1].rstrip() + "…"
    return escape(short).replace("{", "&#123;")


def layout(height: int) -> Figure:
    """A layout of this height, without a legend: the page has one for all figures."""
    axis = {"automargin": True, "zeroline": False, "showline": True, "fixedrange": True}
    return {
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "hovermode": "closest",
        # a finger that scrolls the page must not drag the figure
        "dragmode": False,
        "xaxis": {**axis},
        "yaxis": {**axis},
    }
