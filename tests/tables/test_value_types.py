"""Values as words and numbers: the same whatever else is in their block."""

import numpy as np
import pyarrow as pa
import pytest

from setminus.tables.errors import TableError
from setminus.tables.values import familiar, from_frame, to_numbers, to_text


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_a_whole_number_has_no_point_also_beside_fractions(kind):
    column = pa.chunked_array([pa.array([1.0, 2.5, None, float("nan"), -3.0], pa.float64()).cast(kind)])
    assert to_text(column).to_pylist() == ["1", "2.5", None, None, "-3"]
    parts = [word for k in range(5) for word in to_text(column.slice(k, 1)).to_pylist()]
    assert to_text(column).to_pylist() == parts
    # beyond 2**53 the last digits are not those that stood in the file
    assert to_text(pa.chunked_array([[1e300, float("inf"), 2.0**52]])).to_pylist() == ["1e+300", "inf", str(2**52)]


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(TableError, match="a column of binary came"):
        to_text(pa.chunked_array([[b"\xff"]]))


def test_an_arrow_frame_of_views_is_taken_as_it_is_read_from_a_file():
    frame = pa.table(
        {
            "words": pa.array(["a", None], pa.string_view()),
            "codes": pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a"], pa.string_view())),
        }
    )
    table = from_frame(frame)
    assert table.schema.types == [pa.large_string(), pa.dictionary(pa.int64(), pa.large_string())]
    assert table.take([1]).to_pydict() == {"words": [None], "codes": ["a"]}
    assert to_text(frame["codes"]).to_pylist() == ["a", "a"]
    assert familiar(table) is table


def test_durations_are_days():
    hours = pa.chunked_array([pa.array([3600, None], pa.int64()).cast(pa.duration("s"))])
    np.testing.assert_allclose(to_numbers(hours, "x"), [1 / 24, np.nan])
