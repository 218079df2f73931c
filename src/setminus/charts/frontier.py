"""Score against gap: the chart of a frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from setminus.charts.chart import Chart, Line, Mark, Points, Rule

__all__ = ["FRONTIER_SIGNS", "decision_text", "frontier_chart"]

FRONTIER_SIGNS = {"best trades": 31}
"""A solid blue line, which stands out from the chosen point."""


def decision_text(point: Mapping[str, Any]) -> str:
    """How a point decides: a threshold for two classes, an offset for each of more.

    Examples
    --------
    >>> decision_text({"threshold": 0.4912})
    'threshold 0.491'
    >>> decision_text({"offsets": [0.0, -0.5, 0.25]})
    'offsets 0, -0.5, 0.25'
    """
    if "threshold" in point:
        return f"threshold {point['threshold']:.3f}"
    return "offsets " + ", ".join(f"{offset:g}" for offset in point["offsets"])


def frontier_chart(
    score_name: str,
    gap_name: str,
    best: Sequence[Mapping[str, Any]],
    marked: Sequence[tuple[str, Literal["before", "chosen"], Mapping[str, Any]]],
    *,
    tolerance: float | None = None,
    background: Sequence[Mark] = (),
) -> Chart:
    """Score against gap: the best trades, the tolerance, and single points.

    Parameters
    ----------
    score_name, gap_name : str
    best : sequence of mappings
        Each with `strength`, `score`, `gap` and `threshold` or `offsets`.
    marked : sequence of (name, role, point)
        Points to compare. One without `strength` was measured on new rows and is drawn open.
    tolerance : float, optional
    background : sequence of marks

    Returns
    -------
    Chart
    """

    def note(point: Mapping[str, Any]) -> str:
        return f"strength {point['strength']:.2f}, {decision_text(point)}" if "strength" in point else ""

    gaps, scores = [point["gap"] for point in best], [point["score"] for point in best]
    marks = [*background, Line(gaps, scores, "best trades", notes=[note(point) for point in best])]
    for name, role, point in marked:
        hollow = "strength" not in point
        marks.append(Points([point["gap"]], [point["score"]], name, notes=[note(point)], role=role, open=hollow))
    if tolerance is not None:
        marks.append(Rule(tolerance, "tolerance", axis="x"))
    score = score_name.replace("_", " ")
    kind, *aggregate = gap_name.split(" ", 1)
    # from the lowest marked score: guessing is far below and of no interest
    compared = [point["score"] for _, _, point in marked]
    high = max([*compared, *scores])
    low = min([*compared, high - 0.02])
    reach = (low - 0.1 * (high - low), high + 0.15 * (high - low))
    widest = max([*(point["gap"] for _, _, point in marked), *gaps, tolerance or 0.0, 0.01])
    return Chart(
        f"{score.capitalize()} against gap",
        " ".join([kind.replace("_", " "), "gap", *aggregate]),
        score,
        marks,
        x_range=(0.0, 1.06 * widest),
        y_range=reach,
        y_format="%" if score_name.endswith("accuracy") else "",
        height=330,
    )
