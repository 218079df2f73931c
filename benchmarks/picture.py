"""The picture of the comparison: accuracy against gap, a line for each method."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.points import Point


@dataclass(frozen=True)
class Look:
    """How a method is drawn: colour-blind-safe colours, and a marker and dashes that tell it apart in grey."""

    label: str
    color: str
    marker: str
    dashes: str = "-"


PANELS = {
    "group unknown at predict time": {
        "base": Look("gradient boosting, as it is", "#000000", "X"),
        "setminus tuned, proxy mixture": Look("setminus, proxy", "#0072B2", "o"),
        "setminus tuned, proxy score": Look("setminus, proxy score", "#56B4E9", "p", "--"),
        "setminus importance weights": Look("setminus, importance weights", "#999999", "h"),
        "Fairlearn ExponentiatedGradient": Look("Fairlearn ExponentiatedGradient*", "#E69F00", "s", "-."),
        "OxonFair, inferred groups": Look("OxonFair, inferred groups", "#009E73", "^", ":"),
        "OxonFair, inferred groups, cross-fitted": Look("the same, cross-fitted", "#009E73", "v", "--"),
    },
    "group known at predict time": {
        "base": Look("gradient boosting, as it is", "#000000", "X"),
        "setminus tuned, group": Look("setminus, group", "#0072B2", "o"),
        "setminus formula, group": Look("setminus, strength 1", "#999999", "h"),
        "Fairlearn ThresholdOptimizer": Look("Fairlearn ThresholdOptimizer*", "#E69F00", "s"),
        "Fairlearn ThresholdOptimizer, cross-fitted": Look("the same, cross-fitted*", "#E69F00", "D"),
        "AIF360 EqOdds": Look("AIF360 EqOdds*", "#CC79A7", "P"),
        "OxonFair, group": Look("OxonFair, group", "#009E73", "^", ":"),
        "OxonFair, group, cross-fitted": Look("the same, cross-fitted", "#009E73", "v", "--"),
    },
}
"""What is drawn where; AIF360's CalibratedEqOdds lies far outside and is in the table only."""


def draw(points: dict[str, list[Point]], path: Path) -> None:
    """Write the picture; error bars are standard errors over splits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), sharey=True, layout="constrained")
    for ax, (title, looks) in zip(axes, PANELS.items(), strict=True):
        for name, look in looks.items():
            if name in points:
                _line(ax, points[name], look, front="setminus tuned" in name)
        ax.set_title(title)
        ax.set_xlabel("equalized-odds gap on test, sum")
        ax.set_xlim(left=0)
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
        ax.legend(fontsize=8, loc="lower right")
    axes[0].set_ylabel("accuracy on test")
    figure.supxlabel("* answers drawn at random", fontsize=8, x=0.99, ha="right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(ax: object, path: list[Point], look: Look, front: bool) -> None:
    gap, accuracy = ([point.metrics[name] for point in path] for name in ("equalized_odds_sum", "accuracy"))
    ax.errorbar(
        [g.mean() for g in gap],
        [a.mean() for a in accuracy],
        xerr=[_error(g) for g in gap],
        yerr=[_error(a) for a in accuracy],
        color=look.color,
        marker=look.marker,
        linestyle=look.dashes,
        linewidth=2 if front else 1.2,
        elinewidth=0.6,
        zorder=3 if front else 2,
        label=look.label,
    )


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
