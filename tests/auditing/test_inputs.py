"""What an audit refuses, and in which words."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from setminus.auditing.inputs import check_proba, read_scored

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
