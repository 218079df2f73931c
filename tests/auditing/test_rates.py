"""What an audit refuses, and in which words."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

from setminus.auditing.rates import (
    Interval,
    bootstrap_tables,
    check_proba,
    gap_interval,
    group_rates,
    rate_interval,
    read_scored,
)
from setminus.core.gaps import (
    count_table,
    equalized_odds_from_table,
)

GOOD = {"y": ["n", "y", "y", "n"], "proba": [0.1, 0.9, 0.6, 0.3], "sensitive_features": ["a", "b", "a", "b"]}


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_any_container(kind):
    rows = read_scored(**{name: kind(value) for name, value in GOOD.items()})
    assert rows.classes == ["n", "y"] and rows.groups == ["a", "b"]
    np.testing.assert_array_equal(rows.y, [0, 1, 1, 0])
    np.testing.assert_allclose(rows.proba[:, 1], GOOD["proba"])


def test_classes_name_the_columns():
    columns = np.column_stack([GOOD["proba"], 1 - np.array(GOOD["proba"])])
    rows = read_scored(GOOD["y"], columns, GOOD["sensitive_features"], classes=["y", "n"])
    assert rows.classes == ["y", "n"]
    np.testing.assert_array_equal(rows.y, [1, 0, 0, 1])


def test_single_precision_is_taken_and_made_to_sum_to_one():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=3).astype(np.float32)
    rows = read_scored([0, 1, 2], proba, ["a", "b", "a"])
    np.testing.assert_allclose(rows.proba.sum(axis=1), 1, rtol=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["n", "y"]}, "y has 2 rows and sensitive_features 4: expected the same number"),
        ({"proba": [0.1, 0.9]}, r"proba has shape \(2,\): expected \(4, 2\) or \(4,\)"),
        ({"proba": np.full((4, 3), 1 / 3)}, r"proba has shape \(4, 3\).*A class without rows cannot be audited"),
        ({"proba": [0.1, np.nan, 0.6, 0.3]}, "proba has missing or infinite values in 1 of 4 rows"),
        ({"proba": [0.1, 1.9, 0.6, 0.3]}, "proba is not a probability: values from -0.9 to 1.9"),
        ({"proba": np.full((4, 2), 0.4)}, "row sums off by up to 0.2"),
        ({"sensitive_features": ["a"] * 4}, r"one group only \(a\)"),
        ({"sensitive_features": ["a", None, "a", "b"]}, "missing values"),
        ({"y": ["n"] * 4}, "y holds one class only"),
        ({"y": ["n", None, "y", "y"]}, "y mixes NoneType, str"),
        ({"classes": ["n", "x"]}, "rows of every class"),
        ({"classes": ["n", "y", "x"]}, "rows of every class"),
        ({"sample_weight": [1, 2]}, "sample_weight has shape"),
        ({"sample_weight": [0, 0, 0, 0]}, "zero everywhere"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        read_scored(**(GOOD | change))


def test_probabilities_may_be_off_by_rounding_and_no_more():
    rows = np.tile([0.5, 0.5 + 5e-5], (4, 1))
    found = check_proba(rows, 4, 2, name="proba")
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-15)
    for bad in ([0.5, 0.5 + 5e-4], [0.5, 0.5 - 5e-4], [-1e-3, 1 + 1e-3], [-1e-9, 1 + 1e-9]):
        with pytest.raises(ValueError, match="proba is not a probability"):
            check_proba(np.tile(bad, (4, 1)), 4, 2, name="proba")
    assert check_proba([0, 1], 2, 2, name="proba").tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("proba", "n_classes", "message"),
    [
        (np.full((4, 2), 0.5), 3, r"full_proba has shape \(4, 2\): expected \(4, 3\), one row"),
        (np.full(4, 0.5), 3, r"full_proba has shape \(4,\): expected \(4, 3\), one row"),
        (np.full((3, 2), 0.5), 2, r"full_proba has shape \(3, 2\): expected \(4, 2\) or \(4,\), one row"),
        (np.array([0.1, np.nan, np.inf, 0.2]), 2, "full_proba has missing or infinite values in 2 of 4 rows"),
    ],
)
def test_shapes_and_gaps_are_named(proba, n_classes, message):
    with pytest.raises(ValueError, match=message):
        check_proba(proba, 4, n_classes, name="full_proba")


def test_each_class_is_named_once():
    three = np.full((4, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"classes is \['n', 'y', 'y'\], y holds \['n', 'y'\]"):
        read_scored(GOOD["y"], three, GOOD["sensitive_features"], classes=["n", "y", "y"])
    with pytest.raises(ValueError, match=r"y holds one class only \(n\)"):
        read_scored(["n"] * 4, GOOD["proba"], GOOD["sensitive_features"])
    rows = read_scored(**GOOD, sample_weight=[1, 2, 3, 4])
    assert rows.weight.tolist() == [1, 2, 3, 4] and read_scored(**GOOD).weight is None
    assert rows.group.tolist() == [0, 1, 0, 1]


def draw_rows(shares, n, rng):
    """Rows whose cells (group, label, prediction) have the given probabilities."""
    return np.unravel_index(rng.choice(shares.size, size=n, p=shares.ravel()), shares.shape)


def model(n_groups, gap):
    """Rates of .1 everywhere, and `gap` more for the last group's second label."""
    rate = np.full((n_groups, 2), 0.1)
    rate[-1, 1] += gap
    return np.stack([1 - rate, rate], axis=-1) / (2 * n_groups)


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_gap_intervals_cover_the_true_gap(n_groups, gap):
    shares, n, repeats = model(n_groups, gap), 600, 150
    rng = np.random.default_rng(0)
    covered = by_percentiles = 0
    for repeat in range(repeats):
        rows = draw_rows(shares, n, rng)
        table = count_table(*rows, shares.shape)
        centre, draws = bootstrap_tables(*rows, shares.shape, n_bootstrap=300, random_state=repeat)
        interval = gap_interval(table, centre, draws)
        covered += interval.low <= gap <= interval.high
        low, high = np.quantile(equalized_odds_from_table(draws), [0.025, 0.975])
        by_percentiles += low <= gap <= high
    assert covered / repeats > 0.9
    if gap == 0:
        assert by_percentiles / repeats < 0.1


