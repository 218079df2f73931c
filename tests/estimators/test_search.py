"""The search on its own: counts in one pass, and no worse than one that aims at the tolerance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.estimators.frontier import Frontier, gap_of
from setminus.estimators.search import CLIMBS, STEPS, Problem, _accuracy, _tables_along, _thresholds, decide, search


def problem(seed, n_classes, n=400, weighted=False):
    rng = np.random.default_rng(seed)
    y, group = rng.integers(n_classes, size=n), rng.integers(2, size=n)
    log_proba = rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y] + 0.7 * group[:, None] * np.eye(n_classes)[0]
    # few values: classes are often level, before and after a step
    log_proba = np.round(log_proba * 4) / 4
    weights = rng.uniform(0.5, 2, size=n) if weighted else np.ones(n)
    return Problem(y, group, np.arange(n_classes), 2, weights, gap_of("equalized_odds", "max")), log_proba


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_tables_along_one_class_are_those_of_the_decisions(n_classes, weighted):
    task, log_proba = problem(n_classes, n_classes, weighted=weighted)
    offsets = np.random.default_rng(0).integers(-2, 3, size=n_classes) / 4
    for k in range(n_classes):
        values = offsets[k] + STEPS
        tables = _tables_along(task, log_proba, offsets, k, values)
        for value, table in zip(values, tables, strict=True):
            moved = np.where(np.arange(n_classes) == k, value, offsets)
            np.testing.assert_allclose(table, task.table(decide(log_proba, moved)), atol=1e-10)
            assert (table >= 0).all()


def test_constant_decisions_have_no_gap_whatever_the_weights():
    task, log_proba = problem(0, 2, n=3000, weighted=True)
    _, _, gap = _thresholds(task, log_proba)
    assert gap[0] == gap[-1] == 0 < gap.max()


def aimed(task, log_proba, tolerance):
    """A climb from 0 that knows the tolerance, point by point: what `search` must not fall behind."""

    def worth(offsets):
        table = task.table(decide(log_proba, np.array(offsets)))[None]
        gap, score = float(task.gap(table)[0]), float(_accuracy(table.sum(axis=-3))[0])
        return min(tolerance - gap, 0.0), score

    here = (0.0,) * log_proba.shape[1]
    for _ in range(10):
        before = here
        for k in range(1, len(here)):
            steps = [(*here[:k], round(here[k] + step, 6), *here[k + 1 :]) for step in STEPS.tolist()]
            here = max([here, *steps], key=worth)
        if here == before:
            break
    return worth(here)


@pytest.mark.parametrize("seed", range(4))
def test_no_worse_than_a_climb_that_aims_at_the_tolerance(seed):
    task, log_proba = problem(seed, 3 + seed % 2)
    found = search(task, 1.0, log_proba)
    for tolerance in CLIMBS:
        point = found.best(tolerance)
        ours = min(tolerance - found.gap[point], 0.0), found.score[point]
        assert ours >= aimed(task, log_proba, tolerance)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_the_pareto_points_are_all_that_a_tolerance_can_choose(seed, n):
    rng = np.random.default_rng(seed)
    # few values, so that ties are everywhere
    strength, score, gap = rng.integers(0, [[3], [4], [4]], size=(3, n)) / 4
    frontier = Frontier(strength, rng.integers(-1, 2, size=(n, 3)) / 2, score, gap)
    kept = frontier.pareto()
    few = Frontier(strength[kept], frontier.offsets[kept], score[kept], gap[kept])
    chosen = [frontier.best(tolerance) for tolerance in np.linspace(0, 1, 9)]
    assert chosen == [int(kept[few.best(tolerance)]) for tolerance in np.linspace(0, 1, 9)]
    assert set(chosen) == set(kept.tolist())
