"""Offsets by group: a known optimum, the floors, more than two classes, and what they do to the gap."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from setminus.core.gaps import count_table, demographic_parity_from_table, equalized_odds_from_table
from setminus.estimators.frontier import decide
from setminus.estimators.group_offsets import LinearGoal, _compared, offset_path


def drawn(n=12000, n_groups=3, seed=0):
    """Groups whose scores are shifted against each other, so that equal offsets give unequal rates."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    x = rng.normal(size=n)
    shift = np.linspace(-1, 1, n_groups)[group]
    label = (rng.random(n) < expit(1.5 * x)).astype(int)
    odds = 1.5 * x + shift
    return group, label, -np.logaddexp(0, np.column_stack([odds, -odds]))


def accuracy_gain(group, label, n_groups):
    totals = count_table(group, label, np.zeros_like(label), (n_groups, 2, 1))[..., 0]
    return np.eye(2) * totals[:, :, None] / len(label), totals


def tables(log_proba, features, offsets, group, label, n_groups, n_classes=2):
    made = decide(log_proba - features @ offsets, np.zeros(n_classes))
    return count_table(group, label, made, (n_groups, n_classes, n_classes))


@pytest.mark.parametrize(
    ("constraint", "gap"),
    [("equalized_odds", equalized_odds_from_table), ("demographic_parity", demographic_parity_from_table)],
)
def test_the_gap_falls_to_each_bound_and_accuracy_is_paid_for_it(constraint, gap):
    group, label, log_proba = drawn()
    gain, _ = accuracy_gain(group, label, 3)
    features = np.eye(3)[group]
    bounds = (0.2, 0.1, 0.05, 0.0)
    found = offset_path(
        log_proba, features, group * 2 + label, np.ones(len(group)), LinearGoal(constraint, gain), bounds
    )
    plain = tables(log_proba, features, np.zeros((3, 2)), group, label, 3)
    assert gap(plain) > 0.4
    for bound, offsets in zip(bounds, found, strict=True):
        assert gap(tables(log_proba, features, offsets, group, label, 3)) < bound + 0.03
        assert (offsets[:, 0] == 0).all()


def test_where_the_groups_differ_in_truth_no_more_is_paid_than_the_bound_asks_for():
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 2, 12000), rng.normal(size=12000)
    odds = 1.5 * x + np.where(group == 1, 1.0, -1.0)
    label = (rng.random(12000) < expit(odds)).astype(int)
    log_proba = -np.logaddexp(0, np.column_stack([odds, -odds]))
    gain, _ = accuracy_gain(group, label, 2)
    features, bounds = np.eye(2)[group], (0.4, 0.3, 0.2, 0.1)
    found = offset_path(
        log_proba, features, group * 2 + label, np.ones(12000), LinearGoal("demographic_parity", gain), bounds
    )
    made = [tables(log_proba, features, offsets, group, label, 2) for offsets in found]
    # each bound is used up, since a smaller gap costs accuracy
    np.testing.assert_allclose([demographic_parity_from_table(table) for table in made], bounds, atol=0.02)
    accuracy = [np.trace(table.sum(axis=0)) / 12000 for table in made]
    assert (np.diff(accuracy) < 0).all()


