import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from setminus.core.groups import encode_groups, group_name


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, pa.array])
def test_any_series_gives_the_same_codes(kind):
    codes, labels = encode_groups(kind(["m", "f", "m"]))
    assert codes.tolist() == [1, 0, 1]
    assert labels == ["f", "m"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_crossed_and_absent_combinations_are_no_groups(kind):
    codes, labels = encode_groups(kind({"sex": ["m", "f", "m"], "old": [1, 0, 0]}))
    assert codes.tolist() == [2, 0, 1]
    assert labels == [("f", 0), ("m", 0), ("m", 1)]
    assert group_name(labels[0]) == "f, 0"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], "column 0 has 1 missing values"),
        (np.array(["a", None], dtype=object), "1 missing"),
        (["a", float("nan"), None], "2 missing"),
        (pd.Series(["a", None]), "1 missing"),
        (pd.Series([1, None], dtype="Int64"), "1 missing"),
        (np.array(["a", 1], dtype=object), r"cannot be ordered \(int, str\)"),
        (np.zeros((2, 2, 2)), r"has shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), "has shape"),
        (3, "has shape"),
    ],
)
def test_what_is_no_group_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        encode_groups(values)