def test_interval_shrinks_with_rows_and_grows_with_confidence():
    shares, rng = model(2, 0.3), np.random.default_rng(0)
    width = {}
    for n, confidence in [(500, 0.95), (50_000, 0.95), (500, 0.5)]:
        rows = draw_rows(shares, n, rng)
        tables = bootstrap_tables(*rows, shares.shape)
        interval = gap_interval(count_table(*rows, shares.shape), *tables, confidence=confidence)
        width[n, confidence] = interval.high - interval.low
    assert width[50_000, 0.95] == pytest.approx(width[500, 0.95] / 10, rel=0.3)
    assert width[500, 0.5] < width[500, 0.95]


def test_a_cell_where_all_rows_agree_still_has_an_interval():
    table = np.array([[[50.0, 50.0], [3.0, 0.0]], [[50.0, 50.0], [0.0, 5.0]]])
    rows = np.repeat(np.array(np.unravel_index(np.arange(8), table.shape)), table.ravel().astype(int), axis=1)
    interval = gap_interval(table, *bootstrap_tables(*rows, table.shape))
    assert interval.value == 1 and interval.high == 1 and interval.low < 0.7


def test_equal_weights_change_nothing_but_the_draws():
    shares, rng = model(3, 0.2), np.random.default_rng(0)
    rows = draw_rows(shares, 2000, rng)
    table = count_table(*rows, shares.shape)
    plain = gap_interval(table, *bootstrap_tables(*rows, shares.shape))
    centre, draws = bootstrap_tables(*rows, shares.shape, weights=np.full(2000, 2.0))
    weighted = gap_interval(2 * table, centre, draws)
    np.testing.assert_allclose(centre, 2 * bootstrap_tables(*rows, shares.shape)[0])
    assert weighted.value == plain.value
    assert weighted.low == pytest.approx(plain.low, abs=0.02)
    assert weighted.high == pytest.approx(plain.high, abs=0.02)


def test_uneven_weights_widen_the_interval():
    shares, rng = model(2, 0.2), np.random.default_rng(0)
    rows = draw_rows(shares, 2000, rng)
    widths = []
    for weights in (np.ones(2000), rng.exponential(size=2000) ** 2):
        table = count_table(*rows, shares.shape, weights)
        interval = gap_interval(table, *bootstrap_tables(*rows, shares.shape, weights=weights))
        widths.append(interval.high - interval.low)
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 7), (40, 50), (50, 50)])
def test_rate_interval_is_wilsons(hits, n):
    reference = binomtest(hits, n).proportion_ci(0.9, method="wilson")
    interval = rate_interval(hits / n, n, 0.9)
    assert (interval.low, interval.high) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert interval.low <= interval.value <= interval.high


def test_undefined_rates_say_so():
    assert str(rate_interval(float("nan"), 0)) == "undefined"
    empty = np.zeros((2, 2, 2))
    assert np.isnan(gap_interval(empty, empty, empty[None]).value)
    assert str(Interval(0.25, 0.2, 0.3)) == "0.250 [0.200, 0.300]"


