"""Offsets of the log-probabilities by what is known of a row's group, fitted under a bound on the gap.

A row has features f(x) of its group: the group itself, or the group and the label as far as x tells them
(`GroupPrincipal.group_features`, `ProxyPrincipal.group_features`). The decision is ::

    argmax over classes k of  log p(k | x) - f(x) . offsets[:, k]

so exp(f(x) . offsets) is a principal classifier, up to its normalisation, and the rule is the paper's formula with it.
The offsets maximise the score on the given rows under a bound on the gap. Score, gap and floors are linear in the rates
P(prediction | group, label), the decisions are smoothed, and a broken bound costs its square.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from setminus.core import Constraint

__all__ = ["BOUNDS", "LinearGoal", "offset_path"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

BOUNDS = (0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.0)
"""Bounds on the gap; each solution starts from the one before it."""

STEPS = ((0.3, 50.0), (0.1, 1000.0))
"""Width of the smoothed decision in nats, and cost of the square of a broken bound; tried in this order."""

MAX_STEPS = 80
"""Steps of the solver for each bound."""

RIDGE = 1e-4
"""Cost of the squared offsets: keeps those of rare groups small."""


@dataclass(frozen=True)
class LinearGoal:
    """What to maximise, and what to keep, as linear functions of the rates of shape (groups, labels, predictions).

    Attributes
    ----------
    constraint : Constraint
    gain : ndarray of shape (G, C, C)
        The score is ``sum(gain * rates)``.
    share : float
        The part of the bound that each compared rate may use.
    floors : list of (ndarray of shape (G, C, C), float)
        ``sum(coefficients * rates) >= value``.
    members : list of ndarray of bool of shape (groups, G), optional
        Where G are cells: the cells of each group that is compared, for each grouping.
    pos : int, optional
        The class whose recall equal opportunity compares.
    margin : float, default=0.0
        The bound is one on the gap and its margin: this many standard errors of the compared rates.
    """

    constraint: Constraint
    gain: Floats
    share: float = 1.0
    floors: list[tuple[Floats, float]] = field(default_factory=list)
    members: list[NDArray[np.bool_]] | None = None
    pos: int | None = None
    margin: float = 0.0


def offset_path(
    log_proba: Floats,
    features: Floats,
    cells: Codes,
    weights: Floats,
    goal: LinearGoal,
    bounds: tuple[float, ...] = BOUNDS,
    starts: Floats | None = None,
) -> list[Floats]:
    """The offsets for each bound.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
        The log-probabilities of the full classifier.
    features : ndarray of shape (n, M)
    cells : ndarray of int of shape (n,)
        ``group * C + label``.
    weights : ndarray of shape (n,)
    goal : LinearGoal
    bounds : tuple of float
        Falling.
    starts : ndarray of shape (M,), optional
        The least offset of each feature at which the solver begins, for each bound: a feature that is independent of
        the label changes nothing to first order at 0, so that the solver would not move from there.

    Returns
    -------
    list of ndarray of shape (M, C)
        0 for the first class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group, label = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    >>> odds = 2 * (2 * label - 1) + rng.normal(size=4000) + np.where(group == 1, 1.0, -1.0)
    >>> log_proba = -np.logaddexp(0, np.column_stack([odds, -odds]))
    >>> gain = np.eye(2) * np.full((2, 2, 1), 0.25)
    >>> (offsets,) = offset_path(
    ...     log_proba, np.eye(2)[group], group * 2 + label, np.ones(4000), LinearGoal("equalized_odds", gain), (0.0,)
    ... )
    >>> bool(1.6 < offsets[1, 1] - offsets[0, 1] < 2.4)  # the two groups differ by 2
    True
    """
    n_groups, n_classes = goal.gain.shape[:2]
    n_cells, n_columns = n_groups * n_classes, features.shape[1]
    totals: Floats = np.bincount(cells, weights, minlength=n_cells).astype(np.float64)
    compared, labels_of, rows = _compared(goal, totals.reshape(n_groups, n_classes))
    floors = np.array([coefficients.ravel() for coefficients, _ in goal.floors]).reshape(-1, n_cells * n_classes)
    values = np.array([value for _, value in goal.floors])
    gain = goal.gain.ravel()
    n_offsets = n_columns * (n_classes - 1)
    # rows by cell: sums and repeats over runs of rows are quicker than those by index
    order = np.argsort(cells, kind="stable")
    present, firsts, sizes = np.unique(cells[order], return_index=True, return_counts=True)
    shares = (weights / np.maximum(totals, 1e-300)[cells])[order]
    # classes first: sums over a short last axis are slow; the first class has the log-odds 0
    odds = np.ascontiguousarray((log_proba[order, 1:] - log_proba[order, :1]).T)
    by_feature = np.ascontiguousarray(features[order].T)
    all_rates = np.zeros((n_cells, n_classes))

    def smoothed(offsets: Floats, temperature: float) -> tuple[Floats, Floats]:
        """Soft decisions (classes but the first, rows), and the rates by (group, label, prediction)."""
        soft = odds - offsets.T @ by_feature
        highest = np.maximum(soft.max(axis=0), 0)
        soft -= highest
        soft /= temperature
        np.exp(soft, out=soft)
        soft /= soft.sum(axis=0) + np.exp(-highest / temperature)
        rate = all_rates.copy()
        rate[present, 1:] = np.add.reduceat(soft * shares, firsts, axis=1).T
        rate[present, 0] = 1 - rate[present, 1:].sum(axis=1)
        return soft, rate.ravel()

    def loss(point: Floats, bound: float, temperature: float, penalty: float) -> tuple[float, Floats]:
        offsets = point[:n_offsets].reshape(n_columns, n_classes - 1)
        middle = point[n_offsets:]
        soft, rate = smoothed(offsets, temperature)
        distance = compared @ rate - middle[labels_of]
        over = np.maximum(np.abs(distance) - np.maximum(bound * goal.share / 2 - margins, 0), 0) * np.sign(distance)
        short = np.maximum(values - floors @ rate, 0)
        value = penalty * (over @ over + short @ short) - gain @ rate + RIDGE * float((offsets**2).sum())
        slope = (2 * penalty * (over @ compared - short @ floors) - gain).reshape(n_cells, n_classes)[present]
        by_row = np.repeat((slope[:, 1:] - slope[:, :1]).T, sizes, axis=1)
        by_row *= shares
        by_row -= (soft * by_row).sum(axis=0)
        by_row *= soft
        by_offset = -by_feature @ by_row.T / temperature + 2 * RIDGE * offsets
        by_middle = -2 * penalty * np.bincount(labels_of, over, minlength=len(middle))
        return float(value), np.concatenate([by_offset.ravel(), by_middle])

    start = np.zeros((n_columns, n_classes - 1))
    _, rate = smoothed(start, STEPS[-1][0])
    likely = (rows * (compared @ rate) + 1) / (rows + 2)
    # two rates share the margin of their difference
    margins = goal.margin * np.sqrt(likely * (1 - likely) / np.maximum(rows, 1e-300) / 2)
    point = np.concatenate([start.ravel(), np.bincount(labels_of, compared @ rate) / np.bincount(labels_of)])
    found = []
    least = np.zeros(n_offsets) if starts is None else np.repeat(starts, n_classes - 1)
    for i, bound in enumerate(bounds):
        point[:n_offsets] = np.where(least > 0, np.maximum(point[:n_offsets], least), point[:n_offsets])
        # the first solution is far from its start, the others are near the one before
        for temperature, penalty in STEPS if i == 0 else STEPS[1:]:
            options = {"maxiter": MAX_STEPS}
            point = minimize(loss, point, (bound, temperature, penalty), "L-BFGS-B", jac=True, options=options).x
        found.append(np.hstack([np.zeros((n_columns, 1)), point[:n_offsets].reshape(n_columns, n_classes - 1)]))
    return found


def _compared(goal: LinearGoal, totals: Floats) -> tuple[Floats, Codes, Floats]:
    """Rows of coefficients of the compared rates; for each the number of its comparison, and the weight behind it.

    The groups' rates of one comparison lie within one band. Groups without rows take no part.
    """
    n_groups, n_classes = totals.shape
    # of two classes the rate of the second determines that of the first
    classes = range(1, 2) if n_classes == 2 else range(n_classes)
    labels: list[int | None] = [None] if goal.constraint == "demographic_parity" else [*range(n_classes)]
    comparisons = [(label, k) for label in labels for k in classes]
    if goal.constraint == "equal_opportunity":
        comparisons = [(label, k) for label, k in comparisons if label == k]
        comparisons = comparisons if goal.pos is None else [(goal.pos, goal.pos)]
    rows, numbers, weights = [], [], []
    groupings = [np.eye(n_groups, dtype=bool)] if goal.members is None else goal.members
    for number, (members, (label, k)) in enumerate(product(groupings, comparisons)):
        judged = slice(None) if label is None else slice(label, label + 1)
        for cells in members:
            row = np.zeros((n_groups, n_classes, n_classes))
            # a group's rate is the mean of its cells' rates
            row[cells, judged, k] = totals[cells, judged]
            if row.any():
                rows.append(row.ravel() / row.sum())
                numbers.append(number)
                weights.append(row.sum())
    _, codes = np.unique(numbers, return_inverse=True)
    return np.array(rows).reshape(len(rows), -1), codes.astype(np.intp), np.array(weights)
