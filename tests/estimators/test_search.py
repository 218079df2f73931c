"""Scores and gaps of many decisions counted at once, against each decision on its own."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    get_scorer,
    log_loss,
    make_scorer,
    roc_auc_score,
)

from setminus.core.gaps import (
    count_table,
    equalized_odds_from_table,
)
from setminus.estimators.frontier import Frontier, decide, gap_of
from setminus.estimators.search import (
    CLIMBS,
    STEPS,
    Floors,
    Problem,
    _accuracy,
    _tables_along,
    scorer_of,
    search,
)
from setminus.estimators.search import (
    _climb as climb_with_tables,
)
from setminus.estimators.search import (
    _thresholds as thresholds_with_tables,
)


def _thresholds(task, log_proba):
    offsets, score, tables = thresholds_with_tables(task, log_proba)
    return offsets, score, task.gap(tables)


def _climb(task, log_proba):
    offsets, score, tables = climb_with_tables(task, log_proba)
    return offsets, score, task.gap(tables)


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


def named(n, n_classes=2, seed=0, tied=False, scoring="accuracy"):
    """A problem with words for classes and uneven weights; of whole numbers where ties are wanted."""
    rng = np.random.default_rng(seed)
    y, group = rng.integers(n_classes, size=n), rng.integers(2, size=n)
    y[: 2 * n_classes], group[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes, np.arange(2 * n_classes) % 2
    raw = rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y] + np.eye(n_classes)[-1] * group[:, None]
    classes, weights = np.array(["a", "b", "c", "d"])[:n_classes], rng.uniform(0.5, 2, size=n)
    task = Problem(y, group, classes, 2, weights, equalized_odds_from_table, scoring)
    return task, raw.round() if tied else log_softmax(raw, axis=1)


def all_tried(task, log_proba):
    """Every point that the search looks at, before the best are kept."""
    return (_thresholds if len(task.classes) == 2 else _climb)(task, log_proba)


def by_hand(task, predictions):
    """Accuracy and gap of decisions, weighted."""
    size = len(task.classes)
    table = count_table(task.group_codes, task.y_codes, predictions, (2, size, size), task.weights)
    score = accuracy_score(task.y_codes, predictions, sample_weight=task.weights)
    return score, float(equalized_odds_from_table(table))


def test_the_later_class_where_two_are_level():
    level = np.log([[0.5, 0.5, 1e-9], [0.2, 0.4, 0.4], [0.4, 0.2, 0.4]])
    assert decide(level, np.zeros(3)).tolist() == [1, 2, 2]
    assert decide(level, np.array([1.0, 0.0, 0.0])).tolist() == [0, 0, 0]
    assert decide(level, np.array([0.0, 0.0, -1.0])).tolist() == [1, 1, 0]
    # an offset can turn even a decision that is certain
    assert decide(np.array([[0.0, -np.inf]]), np.array([0.0, 700.0])).tolist() == [0]
    assert decide(np.array([[0.0, -np.inf]]), np.array([0.0, 710.0])).tolist() == [1]


@pytest.mark.parametrize("tied", [False, True])
def test_every_threshold_there_is(tied):
    task, log_proba = named(40, tied=tied)
    offsets, score, gap = all_tried(task, log_proba)
    assert (offsets[:, 0] == 0).all()
    decisions = [decide(log_proba, one) for one in offsets]
    for i, predictions in enumerate(decisions):
        assert (score[i], gap[i]) == pytest.approx(by_hand(task, predictions))
    # cut at each value of the odds, and above the last
    odds = log_proba[:, 1] - log_proba[:, 0]
    wanted = {tuple((odds >= cut).astype(int)) for cut in [*odds, odds.max() + 1]}
    assert {tuple(one) for one in decisions} == wanted
    # the plain decision is among them, whatever the quantiles are
    assert 0 in offsets[:, 1]


def test_a_threshold_lies_between_two_rows():
    task, log_proba = named(40)
    odds = np.sort(log_proba[:, 1] - log_proba[:, 0])
    cuts = -all_tried(task, log_proba)[0][:, 1]
    nearest = abs(cuts[:, None] - odds).min(axis=1)
    assert nearest[cuts != 0].min() > np.diff(odds).min() / 3
    assert cuts.min() == pytest.approx(odds[0] - 1) and cuts.max() == pytest.approx(odds[-1] + 1)


def test_many_rows_are_cut_at_quantiles_and_fewer_where_each_is_asked():
    task, log_proba = named(5000)
    offsets, _, _ = all_tried(task, log_proba)
    assert 990 <= len(offsets) <= 1002
    shares = np.sort([(decide(log_proba, one) == 1).mean() for one in offsets])
    assert shares[0] == 0 and shares[-1] == 1 and np.diff(shares).max() < 0.0022
    asked, _ = named(5000, scoring=make_scorer(f1_score, pos_label="b"))
    assert 95 <= len(all_tried(asked, log_proba)[0]) <= 102


def test_what_is_kept_is_what_was_tried_at_that_strength():
    for n_classes in (2, 3):
        task, log_proba = named(60, n_classes)
        offsets, score, gap = all_tried(task, log_proba)
        found = search(task, 0.7, log_proba).thinned()
        assert (found.strength == 0.7).all() and found.n_tried == len(offsets) > len(found)
        points = {(*one, s, g) for one, s, g in zip(offsets, score, gap, strict=True)}
        assert {(*one, s, g) for one, s, g in zip(found.offsets, found.score, found.gap, strict=True)} <= points
        assert (found.offsets == 0).all(axis=1).any()


def test_rows_of_certain_classes_do_not_end_the_search():
    task, log_proba = named(30)
    log_proba[0] = [0.0, -np.inf]
    log_proba[1] = [-np.inf, 0.0]
    found = search(task, 1.0, log_proba)
    assert np.isfinite(found.offsets).all() and found.n_tried > 20
    for i, offsets in enumerate(found.offsets):
        assert found.score[i] == pytest.approx(by_hand(task, decide(log_proba, offsets))[0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("scoring", "metric", "weighted"),
    [
        ("accuracy", accuracy_score, True),
        ("balanced_accuracy", balanced_accuracy_score, True),
        (get_scorer("f1_macro"), lambda y, p, **w: f1_score(y, p, average="macro", **w), True),
        (make_scorer(lambda y, p: float((y == p).mean())), lambda y, p: float((y == p).mean()), False),
        (lambda model, X, y: accuracy_score(y, model.predict(X)), accuracy_score, False),
    ],
)
def test_scores_of_decisions_are_those_of_the_metric(n_classes, scoring, metric, weighted):
    task, log_proba = named(60, n_classes, scoring=scoring)
    assert task.sees_decisions
    offsets, score, _ = all_tried(task, log_proba)
    assert len(np.unique(score)) > 5
    names = task.classes[task.y_codes]
    keywords = {"sample_weight": task.weights} if weighted else {}
    for i in range(0, len(score), 1 + len(score) // 20):
        predicted = task.classes[decide(log_proba, offsets[i])]
        assert score[i] == pytest.approx(metric(names, predicted, **keywords))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_score_of_probabilities_is_asked_once_and_leaves_the_offsets(n_classes):
    task, log_proba = named(60, n_classes, scoring=get_scorer("neg_log_loss"))
    assert not task.sees_decisions
    offsets, score, gap = all_tried(task, log_proba)
    assert len(offsets) == 1 and (offsets == 0).all()
    assert score[0] == pytest.approx(-log_loss(task.y_codes, np.exp(log_proba), sample_weight=task.weights))
    assert gap[0] == pytest.approx(by_hand(task, decide(log_proba, np.zeros(n_classes)))[1])

    def unweighted(y, proba):
        return -log_loss(y, proba)

    own = replace(task, scoring=make_scorer(unweighted, response_method="predict_proba"))
    assert all_tried(own, log_proba)[1][0] == pytest.approx(-log_loss(task.y_codes, np.exp(log_proba)))


def test_a_ranking_is_asked_of_the_probabilities():
    task, log_proba = named(60, scoring=get_scorer("roc_auc"))
    expected = roc_auc_score(task.y_codes, log_proba[:, 1] - log_proba[:, 0], sample_weight=task.weights)
    assert all_tried(task, log_proba)[1].tolist() == pytest.approx([expected])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_classes", [3, 4])
def test_a_climb_starts_at_the_plain_decision_and_looks_at_no_point_twice(seed, n_classes):
    task, log_proba = named(200, n_classes, seed=seed)
    offsets, score, gap = all_tried(task, log_proba)
    assert (offsets[0] == 0).all() and (offsets[:, 0] == 0).all()
    assert len(np.unique(offsets, axis=0)) == len(offsets) > 20
    for i in range(0, len(offsets), 17):
        assert (score[i], gap[i]) == pytest.approx(by_hand(task, decide(log_proba, offsets[i])))


@pytest.mark.parametrize("scoring", ["f1", "precision", "recall", "f1_macro", "recall_macro"])
@pytest.mark.parametrize("classes", [[0, 1], [1, 2], [-1, 1]])
def test_counted_scores_are_those_of_scikit_learn(scoring, classes):
    task, log_proba = problem(3, 2, n=200)
    task = replace(task, classes=np.array(classes), scoring=scorer_of(scoring, np.array(classes)))
    assert task.counted is not None
    _, scores, tables = thresholds_with_tables(task, log_proba)
    asked = replace(task, scoring=get_scorer(scoring))
    some = slice(1, -1, 40)  # without the constant decisions, of which scikit-learn warns
    np.testing.assert_allclose(scores[some], asked.score(tables[some], lambda _: None, log_proba))


def test_a_sample_keeps_small_cells_whole_and_estimates_without_bias():
    rng = np.random.default_rng(0)
    group, y = rng.choice(3, 30_000, p=[0.9, 0.09, 0.01]), rng.integers(2, size=30_000)
    task = Problem(y, group, np.arange(2), 3, np.ones(30_000), gap_of("equalized_odds", "max"))
    kept, small = task.sample(6000, seed=0)
    assert kept.sum() == len(small.y_codes) and 5900 < kept.sum() <= 6000
    assert (group[kept] == 2).sum() == (group == 2).sum()
    # as many rows by weight in every cell, and a rate within its error
    decided = (rng.uniform(size=30_000) < 0.3).astype(np.intp)
    all_rows, some_rows = task.table(decided), small.table(decided[kept])
    np.testing.assert_allclose(some_rows.sum(axis=-1), all_rows.sum(axis=-1))
    np.testing.assert_allclose(some_rows[..., 1].sum() / 30_000, 0.3, atol=0.03)
    # nothing happens to few rows
    assert task.sample(30_000, seed=0)[1] is task


def two_groups(f, m):
    """A count table (groups, labels, predictions) of two groups, each ``[[TN, FP], [FN, TP]]``."""
    return np.array([f, m], dtype=float)


# 100 rows: 60 of the label 0, 40 of 1; 50 selected; recalls 40/60 and 30/40, of 1 by group 5/10 and 25/30
HALF = two_groups([[30, 10], [5, 5]], [[10, 10], [5, 25]])


@pytest.mark.parametrize(
    ("floors", "kept"),
    [
        ({}, True),
        ({"score": 0.7}, True),
        ({"score": 0.7001}, False),
        ({"balanced_accuracy": (40 / 60 + 30 / 40) / 2}, True),
        ({"balanced_accuracy": 0.709}, False),
        ({"predicted": np.array([0.5, 0.5])}, True),
        ({"predicted": np.array([0.0, 0.5001])}, False),
        ({"predicted": np.array([0.5001, 0.0])}, False),
        ({"recall": 0.75}, True),
        ({"recall": 0.7501}, False),
        ({"recall": 40 / 60, "selected": 0}, True),
        ({"recall": 0.67, "selected": 0}, False),
        ({"group_recall": np.array([5 / 10, 25 / 30])}, True),
        ({"group_recall": np.array([0.501, 0.8])}, False),
        ({"group_recall": np.array([0.5, 0.84])}, False),
        ({"group_recall": np.array([30 / 40, 10 / 20]), "selected": 0}, True),
        ({"group_recall": np.array([0.75, 0.51]), "selected": 0}, False),
    ],
)
def test_a_decision_at_a_floor_keeps_it_and_one_below_does_not(floors, kept):
    assert Floors(**floors).kept(HALF[None], np.array([0.7])).tolist() == [kept]


def test_of_three_classes_the_recall_of_each_is_judged():
    table = np.array([[[8, 1, 1], [2, 6, 2], [0, 5, 5]]], dtype=float)[None]
    score = np.zeros(1)
    assert Floors(recall=0.5).kept(table, score).all() and not Floors(recall=0.51).kept(table, score).any()
    # a class without rows has no recall, and breaks no floor
    table[:, :, 2] = 0
    assert Floors(recall=0.6, balanced_accuracy=0.99).kept(table, score).all()


@given(st.integers(0, 1000), st.integers(2, 3))
@settings(max_examples=40, deadline=None)
def test_the_linear_floors_are_those_that_are_kept(seed, n_classes):
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 20, size=(2, n_classes, n_classes)).astype(float)
    totals = table.sum(axis=-1)
    values = rng.uniform(0.2, 0.8, size=4)
    floors = Floors(
        balanced_accuracy=values[0],
        predicted=np.full(n_classes, values[1] / 2),
        recall=values[2] / 2,
        group_recall=np.full(2, values[3] / 2) if n_classes == 2 else None,
        selected=int(rng.integers(n_classes)),
    )
    # the rates of the table
    rates = table / totals[..., None]
    found = [(float((coefficients * rates).sum()), value) for coefficients, value in floors.linear(totals)]
    assert all(reached >= value for reached, value in found) == floors.kept(table[None], np.zeros(1))[0]
    assert len(found) == 1 + n_classes + (1 + 2 if n_classes == 2 else 3)


def test_a_scorer_is_asked_about_the_decision_at_a_tie():
    # half of the rows have the probability 0.5, which is decided for the second class
    y, log_proba = np.array([0, 1] * 30), np.log(np.tile([[0.5, 0.5], [0.2, 0.8]], (30, 1)))
    asked = []

    def accuracy(y_true, y_pred):
        asked.append(y_pred.tolist())
        return accuracy_score(y_true, y_pred)

    task = Problem(
        y, np.zeros(60, dtype=int), np.arange(2), 1, np.ones(60), gap_of("equalized_odds", "max"), make_scorer(accuracy)
    )
    offsets, score, _ = _thresholds(task, log_proba)
    assert len(asked) == len(offsets)
    for offset, decisions, found in zip(offsets, asked, score, strict=True):
        expected = decide(log_proba, offset)
        assert decisions == expected.tolist() and found == np.mean(expected == y)
    assert (offsets == 0).all(axis=1).any()
