"""What several seeds gave: their metrics by setting, and as lines, bars and text with a spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setminus.charts.chart import Bars, Line

__all__ = ["Records", "Summary", "mean_and_deviation", "mean_bars", "mean_line", "metrics_by", "value_range"]

Records = Sequence[dict[str, Any]]
Summary = list[tuple[str, str, str]]
"""Rows of (quantity, exact value or claim, measured value)."""


def metrics_by(records: Records, key: str) -> dict[Any, list[dict[str, Any]]]:
    """The metrics of all seeds for each value of a setting, in the order of the records.

    Examples
    --------
    >>> metrics_by([{"config": {"map": "linear"}, "metrics": {"loss": loss}} for loss in (1, 2)], "map")
    {'linear': [{'loss': 1}, {'loss': 2}]}
    """
    found: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault(record["config"][key], []).append(record["metrics"])
    return found


def mean_line(x: Sequence[float], values: ArrayLike, name: str) -> Line:
    """A line through the means, with the smallest and the largest; `values` has shape (seeds, places)."""
    rows = np.asarray(values)
    return Line(x, rows.mean(axis=0).tolist(), name, low=rows.min(axis=0).tolist(), high=rows.max(axis=0).tolist())


def mean_bars(places: Sequence[str], values: Iterable[ArrayLike], name: str) -> Bars:
    """Bars of the means, with the smallest and the largest; `values` has the seeds of each place."""
    columns = [np.asarray(some) for some in values]
    means, low, high = ([float(of(some)) for some in columns] for of in (np.mean, np.min, np.max))
    return Bars(places, means, name, low=low, high=high)


def mean_and_deviation(values: ArrayLike, form: str = ".3f") -> str:
    """The mean with the standard deviation over seeds, where there are several.

    Examples
    --------
    >>> mean_and_deviation([0.1, 0.3]), mean_and_deviation([0.25])
    ('0.200 ± 0.100', '0.250')
    """
    every = np.asarray(values)
    return format(every.mean(), form) + (f" ± {every.std():{form}}" if every.size > 1 else "")


def value_range(values: Iterable[float], form: str) -> str:
    """The smallest and the largest value, or the one that both are.

    Examples
    --------
    >>> value_range([0.2, 0.1], ".2f"), value_range([-1e-17, 0.0], ".2f")
    ('0.10 to 0.20', '0.00')
    """
    every = list(values)
    # adding 0 to the rounded number makes a zero of minus zero
    low, high = (format(round(value, 12) + 0.0, form) for value in (min(every), max(every)))
    return low if low == high else f"{low} to {high}"
