"""Principal classifiers that were learned from environments: how far they are from the exact one, and what they say."""

from __future__ import annotations

from statistics import mean
from typing import Any

from setminus.charts.chart import Bars, Chart, Rule

__all__ = ["charts", "summary"]

PER_ROW = 2

Record = dict[str, Any]
Way = tuple[str, str]
"""Method and stage."""

_METHODS = {
    "oracle": "oracle",
    "pooled": "pooled",
    "mldg": "MLDG",
    "fish": "Fish",
    "trm": "TRM",
    "trm_worst_pair": "TRM sup",
    "trm_beyond": "TRM ext",
}
_STAGES = {"network": "whole network, the paper's values", "last_layer": "last layer of the pooled network"}
_COLORS = ["A on A", "A on B", "B on A", "B on B"]


def charts(records: list[Record]) -> list[Chart]:
    """Differences from the exact classifier by method and stage, then the probabilities of each stage."""
    ways = _by_way(records)
    return [_differences(ways), *(_probabilities(ways, stage) for stage in _STAGES if _methods(ways, stage))]


def summary(records: list[Record]) -> list[tuple[str, str, str]]:
    """The mean absolute difference of each way, with its range, beside what it should be near."""
    return [
        (
            f"mean absolute difference to p(y | digit color): {_words(way)}",
            f"near 0; pooled classifier {_mean(some, 'difference_pooled_exact'):.3f}",
            _ranged([one["difference_calibrated"] for one in some]) + _choice(some),
        )
        for way, some in _by_way(records).items()
    ]


def _by_way(records: list[Record]) -> dict[Way, list[dict[str, Any]]]:
    """The metrics of each way's seeds, in a fixed order."""
    ways: dict[Way, list[dict[str, Any]]] = {(method, stage): [] for stage in _STAGES for method in _METHODS}
    for record in records:
        ways[record["config"]["method"], record["config"]["stage"]].append(record["metrics"])
    return {way: some for way, some in ways.items() if some}


def _methods(ways: dict[Way, list[dict[str, Any]]], stage: str) -> list[str]:
    return [method for method, its in ways if its == stage]


def _differences(ways: dict[Way, list[dict[str, Any]]]) -> Chart:
    shown = [method for method in _METHODS if any(method == its for its, _ in ways)]
    bars = []
    for stage, words in _STAGES.items():
        if _methods(ways, stage):
            # both stages have the same places, also where one has no bar
            values = [[one["difference_calibrated"] for one in ways.get((method, stage), [])] for method in shown]
            means, low, high = ([of(some) if some else None for some in values] for of in (mean, min, max))
            bars.append(Bars([_METHODS[method] for method in shown], means, words, low=low, high=high))
    pooled = mean(one["difference_pooled_exact"] for some in ways.values() for one in some)
    return Chart(
        "Distance from the exact principal classifier",
        "how it was learned",
        "mean |p - p(y | digit color)|",
        [*bars, Rule(pooled, "exact pooled classifier")],
        "Claim: methods of domain generalization find the principal classifier from two environments. "
        f"{_verdict(ways)} "
        "The last layer is a stage of ours, its inner rate chosen by the smallest held-out risk gap between "
        "environments, from ranges that were set with seeds 0 to 2 in view. Not in TRM's paper: the supremum over all "
        "pairs of environments (TRM sup), and over mixtures of them with weights below 0 (TRM ext). Whiskers are "
        "the smallest and the largest of the seeds.",
    )


def _verdict(ways: dict[Way, list[dict[str, Any]]]) -> str:
    """Which ways have less than half of the exact pooled classifier's distance, and which have not."""
    sentences = []
    for stage, words in _STAGES.items():
        near: list[str] = []
        far: list[str] = []
        for method in _methods(ways, stage):
            if method in ("oracle", "pooled"):
                continue
            some = ways[method, stage]
            close = _mean(some, "difference_calibrated") < _mean(some, "difference_pooled_exact") / 2
            (near if close else far).append(f"{_METHODS[method]} ({_mean(some, 'difference_calibrated'):.3f})")
        if far:
            sentences.append(f"On the {words}, these do not: {'; '.join(far)}.")
        if near:
            sentences.append(f"On the {words}, these come to less than half of pooling's distance: {'; '.join(near)}.")
    return " ".join(sentences)


def _probabilities(ways: dict[Way, list[dict[str, Any]]], stage: str) -> Chart:
    exact = next(iter(ways.values()))[0]["proba_by_colors_exact"]
    bars = [Bars(_COLORS, exact, "exact p(y | digit color)")]
    for method in _methods(ways, stage):
        values = [*zip(*(one["proba_by_colors"] for one in ways[method, stage]), strict=True)]
        bars.append(
            Bars(
                _COLORS,
                [*map(mean, values)],
                _METHODS[method],
                low=[*map(min, values)],
                high=[*map(max, values)],
            )
        )
    return Chart(
        f"What they say of digits: {_STAGES[stage]}",
        "color of the digit on that of the background",
        "P(domain B)",
        bars,
        "A principal classifier says the same for both backgrounds, 0.05 or 0.95. Where the bars of a method differ "
        "between backgrounds of one digit color, it still uses the background.",
    )


def _words(way: Way) -> str:
    method, stage = way
    return _METHODS[method] if method in ("oracle", "pooled") else f"{_METHODS[method]}, {_STAGES[stage]}"


def _choice(some: list[dict[str, Any]]) -> str:
    """What the environments chose, in the order of the seeds."""
    chosen = [one["chosen"] for one in some if "chosen" in one]
    return "".join(
        f"; {key.replace('_', ' ')} {', '.join(f'{one[key]:g}' for one in chosen)}" for key in (chosen or [{}])[0]
    )


def _mean(some: list[dict[str, Any]], key: str) -> float:
    return float(mean(one[key] for one in some))


def _ranged(values: list[float]) -> str:
    return f"{mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
