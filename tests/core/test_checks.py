"""Which arrays have values to look at, and what is said of those that are no probabilities."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from setminus.core.checks import encode_groups, group_name, is_eager


class TestEager:
    torch = pytest.importorskip("torch")

    def seen_in(self, transform, tensor):
        """What `is_eager` says of the tensor that a function gets inside of a transform."""
        seen = []

        def function(inner):
            seen.append(is_eager(inner))
            return inner + 1

        transform(function, tensor)
        return set(seen)

    def test_tensors_with_values(self):
        tensor = self.torch.ones(2, 2)
        assert is_eager(tensor)
        assert is_eager(tensor.requires_grad_() + 1)
        assert self.seen_in(lambda function, inner: function(inner), tensor) == {True}

    def test_traced_and_mapped_tensors_have_none(self):
        torch = self.torch
        tensor = torch.ones(2, 2)
        with pytest.warns(DeprecationWarning):
            assert self.seen_in(partial(torch.jit.trace, check_trace=False), tensor) == {False}
        assert self.seen_in(lambda function, inner: torch.vmap(function)(inner), tensor) == {False}
        assert self.seen_in(lambda function, inner: torch.func.functionalize(function)(inner), tensor) == {False}

    def test_tensors_of_shape_alone_have_none(self):
        torch = self.torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode

        assert not is_eager(torch.ones(2, device="meta"))
        with FakeTensorMode():
            assert not is_eager(torch.ones(2))
        with FunctionalTensorMode():
            assert not is_eager(FunctionalTensor.to_functional(torch.ones(2)))

    def test_dask_and_numpy(self):
        da = pytest.importorskip("dask.array")
        assert is_eager(np.ones(2)) and not is_eager(da.ones(2))


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


def test_the_word_nan_and_numbers_among_objects_are_groups():
    assert encode_groups(np.array(["nan", "f"]))[1] == ["f", "nan"]
    assert encode_groups(np.array([2.5, 1.5, 2.5], dtype=object))[0].tolist() == [1, 0, 1]
    assert group_name("male") == "male"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], "column 0 has 1 missing values"),
        (np.array(["a", None], dtype=object), "1 missing"),
        (["a", float("nan"), None], "2 missing"),
        # beside words numpy would make a word of it
        (["a", float("nan")], "column 0 has 1 missing values .* in 2 rows"),
        ((("a", "b"), ("c", float("nan")), ("d", "e")), "column 1 has 1 missing values .* in 3 rows"),
        (np.array([["a", "b"], ["c", None]], dtype=object), "column 1 has 1 missing"),
        (np.array(["a", pd.NA], dtype=object), "1 missing"),
        (np.array([pd.Timestamp(2020, 1, 1), pd.NaT], dtype=object), "1 missing"),
        (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), "1 missing"),
        (pd.Series(["a", None]), "1 missing"),
        (pd.Series([1, None], dtype="Int64"), "1 missing"),
        (np.array(["a", 1], dtype=object), r"cannot be ordered \(int, str\)"),
        (["1", 1], r"cannot be ordered \(int, str\)"),
        ([["a", 1], ["b", "1"]], r"cannot be ordered \(int, str\)"),
        (np.zeros((2, 2, 2)), r"has shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), "has shape"),
        (3, "has shape"),
    ],
)
def test_what_is_no_group_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        encode_groups(values)


def test_hidden_values_are_refused_by_name():
    hidden = np.ma.masked_array(["a", "b"], mask=[True, False])
    with pytest.raises(ValueError, match=r"^sensitive_features is a masked array with 1 hidden values"):
        encode_groups(hidden)
