"""Records as points of accuracy against gap, and how far ours is ahead at a peer's gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OURS = {False: "setminus tuned, proxy mixture", True: "setminus tuned, group"}
"""The row of ours to compare with, by whether the group is needed to predict."""


@dataclass(frozen=True, eq=False)
class Point:
    """A method at one tolerance, over seeds; every array is in the order of the seeds."""

    name: str
    tolerance: float | None
    needs_attribute: bool
    deterministic: bool
    metrics: dict[str, Floats]
    seconds: Floats

    @property
    def gap(self) -> float:
        """The mean summed equalized-odds gap."""
        return float(self.metrics["equalized_odds_sum"].mean())

    @property
    def accuracy(self) -> float:
        """The mean accuracy."""
        return float(self.metrics["accuracy"].mean())


@dataclass(frozen=True, eq=False)
class Lead:
    """How far ours is ahead of a peer at the peer's gap.

    Attributes
    ----------
    accuracy : float
        Ours less the peer's.
    error : float
        Its standard error over splits, that of both gaps included.
    smallest_gap : float
        The smallest gap that ours reached; below it, ours is taken there.
    auc : float
        Of ours at that place.
    """

    accuracy: float
    error: float
    smallest_gap: float
    auc: float


def points_of(records: list[dict[str, Any]]) -> dict[str, list[Point]]:
    """The points of each method by rising tolerance: the base, ours, and the others in the order of the records.

    A method counts only with every seed that there is, so that all means are over the same splits.
    """
    seeds = sorted({record["seed"] for record in records})
    by_key: dict[tuple[str, float | None], dict[int, dict[str, Any]]] = {}
    for record in records:
        by_key.setdefault((record["name"], record["config"]["tolerance"]), {})[record["seed"]] = record
    points: dict[str, list[Point]] = {}
    for (name, tolerance), found in by_key.items():
        if len(found) < len(seeds):
            continue
        rows = [found[seed] for seed in seeds]
        names = ("accuracy", "equalized_odds_sum", "equalized_odds_max", "demographic_parity", "auc", "log_loss")
        metrics = {m: np.array([row["metrics"][m] for row in rows], dtype=np.float64) for m in names}
        config = rows[0]["config"]
        seconds = np.array([row["seconds"] for row in rows])
        point = Point(name, tolerance, config["needs_attribute"], config["deterministic"], metrics, seconds)
        points.setdefault(name, []).append(point)
    # what everyone starts from, then ours, then the others
    order = sorted(points, key=lambda name: (name != "base", not name.startswith("setminus")))
    return {name: sorted(points[name], key=lambda p: p.tolerance or 0) for name in order}


def lead(peer: Point, points: dict[str, list[Point]]) -> Lead:
    """Ours with the same knowledge of the group, on the straight line between its two points around the peer's gap.

    The line runs through the points of ours, the base included, that none other of ours beats in both means.
    """
    path = _unbeaten(points[OURS[peer.needs_attribute]] + points["base"])
    gaps = [point.gap for point in path]
    right = int(np.clip(np.searchsorted(gaps, peer.gap), 1, len(path) - 1))
    low, high = path[right - 1], path[right]
    share = float(np.clip((peer.gap - low.gap) / (high.gap - low.gap), 0, 1))

    def between(metric: str) -> Floats:
        return (1 - share) * low.metrics[metric] + share * high.metrics[metric]

    ahead = between("accuracy") - peer.metrics["accuracy"]
    mean = float(ahead.mean())
    if 0 < share < 1:
        # a split where ours has the larger gap flatters ours by the slope: the gaps' noise belongs to the error
        slope = (high.accuracy - low.accuracy) / (high.gap - low.gap)
        ahead = ahead - slope * (between("equalized_odds_sum") - peer.metrics["equalized_odds_sum"])
    error = float(ahead.std(ddof=1) / np.sqrt(len(ahead))) if len(ahead) > 1 else float("nan")
    return Lead(mean, error, gaps[0], float(between("auc").mean()))


def _unbeaten(points: list[Point]) -> list[Point]:
    """By rising gap, those more accurate than all before."""
    path: list[Point] = []
    for point in sorted(points, key=lambda point: (point.gap, -point.accuracy)):
        if not path or point.accuracy > path[-1].accuracy:
            path.append(point)
    return path
