"""Certificates: their error by enumeration and by simulation, and what they report."""

import json
from itertools import product
from typing import get_args

import numpy as np
import pytest
from scipy.stats import binom

from setminus.core import Constraint
from setminus.core.certificate import certify, noise_floor, p_value, rows_needed, smallest_tolerance, upper_gaps
from setminus.core.differences import exact_p_value
from setminus.core.gaps import (
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
)
from setminus.errors import UserError

EVEN = np.array([[[450, 50], [100, 400]], [[460, 40], [110, 390]]])


def drawn(rng, rates, n):
    """Counts of groups and labels with given rates of the second class."""
    hits = rng.binomial(n, rates)
    return np.stack([n - hits, hits], axis=-1)


def test_two_groups_are_two_tests_for_each_label():
    tests = [
        exact_p_value(*one, 500, *other, 500, 0.06)
        for label in (0, 1)
        for one, other in [((EVEN[0, label, 1],), (EVEN[1, label, 1],)), ((EVEN[1, label, 1],), (EVEN[0, label, 1],))]
    ]
    assert p_value(EVEN, 0.06) == pytest.approx(max(tests))
    recalls = tests[2:]
    assert p_value(EVEN, 0.06, constraint="equal_opportunity") == pytest.approx(max(recalls))


@pytest.mark.parametrize(("agg", "tolerance"), [("max", 0.45), ("sum", 0.9)])
def test_error_is_below_the_level_by_enumeration(agg, tolerance):
    n = np.array([[5, 5], [4, 4]])
    cells = [*product(*(range(k + 1) for k in n.ravel()))]
    certified = np.array(
        [
            p_value(
                np.stack([n - np.reshape(hits, (2, 2)), np.reshape(hits, (2, 2))], axis=-1),
                tolerance,
                agg=agg,
            )
            <= 0.1
            for hits in cells
        ]
    )
    assert certified.any()
    worst = 0.0
    for share, base0, base1 in product([0.0, 0.3, 0.5, 1.0], [0.0, 0.05, 0.1], [0.0, 0.05, 0.1]):
        first, second = (share * tolerance, (1 - share) * tolerance) if agg == "sum" else (tolerance, share * tolerance)
        rates = np.array([[base0 + first, base1 + second], [base0, base1]])
        chance = np.prod(binom.pmf(cells, n.ravel(), rates.ravel()), axis=1)
        worst = max(worst, float(chance[certified].sum()))
    assert worst <= 0.1


@pytest.mark.parametrize(("agg", "groups"), [("max", [0, 1, 2]), ("sum", [0, 2])])
def test_a_gap_at_the_tolerance_is_rarely_certified_and_a_small_one_often(agg, groups):
    rng = np.random.default_rng(1)
    n = np.array([[300, 4000], [500, 350], [900, 8000]])[groups]
    at_tolerance = np.array([[0.2, 0.99], [0.2, 0.98], [0.3, 0.99]])[groups]
    wrong = [p_value(drawn(rng, at_tolerance, n), 0.1, agg=agg) <= 0.05 for _ in range(200)]
    # 5 % of 200 and three standard errors
    assert np.mean(wrong) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    # the negative control takes the measured gap for the true one
    by_point = [equalized_odds_from_table(drawn(rng, at_tolerance, n).astype(float), agg) <= 0.1 for _ in range(200)]
    assert np.mean(by_point) > 2 * max(np.mean(wrong), 0.05)
    equal = np.full((len(groups), 2), 0.2)
    right = [p_value(drawn(rng, equal, 5 * n), 0.1, agg=agg) <= 0.05 for _ in range(20)]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize("constraint", ["equalized_odds", "demographic_parity", "equal_opportunity"])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_bound_is_where_certificates_begin(constraint, n_classes):
    rng = np.random.default_rng(n_classes)
    table = rng.multinomial(400, np.full(n_classes, 1 / n_classes), size=(3, n_classes))
    found = certify(table, constraint=constraint, tolerance=0.1)
    gap = {
        "equalized_odds": equalized_odds_from_table,
        "demographic_parity": demographic_parity_from_table,
        "equal_opportunity": equal_opportunity_from_table,
    }[constraint](table.astype(float))
    assert found.gap == pytest.approx(float(gap)) and found.bound > found.gap
    assert found.certified == (found.bound <= 0.1)
    assert certify(table, constraint=constraint, tolerance=found.bound + 0.002).certified
    assert not certify(table, constraint=constraint, tolerance=found.bound - 0.002).certified
    assert certify(table, constraint=constraint, tolerance=0.1, confidence=0.99).bound > found.bound
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.parametrize("agg", ["max", "sum"])
def test_p_value_falls_with_the_tolerance(agg):
    found = [p_value(EVEN, tolerance, agg=agg) for tolerance in np.linspace(0, 0.2, 21)]
    assert (np.diff(found) <= 1e-9).all() and found[0] > 0.3 > 0.01 > found[-1]


