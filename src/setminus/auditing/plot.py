"""An audit as one figure; colours are told apart without colour vision, and lines and markers in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.core.groups import group_name
from setminus.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from setminus.auditing.result import Audit

__all__ = ["plot_audit"]

# Okabe and Ito's colours, without the yellow that white paper swallows
_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#7F7F7F"]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
_LINES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 5))]
_PANELS = 3


def plot_audit(audit: Audit) -> Figure:
    """Rates by group with intervals, reliability by group, and scores by group and label.

    The scores are drawn as the share of the group above each threshold: among the rows of one label, curves
    that lie on each other are equal odds at every threshold.

    At most eight groups (the largest) and three classes are drawn; the tables hold the rest.

    Parameters
    ----------
    audit : Audit

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("a plot", "matplotlib", extra="cli") from error
    sizes = {row.group: row.n for row in audit.group_rates}
    largest = sorted(sizes, key=lambda group: -sizes[group])[: len(_COLOURS)]
    groups = [group for group in audit.groups if group in largest]
    judged = list(dict.fromkeys(row.label for row in audit.group_rates))[:_PANELS]
    labels = audit.classes[:_PANELS]

    # two classes: one reliability panel and two of scores share a line; more: a line of each
    lines = 1 if len(judged) == 1 else 2
    rates_height, lines_height = 1.1 + 0.32 * len(groups) * max(1, 0.7 * len(judged)), 0.4 + 3.6 * lines
    figure = Figure(figsize=(11, rates_height + lines_height), layout="constrained")
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=[rates_height, lines_height])[:, 0]
    _draw_rates(upper.subplots(1, 4, sharey=True), audit, groups, judged)
    panels = lower.subplots(lines, (len(judged) + len(labels)) // lines).ravel()
    for axes, label in zip(panels, judged, strict=False):
        _draw_reliability(axes, audit, groups, label)
    for axes, label in zip(panels[len(judged) :], labels, strict=True):
        _draw_scores(axes, audit, groups, label)
    handles, names = panels[0].get_legend_handles_labels()
    lower.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5), frameon=False)
    parts = [f"{audit.n} rows"]
    if len(groups) < len(audit.groups):
        parts.append(f"the {len(groups)} largest of {len(audit.groups)} groups")
    if len(labels) < len(audit.classes):
        parts.append(f"{len(labels)} of {len(audit.classes)} classes")
    parts += [f"{100 * audit.confidence:g} % intervals", f"leakage {max(audit.leakage.bits, 0):.3f} bits"]
    figure.suptitle(", ".join(parts), fontsize="medium", x=0.01, ha="left")
    return figure


def _draw_rates(panels: Any, audit: Audit, groups: list[Any], judged: list[Any]) -> None:
    columns = [
        ("selection_rate", "selection rate"),
        ("true_positive_rate", "true positive rate"),
        ("false_positive_rate", "false positive rate"),
        ("accuracy", "accuracy"),
    ]
    offsets = np.linspace(-0.25, 0.25, len(judged)) if len(judged) > 1 else [0.0]
    for axes, (field, title) in zip(panels, columns, strict=True):
        for row in audit.group_rates:
            if row.group not in groups or row.label not in judged:
                continue
            if field == "accuracy" and row.label != judged[0]:
                continue
            g, c = groups.index(row.group), judged.index(row.label)
            interval = getattr(row, field)
            height = g + (0.0 if field == "accuracy" else offsets[c])
            axes.plot([interval.low, interval.high], [height, height], color=_COLOURS[g], linewidth=2)
            axes.plot(interval.value, height, _MARKERS[g], color=_COLOURS[g], markersize=6)
            if len(judged) > 1 and field != "accuracy":
                axes.annotate(
                    _plain(row.label),
                    (interval.high, height),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize="x-small",
                )
        axes.set_title(title, fontsize="medium")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.3)
        _tidy(axes)
    panels[0].set_yticks(range(len(groups)), [_plain(group) for group in groups])


def _draw_reliability(axes: Axes, audit: Audit, groups: list[Any], label: Any) -> None:
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    for curve in audit.calibration.curves:
        if curve.group in groups and curve.label == label:
            style = _style(groups.index(curve.group))
            axes.plot(curve.predicted, curve.observed, markersize=4, label=_plain(curve.group), **style)
    axes.set_xlabel(f"predicted P({_plain(label)})")
    axes.set_ylabel("observed frequency")
    axes.set_title("reliability", fontsize="medium")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    _tidy(axes)


def _draw_scores(axes: Axes, audit: Audit, groups: list[Any], label: Any) -> None:
    for histogram in audit.histograms:
        if histogram.group in groups and histogram.label == label:
            style = _style(groups.index(histogram.group))
            # from the right: the curve's height is the rate at which this threshold would select
            reached = np.append(np.cumsum(histogram.share[::-1])[::-1], 0.0)
            axes.plot(
                histogram.edges, reached, markersize=4, markevery=(2 + groups.index(histogram.group), 10), **style
            )
    score = audit.classes[1] if len(audit.classes) == 2 else label
    axes.set_xlabel(f"threshold on P({_plain(score)})")
    axes.set_ylabel("share of the group above it")
    axes.set_title(f"scores where y is {_plain(label)}", fontsize="medium")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    _tidy(axes)


def _style(g: int) -> dict[str, Any]:
    return {"color": _COLOURS[g], "linestyle": _LINES[g], "marker": _MARKERS[g]}


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _plain(label: Any) -> str:
    """A name as literal text: matplotlib would read dollars as mathematics, and pass over a leading underscore."""
    name = group_name(label).replace("$", r"\$")
    if len(name) > 32:
        name = name[:31] + "…"
    return f" {name}" if name.startswith("_") else name
