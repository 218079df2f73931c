"""The gaps by hand, by brute force, and their refusals."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.core.checks import encode_labels
from setminus.core.gaps import (
    count_table,
    demographic_parity_from_rates,
    demographic_parity_from_table,
    demographic_parity_gap,
    equal_opportunity_from_rates,
    equal_opportunity_from_table,
    equal_opportunity_gap,
    equalized_odds_from_rates,
    equalized_odds_from_table,
    equalized_odds_gap,
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


# group a: TPR 1/2, FPR 0; group b: TPR 1, FPR 1/2
Y = [1, 1, 0, 0, 1, 1, 0, 0]
PRED = [1, 0, 0, 0, 1, 1, 1, 0]
GROUP = ["a"] * 4 + ["b"] * 4
GAPS = [demographic_parity_gap, equalized_odds_gap, equal_opportunity_gap]


def brute_force(y, prediction, group, weight):
    """Labels' gaps from the definition: loops over groups and classes, no count table."""
    classes = sorted(set(y) | set(prediction))
    gaps = {}
    for label in sorted(set(y)):
        shares = {}
        for g in sorted(set(group)):
            rows = [i for i in range(len(y)) if y[i] == label and group[i] == g]
            total = sum(weight[i] for i in rows)
            shares[g] = [sum(weight[i] for i in rows if prediction[i] == c) / total for c in classes]
        gaps[label] = max(
            sum(abs(p - q) for p, q in zip(shares[g], shares[h], strict=True)) / 2 for g, h in combinations(shares, 2)
        )
    return gaps


def test_by_hand():
    assert demographic_parity_gap(Y, PRED, sensitive_features=GROUP) == 0.5
    assert equalized_odds_gap(Y, PRED, sensitive_features=GROUP) == 0.5
    assert equalized_odds_gap(Y, PRED, sensitive_features=GROUP, agg="sum") == 1.0
    assert equal_opportunity_gap(Y, PRED, sensitive_features=GROUP) == 0.5
    assert equal_opportunity_gap(Y, PRED, sensitive_features=GROUP, pos_label=0) == 0.5


@pytest.mark.parametrize("gap", GAPS)
def test_equal_treatment_has_no_gap_and_opposite_treatment_the_largest(gap):
    assert gap(Y, Y, sensitive_features=GROUP) == 0
    opposite = [1] * 4 + [0] * 4
    assert gap(Y, opposite, sensitive_features=GROUP) == 1


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 4), n_classes=st.integers(2, 4))
def test_equal_to_the_definition(seed, n_groups, n_classes):
    rng = np.random.default_rng(seed)
    cells = n_groups * n_classes
    y = np.concatenate([np.tile(np.arange(n_classes), n_groups), rng.integers(n_classes, size=30)])
    group = np.concatenate([np.repeat(np.arange(n_groups), n_classes), rng.integers(n_groups, size=30)])
    prediction = rng.integers(n_classes, size=cells + 30)
    weight = rng.uniform(0.1, 3, size=cells + 30)
    by_label = brute_force(y, prediction, group, weight)
    options = {"sensitive_features": group, "sample_weight": weight}
    assert equalized_odds_gap(y, prediction, **options) == pytest.approx(max(by_label.values()), abs=1e-12)
    assert equalized_odds_gap(y, prediction, agg="sum", **options) == pytest.approx(sum(by_label.values()), abs=1e-12)
    unconditional = brute_force(np.zeros_like(y), prediction, group, weight)[0]
    assert demographic_parity_gap(None, prediction, **options) == pytest.approx(unconditional, abs=1e-12)
    recalls = [equal_opportunity_gap(y, prediction, pos_label=c, **options) for c in range(n_classes)]
    expected = recalls[1] if n_classes == 2 else max(recalls)
    assert equal_opportunity_gap(y, prediction, **options) == pytest.approx(expected, abs=1e-12)
    for c in range(n_classes):
        only = brute_force(y[y == c], prediction[y == c] == c, group[y == c], weight[y == c])
        assert recalls[c] == pytest.approx(only[c], abs=1e-12)


