"""What a tuned classifier proposes: the formula at many strengths, fitted offsets, and thresholds of each.

Settings are those of the classifier. Nothing depends on its tolerance.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from setminus.core.gaps import rates
from setminus.errors import UserError
from setminus.estimators.frontier import MIN_LOG, Frontier, decide
from setminus.estimators.group_offsets import LinearGoal, offset_path
from setminus.estimators.orthogonal import Parts, subtract
from setminus.estimators.search import Floors, Problem, search

if TYPE_CHECKING:
    from setminus.core.checks import OnViolation
    from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["SEARCH_ROWS", "floored_log", "floors_of", "log_proba_at", "proposed", "taken"]

Proba = NDArray[np.float64]

SCALES = (1.0, 0.75, 0.5, 0.25)
"""Strengths at which fitted offsets are tried."""

SEARCH_ROWS, OFFSET_ROWS = 100_000, 20_000
"""Rows of the search and of the fit of offsets at most; the candidates are tested on all rows."""

MAX_OFFSETS = 2000
"""No offsets are fitted for more than this many features times classes."""


def proposed(
    tuned: TunedOrthogonalClassifier,
    problem: Problem,
    parts: list[Parts],
    strengths: NDArray[np.float64],
    margin: float = 0.0,
    *,
    thin: bool = True,
) -> Frontier:
    """The decisions that no other one beats in score and gap, and those with offsets 0.

    Parameters
    ----------
    tuned : TunedOrthogonalClassifier
        Its settings; its classes and groups are known.
    problem : Problem
        The rows of the search.
    parts : list of Parts
        What the models predict of them.
    strengths : ndarray
        Of the formula.
    margin : float, default=0.0
        See `LinearGoal`.
    thin : bool, default=True
        Otherwise all decisions that were tried.
    """
    if problem.takes_weights:
        sampled, problem = problem.sample(SEARCH_ROWS, tuned.random_state)
        parts = taken(parts, sampled)
    log_full = floored_log(np.concatenate([part.full for part in parts]))
    problem = replace(problem, floors=_floors(tuned, problem, log_full))
    directions: list[Proba] = []
    # quantiles may cut a number into fewer groups in one fold than in another: then there is nothing in common
    columns = {0 if part.features is None else part.features.shape[1] for part in parts}
    fits = len(columns) == 1 and 0 < min(columns) * len(problem.classes) <= MAX_OFFSETS
    if tuned.group_offsets and problem.n_groups > 1 and fits:
        some, fewer = problem.sample(OFFSET_ROWS, tuned.random_state)
        features = np.concatenate([part.features for part in taken(parts, some)])
        directions = _directions(tuned, fewer, log_full[some], features, margin)

    def one(strength: float, direction: int) -> Frontier:
        log_proba = log_proba_at(parts, strength, direction, directions, tuned.on_violation)
        found = search(problem, strength, log_proba, direction)
        return found.thinned() if thin else found

    tries = [(float(strength), -1) for strength in {0.0: None, **dict.fromkeys(strengths.tolist())}]
    tries += [(scale, i) for i in range(len(directions)) for scale in SCALES]
    found = Parallel(n_jobs=tuned.n_jobs, prefer="threads")(delayed(one)(*each) for each in tries)
    score = tuned.scoring if isinstance(tuned.scoring, str) else "score"
    agg = f" ({tuned.agg})" if tuned.constraint == "equalized_odds" else ""
    every = replace(
        Frontier.joined(found),
        directions=np.array(directions) if directions else None,
        score_name="negative mean cost" if tuned.costs else score,
        gap_name=tuned.constraint + agg,
    )
    if not np.isfinite(every.score).any():
        raise UserError(
            f"scoring is {tuned.scoring!r}, which gives no finite score for any strength and threshold",
            do="choose another one, such as 'accuracy'.",
        )
    return every.thinned() if thin else every


def _floors(tuned: TunedOrthogonalClassifier, problem: Problem, log_full: Proba) -> Floors:
    """The floors of a useful decision, from the full classifier's own and from constant ones."""
    n_classes = len(problem.classes)
    constant = [np.full(len(log_full), k, dtype=np.intp) for k in range(n_classes)]
    base = decide(log_full, np.zeros(n_classes))
    tables = np.array([problem.table(predictions) for predictions in [*constant, base]])
    with warnings.catch_warnings():
        # a score such as precision is undefined for a constant
        warnings.simplefilter("ignore")
        return floors_of(tuned, tables, problem.score(tables, lambda i: [*constant, base][i], log_full))


