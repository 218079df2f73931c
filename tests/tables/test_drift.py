"""Values that training did not have are counted, and others are not."""

import datetime
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest

from setminus.errors import UserError
from setminus.tables.drift import (
    MAX_NAMED,
    ColumnDrift,
    column_drift,
    drift_text,
    merge_drift,
    unranged_text,
    unseen_fraction,
)
from setminus.tables.encoding import TableEncoder

DAYS = [datetime.date(1950, 1, 1), datetime.date(1980, 6, 1), datetime.date(1999, 12, 31), datetime.date(1960, 1, 1)]
OLD = pa.table(
    {
        "age": [20, 30, 40, None],
        "flag": ["yes", "no", "yes", "no"],
        "ward": ["east", "west", None, "east"],
        "born": DAYS,
        "size": [1.5, 2.5, 9.0, 4.0],
    }
)
COLUMNS = TableEncoder().fit(OLD).columns_


def changed(**columns):
    return pa.table({**{name: OLD.column(name) for name in OLD.column_names}, **columns})


def unseen(**columns):
    return {name: part.unseen for name, part in column_drift(changed(**columns), COLUMNS).items() if part.unseen}


def test_a_table_has_no_drift_from_itself():
    assert unseen() == {}
    assert {*unseen_fraction(OLD, COLUMNS).values()} == {0.0}
    assert drift_text(column_drift(OLD, COLUMNS)) == ""


@pytest.mark.parametrize(
    ("column", "values", "fraction"),
    [
        ("age", [25, 35, 55, None], 0.0),
        ("age", [25, 35, 1e30, None], 0.25),
        ("age", [-500, 35, 1e30, None], 0.5),
        ("age", [None, None, None, 30], 0.5),
        ("age", [None] * 4, 0.75),
        ("ward", ["north", "west", "east", None], 0.25),
        ("ward", [None] * 4, 0.75),
    ],
)
def test_fractions_of_new_levels_numbers_far_off_and_more_missing(column, values, fraction):
    kind = pa.string() if column == "ward" else pa.float64()
    new = changed(**{column: pa.array(values, kind)})
    assert unseen_fraction(new, COLUMNS)[column] == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("column", "values", "count"),
    [
        ("age", [0, 60, 20, 40], 0),
        ("age", [-1, 61, 20, 40], 2),
        ("age", ["20", " 30 ", "?", "99"], 1),
        ("age", [True, False, True, None], 3),
        ("size", [float("inf"), float("nan"), 2.0, 3.0], 2),
        ("size", [True, False, True, False], 4),
        ("flag", ["Yes ", " NO", "t", "0"], 0),
        ("flag", ["ja", "nein", "yes", None], 3),
        ("flag", [1.0, 0.0, 2.0, 1.0], 1),
        ("flag", [True, False, True, False], 0),
        ("flag", [datetime.date(2020, 1, 1)] * 4, 4),
        ("ward", ["east ", " west", "\teast", "east\u00a0"], 0),
        ("ward", ["East", "w est", "", "east"], 3),
        ("ward", [1, 2, 3, 4], 4),
        ("born", ["1950-01-01", " 1980-06-01 ", "NA", None], 2),
        ("born", [datetime.date(2060, 1, 1), datetime.date(1890, 1, 1), *DAYS[:2]], 2),
        # in the range of the dates, as days since 1970, and no date
        ("born", [datetime.time(10, 30)] * 4, 4),
    ],
)
def test_rows_of_each_kind(column, values, count):
    assert unseen(**{column: values}) == ({column: count} if count else {})


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("born", [18_000, 18_001, 18_002, 18_003], "column 'born' holds int64, not dates"),
        ("born", [1.0, 2.0, 3.0, 4.0], "column 'born' holds double, not dates"),
        ("born", ["31.12.1999"] * 4, "column 'born' holds something that is not a date"),
        ("age", ["old"] * 4, "column 'age' holds something that is not a number"),
        ("age", DAYS, "column 'age' holds something that is not a number"),
        ("ward", [[1]] * 4, "a column of list"),
    ],
)
def test_a_kind_that_cannot_be_read_is_refused(column, values, words):
    for read in (lambda new: column_drift(new, COLUMNS), TableEncoder().fit(OLD).transform):
        with pytest.raises(UserError, match=words):
            read(changed(**{column: values}))


