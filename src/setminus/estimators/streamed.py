"""A tuned classifier from more rows than memory holds: fitted on a sample, measured and certified on all other rows.

The models are fitted once, so that every other row is out of sample. Rows of a pilot propose decisions. Then each batch
of fresh rows is scored and counted: a third of them measures the proposed decisions, the others test them. Tables of
counts are all that is kept, and the certificate is exact, since no model is fitted again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from setminus.estimators.orthogonal import Parts
from setminus.estimators.proposals import floors_of
from setminus.estimators.search import Problem, count_points
from setminus.estimators.tuned import SEARCH_SHARE
from setminus.progress import tracked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from setminus.estimators.frontier import Frontier
    from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["FreshRows", "RowCounts", "fit_streamed"]


class FreshRows(NamedTuple):
    """Rows that no model is fitted on."""

    X: Any
    y: Any
    groups: Any


@dataclass(frozen=True)
class RowCounts:
    """How many fresh rows measured the decisions, tested them, or are in groups that the sample lacks."""

    measured: int
    tested: int
    left_out: int


def fit_streamed(
    tuned: TunedOrthogonalClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    pilot: FreshRows,
    fresh: Iterable[FreshRows],
    n_rows: int | None = None,
) -> RowCounts:
    """Fit a tuned classifier on a sample, and search and certify on fresh rows, a batch at a time.

    Parameters
    ----------
    tuned : TunedOrthogonalClassifier
        Is fitted in place.
    X, y, sensitive_features
        The sample, as `TunedOrthogonalClassifier.fit` takes it.
    pilot : FreshRows
        Random rows that propose the decisions.
    fresh : iterable of FreshRows
        All other rows, in any order.
    n_rows : int, optional
        How many there are, for the progress.

    Returns
    -------
    RowCounts

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setminus import TunedOrthogonalClassifier
    >>> rng = np.random.default_rng(0)
    >>> def draw(n):
    ...     y = rng.integers(0, 2, n)
    ...     sex = np.where(rng.random(n) < 0.2 + 0.6 * y, "m", "f")
    ...     return FreshRows(np.column_stack([y + rng.normal(size=n), sex == "m"]), y, sex)
    >>> model, sample = TunedOrthogonalClassifier(LogisticRegression(), tolerance=0.15), draw(2000)
    >>> batches = (draw(10_000) for _ in range(9))
    >>> rows = fit_streamed(
    ...     model, sample.X, sample.y, sensitive_features=sample.groups, pilot=draw(5000), fresh=batches
    ... )
    >>> rows.measured + rows.tested, model.certificate_.certified, model.certificate_.bound <= 0.15
    (90000, True, True)
    """
    task = tuned._task(X, y, sensitive_features, None)
    with tracked("fit on the sample"):
        tuned.model_.fit(task.X, task.y, sensitive_features=task.groups)
    tuned.classes_ = tuned.model_.classes_
    problem, parts = _scored(tuned, pilot, task.promises)
    with tracked("try strengths, offsets and thresholds"):
        tuned.frontier_ = _undominated(tuned._proposed(problem, [parts], task.strengths, fresh=True))
    points = range(len(tuned.frontier_))
    measured, tested = np.zeros((2, *cast(Any, tuned.frontier_.tables).shape))
    rng, n = np.random.default_rng([tuned.random_state, 2]), 0
    with tracked("score and count all other rows", total=n_rows, unit="rows") as progress:
        for rows in fresh:
            n += len(rows.y)
            problem, parts = _scored(tuned, rows, task.promises)
            searched = rng.random(len(problem.y_codes)) < (SEARCH_SHARE if task.promises else 1)
            for tables, kept in ((measured, searched), (tested, ~searched)):
                if kept.any():
                    at = tuned._at([parts.take(kept)])
                    tables += count_points(tuned.frontier_, points, problem.take(kept), at)[0]
            progress.advance(len(rows.y))
    tuned.frontier_ = _measured(tuned, problem, measured)
    if task.promises:
        chosen = tuned._points()
        candidates = tuned._candidates(chosen, tested[chosen], None, fresh=True)
        tuned.frontier_ = replace(tuned.frontier_, candidates=candidates)
    tuned._choose()
    counted = int(measured[0].sum()), int(tested[0].sum())
    return RowCounts(*counted, n - sum(counted))


def _scored(tuned: TunedOrthogonalClassifier, rows: FreshRows, promises: bool) -> tuple[Problem, Parts]:
    """The rows of known groups in codes, and what the models predict of them."""
    cells = tuned.groups_.cells(tuned._groups(rows.X, rows.groups if tuned.sensitive_columns is None else None))
    kept = np.flatnonzero(cells >= 0)
    X, groups = (part if part is None or len(kept) == len(cells) else part.take(kept) for part in (rows.X, rows.groups))
    y = np.searchsorted(tuned.classes_, np.asarray(rows.y)[kept]).astype(np.intp)
    full, principals, features = tuned.model_._parts(
        X, None if tuned.sensitive_columns is not None else groups, features=True
    )
    problem = tuned._problem(y, cells[kept], np.ones(len(kept)), promises, fresh=True)
    return problem, Parts(full, principals, tuned.model_.class_prior_, features)


def _undominated(frontier: Frontier) -> Frontier:
    """The points that no other beats in score and gap, or score and upper end of the gap, and the full classifier."""
    kept = [frontier.pareto(), np.array([frontier.untouched])]
    if frontier.upper is not None:
        kept.append(replace(frontier, gap=frontier.upper).pareto())
    return frontier.take(np.unique(np.concatenate(kept)))


def _measured(tuned: TunedOrthogonalClassifier, problem: Problem, tables: NDArray[np.float64]) -> Frontier:
    """The frontier with scores, gaps and floors of all rows that measure it.

    A score that is no function of the decisions, such as ROC AUC, stays that of the pilot.
    """
    frontier = tuned.frontier_
    score = frontier.score
    base = tables[frontier.untouched]
    constant = [base.sum(axis=-1, keepdims=True) * one for one in np.eye(base.shape[-1])]
    floored = np.array([*constant, base])
    floors = problem.floors
    if problem.counted is not None:
        score = problem.counted(tables.sum(axis=-3))
        floors = floors_of(tuned, floored, problem.counted(floored.sum(axis=-3)))
    return replace(
        frontier,
        score=score,
        gap=problem.gap(tables),
        upper=None if problem.upper is None else problem.upper(tables),
        tables=tables,
        useful=floors.kept(tables, score) if problem.counted is not None else frontier.useful,
    )