def test_rate_intervals_end_at_zero_and_one_and_need_rows():
    for n in (0.5, 3, 1000):
        assert rate_interval(0.0, n).low == 0 and rate_interval(1.0, n).high == 1
        assert rate_interval(0.0, n).high > 0 and rate_interval(1.0, n).low < 1
    for rate, n in (float("nan"), 10), (0.5, 0), (0.5, float("nan")):
        undefined = rate_interval(rate, n)
        assert np.isnan([undefined.value, undefined.low, undefined.high]).all()
    assert rate_interval(0.3, 40) == rate_interval(0.3, 40, 0.95)


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_are_rows_drawn_again(weighted):
    """Their mean is what is drawn from; their spread is that of counts."""
    shares, rng, n = model(2, 0.3), np.random.default_rng(0), 400
    rows = draw_rows(shares, n, rng)
    weights = rng.uniform(0.5, 2, size=n) if weighted else None
    centre, draws = bootstrap_tables(*rows, shares.shape, weights=weights, n_bootstrap=3000)
    table = count_table(*rows, shares.shape, weights)
    # half an average row of each prediction
    np.testing.assert_allclose(centre - table, 0.5 * table.sum() / n)
    assert draws.shape == (3000, *shares.shape)
    expected = centre * n / (n + 0.5 * table.size)
    if weighted:
        np.testing.assert_allclose(draws.mean(axis=0), expected * (n + 0.5 * table.size) / (n + table.size), rtol=0.12)
    else:
        assert (draws.sum(axis=(1, 2, 3)) == n).all()
        np.testing.assert_allclose(draws.mean(axis=0), expected, rtol=0.05)
        np.testing.assert_allclose(draws.var(axis=0), expected * (1 - expected / n), rtol=0.2)
    assert len(bootstrap_tables(*rows, shares.shape)[1]) == 1000
    again, other = (bootstrap_tables(*rows, shares.shape, weights=weights, random_state=s)[1] for s in (0, 1))
    assert np.array_equal(again, bootstrap_tables(*rows, shares.shape, weights=weights)[1])
    assert not np.array_equal(again, other)


def test_a_label_that_a_group_never_has_stays_empty():
    rows = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]])
    for weights in (None, np.array([1.0, 2.0, 3.0, 4.0])):
        centre, draws = bootstrap_tables(*rows, (2, 2, 2), weights=weights, n_bootstrap=20)
        assert (centre[0, 1] == 0).all() and (draws[:, 0, 1] == 0).all()
        assert (centre[[0, 1, 1], [0, 0, 1]] > 0).all()


def parity(table, draws, **options):
    """Of two groups without labels."""
    return gap_interval(table[:, None], table[:, None], draws[:, :, None], constraint="demographic_parity", **options)


def test_limits_of_two_groups_are_quantiles_of_the_error():
    table = np.array([[60.0, 40.0], [30.0, 70.0]])
    draws = np.random.default_rng(0).multinomial(100, table / 100, size=(500, 2)).astype(float)
    errors = ((draws - table) / 100)[:, 1, 1] - ((draws - table) / 100)[:, 0, 1]
    for confidence in (0.5, 0.9):
        tail = (1 - confidence) / 2
        found = parity(table, draws, confidence=confidence)
        low, high = 0.3 - np.quantile(np.abs(errors), 1 - tail), 0.3 - np.quantile(errors, tail)
        assert (found.value, found.low, found.high) == pytest.approx((0.3, low, high))
    assert parity(table, draws) == parity(table, draws, confidence=0.95)


def test_an_interval_stays_within_what_a_gap_can_be():
    table = np.array([[98.0, 2.0], [2.0, 98.0]])
    draws = np.random.default_rng(0).multinomial(100, table / 100, size=(500, 2)).astype(float)
    assert parity(table, draws, confidence=0.999).high == 1.0
    level = np.array([[50.0, 50.0], [50.0, 50.0]])
    assert parity(level, draws).low == 0
    sure = np.array([[[9.0, 0.0], [0.0, 9.0]], [[0.0, 9.0], [9.0, 0.0]]])
    both = gap_interval(sure, sure, np.stack([sure] * 5), agg="sum")
    assert (both.value, both.high) == (2.0, 2.0)


def test_draws_without_a_group_are_passed_over():
    table = np.array([[60.0, 40.0], [30.0, 70.0]])
    draws = np.random.default_rng(0).multinomial(100, table / 100, size=(200, 2)).astype(float)
    lost = draws.copy()
    lost[::2, 1] = 0
    found, expected = parity(table, lost), parity(table, draws[1::2])
    assert found.high == pytest.approx(expected.high) and found.low >= expected.low
    lost[:, 1] = 0
    assert np.isnan(parity(table, lost).low)


def test_groups_that_cannot_be_the_largest_do_not_widen_the_interval():
    rng = np.random.default_rng(0)
    two = np.array([[900.0, 100.0], [500.0, 500.0]])
    many = np.concatenate([two, [[700.0, 300.0]] * 6])
    found = []
    for table in (two, many):
        draws = rng.multinomial(1000, table / 1000, size=(2000, len(table))).astype(float)
        found.append(parity(table, draws))
    assert found[1].low == pytest.approx(found[0].low, abs=0.006)
    assert found[1].high == pytest.approx(found[0].high, abs=0.006)
    # where all may be, it is wider
    level = np.full((8, 2), 500.0)
    draws = rng.multinomial(1000, level / 1000, size=(2000, 8)).astype(float)
    assert parity(level, draws).high > 0.03


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
