"""Columns are found, taken and dropped alike in arrays, sparse matrices and every kind of frame."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from setminus.estimators.columns import as_rows, column_arrays, drop_columns, known_columns, take_columns

DATA = {"sex": ["f", "m", "f"], "age": [30, 40, 50], "pay": [1.5, 2.5, 3.5]}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


def cells(frame):
    """Names and values by column, whatever the kind of frame."""
    table = pl.DataFrame(frame) if not isinstance(frame, pa.Table) else pl.from_arrow(frame)
    return table.to_dict(as_series=False)


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_frames_by_name_and_position(kind):
    frame = kind(DATA)
    assert as_rows(frame) is frame
    for columns in (["pay", "sex"], [2, 0], [-1, "sex"], [np.int64(2), -3]):
        taken = take_columns(frame, columns, parameter="principal_columns")
        assert type(taken) is type(frame)
        assert list(cells(taken)) == ["pay", "sex"] and cells(taken)["pay"] == DATA["pay"]
    for columns in (["age"], [1], [-2], ["age", 1]):
        dropped = drop_columns(frame, columns, parameter="sensitive_columns")
        assert type(dropped) is type(frame) and list(cells(dropped)) == ["sex", "pay"]


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_columns_of_arrays_by_position(kind):
    rows = kind([[1, 2, 3], [4, 5, 6]])
    taken, dropped = take_columns(rows, [2, -3], parameter="p"), drop_columns(rows, [-2], parameter="p")
    assert type(taken) is type(dropped) is type(rows)
    dense = [a.toarray() if sparse.issparse(a) else a for a in (taken, dropped)]
    np.testing.assert_array_equal(dense[0], [[3, 1], [6, 4]])
    np.testing.assert_array_equal(dense[1], [[1, 3], [4, 6]])


def test_rows_keep_their_values():
    words = as_rows([["a", None], ["b", 2]])
    assert words.dtype == object and words[0, 1] is None
    assert np.isnan(as_rows([[np.nan, np.inf]])[0, 0])
    for kind in (sparse.csr_matrix, sparse.csc_matrix):
        assert type(as_rows(kind(np.eye(2)))) is kind
    # columns of a list of coordinates cannot be taken
    assert as_rows(sparse.coo_matrix(np.eye(2))).format == "csr"
    with pytest.raises(ValueError, match="2D array"):
        as_rows([1, 2])


@pytest.mark.parametrize(
    ("frame", "columns", "message"),
    [
        (True, "sex", "principal_columns is 'sex': expected a list"),
        (True, 1, "principal_columns is 1: expected a list"),
        (True, [], r"principal_columns is \[\]: expected a list"),
        (True, ["agee"], "principal_columns names the column 'agee', which X does not have. Did you mean 'age'"),
        (True, ["zzz"], r"principal_columns names the column 'zzz', which X does not have\.$"),
        (True, [3], "principal_columns asks for column 3, but X has 3 columns"),
        (False, [-4], "principal_columns asks for column -4, but X has 3 columns"),
        (False, ["age"], "principal_columns names the column 'age', but X has no column names"),
    ],
)
def test_columns_that_are_not_there_are_named(frame, columns, message):
    rows = pd.DataFrame(DATA) if frame else np.zeros((2, 3))
    with pytest.raises(ValueError, match=message):
        take_columns(rows, columns, parameter="principal_columns")
    if columns not in ("sex", 1, []):
        with pytest.raises(ValueError, match=message):
            drop_columns(rows, columns, parameter="principal_columns")


@pytest.mark.parametrize("kind", FRAMES)
def test_known_columns_are_those_of_the_fit_in_its_order(kind):
    frame = kind(DATA)
    known = known_columns(SimpleNamespace(feature_names_in_=np.array(["pay", "age"])), frame)
    assert list(cells(known)) == ["pay", "age"]
    # nothing to do, nothing to go by, or a column is missing, which the model itself will say
    for names in (["sex", "age", "pay"], [], ["pay", "height"]):
        assert known_columns(SimpleNamespace(feature_names_in_=names), frame) is frame
    assert known_columns(SimpleNamespace(), frame) is frame
    array = np.zeros((2, 2))
    assert known_columns(SimpleNamespace(feature_names_in_=["pay"]), array) is array


@pytest.mark.parametrize("kind", FRAMES)
def test_sensitive_columns_keep_their_types(kind):
    sex, age, pay = column_arrays(kind(DATA))
    assert sex.tolist() == DATA["sex"] and age.tolist() == DATA["age"] and pay.tolist() == DATA["pay"]
    assert age.dtype.kind == "i" and pay.dtype.kind == "f"


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, pa.chunked_array])
def test_sensitive_series(kind):
    values = [DATA["sex"]] if kind is pa.chunked_array else DATA["sex"]
    (column,) = column_arrays(kind(values))
    assert column.tolist() == DATA["sex"]


def test_sensitive_columns_called_by_numbers_and_none_at_all():
    first, second = column_arrays(pd.DataFrame({1: [5, 6], 0: [7, 8]}))
    assert first.tolist() == [5, 6] and second.tolist() == [7, 8]
    with pytest.raises(ValueError, match="no columns"):
        column_arrays(pd.DataFrame(index=[0, 1]))
    with pytest.raises(ValueError, match="missing values"):
        column_arrays(pl.DataFrame({"a": ["f", None]}))