def test_sum_is_stricter_than_max_and_better_than_the_sum_of_two_bounds():
    largest, total = certify(EVEN, tolerance=0.1), certify(EVEN, tolerance=0.1, agg="sum")
    assert largest.bound < total.bound
    separate = [certify(EVEN[:, [k]], tolerance=0.1, confidence=0.975).bound for k in (0, 1)]
    assert total.bound < sum(separate)


def test_empty_cells_are_named_and_refuse():
    table = EVEN.copy()
    table[1, 1] = 0
    found = certify(table, tolerance=0.5)
    assert not found.certified and found.empty == ((1, 1),) and found.bound == 1.0
    # demographic parity does not need that cell
    assert certify(table, tolerance=0.5, constraint="demographic_parity").certified
    # a label without any row is none
    table[:, 1] = 0
    assert certify(table, tolerance=0.2).certified


def test_weighted_rows_count_as_their_effective_number():
    weighted = certify(EVEN * 3.0, squares=EVEN * 9.0, tolerance=0.1)
    assert weighted.method == "approximate, weighted rows" and weighted.rows == certify(EVEN, tolerance=0.1).rows
    assert weighted.bound == pytest.approx(certify(EVEN, tolerance=0.1).bound, abs=0.003)
    uneven = certify(EVEN * 3.0, squares=EVEN * 30.0, tolerance=0.1)
    assert uneven.bound > weighted.bound
    with pytest.raises(UserError, match="squares"):
        certify(EVEN * 0.5 + 0.25, tolerance=0.1)


def test_methods_follow_the_number_of_rows():
    assert certify(EVEN, tolerance=0.1).method == "exact"
    assert certify(EVEN * 100, tolerance=0.1).method == "asymptotic"
    assert certify(np.concatenate([EVEN, EVEN * 100, EVEN * 100]), tolerance=0.1).method == "exact and asymptotic"


def test_noise_floor_is_that_of_two_equal_groups():
    table = np.array([[[1400, 600]], [[700, 300]]])
    floor = noise_floor(table, constraint="demographic_parity")
    error = np.sqrt(0.3 * 0.7 * (1 / 2000 + 1 / 1000))
    assert floor.expected == pytest.approx(np.sqrt(2 / np.pi) * error, rel=0.1)
    assert floor.quantile == pytest.approx(1.96 * error, rel=0.1)
    assert floor == noise_floor(table, constraint="demographic_parity")
    # more groups, more noise
    assert noise_floor(np.concatenate([table] * 4), constraint="demographic_parity").quantile > floor.quantile


@pytest.mark.parametrize("constraint", ["equalized_odds", "demographic_parity", "equal_opportunity"])
def test_equal_groups_are_rejected_in_one_of_twenty_samples(constraint):
    rng = np.random.default_rng(0)
    rows = np.array([[3000, 2000], [400, 250], [15, 10]])
    rate = np.array([[0.8, 0.2], [0.3, 0.7]])
    drawn = [rng.multinomial(rows, rate) for _ in range(400)]
    p_values = np.array([noise_floor(table, constraint=constraint).p_value for table in drawn])
    assert 0.025 < (p_values <= 0.05).mean() < 0.08
    assert 0.4 < (p_values <= 0.5).mean() < 0.6


