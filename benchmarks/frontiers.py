"""Methods compared at the same gap on test rows: the points of each, and one frontier read off at another's gaps.

A point is a method at one tolerance on one set, a frontier the points of a method that no other of its points beats in
both means. Differences are paired by split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from setminus_paper.tables import to_frame

Record = Mapping[str, Any]

GAP = "equalized_odds_max"
METRICS = ("accuracy", "balanced_accuracy", "selection_rate", GAP, "equalized_odds_sum", "demographic_parity", "auc")
CERTIFIED = "certified"
"""1 where a method certifies its tolerance, 0 where it says that it cannot; missing where it does not say."""
FLOOR = "noise_floor"
"""The gap that equal groups of these sizes would show on test rows by chance; of the base model only."""
BASE = "base"
MIN_LEAD = 0.1
"""A point is useful where its balanced accuracy keeps at least this share of the base model's lead over a constant."""
MIN_SPLITS = 3
"""A difference on fewer splits has no usable standard error."""


@dataclass(frozen=True, eq=False)
class Point:
    """A method at one tolerance: `values` has a row for each split and a column for each metric."""

    name: str
    tolerance: float | None
    needs_attribute: bool
    deterministic: bool
    values: pd.DataFrame
    seconds: float

    @cached_property
    def gap(self) -> float:
        """The mean gap on test rows."""
        return float(self.values[GAP].mean())

    @cached_property
    def accuracy(self) -> float:
        """The mean accuracy on test rows."""
        return float(self.values["accuracy"].mean())

    @property
    def kept(self) -> float | None:
        """The share of splits whose gap on test rows is within the tolerance."""
        return None if self.tolerance is None else float((self.values[GAP] <= self.tolerance).mean())

    def on(self, seeds: pd.Index) -> Point:
        """The same point on some of its splits."""
        if len(seeds) == len(self.values):
            return self
        return Point(
            self.name, self.tolerance, self.needs_attribute, self.deterministic, self.values.loc[seeds], self.seconds
        )


Points = dict[str, list[Point]]
"""The points of each method by rising tolerance."""


def points_of(records: Sequence[Record]) -> dict[str, Points]:
    """The points of each method on each set, sets and methods in the order of the records."""
    frame = to_frame(records).drop_duplicates(["set", "name", "tolerance", "seed"], keep="last").sort_values("seed")
    found: dict[str, Points] = {}
    for record in records:
        found.setdefault(record["config"]["set"], {}).setdefault(record["name"], [])
    for (data, name, tolerance), own in frame.groupby(["set", "name", "tolerance"], sort=True, dropna=False):
        asked = None if pd.isna(tolerance) else float(tolerance)
        flags = bool(own["needs_attribute"].iloc[0]), bool(own["deterministic"].iloc[0])
        values = own.set_index("seed").reindex(columns=[*METRICS, CERTIFIED, FLOOR]).astype(float)
        found[data][name].append(Point(name, asked, *flags, values, float(own["seconds"].median())))
    return found


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats in both means, by rising gap."""
    path: list[Point] = []
    for point in sorted(points, key=lambda p: (p.gap, -p.accuracy)):
        if not path or point.accuracy > path[-1].accuracy:
            path.append(point)
    return path


@dataclass(frozen=True, eq=False)
class Comparison:
    """Our accuracy less a peer's at the peer's gap.

    Attributes
    ----------
    peer : Point
    difference : Series
        One for each split that both have.
    smallest_gap : float
        The smallest mean gap of ours.
    reached : bool
        False where even that is above the peer's gap beyond two standard errors.
    auc : float
        Ours at that gap.
    """

    peer: Point
    difference: pd.Series
    smallest_gap: float
    reached: bool
    auc: float

    @property
    def mean(self) -> float:
        """Over the splits."""
        return float(self.difference.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean; NaN of too few splits."""
        return standard_error(self.difference)

    @property
    def outcome(self) -> str:
        """Who is ahead beyond two standard errors: above, level, below, or not reached."""
        return verdict(self.difference) if self.reached else "not reached"


def compare(peer: Point, ours: Sequence[Point]) -> Comparison:
    """Ours on the straight line between the two points of its frontier around the peer's gap.

    Beyond the ends of the frontier, ours is taken at the end.
    """
    seeds = peer.values.index
    for point in ours:
        seeds = seeds.intersection(point.values.index)
    peer, path = peer.on(seeds), frontier([point.on(seeds) for point in ours])
    gaps = [point.gap for point in path]
    right = int(np.clip(np.searchsorted(gaps, peer.gap), 1, max(len(path) - 1, 1)))
    low, high = path[right - 1], path[min(right, len(path) - 1)]
    width = high.gap - low.gap
    share = float(np.clip((peer.gap - low.gap) / width, 0, 1)) if width > 0 else 0.0
    between = (1 - share) * low.values + share * high.values
    ahead = between["accuracy"] - peer.values["accuracy"]
    if 0 < share < 1:
        # on a split where ours has the larger gap it gains by the slope: the noise of the gaps belongs to the error
        excess = between[GAP] - peer.values[GAP]
        ahead = ahead - (high.accuracy - low.accuracy) / width * (excess - excess.mean())
    reached = verdict(path[0].values[GAP] - peer.values[GAP]) != "above"
    return Comparison(peer, ahead, gaps[0], reached, float(between["auc"].mean()))


def useful(points: Sequence[Point], base: Point) -> list[Point]:
    """The points that are not nearly constant: a constant model has no gap, and is no rival."""
    metric = "balanced_accuracy"
    lead = float(base.values[metric].mean()) - 0.5
    return [point for point in points if point.values[metric].mean() - 0.5 >= MIN_LEAD * lead]


def comparisons(points: Points, ours: Mapping[bool, str]) -> Iterator[Comparison]:
    """Every useful point on the frontier of every peer beside ours with the same knowledge of the group.

    `ours` names our method by whether the group is known when predicting. The base model belongs to our frontier: it is
    what a user has who asks for a large gap.
    """
    (base,) = points[BASE]
    for name, path in points.items():
        mine = ours.get(path[0].needs_attribute)
        if name == BASE or name.startswith("setminus") or mine not in points:
            continue
        for point in frontier(useful(path, base)):
            yield compare(point, useful([*points[mine], base], base))


def pooled(found: Sequence[Comparison]) -> pd.Series:
    """The difference of each split, as the mean over the gaps that ours reaches."""
    reached = [comparison.difference for comparison in found if comparison.reached]
    return pd.concat(reached, axis=1).mean(axis=1) if reached else pd.Series(dtype=float)


def verdict(difference: pd.Series) -> str:
    """Whether a paired difference is above or below zero beyond two standard errors, or level."""
    # a NaN, the error of too few splits, is level
    clear = abs(difference.mean()) > 2 * standard_error(difference)
    return "level" if not clear else "above" if difference.mean() > 0 else "below"


def standard_error(difference: pd.Series) -> float:
    """Of the mean; NaN of too few splits."""
    return float(difference.sem()) if len(difference) >= MIN_SPLITS else float("nan")
