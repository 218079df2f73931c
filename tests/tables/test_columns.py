import datetime
import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from setminus.errors import UserError
from setminus.tables.columns import (
    check_names,
    check_unique,
    coded_text,
    describe,
    distinct_words,
    familiar,
    familiar_type,
    from_frame,
    is_text,
    plain,
    shown,
    to_days,
    to_flags,
    to_numbers,
    to_text,
)
from setminus.tables.reading import open_table

N = 60


def one(values, kind=None):
    (summary,) = describe(pa.table({"c": pa.array(values, kind)}))
    return summary


@pytest.mark.parametrize(
    ("values", "kind", "distinct"),
    [
        ([1.5, 2.5, None, float("nan")] * 15, "number", 2),
        ([1, 2, 2] * 20, "number", 2),
        (list(range(5, N + 5)), "identifier", N),
        (list(range(0, 2 * N, 2)), "number", N),
        (list(range(10)), "number", 10),
        ([decimal.Decimal("1.5"), decimal.Decimal("2.5")] * 30, "number", 2),
        (["m", "f"] * 30, "category", 2),
        (["Yes", "no", None] * 20, "yes/no", 2),
        (["t", "f"] * 30, "yes/no", 2),
        (["f", "n"] * 30, "category", 2),
        ([0, 1] * 30, "yes/no", 2),
        ([True, False] * 30, "yes/no", 2),
        ([True, None] * 30, "category", 1),
        ([f"name {i}" for i in range(N)], "identifier", N),
        ([f"level {i % 25}" for i in range(N)], "category", 25),
        ([f"level {i % 10}" for i in range(11)], "category", 10),
        ([f"level {i % 201}" for i in range(1000)], "identifier", 201),
        (["same"] * N, "constant", 1),
        (["same", None] * 30, "category", 1),
        ([None] * N, "constant", 0),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 30, "date", 2),
        ([datetime.datetime(2020, 1, 1, 10), None] * 30, "date", 1),
        ([datetime.timedelta(hours=1), None, datetime.timedelta(hours=3)] * 20, "number", 2),
        ([[1], [2]] * 30, "other", 0),
        ([{"a": 1}] * 30, "other", 0),
        ([b"raw"] * 30, "other", 0),
    ],
)
def test_kinds(values, kind, distinct):
    found = one(values)
    assert (found.kind, found.distinct) == (kind, distinct)
    assert found.kept == (kind in ("number", "category", "yes/no", "date"))
    assert found.use.startswith("left out") is not found.kept


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text(kind):
    assert one(["m", "f"] * 30, kind).kind == "category"
    assert (
        describe(pa.table({"c": pa.array(["m", "f"] * 30, kind).cast(pa.string()).dictionary_encode()}))[0].distinct
        == 2
    )


def test_small_floats():
    assert one([1.5, 2.5, float("nan")] * 20, pa.float32()).missing == pytest.approx(1 / 3)
    assert describe(pa.table({"c": pa.array([1.5, 2.5] * 30, pa.float64()).cast(pa.float16())}))[0].kind == "number"


def test_much_missing_is_kept_with_a_warning():
    much, some = one(["a", "b", None, None] * 15), one(["a", "b", "c", "d", None] * 12)
    assert much.kept
    assert much.warning == "50% of its values are missing"
    assert much.use == "one of 2 levels, missing is one more"
    assert some.warning is None
    assert one([1.5, 2.5, None] * 20).use == "as a number; missing is marked"


def test_hostile_names(tmp_path):
    names = ['a "b"', "c, d", "<b>x</b>", "e\nf"]
    table = pa.table({name: [1.5, 2.5] for name in names})
    assert [summary.name for summary in describe(table)] == names


def test_missing_tokens_of_a_csv_are_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age, job\n39, ?\nNA, clerk\n28, cook\n")
    age, job = describe(open_table(path).read())
    assert (age.kind, age.missing) == ("number", pytest.approx(1 / 3))
    assert (job.name, job.kind, job.distinct, job.missing) == ("job", "category", 2, pytest.approx(1 / 3))


@pytest.mark.parametrize(("values", "share"), [([None], 1.0), ([1.5], 0.0), ([None, 1.5], 0.5), ([], 0.0)])
def test_the_share_of_missing_values_of_few_rows(values, share):
    assert one(values, pa.float64()).missing == share


