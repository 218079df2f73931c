"""Which values become groups, where numbers are cut, and that predicting finds the same groups as fitting."""

import datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from setminus import GroupPrincipal
from setminus.estimators.groups import (
    NOT_COMPARED,
    UNSEEN,
    Groups,
    as_rows,
    check_every_class,
    drop_columns,
    group_frequencies,
    known_columns,
    rows_with_groups,
    sensitive_columns,
    take_columns,
)

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
        (True, ["agee"], "principal_columns names the column 'agee', which X does not have: did you mean 'age'"),
        (True, ["zzz"], r"principal_columns names the column 'zzz', which X does not have: pass a column of X\.$"),
        (True, [3], "principal_columns names column 3, but X has 3 columns: expected positions from 0"),
        (False, [-4], "principal_columns names column -4, but X has 3 columns"),
        (
            False,
            ["age"],
            "principal_columns names the column 'age', but X has no column names: pass a frame, or positions",
        ),
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
    sex, age, pay = sensitive_columns(kind(DATA))
    assert [column.name for column in (sex, age, pay)] == list(DATA)
    assert [column.values.tolist() for column in (sex, age, pay)] == list(DATA.values())
    assert age.values.dtype.kind == "i" and pay.values.dtype.kind == "f"


@pytest.mark.parametrize("kind", FRAMES)
def test_missing_values_are_marked_and_the_others_keep_their_types(kind):
    frame = kind({"sex": ["f", None, "m"], "age": [None, 30, 40], "pay": [1.5, 2.5, None]})
    sex, age, pay = sensitive_columns(frame)
    assert sex.missing.tolist() == [False, True, False] and sex.values[~sex.missing].tolist() == ["f", "m"]
    assert age.missing.tolist() == [True, False, False] and age.values[1:].tolist() == [30, 40]
    assert age.values.dtype.kind == "i", "whole numbers, though a missing value made them floats"
    assert pay.missing.tolist() == [False, False, True] and pay.values[:2].tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match=r"column 0 has no values: name a column that has some\.$"):
        sensitive_columns([None, None])


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, pa.chunked_array])
def test_sensitive_series(kind):
    values = [DATA["sex"]] if kind is pa.chunked_array else DATA["sex"]
    (column,) = sensitive_columns(kind(values))
    assert column.values.tolist() == DATA["sex"] and not column.missing.any()


def test_sensitive_columns_called_by_numbers_and_none_at_all():
    first, second = sensitive_columns(pd.DataFrame({1: [5, 6], 0: [7, 8]}))
    assert first.values.tolist() == [5, 6] and second.values.tolist() == [7, 8]
    with pytest.raises(ValueError, match="no columns"):
        sensitive_columns(pd.DataFrame(index=[0, 1]))


def learned(column, y=None, **options):
    groups = Groups(**options)
    y = np.arange(len(column)) % 2 if y is None else y
    return groups, groups.learn(column, y)


def test_values_are_groups_and_come_back_with_the_same_codes():
    values = np.array(["m", "f", "x", "f"] * 5)
    groups, codes = learned(values)
    assert groups.labels == ["f", "m", "x"]
    assert [groups.labels[code] for code in codes] == values.tolist()
    np.testing.assert_array_equal(groups.codes(values), codes)
    assert groups.codes(["x", "a", "zz", "f"]).tolist() == [2, -1, -1, 0]


def test_crossed_columns_have_the_combinations_that_occur():
    frame = pd.DataFrame({"sex": ["f", "f", "m", "m"] * 5, "old": [0, 1, 1, 1] * 5})
    groups, codes = learned(frame)
    assert groups.labels == [("f", 0), ("f", 1), ("m", 1)]
    assert [groups.labels[code] for code in codes] == list(frame.itertuples(index=False, name=None))
    asked = pd.DataFrame({"sex": ["m", "m", "f", "x", "f"], "old": [0, 1, 1, 1, 7]})
    found = groups.codes(asked)
    assert found.tolist() == [-1, 2, 1, -1, -1]
    assert groups.unseen(asked, found) == "'f, 7', 'm, 0', 'x, 1'"


