"""A tuned classifier from more rows than memory holds: fitted on a sample, measured and certified on all other rows.

The models are fitted once, so that every other row is out of sample. Rows of a pilot fit the offsets and space the
thresholds. Then the fresh rows are scored and counted, a batch at a time: a third of them in the search, for every
strength, offset and threshold, and in a second pass the others in the test of what the search found. Tables of counts
are all that is kept. The certificate needs no assumption about refits, since no model is fitted again.

A search of more than two classes climbs from point to point, and a score that is no function of the counts needs the
rows: there the pilot is searched, and the fresh rows measure the best trades that it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.utils import _safe_indexing

from setminus.estimators.frontier import Frontier
from setminus.estimators.orthogonal import Parts, Proba
from setminus.estimators.proposals import floors_of
from setminus.estimators.search import Problem, count_points, count_thresholds
from setminus.estimators.tuned import SEARCH_SHARE
from setminus.progress import tracked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["FreshRows", "RowCounts", "fit_streamed"]


class FreshRows(NamedTuple):
    """Rows that no model is fitted on."""

    X: Any
    y: Any
    groups: Any

    def take(self, rows: NDArray[np.bool_]) -> FreshRows:
        """Some of the rows."""
        if rows.all():
            return self
        return FreshRows(*(None if part is None else _safe_indexing(part, np.flatnonzero(rows)) for part in self))


@dataclass(frozen=True)
class RowCounts:
    """How many fresh rows were searched, tested the result, or are in groups that the sample lacks."""

    searched: int
    tested: int
    left_out: int


def fit_streamed(
    tuned: TunedOrthogonalClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    pilot: FreshRows,
    fresh: Callable[[], Iterable[FreshRows]],
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
        Random rows that fit the offsets and space the thresholds.
    fresh : callable
        Gives all other rows in batches, in any order. It is called twice and must give the same rows; once without a
        confidence.
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
    >>> batches = [draw(10_000) for _ in range(9)]
    >>> rows = fit_streamed(
    ...     model, sample.X, sample.y, sensitive_features=sample.groups, pilot=draw(5000), fresh=lambda: batches
    ... )
    >>> rows.searched + rows.tested, model.certificate_.certified, model.certificate_.bound <= 0.15
    (90000, True, True)
    """
    task = tuned._task(X, y, sensitive_features, None)
    with tracked("fit on the sample"):
        tuned.model_.fit(task.X, task.y, sensitive_features=task.groups)
    tuned.classes_ = tuned.model_.classes_
    problem, parts = _scored(tuned, pilot, task.promises)
    countable = len(tuned.classes_) == 2 and problem.counted is not None
    with tracked("fit offsets, space thresholds" if countable else "search the pilot"):
        frontier = tuned._proposed(problem, [parts], task.strengths, fresh=True, thin=not countable)
        tuned.frontier_ = frontier if countable else _undominated(frontier)

    n = 0

    def passed(name: str, share: tuple[float, float]) -> Iterator[tuple[Problem, Callable[[float, int], Proba]]]:
        """The rows whose random number lies in a range, the same ones in each pass."""
        nonlocal n
        rng, n = np.random.default_rng([tuned.random_state, 2]), 0
        with tracked(name, total=n_rows, unit="rows") as progress:
            for rows in fresh():
                n += len(rows.y)
                drawn = rng.random(len(rows.y))
                kept = (share[0] <= drawn) & (drawn < share[1])
                if kept.any():
                    problem, parts = _scored(tuned, rows.take(kept), task.promises)
                    yield problem, tuned._at([parts])
                progress.advance(len(rows.y))

    cut = SEARCH_SHARE if task.promises else 1.0
    tables = np.zeros(cast(Any, tuned.frontier_.tables).shape)
    points = range(len(tables))
    for some, at in passed("search all other rows", (0.0, cut)):
        if countable:
            tables += count_thresholds(tuned.frontier_, some, at)
        else:
            tables += count_points(tuned.frontier_, points, some, at)[0]
    tuned.frontier_ = _measured(tuned, problem, tables)
    searched, tested = int(tables[0].sum()), 0
    if task.promises:
        chosen = tuned._points()
        tables = np.zeros((len(chosen), *tables.shape[1:]))
        for some, at in passed("test what was found", (cut, 1.0)):
            tables += count_points(tuned.frontier_, chosen, some, at)[0]
        tested = int(tables[0].sum())
        tuned.frontier_ = replace(tuned.frontier_, candidates=tuned._candidates(chosen, tables, None, fresh=True))
    tuned._choose()
    return RowCounts(searched, tested, n - searched - tested)


def _scored(tuned: TunedOrthogonalClassifier, rows: FreshRows, promises: bool) -> tuple[Problem, Parts]:
    """The rows of known groups in codes, and what the models predict of them."""
    cells = tuned.groups_.cells(tuned._groups(rows.X, rows.groups if tuned.sensitive_columns is None else None))
    X, y, groups = rows.take(cells >= 0)
    full, principals, features = tuned.model_._parts(
        X, None if tuned.sensitive_columns is not None else groups, features=True
    )
    y_codes = np.searchsorted(tuned.classes_, np.asarray(y)).astype(np.intp)
    problem = tuned._problem(y_codes, cells[cells >= 0], np.ones(len(y_codes)), promises, fresh=True)
    return problem, Parts(full, principals, tuned.model_.class_prior_, features)


def _undominated(frontier: Frontier) -> Frontier:
    """The points that no other beats in score and gap, or score and upper end of the gap, and the full classifier."""
    kept = [frontier.pareto(), np.array([frontier.untouched])]
    if frontier.upper is not None:
        kept.append(replace(frontier, gap=frontier.upper).pareto())
    return frontier.take(np.unique(np.concatenate(kept)))


def _measured(tuned: TunedOrthogonalClassifier, problem: Problem, tables: Proba) -> Frontier:
    """The best trades of a frontier by the scores, gaps and floors of the rows behind these tables.

    A score that is no function of the decisions, such as ROC AUC, stays that of the pilot.
    """
    frontier, counted = tuned.frontier_, problem.counted
    if counted is not None:
        base = tables[frontier.untouched]
        floored = np.array([*(base.sum(axis=-1, keepdims=True) * one for one in np.eye(base.shape[-1])), base])
        problem = replace(problem, floors=floors_of(tuned, floored, counted(floored.sum(axis=-3))))

    def measured(here: NDArray[np.intp]) -> Frontier:
        part, counts = frontier.take(here), tables[here]
        score = part.score if counted is None else counted(counts.sum(axis=-3))
        return replace(
            part,
            score=score,
            gap=problem.gap(counts),
            upper=None if problem.upper is None else problem.upper(counts),
            tables=counts,
            useful=part.useful if counted is None else problem.floors.kept(counts, score),
        ).thinned()

    # a part at a time: there are 1,000 thresholds at each strength
    joined = Frontier.joined([measured(here) for here in frontier.tries().values()])
    return replace(joined, n_tried=frontier.n_tried).thinned()