def column(values, kind=None, chunks=1):
    """A column of several chunks."""
    parts = np.array_split(np.arange(len(values)), chunks)
    return pa.chunked_array([pa.array([values[i] for i in part], kind) for part in parts], kind)


NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None, -3], pa.int8(), [1, NAN, -3]),
        ([1.5, NAN, float("inf"), -float("inf")], pa.float64(), [1.5, NAN, NAN, NAN]),
        ([1.5, None], pa.float16(), [1.5, NAN]),
        ([True, False, None], pa.bool_(), [1, 0, NAN]),
        ([" 39", "4e2 ", "?", "", "NA", None], pa.string(), [39, 400, NAN, NAN, NAN, NAN]),
        (["7", "n/a"], pa.large_string(), [7, NAN]),
        (["7", "8"], pa.string_view(), [7, 8]),
        (["7", "null", "7"], pa.dictionary(pa.int32(), pa.string()), [7, NAN, 7]),
        ([dt.timedelta(days=2), None, dt.timedelta(hours=-6)], pa.duration("s"), [2, NAN, -0.25]),
        ([2**62 + 1], pa.int64(), [2.0**62]),
        ([None, None], pa.null(), [NAN, NAN]),
    ],
)
def test_numbers(values, kind, expected):
    for chunks in (1, 2):
        found = to_numbers(column(values, kind, chunks), "age")
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1970-01-02", " 1970-01-01 12:00:00 ", "?", None], pa.string(), [1, 0.5, NAN, NAN]),
        ([dt.date(1970, 1, 11), None], pa.date32(), [10, NAN]),
        ([dt.datetime(1970, 1, 1, 6)], pa.timestamp("ns"), [0.25]),
        ([dt.datetime(1969, 12, 31)], pa.timestamp("ms"), [-1]),
        ([dt.datetime(1970, 1, 2)], pa.timestamp("us", tz="Asia/Tokyo"), [1]),
        ([dt.time(18), None], pa.time32("s"), [0.75, NAN]),
        ([None], pa.null(), [NAN]),
    ],
)
def test_days(values, kind, expected):
    np.testing.assert_allclose(to_days(column(values, kind), "born"), expected)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.bool_()])
def test_numbers_are_no_days(kind):
    with pytest.raises(UserError, match=f"column 'born' holds {kind}, not dates"):
        to_days(column([True, False] if kind == pa.bool_() else [1, 0], kind), "born")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([" Yes", "NO", "y", "n", "True", "f", "1", "0", "perhaps", None], pa.string(), [1, 0] * 4 + [NAN, NAN]),
        ([True, False, None], pa.bool_(), [1, 0, NAN]),
        ([1, 0, 2, None], pa.int64(), [1, 0, NAN, NAN]),
        ([1.0, 0.0, 0.5, NAN], pa.float64(), [1, 0, NAN, NAN]),
        (["T", "F", "T"], pa.dictionary(pa.int8(), pa.string()), [1, 0, 1]),
    ],
)
def test_flags(values, kind, expected):
    for chunks in (1, 2):
        np.testing.assert_array_equal(to_flags(column(values, kind, chunks), "member"), expected)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([" a b ", "", None], pa.string(), ["a b", "", None]),
        ([1.0, -2.0, 0.5, None, NAN], pa.float64(), ["1", "-2", "0.5", None, None]),
        ([1.0, 0.5], pa.float16(), ["1", "0.5"]),
        ([3.0, 0.25, 2.0**60], pa.float32(), ["3", "0.25", "1.1529215e+18"]),
        ([2.0**53 - 1, 2.0**53], pa.float64(), ["9007199254740991", "9007199254740992"]),
        ([7, None], pa.int16(), ["7", None]),
        ([True], pa.bool_(), ["true"]),
        (["x ", "y"], pa.dictionary(pa.int8(), pa.large_string()), ["x", "y"]),
        ([dt.date(2020, 1, 31)], pa.date32(), ["2020-01-31"]),
    ],
)
def test_words(values, kind, expected):
    found = to_text(column(values, kind)).to_pylist()
    if kind == pa.float64() and values[0] > 2**52:
        # beyond 53 bits neighbours are the same number: any spelling of it will do
        assert found[0] == expected[0] and float(found[1]) == 2.0**53
    else:
        assert found == expected


