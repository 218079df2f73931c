"""The result of a fairness run as one picture, drawn from its record alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from setminus.errors import MissingExtraError
from setminus.report.numbers import gap_key, gap_title
from setminus.report.theme import group_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_picture"]

# of Okabe and Ito's palette; shapes repeat what colours say
BEFORE, AFTER, CHOSEN = "#8C8C8C", "#0072B2", "#D55E00"
COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
MARKERS = "oDs^Pv"
RATES = {"true_positive_rate": "true positive rate, %", "false_positive_rate": "false positive rate, %"}


def draw_picture(record: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw what fairness cost, and the rates of each group before and after, 1200 pixels wide.

    Parameters
    ----------
    record : dict
        Of a run whose job is "fairness", as `setminus demo` writes it.
    path : path
        A PNG file.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("the picture", "matplotlib", extra="cli") from error
    figure = Figure(figsize=(12, 3.9), dpi=100, layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.7, 1, 1])
    models = [record["metrics"]["models"][0], record["metrics"]["models"][-1]]
    _draw_trade(left, record, models)
    width = 1.25 * max(high - low for low, high in (_ends(models, rate) for rate in RATES))
    for axes, rate in zip((middle, right), RATES, strict=True):
        _draw_rates(axes, models, rate, width)
    middle.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False, borderaxespad=0)
    right.tick_params(labelleft=False)
    figure.savefig(path, metadata={"Software": "setminus"})


def _draw_trade(axes: Axes, record: dict[str, Any], models: list[dict[str, Any]]) -> None:
    frontier = record["metrics"]["frontier"]
    gap, best = gap_key(frontier["gap_name"]), frontier["best"]
    gaps, accuracy = [point["gap"] for point in best], [100 * point["score"] for point in best]
    axes.plot(gaps, accuracy, ".-", color=AFTER, zorder=2)
    axes.text(0.4, 0.4, "line: the best trades of\naccuracy and gap", transform=axes.transAxes, color=AFTER)
    known = {"before": frontier["untouched"], "after": frontier["chosen"]}
    signs = {"before": ("o", 110, BEFORE), "after": ("*", 330, CHOSEN)}
    names = {"before": "as it was", "after": f"chosen: strength {frontier['chosen']['strength']:g}"}
    for (when, point), model in zip(known.items(), models, strict=True):
        marker, size, colour = signs[when]
        place = point["gap"], 100 * point["score"]
        axes.scatter(*place, s=size, c=colour, marker=marker, edgecolors="white", zorder=4)
        axes.annotate(
            names[when],
            place,
            xytext=(0, 13),
            textcoords="offset points",
            ha="center",
            weight="bold",
            color=colour if when == "after" else "0.35",
        )
        tested = model["audit"]
        axes.scatter(
            tested[gap]["value"],
            100 * tested["accuracy"]["value"],
            s=size,
            marker=marker,
            facecolors="white",
            edgecolors=colour,
            linewidths=1.5,
            zorder=3,
        )
    axes.axvline(frontier["tolerance"], color="0.5", linestyle=":", zorder=1)
    shown = [100 * point["score"] for point in known.values()]
    axes.set(
        xlim=(0, 1.12 * frontier["untouched"]["gap"]),
        ylim=(min(shown) - 2.0, max(shown) + 0.45),
        xlabel=f"{gap_title(gap).lower()}: left is fairer",
        ylabel="accuracy, %",
    )
    axes.text(frontier["tolerance"], axes.get_ylim()[0], " tolerance", va="bottom", color="0.35")
    axes.set_title("Filled: cross-validation. Open: test rows.", loc="left", fontsize="medium", color="0.35")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_rates(axes: Axes, models: list[dict[str, Any]], rate: str, width: float) -> None:
    for height, model in zip((1, 0), models, strict=True):
        rows = model["audit"]["group_rates"]
        values = [100 * row[rate]["value"] for row in rows]
        axes.plot([min(values), max(values)], [height, height], color="0.6", linewidth=3, zorder=1)
        for place, (row, value) in enumerate(zip(rows, values, strict=True)):
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            # beside each other, or equal rates would hide one group
            level = height + 0.16 * ((len(rows) - 1) / 2 - place)
            # a dollar would begin a formula
            name = group_name(row["group"]).replace("$", r"\$") if height == 1 else None
            axes.plot([100 * row[rate]["low"], 100 * row[rate]["high"]], [level] * 2, color=colour, linewidth=1.5)
            axes.scatter(value, level, s=95, c=colour, marker=marker, edgecolors="white", zorder=3, label=name)
    low, high = _ends(models, rate)
    start = max((low + high - width) / 2, -1.0)
    axes.set(yticks=(1, 0), yticklabels=("before", "after"), ylim=(-0.6, 1.6), xlim=(start, start + width))
    axes.set_xlabel(RATES[rate])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _ends(models: list[dict[str, Any]], rate: str) -> tuple[float, float]:
    intervals = [row[rate] for model in models for row in model["audit"]["group_rates"]]
    return 100 * min(one["low"] for one in intervals), 100 * max(one["high"] for one in intervals)
