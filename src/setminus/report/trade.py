"""The frontier of a fairness record: score against gap, as a figure and as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.report.theme import AFTER, BEFORE, CHOSEN, Figure, layout, plot_text

__all__ = ["decision", "frontier_figure", "frontier_rows"]

Tested = Sequence[tuple[str, float, float]]

MOST_ROWS = 40
"""Best trades in the table; the figure has them all."""


def decision(point: dict[str, Any]) -> str:
    """How a point decides, in words: a threshold for two classes, an offset for each of more.

    Examples
    --------
    >>> decision({"threshold": 0.4912})
    'threshold 0.491'
    >>> decision({"offsets": [0.0, -0.5, 0.25]})
    'offsets 0, -0.5, 0.25'
    """
    if "threshold" in point:
        return f"threshold {point['threshold']:.3f}"
    return "offsets " + ", ".join(f"{offset:g}" for offset in point["offsets"])


def frontier_figure(frontier: dict[str, Any], tested: Tested) -> Figure:
    """Score against gap: the best trades, the tolerance, the chosen point, and what became of it on new rows.

    Parameters
    ----------
    frontier : dict
        `best` (a list of points), `chosen`, `untouched`, `tolerance`, `score_name` and `gap_name`.
    tested : sequence of (title, gap, score)
        The same two numbers on rows that the choice has not seen, before and after.
    """
    score, gap = (plot_text(frontier[name].replace("_", " ")) for name in ("score_name", "gap_name"))

    def points(name: str, some: list[dict[str, Any]], **style: Any) -> dict[str, Any]:
        return {
            "x": [point["gap"] for point in some],
            "y": [point["score"] for point in some],
            "customdata": [f"strength {point['strength']:.2f}, {decision(point)}" for point in some],
            "name": name,
            "hovertemplate": f"{name}<br>{score} %{{y:.4f}}, gap %{{x:.4f}}<br>%{{customdata}}<extra></extra>",
            **style,
        }

    best = {"mode": "lines+markers", "line": {"color": AFTER, "width": 2}, "marker": {"size": 5}}
    star = {"color": CHOSEN, "size": 18, "symbol": "star", "line": {"width": 1, "color": "#ffffff"}}
    data = [
        points("best trades", frontier["best"], **best),
        points("as it was", [frontier["untouched"]], mode="markers", marker={"color": BEFORE, "size": 13}),
        points("chosen", [frontier["chosen"]], mode="markers", marker=star),
    ]
    for (title, x, y), symbol, colour in zip(tested, ("circle-open", "star-open"), (BEFORE, CHOSEN), strict=False):
        data.append(
            {
                "x": [x],
                "y": [y],
                "mode": "markers",
                "name": plot_text(title, 24),
                "marker": {"symbol": symbol, "size": 14, "color": colour, "line": {"width": 2}},
                "hovertemplate": f"{plot_text(title)}<br>{score} %{{y:.4f}}, gap %{{x:.4f}}<extra></extra>",
            }
        )
    figure = layout(height=430)
    figure["showlegend"] = True
    figure["legend"] = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    figure["xaxis"] |= {"title": {"text": f"gap: {gap}"}, "rangemode": "tozero"}
    figure["yaxis"] |= {"title": {"text": score}, "range": _score_range(frontier, tested)}
    if frontier["score_name"].endswith("accuracy"):
        figure["yaxis"]["tickformat"] = ".1%"
    figure["shapes"] = [
        {
            "type": "line",
            "yref": "paper",
            "x0": frontier["tolerance"],
            "x1": frontier["tolerance"],
            "y0": 0,
            "y1": 1,
            "line": {"dash": "dot", "width": 1.5, "color": BEFORE},
        }
    ]
    figure["annotations"] = [
        {
            "x": frontier["tolerance"],
            "y": 0,
            "yref": "paper",
            "text": f" tolerance {frontier['tolerance']:g}",
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "bottom",
        }
    ]
    return {"data": data, "layout": figure}


def frontier_rows(frontier: dict[str, Any], tested: Tested) -> list[dict[str, Any]]:
    """The points of the figure, for its table: `name`, `point` (a name for scripts), `gap`, `score` and more."""
    best = frontier["best"]
    # evenly spread, with both ends
    steps = max(min(len(best), MOST_ROWS) - 1, 1)
    kept = sorted({round(i * (len(best) - 1) / steps) for i in range(steps + 1)}) if best else []
    chosen = [("chosen", "chosen", frontier["chosen"]), ("as it was", "untouched", frontier["untouched"])]
    trades = [(f"best trade {i + 1} of {len(best)}", f"best-{i}", best[i]) for i in kept]
    rows = [
        {"name": name, "point": key, **point, "decision": decision(point).split(" ", 1)[1]}
        for name, key, point in (*chosen, *trades)
    ]
    shown = [
        {"name": title, "point": "tested", "gap": gap, "score": score, "strength": None, "decision": None}
        for title, gap, score in tested
    ]
    return rows[:2] + shown + rows[2:]


def _score_range(frontier: dict[str, Any], tested: Tested) -> list[float]:
    """From the lowest point that says something to the highest; guessing is far below and of no interest."""
    marked = [frontier["chosen"]["score"], frontier["untouched"]["score"], *(score for _, _, score in tested)]
    high = max([*marked, *(point["score"] for point in frontier["best"])])
    low = min([*marked, high - 0.02])
    return [low - 0.1 * (high - low), high + 0.15 * (high - low)]
