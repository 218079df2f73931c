"""Proposition 6: the product of input gradients over the angle between the latents' means."""

from __future__ import annotations

from statistics import mean
from typing import Any

from setminus.report.charts.chart import Chart, Line, Rule

__all__ = ["charts", "summary"]

Record = dict[str, Any]


def charts(records: list[Record]) -> list[Chart]:
    """Expected products for each map, and what the penalised classifier knows of z1."""
    grouped = _by_map(records)
    drawn = [_products(name, some) for name, some in grouped.items()]
    if "linear" in grouped:
        drawn.append(_known(grouped["linear"]))
    return drawn


def summary(records: list[Record]) -> list[tuple[str, str, str]]:
    """Products beside their closed form; what the penalty does instead."""
    rows = []
    for name, some in _by_map(records).items():
        for place, angle in enumerate(_column(some, "angle")):
            if angle[0] in (0, 90, 180):
                exact, measured, trained = (mean(_column(some, key)[place]) for key in ("exact", "measured", "trained"))
                words = f"{name} map, means at {angle[0]:g} degrees: expected gradient product of full minus principal"
                rows.append((words, f"{exact:.4f}", f"{measured:.4f}, trained {trained:.4f}"))
        if name == "linear":
            rows.append(
                (
                    "largest product of the classifier trained with a penalty on it",
                    "towards 0",
                    f"{_largest(_column(some, 'penalized')):.4f}",
                )
            )
            rows.append(
                (
                    "its mean distance from the orthogonal classifier, over the angles",
                    "0 if the penalty found it",
                    _range(_column(some, "penalized_distance")),
                )
            )
            rows.append(
                (
                    "share of its log-odds' variance within classes that z1 explains",
                    "0 if the penalty found it",
                    _range(_column(some, "penalized_explained_by_z1")),
                )
            )
    return rows


def _by_map(records: list[Record]) -> dict[str, list[Record]]:
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record["config"]["map"], []).append(record)
    return grouped


def _column(records: list[Record], key: str) -> list[list[float]]:
    """For each angle, the values of the seeds."""
    return [[row[key] for row in rows] for rows in zip(*(one["metrics"]["angles"] for one in records), strict=True)]


def _line(records: list[Record], key: str, name: str) -> Line:
    angles = [values[0] for values in _column(records, "angle")]
    values = _column(records, key)
    return Line(angles, [*map(mean, values)], name, low=[*map(min, values)], high=[*map(max, values)])


def _products(name: str, records: list[Record]) -> Chart:
    marks = [
        _line(records, "exact", "closed form"),
        _line(records, "measured", "full minus principal, exact inputs"),
        _line(records, "trained", "full minus principal, trained"),
    ]
    if name == "linear":
        marks.append(_line(records, "penalized", "trained with a penalty on the product"))
    return Chart(
        f"Product of input gradients, {name} map",
        "degrees between the latents' means",
        "expected product with the principal's gradient",
        [*marks, Rule(0.0, "orthogonal gradients")],
        "Claim: the orthogonal classifier's input gradient is orthogonal to the principal's only where the mean "
        "of z2 is at a right angle to the first coordinates of that of z1. Ranges are those of the seeds.",
    )


def _known(records: list[Record]) -> Chart:
    return Chart(
        "What a penalty on the product finds instead",
        "degrees between the latents' means",
        "for the classifier trained with the penalty",
        [
            _line(records, "penalized_explained_by_z1", "variance of log-odds given y that z1 explains"),
            _line(records, "penalized_distance", "mean distance from the orthogonal classifier"),
            Rule(0.0, "orthogonal classifier"),
        ],
        "Claim: orthogonal gradients are not the aim. With a product of at most "
        f"{_largest(_column(records, 'penalized')):.4f}, z1 still explains "
        f"{_range(_column(records, 'penalized_explained_by_z1'))} of the variance. Ranges are those of the seeds.",
    )


def _largest(columns: list[list[float]]) -> float:
    return max(abs(value) for values in columns for value in values)


def _range(columns: list[list[float]]) -> str:
    values = [*map(mean, columns)]
    return f"{min(values):.3f} to {max(values):.3f}"