def test_doubling_a_row_is_weighting_it():
    weight = np.array([2, 1, 1, 1, 1, 3, 4, 1])
    repeated = np.repeat(np.arange(8), weight)
    for gap in GAPS:
        weighted = gap(Y, PRED, sensitive_features=GROUP, sample_weight=weight)
        doubled = gap(np.take(Y, repeated), np.take(PRED, repeated), sensitive_features=np.take(GROUP, repeated))
        assert weighted == pytest.approx(doubled, abs=1e-12)
        assert weighted != gap(Y, PRED, sensitive_features=GROUP)


def test_crossed_columns_are_groups():
    frame = pd.DataFrame({"sex": ["f", "f", "m", "m"] * 2, "old": [0, 1, 0, 1] * 2})
    prediction = [1, 0, 0, 1, 1, 0, 0, 1]
    assert demographic_parity_gap(None, prediction, sensitive_features=frame["sex"]) == 0
    assert demographic_parity_gap(None, prediction, sensitive_features=frame) == 1


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
@pytest.mark.parametrize("names", [("no", "yes"), (False, True), (-1.0, 2.5)])
def test_labels_of_any_kind(kind, names):
    y, prediction = kind([names[v] for v in Y]), kind([names[v] for v in PRED])
    for gap in GAPS:
        expected = gap(Y, PRED, sensitive_features=GROUP)
        assert gap(y, prediction, sensitive_features=kind(GROUP)) == expected


def test_tables_answer_leading_axes_at_once():
    rng = np.random.default_rng(0)
    tables = rng.integers(1, 20, size=(7, 3, 4, 3, 3)).astype(float)
    for function in (demographic_parity_from_table, equalized_odds_from_table, equal_opportunity_from_table):
        together = function(tables)
        assert together.shape == (7, 3)
        np.testing.assert_array_equal(together[2, 1], function(tables[2, 1]))
    np.testing.assert_allclose(rates(tables).sum(axis=-1), 1)


def test_tables_leave_empty_cells_out():
    table = np.array([[[4.0, 0], [1, 1]], [[3, 1], [0, 2]], [[0, 0], [1, 1]]])
    assert equalized_odds_from_table(table) == 0.5
    assert equalized_odds_from_table(table, "sum") == 0.75
    assert np.isnan(equalized_odds_from_table(table[:1])).all()
    assert np.isnan(equalized_odds_from_table(np.zeros_like(table), "sum"))
    assert np.isnan(equal_opportunity_from_table(np.zeros_like(table)))
    assert np.isnan(demographic_parity_from_table(np.zeros_like(table)))


def test_a_class_that_is_only_predicted_is_no_label():
    assert equalized_odds_gap([0, 1, 0, 1], [0, 1, 2, 1], sensitive_features=list("aabb")) == 1


def test_a_class_that_is_only_predicted_has_no_recall():
    y, prediction = [0, 1, 0, 1, 0, 1], [0, 1, 2, 1, 0, 0]
    assert equal_opportunity_gap(y, prediction, sensitive_features=list("aaabbb")) == 0.5
    with pytest.raises(ValueError, match="with label 2"):
        equal_opportunity_gap(y, prediction, sensitive_features=list("aaabbb"), pos_label=2)


def test_only_the_shares_of_the_weights_count():
    weight = np.array([2, 1, 1, 1, 1, 3, 4, 1]) * 1e-3
    three, other = [0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 1, 2, 0, 2, 0, 0]
    for y, prediction, group in (Y, PRED, GROUP), (three, other, list("aaabbbab")):
        for gap in GAPS:
            light, heavy = (
                gap(y, prediction, sensitive_features=group, sample_weight=weight * scale) for scale in (1, 1e6)
            )
            assert light == pytest.approx(heavy, abs=1e-12) != 0


