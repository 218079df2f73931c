"""The test of a difference of rates: its statistic by a numerical maximum, its size by enumeration."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import barnard_exact, binom

from setminus.core.differences import exact_p_value, score_p_value, score_statistic


@pytest.mark.parametrize(
    ("x1", "n1", "x2", "n2", "margin"),
    [(40, 100, 40, 100, 0.1), (3, 20, 5, 80, 0.2), (0, 30, 0, 30, 0.05), (7, 9, 50, 300, 0.3), (5, 50, 10, 60, 0.0)],
)
def test_statistic_divides_by_the_error_at_the_most_likely_rates_of_the_null(x1, n1, x2, n2, margin):
    def unlikely(rate1):
        rate2 = rate1 - margin
        return -(xlogy(x1, rate1) + xlogy(n1 - x1, 1 - rate1) + xlogy(x2, rate2) + xlogy(n2 - x2, 1 - rate2))

    rate1 = minimize_scalar(unlikely, bounds=(margin, 1), method="bounded", options={"xatol": 1e-12}).x
    rate2 = rate1 - margin
    error = np.sqrt(rate1 * (1 - rate1) / n1 + rate2 * (1 - rate2) / n2)
    expected = (x1 / n1 - x2 / n2 - margin) / error
    assert float(score_statistic(x1, n1, x2, n2, margin)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("x1", "n1", "x2", "n2"), [(2, 12, 8, 15), (10, 40, 21, 45), (1, 9, 3, 8)])
def test_without_a_margin_the_exact_value_is_barnards(x1, n1, x2, n2):
    barnard = barnard_exact([[x1, x2], [n1 - x1, n2 - x2]], alternative="less", pooled=True, n=256).pvalue
    # the search leaves out rates that the data exclude, and adds their probability
    assert exact_p_value(x1, n1, x2, n2, 0.0) == pytest.approx(barnard + 0.001, abs=2e-3)


def sizes(p_values, n1, n2, margin, level):
    """The probability of a rejection where the difference is the margin, for a grid of rates."""
    x1, x2 = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None, :]
    rate = np.linspace(0, 1 - margin, 201)[:, None, None]
    return (binom.pmf(x1, n1, rate + margin) * binom.pmf(x2, n2, rate) * (p_values <= level)).sum(axis=(1, 2))


@pytest.mark.parametrize(("n1", "n2", "margin"), [(12, 17, 0.1), (20, 15, 0.05), (5, 40, 0.1), (40, 4, 0.15)])
def test_exact_size_is_below_the_level_and_the_approximation_above(n1, n2, margin):
    x1, x2 = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None, :]
    exact = np.array([[exact_p_value(a, n1, b, n2, margin) for b in range(n2 + 1)] for a in range(n1 + 1)])
    approximate = score_p_value(x1, n1, x2, n2, margin)
    for level in (0.01, 0.05, 0.1):
        assert sizes(exact, n1, n2, margin, level).max() <= level
    # it is not merely never rejecting
    assert sizes(exact, n1, n2, margin, 0.05).max() > 0.04
    assert sizes(approximate, n1, n2, margin, 0.05).max() > 0.05


def test_statistic_grows_with_the_first_count_and_falls_with_the_second():
    x1, x2 = np.arange(31)[:, None], np.arange(21)[None, :]
    found = score_statistic(x1, 30, x2, 20, 0.07)
    assert (np.diff(found, axis=0) > 0).all() and (np.diff(found, axis=1) < 0).all()


@pytest.mark.parametrize("n", [50, 700, 3000])
def test_exact_and_approximate_values_meet_with_more_rows(n):
    x1, x2 = int(0.3 * n), int(0.3 * n)
    margin = 1.7 * np.sqrt(2 * 0.21 / n)
    exact, approximate = exact_p_value(x1, n, x2, n, margin), float(score_p_value(x1, n, x2, n, margin))
    assert abs(exact - approximate) < 0.001 + 0.15 / np.sqrt(n)
    # the order of the groups is that of the complements
    assert exact == pytest.approx(exact_p_value(n - x2, n, n - x1, n, margin), abs=1e-3)