def test_what_has_no_words_is_named():
    nested = column([[1], [2]], pa.list_(pa.int64()))
    for function in (to_text, distinct_words):
        with pytest.raises(UserError, match=r"a column of list<.*> was given where words were expected"):
            function(nested)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_distinct_words_and_their_places(kind):
    values = ["m", "f ", None, "m", " f", "x"]
    for chunks in (1, 3):
        words, places = distinct_words(column(values, kind, chunks))
        words = words.to_pylist()
        assert words[-1] is None and len(words) <= 6
        assert [words[place] for place in places] == ["m", "f", None, "m", "f", "x"]
    numbers, places = distinct_words(column([1.0, 0.5, None, 1.0], pa.float64()))
    assert [numbers.to_pylist()[place] for place in places] == ["1", "0.5", None, "1"]


def test_text_is_coded_and_the_rest_left():
    table = pa.table({"sex": [" f", "m", None, "f "], "age": [1, 2, 3, 4]})
    coded = coded_text(table)
    assert coded.column_names == ["sex", "age"] and coded.column("age") == table.column("age")
    assert pa.types.is_dictionary(coded.column("sex").type)
    assert coded.column("sex").to_pylist() == ["f", "m", None, "f"]
    (chunk,) = coded.column("sex").chunks
    assert chunk.dictionary.to_pylist() == ["f", "m"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.string_view(), pa.large_string()),
        (pa.binary_view(), pa.large_binary()),
        (pa.list_(pa.string_view()), pa.list_(pa.large_string())),
        (pa.large_list(pa.string_view()), pa.large_list(pa.large_string())),
        (pa.list_(pa.string_view(), 3), pa.list_(pa.large_string(), 3)),
        (pa.struct([("a", pa.string_view())]), pa.struct([("a", pa.large_string())])),
        (pa.dictionary(pa.int8(), pa.string_view()), pa.dictionary(pa.int8(), pa.large_string())),
        (pa.dictionary(pa.int8(), pa.string(), ordered=True), pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        (pa.run_end_encoded(pa.int32(), pa.int64()), pa.int64()),
        (pa.float32(), pa.float32()),
    ],
)
def test_types_that_cannot_be_computed_with_have_another(kind, expected):
    assert familiar_type(kind) == expected


def test_familiar_values_are_the_same_values():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"]))
    table = pa.table({"view": pa.array(["x", None, "z"], pa.string_view()), "runs": runs, "n": [1, 2, 3]})
    found = familiar(table)
    assert found.to_pydict() == {"view": ["x", None, "z"], "runs": ["a", "a", "b"], "n": [1, 2, 3]}
    assert found.schema.types == [pa.large_string(), pa.string(), pa.int64()]
    same = pa.table({"n": [1]})
    assert familiar(same) is same


def test_which_types_are_text():
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert is_text(kind) is True
    for kind in (pa.int64(), pa.binary(), pa.dictionary(pa.int8(), pa.int64()), pa.null()):
        assert is_text(kind) is False


def test_plain_values():
    assert plain(column([1, 1, 2], pa.dictionary(pa.int8(), pa.int64()))).to_pylist() == [1, 1, 2]
    assert plain(column([1.5, NAN], pa.float32())).to_pylist() == [1.5, None]
    assert plain(column([" a\t", None], pa.string_view())).to_pylist() == ["a", None]
    assert plain(column([1, None], pa.int64())).to_pylist() == [1, None]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_any_frame_is_an_arrow_table(kind):
    table = from_frame(kind({"b": [1, 2], "a": ["x", "y"]}))
    assert isinstance(table, pa.Table) and table.to_pydict() == {"b": [1, 2], "a": ["x", "y"]}


def test_frames_that_cannot_be_read():
    named = from_frame(pd.DataFrame({0: [1], 1: [2]}, index=["row"]))
    assert named.column_names == ["0", "1"]
    with pytest.raises(TypeError, match="X is list: expected a frame"):
        from_frame([[1]])
    with pytest.raises(UserError, match="column 'x' mixes values of several types: give it one type"):
        from_frame(pd.DataFrame({"x": [1, "a", b"b"]}))
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    for frame in (twice, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])):
        with pytest.raises(UserError, match="X has two columns of the same name"):
            from_frame(frame)
    # different to pandas, the same as words
    with pytest.raises(UserError, match="X has 2 columns called '1'"):
        from_frame(pd.DataFrame([[1, 2]], columns=[1, "1"]))