def floors_of(tuned: TunedOrthogonalClassifier, tables: Proba, scores: Proba) -> Floors:
    """The floors from the counts and scores of constant decisions, and of the full classifier at the end."""
    n_classes = tables.shape[-1]
    recall = np.diagonal(rates(tables[-1].sum(axis=0)))
    lead = scores[-1] - np.max(np.nan_to_num(scores[:-1], nan=-np.inf))
    finite = np.isfinite(lead) and lead > 0
    balanced = float(np.nanmean(recall))
    selected = tuned._selected
    return Floors(
        score=float(scores[-1] - (1 - tuned.min_lead) * lead) if finite else -np.inf,
        balanced_accuracy=balanced - (1 - tuned.min_lead) * max(balanced - 1 / n_classes, 0.0),
        predicted=_predicted(tuned, tables[-1].sum(axis=(0, 1)) / tables[-1].sum()),
        recall=0.0 if tuned.min_recall is None else tuned.min_recall,
        group_recall=rates(tables[-1])[:, selected, selected] if tuned.levelling == "up" else None,
        selected=selected,
    )


def _predicted(tuned: TunedOrthogonalClassifier, shares: Proba) -> Proba | None:
    """The least share of the rows that each class must be predicted for, from the full classifier's shares."""
    low, high = tuned.min_selection_rate, tuned.max_selection_rate
    if low is not None or high is not None:
        least = np.array([0.0 if high is None else 1 - high, 0.0 if low is None else low])
        return least if tuned._selected == 1 else least[::-1]
    # another score or floor asks for other shares than those of the full classifier
    free = not tuned._may_leave_alone or tuned.min_recall is not None or tuned.levelling is not None
    return None if free else tuned.min_rate_ratio * shares


def _directions(
    tuned: TunedOrthogonalClassifier, problem: Problem, log_full: Proba, features: Proba, margin: float
) -> list[Proba]:
    """Group offsets for each bound on the gap; for a score that is not linear, those of two that are."""
    n_classes = len(problem.classes)
    cells = problem.group_codes * n_classes + problem.y_codes
    counted = np.bincount(cells, problem.weights, minlength=problem.n_groups * n_classes)
    totals: Proba = counted.astype(np.float64).reshape(problem.n_groups, n_classes)
    share = {"sum": 1 / n_classes, "max": 1.0}[tuned.agg if tuned.constraint == "equalized_odds" else "max"]
    found = []
    for gain in _gains(tuned, totals):
        goal = LinearGoal(
            tuned.constraint,
            gain,
            share * 2 / n_classes,
            problem.floors.linear(totals),
            members=tuned.groups_.members_each,
            pos=tuned._pos,
            margin=margin,
        )
        found += offset_path(log_full, features, cells, problem.weights, goal)
        if getattr(tuned.principal, "interpolate", False):
            # a band of one nat to both sides of each group's threshold
            starts = np.repeat([0.0, 1.0], features.shape[1] // 2)
            found += offset_path(log_full, features, cells, problem.weights, goal, starts=starts)
    return found


def _gains(tuned: TunedOrthogonalClassifier, totals: Proba) -> Sequence[Proba]:
    """The score as a linear function of the rates, or two scores near it where it is none."""
    n_classes = totals.shape[1]
    if tuned.costs is not None:
        costs = np.array([[0.0, tuned.costs["fp"]], [tuned.costs["fn"], 0.0]])
        # in units of the mean cost of an error, so that the penalties have the same weight for all costs
        return [-costs / costs.sum() * 2 * totals[:, :, None] / totals.sum()]
    right = np.eye(n_classes) * totals[:, :, None]
    linear: dict[Any, Proba] = {
        "accuracy": right / totals.sum(),
        "balanced_accuracy": right / np.maximum(totals.sum(axis=0), 1e-300)[:, None] / n_classes,
    }
    # a scorer may be a function, which is no key
    return [linear[tuned.scoring]] if isinstance(tuned.scoring, str) and tuned.scoring in linear else [*linear.values()]


def log_proba_at(
    parts: list[Parts], strength: float, direction: int, directions: Any, on_violation: OnViolation
) -> Proba:
    """The log-probabilities of the rows of all folds at a strength and a direction, before the offsets of a point."""
    if direction < 0:
        return floored_log(
            np.concatenate([subtract(one.full, one.principals, one.prior, strength, on_violation) for one in parts])
        )
    offsets = strength * directions[direction]
    log_proba: Proba = np.concatenate([floored_log(one.full) - one.features @ offsets for one in parts])
    # normalised, so that a threshold is one on the probability
    if log_proba.shape[1] == 2:
        log_proba -= np.logaddexp(log_proba[:, :1], log_proba[:, 1:])
    else:
        log_proba -= np.logaddexp.reduce(log_proba, axis=1, keepdims=True)
    return log_proba


def floored_log(proba: Proba) -> Proba:
    """Logs of probabilities, finite where they are 0."""
    with np.errstate(divide="ignore"):
        log_proba: Proba = np.maximum(np.log(np.asarray(proba, np.float64)), MIN_LOG)
    return log_proba


def taken(parts: list[Parts], rows: NDArray[np.bool_]) -> list[Parts]:
    """The parts for some of the rows of all folds."""
    ends = np.cumsum([len(part.full) for part in parts])[:-1]
    return [part.take(mask) for part, mask in zip(parts, np.split(rows, ends), strict=True)]