def test_missing_values_count_where_training_had_none_or_clearly_fewer():
    rng = np.random.default_rng(0)
    n = 2000

    def table(fraction):
        some = np.where(rng.random(n) < fraction, None, rng.choice(["a", "b"], n))
        return pa.table({"some": pa.array(some.tolist(), pa.string()), "x": rng.normal(size=n)})

    columns = TableEncoder().fit(table(0.2)).columns_
    # another sample of the same fraction is no drift
    assert [column_drift(table(0.2), columns)["some"].unseen for _ in range(20)] == [0] * 20
    assert column_drift(table(0.5), columns)["some"].unseen == pytest.approx(0.3 * n, rel=0.2)
    none = TableEncoder().fit(table(0.0)).columns_
    new = table(0.001)
    assert column_drift(new, none)["some"].unseen == new["some"].null_count > 0


def test_parts_together_are_the_whole():
    rng = np.random.default_rng(1)
    n = 500
    new = pa.table(
        {
            "age": rng.normal(30, 40, n),
            "flag": rng.choice(["yes", "no", "perhaps"], n),
            "ward": pa.array(np.where(rng.random(n) < 0.6, None, rng.choice(["east", "north"], n)).tolist()),
            "born": [DAYS[0]] * n,
            "size": rng.normal(5, 20, n),
        }
    )
    whole = column_drift(new, COLUMNS)
    assert all(whole[name].unseen for name in ("age", "flag", "ward", "size"))
    parts = reduce(merge_drift, (column_drift(new.slice(at, 77), COLUMNS) for at in range(0, n, 77)), {})
    assert {name: part.unseen for name, part in parts.items()} == {name: part.unseen for name, part in whole.items()}
    assert parts["ward"].expected_missing == pytest.approx(whole["ward"].expected_missing)


def test_a_model_saved_without_ranges_still_has_its_levels():
    # what versions before this one kept of a column
    old = [{key: column[key] for key in column.keys() - {"low", "high", "clock"}} for column in COLUMNS]
    old = [{**column, "missing": column["missing"] > 0} for column in old]
    found = column_drift(changed(age=[1e9] * 4, ward=["north", None, None, None]), old)
    assert found["age"].unseen == 0
    assert found["ward"].unseen == 1
    assert unranged_text(found) == "age, born, size"
    assert unranged_text(column_drift(OLD, COLUMNS)) == ""


def test_a_message_names_the_columns_with_the_most_rows_and_counts_the_others():
    old = pa.table({f"c{k}": ["a", "b"] * 20 for k in range(8)})
    new = pa.table({f"c{k}": ["a"] * (40 - k) + ["x"] * k for k in range(8)})
    text = drift_text(column_drift(new, TableEncoder().fit(old).columns_))
    assert text.startswith("c7 in 7 of 40 rows (such as 'x'), c6 in 6")
    assert text.count("such as") == MAX_NAMED
    assert text.endswith("and 3 more")
    assert drift_text(column_drift(changed(flag=[None] * 4), COLUMNS)) == "flag in 4 of 4 rows (no value)"


def test_truth_values_and_dates_for_a_model_saved_without_ranges():
    old = [{key: column[key] for key in column.keys() - {"low", "high", "clock"}} for column in COLUMNS]
    found = column_drift(changed(age=[True, False, True, False]), old)
    # 0 and 1 may have been there, and so may days or times of day
    assert found["age"].unseen == 0
    assert found["born"].unseen == 0
    assert column_drift(changed(born=[datetime.time(10, 30)] * 4), old)["born"].unseen == 0


def test_a_range_is_known_unless_it_is_said_not_to_be():
    known, unknown = ColumnDrift(1, 0, 0, 0.0), ColumnDrift(1, 0, 0, 0.0, ranged=False)
    assert unranged_text({"a": known, "b": unknown, "c": known + known, "d": known + unknown}) == "b, d"


def test_an_example_is_kept_from_whichever_part_has_one():
    without, first, second = (ColumnDrift(1, 1, 0, 0.0, example) for example in ("", "first", "second"))
    assert (without + first).example == (first + without).example == (first + second).example == "first"
    assert (without + without).example == ""


def test_a_number_far_off_is_shown():
    assert column_drift(changed(age=[25, -500, 35, 1e6]), COLUMNS)["age"].example == "-500.0"
    assert column_drift(changed(age=[25, 26, 35, 30]), COLUMNS)["age"].example == ""


@pytest.mark.parametrize(("numbers", "count"), [([0, 1, 0], 0), ([0, 1, 2], 3), ([-1, 0, 1], 3)])
def test_truth_values_are_numbers_only_where_training_had_0_and_1(numbers, count):
    columns = TableEncoder(kinds={"x": "number"}).fit(pa.table({"x": numbers})).columns_
    assert column_drift(pa.table({"x": [True, False, True]}), columns)["x"].unseen == count
