"""The table of an audit: how often each group is selected, rightly and wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.intervals import Interval, rate_interval

__all__ = ["GroupRates", "group_rates"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupRates:
    """Rates of one class in one group.

    Attributes
    ----------
    group, label : label
    n : int
        Number of rows of the group.
    base_rate : float
        P(y = label | group).
    selection_rate : Interval
        P(prediction = label | group).
    true_positive_rate, false_positive_rate : Interval
        The same among rows of the label, and among the others.
    accuracy : Interval
        P(prediction = y | group); of all classes, hence the same for each label.
    """

    group: Any
    label: Any
    n: int
    base_rate: float
    selection_rate: Interval
    true_positive_rate: Interval
    false_positive_rate: Interval
    accuracy: Interval


def group_rates(
    table: Floats,
    squares: Floats,
    sizes: NDArray[np.intp],
    groups: list[Any],
    classes: list[Any],
    confidence: float,
) -> tuple[GroupRates, ...]:
    """Rates by group for the second of two classes, or for each of more.

    Parameters
    ----------
    table : ndarray of shape (n_groups, n_classes, n_classes)
        Counts, or weights, by (group, label, prediction).
    squares : ndarray of the same shape
        Squared weights, counted alike; the counts themselves where there are no weights.
    sizes : ndarray of shape (n_groups,)
        Numbers of rows.
    groups, classes : list
        What the axes of the table stand for.
    confidence : float

    Returns
    -------
    tuple of GroupRates

    Examples
    --------
    >>> table = np.array([[[3.0, 1.0], [1.0, 3.0]], [[4.0, 0.0], [0.0, 4.0]]])
    >>> first, _ = group_rates(table, table, np.array([8, 8]), ["f", "m"], [0, 1], 0.95)
    >>> first.group, first.selection_rate.value, first.true_positive_rate.value
    ('f', 0.5, 0.75)
    """
    everything = np.ones(table.shape[1:], dtype=bool)

    def interval(g: int, counted: NDArray[np.bool_], among: NDArray[np.bool_]) -> Interval:
        whole, square = table[g][among].sum(), squares[g][among].sum()
        if whole <= 0:
            return rate_interval(float("nan"), 0, confidence)
        return rate_interval(float(table[g][counted & among].sum() / whole), float(whole**2 / square), confidence)

    rows = []
    for g, group in enumerate(groups):
        for c in [1] if len(classes) == 2 else range(len(classes)):
            labelled, predicted = np.zeros_like(everything), np.zeros_like(everything)
            labelled[c], predicted[:, c] = True, True
            rows.append(
                GroupRates(
                    group=group,
                    label=classes[c],
                    n=int(sizes[g]),
                    base_rate=interval(g, labelled, everything).value,
                    selection_rate=interval(g, predicted, everything),
                    true_positive_rate=interval(g, predicted, labelled),
                    false_positive_rate=interval(g, predicted, ~labelled),
                    accuracy=interval(g, np.eye(len(classes), dtype=bool), everything),
                )
            )
    return tuple(rows)