@pytest.mark.parametrize(
    ("column", "continuous"),
    [
        (np.arange(200) % 20, False),
        (np.arange(210) % 21, True),
        # more than one value for ten rows
        (np.arange(100) % 10, False),
        (np.arange(99) % 10, True),
        (np.arange(100) % 5 + 0.5, True),
        ((np.arange(100) % 5).astype(float), False),
        # two values are two groups, whole or not
        (np.arange(100) % 2 + 0.5, False),
        (np.arange(10) % 2 + 0.25, False),
        (np.array(["a", "b", "c"] * 10), False),
        (np.array([0.5, 1.5, 2.5, 3.5] * 25, dtype=object), True),
        (np.array([1, 2, 3, 4] * 25, dtype=object), False),
        (np.arange(210).astype(np.uint8) % 21, True),
        (np.array([True, False] * 50), False),
    ],
)
def test_numbers_are_cut_where_they_are_many_or_not_whole(column, continuous):
    groups, codes = learned(column)
    assert (groups.edges[0] is not None) == continuous
    if not continuous:
        assert groups.labels == np.unique(column).tolist()
    np.testing.assert_array_equal(groups.codes(column), codes)


def test_more_values_may_be_allowed():
    column = np.arange(300) % 25
    assert len(learned(column)[0].labels) == 5
    assert len(learned(column, max_values=25)[0].labels) == 25
    assert len(learned(column, max_values=24)[0].labels) == 5


def test_bins_are_quantiles_and_an_edge_belongs_to_the_bin_above():
    column = np.arange(100.0)
    groups, codes = learned(column, n_bins=4)
    assert np.bincount(codes).tolist() == [25, 25, 25, 25]
    assert groups.edges[0] == [24.75, 49.5, 74.25]
    assert groups.labels == ["below 24.75", "24.75 to below 49.5", "49.5 to below 74.25", "74.25 and above"]
    assert groups.codes([-1e9, 24.7, 24.75, 74.25, 1e9]).tolist() == [0, 0, 1, 3, 3]
    assert len(learned(column)[0].labels) == 5
    with pytest.raises(ValueError, match="column 0 holds text, such as 'a', where numbers were fitted: convert"):
        groups.codes(["a"])


def test_a_bin_short_of_a_class_is_joined_with_the_next():
    column = np.arange(100.0)
    y = (column >= 60).astype(int)
    # below 60 there is no row of class 1, above 80 none of class 0
    assert learned(column, y)[0].labels == ["all"]
    y = ((column >= 60) | (column < 3)).astype(int)
    y[85] = 0
    groups, codes = learned(column, y)
    for code in range(len(groups.labels)):
        assert set(y[codes == code]) == {0, 1}
    assert groups.edges[0] == pytest.approx([19.8, 79.2]) and len(groups.labels) == 3
    # one row of class 0 above, three of class 1 below
    assert [len(learned(column, y, least=least)[0].labels) for least in (1, 2, 3, 4)] == [3, 2, 2, 1]
    y[86:90] = 0
    assert len(learned(column, y, least=3)[0].labels) == 3
    assert len(learned(column, y, least=4)[0].labels) == 2
    # the row on the last edge belongs to the bin above it, which has no other row of class 0
    column, y = np.array([0.0, 0.5, 1.5, 1.5, 2.5, 3.5]), np.array([0, 1, 0, 1, 1, 1])
    assert learned(column, y, n_bins=2)[0].labels == ["below 1.5", "1.5 and above"]