def test_hidden_values_are_refused_by_name():
    hidden = np.ma.masked_array(Y, mask=[1, 0, 0, 1, 0, 0, 0, 0])
    for change, name in ({"y_true": hidden}, "y_true"), ({"y_pred": hidden}, "y_pred"):
        with pytest.raises(ValueError, match=f"^{name} is a masked array with 2 hidden values"):
            equalized_odds_gap(**({"y_true": Y, "y_pred": PRED, "sensitive_features": GROUP} | change))
    weight = np.ma.masked_array(np.ones(8), mask=hidden.mask)
    with pytest.raises(ValueError, match=r"^sample_weight is a masked array with 2 hidden"):
        equalized_odds_gap(Y, PRED, sensitive_features=GROUP, sample_weight=weight)
    for values in ([[1]], []):
        with pytest.raises(ValueError, match=r"^y has shape"):
            encode_labels(values)
    with pytest.raises(ValueError, match=r"^y_true mixes int, str"):
        encode_labels(["a", 1], name="y_true")
    codes, labels = encode_labels(["a"])
    assert codes.tolist() == [0] and codes.dtype == np.intp and labels == ["a"]


def test_count_table_counts():
    codes = np.array([0, 1, 1, 1])
    table = count_table(codes, codes, np.array([0, 1, 1, 0]), (2, 2, 2), np.array([1.0, 2.0, 4.0, 8.0]))
    assert table.tolist() == [[[1, 0], [0, 0]], [[0, 0], [8, 6]]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitive_features": ["a"] * 8}, "one group only"),
        ({"sensitive_features": GROUP[:5]}, "y_pred 8, sensitive_features 5: expected the same number"),
        ({"y_pred": PRED[:5]}, "y_pred 5"),
        ({"y_true": [1.0, np.nan] * 4}, "y_true has missing values"),
        ({"y_true": ["yes", np.nan] * 4}, "y_true has missing values"),
        ({"y_pred": [1, None] * 4}, "y_pred mixes NoneType, int"),
        ({"y_pred": np.zeros((8, 2))}, r"y_pred has shape \(8, 2\)"),
        ({"y_true": ["0", "1"] * 4}, "labels of one type"),
        ({"sensitive_features": ["a", None] * 4}, "missing values"),
        ({"sample_weight": [1] * 5}, r"sample_weight has shape \(5,\)"),
        ({"sample_weight": [-1] + [1] * 7}, "sample_weight has negative"),
        ({"y_true": [1, 1, 1, 1, 1, 1, 0, 0]}, "no rows .* in group a with label 0"),
        ({"sample_weight": [1, 1, 0, 0, 1, 1, 1, 1]}, "group a with label 0"),
        ({"agg": "mean"}, "expected 'max'"),
    ],
)
def test_refusals(change, message):
    good = {"y_true": Y, "y_pred": PRED, "sensitive_features": GROUP}
    equalized_odds_gap(**good)
    with pytest.raises(ValueError, match=message):
        equalized_odds_gap(**(good | change))


def test_refusals_of_the_other_gaps():
    with pytest.raises(ValueError, match=r"^pos_label is 7, y_true and y_pred hold .*: name one of these\.$"):
        equal_opportunity_gap(Y, PRED, sensitive_features=GROUP, pos_label=7)
    with pytest.raises(ValueError, match="group a with label 1"):
        equal_opportunity_gap([0] * 4 + [1] * 4, PRED, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="in group b:"):
        demographic_parity_gap(None, PRED, sensitive_features=GROUP, sample_weight=[1] * 4 + [0] * 4)


def test_probabilities_are_no_decisions():
    rng = np.random.default_rng(0)
    y, group = rng.integers(2, size=(2, 50))
    with pytest.raises(ValueError, match=r"y_pred holds 50 values such as .*expected decisions"):
        equalized_odds_gap(y, rng.random(50), sensitive_features=group)


def test_weights_of_nothing_are_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        equalized_odds_gap(Y, PRED, sensitive_features=GROUP, sample_weight=np.zeros(len(Y)))