@pytest.mark.parametrize(("function", "what"), [(to_numbers, "a number"), (to_days, "a date")])
def test_words_that_are_none_are_named(function, what):
    with pytest.raises(UserError, match=f"column 'age' holds something that is not {what}.*'?old'?"):
        function(column(["1", "old"]), "age")


def test_a_column_of_run_ends_without_a_row_keeps_its_type():
    kind = pa.run_end_encoded(pa.int32(), pa.int64())
    empty = pa.table([pa.chunked_array([], kind)], names=["x"])
    assert familiar(empty).schema.types == [pa.int64()]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_a_whole_number_has_no_point_also_beside_fractions(kind):
    column = pa.chunked_array([pa.array([1.0, 2.5, None, float("nan"), -3.0], pa.float64()).cast(kind)])
    assert to_text(column).to_pylist() == ["1", "2.5", None, None, "-3"]
    parts = [word for k in range(5) for word in to_text(column.slice(k, 1)).to_pylist()]
    assert to_text(column).to_pylist() == parts
    # beyond 2**53 the last digits are not those that stood in the file
    assert to_text(pa.chunked_array([[1e300, float("inf"), 2.0**52]])).to_pylist() == ["1e+300", "inf", str(2**52)]


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(UserError, match="a column of binary was given"):
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


def test_a_table_of_many_columns_names_twelve_of_them():
    names = [f"c{k:02}" for k in range(14)]
    with pytest.raises(UserError) as caught:
        check_names(["something else"], names, "t.csv")
    assert caught.value.came == "t.csv has no column 'something else'"
    assert caught.value.do == f"it has {', '.join(map(repr, names[:12]))} and 2 more."
    with pytest.raises(UserError) as caught:
        check_names(["something else"], names[:12], "t.csv", what="class")
    assert caught.value.came == "t.csv has no class 'something else'"
    assert caught.value.do == f"it has {', '.join(map(repr, names[:12]))}."


def test_case_and_spaces_do_not_hide_the_nearest_name():
    with pytest.raises(UserError, match=r"did you mean ' Income'\?"):
        check_names(["INCOME "], ["age", " Income"], "t.csv")


def test_the_most_frequent_of_repeated_names_is_reported():
    check_unique(["a", "b"], "t.csv")
    check_unique([], "t.csv")
    with pytest.raises(UserError, match=r"t\.csv has 3 columns called 'b': give each .* different name, please\."):
        check_unique(["a", "b", "a", "b", "b"], "t.csv", ", please")


def test_what_is_shown_is_cut_at_sixty_characters():
    assert shown("x" * 60) == repr("x" * 60)
    assert shown("x" * 61) == repr("x" * 60 + "...")


def test_whole_numbers_that_count_rows_name_them_from_twenty_one_on():
    assert one(list(range(20))).kind == "number"
    assert one(list(range(21))).kind == "identifier"
    # and with a gap of half as many, but no more
    assert one([*range(30), 44]).kind == "identifier"
    assert one([*range(30), 47]).kind == "number"


def test_row_numbers_of_a_sample_name_rows_too():
    drawn = np.sort(np.random.default_rng(0).choice(9_000, 1_000, replace=False)).tolist()
    assert one(drawn).kind == "identifier"
    # the control: salaries of a wider range, and values that come twice
    assert one((np.array(drawn) * 2).tolist()).kind == "number"
    assert one([*drawn, drawn[0]]).kind == "number"


def test_what_is_left_out_says_why():
    assert one([None, None], pa.string()).use == "left out: it has no values"
    assert one(["a", "a"]).use == "left out: it has one value only"
    nested = one([None], pa.list_(pa.int64()))
    assert nested.missing == 1.0
    assert nested.use == "left out: no model takes list<item: int64>"
    assert one([], pa.list_(pa.int64())).missing == 0.0


def test_whole_numbers_that_are_all_different_name_rows_where_their_column_is_called_so():
    numbers = [7 * i**2 + 13 for i in range(50)]
    for name in ("id", "ID", "customer_id", "customerId", "order-no", "uuid", "Unnamed: 0", "index"):
        assert describe(pa.table({name: numbers}))[0].kind == "identifier", name
    # the control: other names, and numbers that come twice
    for name in ("salary", "PAID", "paid", "monkey", "valid"):
        assert describe(pa.table({name: numbers}))[0].kind == "number", name
    assert describe(pa.table({"id": [*numbers, numbers[0]]}))[0].kind == "number"