def test_what_does_not_fit_is_named():
    groups, _ = learned(np.array(["f", "m"] * 5))
    with pytest.raises(ValueError, match="sensitive_features has 3 rows, y has 4: expected one group for each row"):
        Groups().learn(["f", "m", "f"], np.zeros(4, dtype=int))
    with pytest.raises(ValueError, match=r"has 2 columns, it had 1 at fit time: pass the same\.$"):
        groups.codes([["f", "m"], ["m", "f"]])
    many = np.array(list("abcdefg"))
    assert groups.unseen(many[:6], groups.codes(many[:6])) == "'a', 'b', 'c', 'd', 'e'"
    assert groups.unseen(many, groups.codes(many)) == "'a', 'b', 'c', 'd', 'e' and 1 more"


def test_every_group_needs_rows_of_every_class():
    codes, y = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 0, 0, 0])
    labels, classes = [("f", 1), "m"], np.array(["no", "yes"])
    with pytest.raises(ValueError, match="group 'm' has 0 rows of class 'yes' among its 3: expected at least 1"):
        check_every_class(codes, y, labels, classes)
    with pytest.raises(ValueError, match=r"'f, 1' has 1 rows of class 'no' among its 3 .and 1 more such.*least 2"):
        check_every_class(codes, y, labels, classes, least=2)
    check_every_class(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), labels, classes)
    with pytest.raises(ValueError, match=r"group 'f, 1' has 3 rows .and 1 more such.*least 4"):
        check_every_class(codes, y, labels, classes, least=4, needed=[])


def test_frequencies_by_hand():
    codes, y = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    weight = np.array([1.0, 3.0, 2.0, 2.0, 2.0])
    plain = group_frequencies(codes, y, (2, 2), weight, 0.0)
    np.testing.assert_allclose(plain, [[0.25, 0.75], [1 / 3, 2 / 3]])
    prior = np.array([3, 7]) / 10
    smooth = group_frequencies(codes, y, (2, 2), weight, 5.0)
    np.testing.assert_allclose(smooth, [([1, 3] + 5 * prior) / 9, ([2, 4] + 5 * prior) / 11])


NUMBERS = {
    "int": np.array([0, 1, 1]),
    "int8": np.array([0, 1, 1], dtype=np.int8),
    "uint8": np.array([0, 1, 1], dtype=np.uint8),
    "bool": np.array([False, True, True]),
    "float": np.array([0.0, 1.0, 1.0]),
    "float16": np.array([0.0, 1.0, 1.0], dtype=np.float16),
    "list": [0, 1, 1],
    "objects": np.array([0, 1, 1], dtype=object),
    "numpy scalars": np.array([np.int64(0), np.float32(1), np.int8(1)], dtype=object),
    "numpy bools": np.array([np.bool_(False), np.bool_(True), np.bool_(True)], dtype=object),
    "category": pd.Series([0, 1, 1], dtype="category"),
    "Int64": pd.Series([0, 1, 1], dtype="Int64"),
    "boolean": pd.Series([False, True, True], dtype="boolean"),
    "polars": pl.Series([0, 1, 1]),
}
TEXT = {
    "str": np.array(["0", "1", "1"]),
    "list": ["0", "1", "1"],
    "objects": np.array(["0", "1", "1"], dtype=object),
    "category": pd.Series(["0", "1", "1"], dtype="category"),
    "string": pd.Series(["0", "1", "1"], dtype="string"),
    "polars": pl.Series(["0", "1", "1"]),
}
Y = np.array([0, 0, 1])


@pytest.mark.parametrize("kind", [NUMBERS, TEXT], ids=["numbers", "text"])
def test_values_of_one_kind_are_the_same_groups(kind):
    for name, fitted in kind.items():
        groups = Groups()
        assert groups.learn(fitted, Y).tolist() == [0, 1, 1], name
        for other, found in kind.items():
            assert groups.codes(found).tolist() == [0, 1, 1], (name, other)


