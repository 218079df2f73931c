"""How far estimates of the target's class frequencies are from the true ones, which scoring alone knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from setminus.adaptation.label_shift import mix_distance
from setminus_paper.report.adaptation_rows import ESTIMATES, Pair
from setminus_paper.report.adaptation_standing import split

__all__ = ["ABOUT_DISTANCES", "Distances", "distance_table", "distances_of", "from_equal"]

ABOUT_DISTANCES = (
    "How many of 100 target images would need another class for an estimate to be true, at the evaluation that counts, "
    "mean over seeds. The source's frequencies are what plain VADA takes for granted: an estimate that is as far away "
    "is no closer to the truth than none. Equal frequencies need no estimate; the shrunk one is half way "
    "between them and what the network says."
)


@dataclass(frozen=True)
class Distances:
    """Of a pair at one shift, to the true frequencies of the target.

    Attributes
    ----------
    name : str
        Of the pair, and its shift.
    source, equal : float
        Of the source's frequencies, and of equal ones.
    estimates : dict of str to float
        By name.
    """

    name: str
    source: float
    equal: float
    estimates: dict[str, float]


def distances_of(pairs: Sequence[Pair]) -> list[Distances]:
    """The `mix_distance` of every estimate from the truth, pair by pair.

    Parameters
    ----------
    pairs : sequence of Pair
        Those without an estimate are left out.

    Returns
    -------
    list of Distances
    """
    found = []
    for pair in pairs:
        rows = {name: pair.rows[method] for method, name in ESTIMATES.items() if method in pair.rows}
        if not rows:
            continue
        seen = [metrics["prior"] for row in rows.values() for metrics in row.metrics.values()]
        found.append(
            Distances(
                f"{pair.name}, {split(pair.shift)}",
                fmean(mix_distance(prior["source"], prior["target"]) for prior in seen),
                fmean(from_equal(prior["target"]) for prior in seen),
                {name: fmean(map(_of_the_estimate, row.metrics.values())) for name, row in rows.items()},
            )
        )
    return found


def distance_table(pairs: Sequence[Pair]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The heads of the columns behind the pair's, and a row of (name, numbers in points) for each pair and shift."""
    found = distances_of(pairs)
    names = list(dict.fromkeys(name for one in found for name in one.estimates))
    values = [(one.name, [one.source, one.equal, *map(one.estimates.get, names)]) for one in found]
    rows = [(name, ["" if value is None else f"{100 * value:.0f}" for value in some]) for name, some in values]
    return ["the source's", "equal", *names], rows


def from_equal(truth: Sequence[float]) -> float:
    """The `mix_distance` of equal frequencies from the truth."""
    return mix_distance([1 / len(truth)] * len(truth), truth)


def _of_the_estimate(metrics: dict[str, Any]) -> float:
    place, prior = metrics["curves"]["step"].index(metrics["step"]), metrics["prior"]
    return mix_distance(prior["estimated"][place], prior["target"])