def test_a_small_group_does_not_hide_the_difference_of_two_large_ones():
    table = np.array([[[2400, 600], [600, 1400]], [[1400, 600], [200, 1200]], [[8, 3], [3, 6]]])
    floor = noise_floor(table)
    # among the gaps of equal groups that of these would be nothing special
    assert equalized_odds_from_table(table) < floor.quantile and floor.p_value < 0.002
    # the control: without the two large ones' difference nothing is found
    assert noise_floor(np.array([table[0], table[0], table[2]])).p_value > 0.05


@pytest.mark.parametrize("constraint", ["equalized_odds", "demographic_parity"])
def test_rows_needed_reach_the_tolerance_that_these_rows_do_not(constraint):
    table = np.array([[[90, 10], [20, 80]], [[9000, 1000], [2000, 8000]], [[400, 100], [90, 110]]])
    more = rows_needed(table, 0.05, constraint=constraint)
    assert smallest_tolerance(table, constraint=constraint) > 0.05
    assert more[0] > 0 < more[2] and more[1] == 0
    grown = np.round(table * (1 + more / table.sum(axis=(1, 2)))[:, None, None])
    # a group grows with all of its labels, also where one of them was short of rows
    assert 0.038 < smallest_tolerance(grown, constraint=constraint) < 0.055
    assert (rows_needed(grown * 1.5 // 1, 0.05, constraint=constraint) == 0).all()


def test_smallest_tolerance_is_certified_in_half_of_the_samples():
    rng = np.random.default_rng(0)
    n, rates = np.array([[300, 300], [500, 200], [400, 400]]), np.array([0.2, 0.7])
    expected = smallest_tolerance(drawn(rng, rates, n))
    reached = [p_value(drawn(rng, rates, n), expected, exact=False) <= 0.05 for _ in range(200)]
    assert 0.3 < np.mean(reached) < 0.7


@pytest.mark.parametrize(
    ("table", "options", "word"),
    [
        (EVEN[:1], {}, "at least two groups"),
        (EVEN, {"tolerance": -0.1}, "tolerance"),
        (EVEN, {"confidence": 1.0}, "confidence"),
        (EVEN, {"constraint": "parity"}, "constraint"),
        (EVEN, {"agg": "mean"}, "agg"),
    ],
)
def test_refusals(table, options, word):
    with pytest.raises(UserError, match=word):
        certify(table, **{"tolerance": 0.1, **options})


def test_no_number_of_rows_certifies_no_gap():
    with pytest.raises(UserError, match="no number of rows"):
        rows_needed(EVEN, 0.0)


@pytest.mark.parametrize(
    ("constraint", "agg"), [*((name, "max") for name in get_args(Constraint)), ("equalized_odds", "sum")]
)
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_quick_upper_end_is_near_the_bound_of_the_certificate(constraint, agg, n_groups):
    rng = np.random.default_rng(n_groups)
    rate = rng.uniform(0.2, 0.8, size=(5, n_groups, 2))
    rows = rng.integers(300, 3000, size=(5, n_groups, 2))
    selected = rng.binomial(rows, rate)
    tables = np.stack([rows - selected, selected], axis=-1).astype(float)
    upper = upper_gaps(tables, constraint=constraint, agg=agg, level=0.05)
    bounds = [certify(one, tolerance=0.1, constraint=constraint, agg=agg).bound for one in tables]
    gaps = [certify(one, tolerance=0.1, constraint=constraint, agg=agg).gap for one in tables]
    # the margins of a sum are added, where the certificate looks for the worst division among the labels
    assert np.abs(upper - bounds).max() < (0.05 if agg == "sum" else 0.012)
    assert (upper - gaps).min() > 0.01
    # four times the rows have half the margin
    more = upper_gaps(tables, constraint=constraint, agg=agg, level=0.05, times=4.0)
    if n_groups == 2:
        assert more - gaps == pytest.approx((upper - gaps) / 2, abs=1e-3)


def test_the_quick_upper_end_takes_many_classes_and_leaves_out_empty_groups():
    table = np.array([[[60.0, 30, 10], [5, 80, 15], [0, 10, 90]], [[50.0, 40, 10], [5, 85, 10], [0, 10, 90]]])
    wider = np.concatenate([table, np.zeros((1, 3, 3))])
    assert equalized_odds_from_table(table) < upper_gaps(table) == upper_gaps(wider)
    assert np.isnan(upper_gaps(wider[1:]))