@pytest.mark.parametrize("unseen", ["raise", "prior"])
def test_text_is_no_number(unseen):
    """Also where unseen groups are allowed: with the wrong type every group is unseen, and the prior is no answer."""
    y, kinds = np.tile([0, 1], 6), ((NUMBERS, TEXT), (TEXT, NUMBERS))
    for (fitted_kinds, other_kinds), words in zip(kinds, [("text", "numbers"), ("numbers", "text")], strict=True):
        for fitted in ("objects", "category", "polars"):
            column = fitted_kinds[fitted]
            principal = GroupPrincipal(unseen=unseen).fit(None, y, sensitive_features=np.asarray(column).repeat(4))
            for found in other_kinds.values():
                with pytest.raises(ValueError) as caught:
                    principal.predict_proba(None, sensitive_features=found)
                message = str(caught.value)
                assert f"sensitive_features column 0 holds {words[0]}, such as " in message
                assert f"where {words[1]} were fitted, such as " in message
                assert message.endswith(f": convert the column to {words[1]}, as at fit time.")


def test_the_message_shows_the_two_values():
    y = np.tile([0, 1], 30)
    principal = GroupPrincipal().fit(None, y, sensitive_features=np.repeat([1, 2, 3], 20))
    message = "holds text, such as '1', where numbers were fitted, such as 1: convert the column to numbers"
    with pytest.raises(ValueError, match=message):
        principal.predict_proba(None, sensitive_features=["1", "2"])
    crossed = pd.DataFrame({"sex": np.tile(["f", "m"], 6), "band": np.repeat([1, 2], 6)})
    principal = GroupPrincipal().fit(None, np.tile([0, 0, 1, 1], 3), sensitive_features=crossed)
    with pytest.raises(ValueError, match="column 1 holds text, such as '1', where numbers were fitted, such as 1"):
        principal.predict_proba(None, sensitive_features=crossed.astype({"band": str}))
    # the right kind and an unknown value is another thing
    with pytest.raises(ValueError, match="unseen group 'f, 3' in 1 rows"):
        principal.predict_proba(None, sensitive_features=pd.DataFrame({"sex": ["f", "m"], "band": [3, 1]}))


def test_numbers_that_were_cut_stay_numbers():
    groups = Groups()
    values = np.linspace(0, 1, 100)
    groups.learn(values, np.arange(100) % 2)
    np.testing.assert_array_equal(groups.codes(values.astype(object)), groups.codes(values))
    with pytest.raises(ValueError, match=r"column 0 holds text, such as '0\.5', where numbers were fitted: convert"):
        groups.codes(["0.5"])
    with pytest.raises(
        ValueError,
        match=r"has 1 infinite numbers in a column that is cut at quantiles: drop those rows, or give them a finite",
    ):
        Groups().learn(np.r_[values, np.inf], np.arange(101) % 2)


def test_dates_are_dates():
    days = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2021, 1, 1)]
    groups = Groups()
    groups.learn(np.array(days, dtype=object), Y)
    assert groups.codes(np.array(days[::-1], dtype=object)).tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="holds numbers, such as 2020, where dates were fitted"):
        groups.codes([2020, 2021])


def test_large_whole_numbers_are_not_merged():
    ids = np.array([2**53, 2**53 + 1, 2**53 + 1], dtype=object)
    groups = Groups()
    assert groups.learn(ids, Y).tolist() == [0, 1, 1]
    assert groups.labels == [2**53, 2**53 + 1]


@pytest.mark.parametrize("column", ["sex", "old"])
def test_one_unseen_column_makes_the_combination_unseen(rows, column):
    """Not the first value of that column, which its missing code would be taken for."""
    frame = pd.DataFrame({"sex": rows.sex, "old": np.where(rows.X[:, 2] > 0, "old", "young")})
    strange = frame.iloc[:3].assign(**{column: "x"})
    principal = GroupPrincipal().fit(None, rows.y, sensitive_features=frame)
    with pytest.raises(ValueError, match=r"unseen group '.*\bx\b.*' in 3 rows"):
        principal.predict_proba(None, sensitive_features=strange)
    lenient = GroupPrincipal(unseen="prior").fit(None, rows.y, sensitive_features=frame)
    found = lenient.predict_proba(None, sensitive_features=strange)
    np.testing.assert_allclose(found, np.tile(np.bincount(rows.y) / len(rows.y), (3, 1)))


