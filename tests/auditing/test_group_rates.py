"""The group table against rates counted row by row."""

import numpy as np
import pytest

from setminus.auditing.group_rates import group_rates
from setminus.auditing.intervals import rate_interval
from setminus.core.gaps import count_table


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rates_are_those_of_the_rows(n_classes):
    rng = np.random.default_rng(0)
    group, y, prediction = rng.integers(2, size=300), *rng.integers(n_classes, size=(2, 300))
    weight = rng.uniform(size=300)
    shape = (2, n_classes, n_classes)
    table = count_table(group, y, prediction, shape, weight)
    squares = count_table(group, y, prediction, shape, weight**2)
    rows = group_rates(table, squares, np.bincount(group), ["a", "b"], list(range(n_classes)), 0.9)
    assert [(row.group, row.label) for row in rows] == [
        (g, c) for g in "ab" for c in ([1] if n_classes == 2 else range(n_classes))
    ]
    for row in rows:
        mine = group == "ab".index(row.group)

        def share(event, among, mine=mine):
            return np.average(event[mine & among], weights=weight[mine & among])

        anyone = np.ones(300, dtype=bool)
        assert row.n == mine.sum()
        assert row.base_rate == pytest.approx(share(y == row.label, anyone))
        assert row.selection_rate.value == pytest.approx(share(prediction == row.label, anyone))
        assert row.true_positive_rate.value == pytest.approx(share(prediction == row.label, y == row.label))
        assert row.false_positive_rate.value == pytest.approx(share(prediction == row.label, y != row.label))
        assert row.accuracy.value == pytest.approx(share(prediction == y, anyone))
        # as many rows as the weights are worth
        for interval, among in (row.selection_rate, anyone), (row.true_positive_rate, y == row.label):
            worth = weight[mine & among].sum() ** 2 / (weight[mine & among] ** 2).sum()
            expected = rate_interval(interval.value, worth, 0.9)
            assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_no_rows_no_rate():
    table = np.array([[[4.0, 2.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
    first, second = group_rates(table, table, np.array([6, 4]), ["a", "b"], [0, 1], 0.95)
    assert np.isnan(first.true_positive_rate.value) and not np.isnan(second.true_positive_rate.value)