def test_a_weight_of_9_counts_as_nine_rows():
    group, label, log_proba = drawn(2000)
    gain, _ = accuracy_gain(group, label, 3)
    repeated = np.repeat(np.arange(2000), 1 + 8 * label)
    goal = LinearGoal("demographic_parity", gain)
    found = [
        offset_path(log_proba[rows], np.eye(3)[group[rows]], (group * 2 + label)[rows], weights, goal, (0.05,))[0]
        for rows, weights in (
            (np.arange(2000), 1.0 + 8 * label),
            (repeated, np.ones(len(repeated))),
            (np.arange(2000), np.ones(2000)),
        )
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert abs(found[0] - found[2]).max() > 0.01


def test_where_the_groups_differ_by_a_shift_the_offsets_undo_it():
    group, label, log_proba = drawn(40000)
    gain, _ = accuracy_gain(group, label, 3)
    (offsets,) = offset_path(
        log_proba, np.eye(3)[group], group * 2 + label, np.ones(len(group)), LinearGoal("equalized_odds", gain), (0.0,)
    )
    np.testing.assert_allclose(np.diff(offsets[:, 1]), 1.0, atol=0.15)


def test_a_floor_is_kept_where_the_score_alone_would_break_it():
    group, label, log_proba = drawn()
    gain, totals = accuracy_gain(group, label, 3)
    selects = np.zeros((3, 2, 2))
    selects[..., 1] = totals / totals.sum()
    features, cells, ones = np.eye(3)[group], group * 2 + label, np.ones(len(group))

    def selected(goal):
        (offsets,) = offset_path(log_proba, features, cells, ones, goal, (0.05,))
        made = tables(log_proba, features, offsets, group, label, 3)
        return made[..., 1].sum() / made.sum()

    assert selected(LinearGoal("equalized_odds", gain)) < 0.6
    assert selected(LinearGoal("equalized_odds", gain, floors=[(selects, 0.7)])) == pytest.approx(0.7, abs=0.03)


def test_a_floor_on_the_first_class_is_kept_too():
    group, label, log_proba = drawn()
    gain, totals = accuracy_gain(group, label, 3)
    rejects = np.zeros((3, 2, 2))
    rejects[..., 0] = totals / totals.sum()
    goal = LinearGoal("equalized_odds", gain, floors=[(rejects, 0.7)])
    (offsets,) = offset_path(log_proba, np.eye(3)[group], group * 2 + label, np.ones(len(group)), goal, (0.05,))
    made = tables(log_proba, np.eye(3)[group], offsets, group, label, 3)
    assert made[..., 0].sum() / made.sum() == pytest.approx(0.7, abs=0.03)


def test_rows_that_are_certain_do_not_spoil_the_others():
    group, label, log_proba = drawn()
    gain, _ = accuracy_gain(group, label, 3)
    certain = log_proba.copy()
    # e^-600 is a probability, its tenth root of the smoothed decision is not
    certain[:30] = np.where(label[:30, None] == [0, 1], 0.0, -600.0)
    goal = LinearGoal("equalized_odds", gain)
    found = [
        offset_path(some, np.eye(3)[group], group * 2 + label, np.ones(len(group)), goal, (0.05,))[0]
        for some in (log_proba, certain)
    ]
    np.testing.assert_allclose(found[1], found[0], atol=0.1)


def test_three_classes():
    rng = np.random.default_rng(1)
    group, label = rng.integers(0, 2, 9000), rng.integers(0, 3, 9000)
    logits = rng.normal(size=(9000, 3)) + 2 * np.eye(3)[label] + np.where(group == 1, 1.2, 0.0)[:, None] * [0, 0, 1]
    log_proba = log_softmax(logits, axis=1)
    totals = count_table(group, label, np.zeros_like(label), (2, 3, 1))[..., 0]
    gain = np.eye(3) * totals[:, :, None] / len(label)
    features = np.eye(2)[group]
    found = offset_path(
        log_proba, features, group * 3 + label, np.ones(9000), LinearGoal("equalized_odds", gain, 2 / 3)
    )
    before = equalized_odds_from_table(tables(log_proba, features, np.zeros((2, 3)), group, label, 2, 3))
    after = equalized_odds_from_table(tables(log_proba, features, found[-1], group, label, 2, 3))
    assert after < 0.05 < 0.15 < before


def test_equal_opportunity_compares_the_recall_of_the_named_class_alone():
    totals, gain = np.full((2, 3), 10.0), np.zeros((2, 3, 3))

    def cells(rows):
        return {tuple(place[1:].tolist()) for place in np.argwhere(rows.reshape(-1, 2, 3, 3).sum(axis=0))}

    named, numbers, weights = _compared(LinearGoal("equal_opportunity", gain, pos=2), totals)
    assert cells(named) == {(2, 2)}
    assert numbers.tolist() == [0, 0] and weights.tolist() == [10.0, 10.0]
    every, numbers, _ = _compared(LinearGoal("equal_opportunity", gain), totals)
    assert cells(every) == {(0, 0), (1, 1), (2, 2)}
    assert numbers.tolist() == [0, 0, 1, 1, 2, 2]