def test_bins_of_whole_numbers_name_their_first_and_last_value():
    ages = pd.DataFrame({"AGE": [20, 39, 40, 61, 62, 63, 90]})
    groups, codes = learned(ages, bins={"AGE": [40, 62, 63]})
    assert groups.names == ["AGE below 40", "AGE 40 to 61", "AGE 62", "AGE 63 and above"]
    assert codes.tolist() == [0, 0, 1, 1, 2, 3, 3]
    # quantiles between whole numbers are named by the numbers that they divide
    quantiles, codes = learned(np.arange(100), n_bins=4)
    assert quantiles.labels == ["below 25", "25 to 49", "50 to 74", "75 and above"]
    assert np.bincount(codes).tolist() == [25] * 4
    # six digits tell where a number of the table was cut, and large ones whole
    finer, _ = learned(pd.DataFrame({"pay": [1.5, 2.5, 5e6, 6e6]}), bins={"pay": [2.123456789, 1234567.5]})
    assert finer.names == ["pay below 2.12346", "pay 2.12346 to below 1234567.5", "pay 1234567.5 and above"]


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ({"AGEE": [40]}, "bins names the column 'AGEE': expected one of 'AGE', 'sex'"),
        ({"AGE": [62, 40]}, r"the bins of 'AGE' are \[62, 40\]: expected finite numbers in rising order"),
        ({"AGE": []}, "expected finite numbers in rising order"),
        ({"AGE": [np.inf]}, "expected finite numbers in rising order"),
        ({"sex": [40]}, "bins are given for the column 'sex', which holds text: expected a column of numbers"),
    ],
)
def test_bins_that_cannot_be_are_refused(bins, message):
    with pytest.raises(ValueError, match=message):
        learned(pd.DataFrame({"AGE": [20, 50], "sex": ["f", "m"]}), bins=bins)


def test_values_that_say_nothing_alone_print_with_their_column():
    frame = pd.DataFrame({"sex": ["f", "m"] * 10, "smoker": ["yes", "no"] * 10, "group": [1, 2] * 10})
    groups, _ = learned(frame)
    assert groups.labels[0] == ("f", "yes", 1)
    assert groups.names == ["f, smoker yes, group 1", "m, smoker no, group 2"]
    assert learned(["a", "b"] * 5)[0].names == ["a", "b"] and learned([1, 2] * 5)[0].names == ["1", "2"]


RACES = np.repeat(["a", "b", "c", "d"], [50, 40, 3, 2])


def test_small_groups_are_merged_dropped_or_refused():
    y = np.arange(95) % 2
    merged, codes = learned(RACES, y, least=2, small="merge")
    assert merged.labels == ["a", "b", "other"] and merged.merged == {"c": 3, "d": 2}
    assert np.bincount(codes).tolist() == [50, 40, 5]
    np.testing.assert_array_equal(merged.codes(RACES), codes)
    assert "merged into 'other': 'c' (3), 'd' (2)" in " ".join(merged.notes())
    dropped, codes = learned(RACES, y, least=2, small="drop")
    assert dropped.labels == ["a", "b"] and (codes == NOT_COMPARED).sum() == 5
    np.testing.assert_array_equal(dropped.codes(RACES), codes)
    with pytest.raises(
        ValueError,
        match=r"^groups with too few rows: 'c' \(3\), 'd' \(2\): expected at least 2 rows of each compared class\. "
        r"Merge or drop them: small_groups='merge' or 'drop'\.$",
    ):
        learned(RACES, y, least=2, small="raise")
    # without a label to compare, all rows of a group count
    with pytest.raises(ValueError, match=r"'d' \(2\): expected at least 3 rows\. Merge"):
        Groups(least=3, small="raise").learn(RACES, y, needed=[])
    # the control: as they are
    assert learned(RACES, y, least=2)[0].labels == ["a", "b", "c", "d"]


