"""Many tables at once give what each gives by itself, and the rates behind them by hand."""

import numpy as np
import pytest

from setminus.core.gap_tables import (
    count_table,
    demographic_parity_from_rates,
    equal_opportunity_from_rates,
    equal_opportunity_from_table,
    equalized_odds_from_rates,
    equalized_odds_from_table,
    rates,
)


@pytest.mark.parametrize("agg", ["max", "sum"])
@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 2, 2), (4, 2, 3)])
def test_leading_axes_and_empty_cells(agg, shape):
    tables = np.random.default_rng(0).integers(0, 4, size=(40, *shape)).astype(float)
    tables[0] = 0
    together = equalized_odds_from_table(tables, agg)
    assert np.isnan(together[0]) and together.shape == (40,)
    for table, found in zip(tables, together, strict=True):
        np.testing.assert_array_equal(found, equalized_odds_from_table(table, agg))
        rate = rates(table)
        by_label = []
        for label in range(shape[1]):
            known = [g for g in range(shape[0]) if not np.isnan(rate[g, label]).any()]
            pairs = [abs(rate[g, label] - rate[h, label]).sum() / 2 for g in known for h in known if g < h]
            by_label += [max(pairs)] if pairs else []
        expected = np.nan if not by_label else max(by_label) if agg == "max" else sum(by_label)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    # the largest gap is what counts unless it is said otherwise
    np.testing.assert_array_equal(equalized_odds_from_rates(rates(tables)), equalized_odds_from_table(tables, "max"))


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_opportunity_is_the_recall_of_the_second_of_two_classes_or_of_any_of_more(n_groups, n_classes):
    tables = np.random.default_rng(0).integers(1, 9, size=(20, n_groups, n_classes, n_classes)).astype(float)
    rate = rates(tables)
    recall = np.einsum("tgkk->tgk", rate)
    differences = recall.max(axis=1) - recall.min(axis=1)
    expected = differences[:, 1] if n_classes == 2 else differences.max(axis=1)
    np.testing.assert_allclose(equal_opportunity_from_rates(rate), expected)
    np.testing.assert_allclose(equal_opportunity_from_table(tables), expected)
    for k in range(n_classes):
        np.testing.assert_allclose(equal_opportunity_from_rates(rate, k), differences[:, k])


def test_parity_of_rates_is_the_largest_distance():
    rate = np.array([[0.2, 0.3, 0.5], [0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
    assert demographic_parity_from_rates(rate) == pytest.approx(0.4)


def test_counts_are_floats_of_the_whole_shape():
    codes = np.array([0, 0, 1])
    table = count_table(codes, codes, codes, (3, 2, 4))
    assert table.dtype == np.float64 and table.shape == (3, 2, 4) and table.sum() == 3
    assert table[0, 0, 0] == 2 and table[1, 1, 1] == 1