def test_only_the_labels_that_are_compared_are_needed():
    y = np.where(RACES == "c", 0, np.arange(95) % 2)
    # c has no row of label 1: equalized odds cannot compare it, the rate of label 0 and the selection rate can be
    for needed, labels in ((None, ["a", "b"]), ([1], ["a", "b"]), ([0], ["a", "b", "c"]), ([], ["a", "b", "c", "d"])):
        groups = Groups(least=2, small="drop")
        groups.learn(RACES, y, needed=needed)
        assert groups.labels == labels, needed
    # a merged group that is still too small is dropped, and never joined to a large one
    groups = Groups(least=3, small="merge")
    groups.learn(RACES, y, needed=[1])
    assert groups.labels == ["a", "b"] and groups.dropped == {"c": 3, "d": 2}


def test_two_groups_must_be_left():
    with pytest.raises(
        ValueError,
        match=r"enough rows; too few are in 'b' \(1\): expected at least 2 rows of each compared class. Give more "
        r"rows, fewer or wider groups, or a smaller min_group_size\.$",
    ):
        learned(np.repeat(["a", "b"], [50, 1]), least=2, small="merge")


def test_rows_of_weight_0_do_not_make_a_group():
    groups = Groups(least=2, small="drop")
    groups.learn(RACES, np.arange(95) % 2, needed=[], weights=(RACES != "b").astype(float))
    assert groups.labels == ["a", "c", "d"]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_missing_group_is_no_group_and_no_unseen_one(kind):
    frame = kind({"sex": ["f", "m", None, "f"] * 5, "old": [1, None, 2, 2] * 5})
    groups, codes = learned(frame)
    assert groups.labels == [("f", 1), ("f", 2)] and groups.n_missing == 10
    assert codes[:4].tolist() == [0, NOT_COMPARED, NOT_COMPARED, 1]
    assert groups.codes(kind({"sex": ["x", None], "old": [1, 1]})).tolist() == [UNSEEN, NOT_COMPARED]
    assert "10 rows have no sex or old: they train the model and count in no gap" in groups.notes()


def test_principals_learn_from_rows_with_a_group_and_predict_the_others_by_the_prior():
    sex, y = ["f", "f", "m", "m", None, None, None], np.array([0, 1, 0, 1, 1, 1, 1])
    principal = GroupPrincipal(smoothing=0).fit(None, y, sensitive_features=sex)
    known = GroupPrincipal(smoothing=0).fit(None, y[:4], sensitive_features=sex[:4])
    np.testing.assert_array_equal(principal.group_proba_, known.group_proba_)
    np.testing.assert_allclose(principal.predict_proba(None, sensitive_features=["m", None]), [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="unseen group 'x' in 1 rows"):
        principal.predict_proba(None, sensitive_features=["x", None])


def test_as_many_groups_as_rows_also_where_one_is_missing():
    with pytest.raises(ValueError, match="sensitive_features has 2 rows, y has 3: expected one group for each row"):
        rows_with_groups(None, [0, 1, 1], ["f", None], None)


def test_a_list_of_numbers_and_text_is_text():
    (column,) = sensitive_columns([1, "a", 1])
    assert column.values.tolist() == ["1", "a", "1"]
    (column,) = sensitive_columns([1, None, 2])
    assert column.values.tolist() == [1, 1, 2] and column.values.dtype.kind == "i"


def test_a_missing_value_in_a_list_of_text_is_no_text():
    (column,) = sensitive_columns(["f", float("nan"), "m"])
    assert column.missing.tolist() == [False, True, False] and column.values[[0, 2]].tolist() == ["f", "m"]


def test_numbers_beyond_the_precision_of_floats_stay_floats():
    for number, kind in ((2.0**53 - 1, "i"), (2.0**53 + 2, "f")):
        (column,) = sensitive_columns(np.array([number, np.nan, number]))
        assert column.values.dtype.kind == kind
