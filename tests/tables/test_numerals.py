"""Commas and points in numbers: all rows decide what they are, and a note says so."""

import gzip
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.errors import UserError
from setminus.tables.numerals import (
    DecimalSign,
    Numerals,
    _shapes,
    is_number,
    looks_numeric,
    proven_sign,
    shape_of,
    ungrouped,
)
from setminus.tables.reading import open_table

MANY = 300
"""Rows, more than the first look takes in."""


@pytest.fixture
def opened(tmp_path):
    def put(values, separator="\t", name="t.csv", others=None, **options):
        rows = [["pay", "name"], *([value, "x"] for value in values)]
        if others is not None:
            rows = [[*row, other] for row, other in zip(rows, ["other", *others], strict=True)]
        (tmp_path / name).write_text("\n".join(separator.join(row) for row in rows) + "\n")
        return open_table(tmp_path / name, **options)

    return put


def found(table):
    table, rows = table.load()
    return rows["pay"].to_pylist(), table


@pytest.mark.parametrize("separator", ["\t", ";"])
@pytest.mark.parametrize(
    ("late", "first", "sign"),
    [
        ("1,234,567", 59915.0, "."),
        ("1,234.5", 59915.0, "."),
        ("7,5", 59.915, ","),
        ("0,915", 59.915, ","),
        ("1234,567", 59.915, ","),
        ("1.234,5", 59.915, ","),
        ("-7,5", 59.915, ","),
        ("7,5e3", 59.915, ","),
    ],
)
def test_one_value_far_below_decides(opened, separator, late, first, sign):
    values, table = found(opened([*["59,915", "512"] * MANY, late], separator))
    assert values[:2] == [first, 512.0]
    assert table.decimal == DecimalSign(sign)
    assert "no value proves" not in " ".join(table.notes)
    if sign == ".":
        assert table.notes == ("the comma is taken to group thousands in 'pay': 59,915 is read as 59915",)
    else:
        assert "decimal sign" in table.notes[0]


def test_a_value_of_another_column_decides(opened):
    values, table = found(opened(["59,915"] * MANY + ["512"], others=["7"] * MANY + ["7.5"]))
    assert (values[0], table.decimal) == (59915.0, DecimalSign("."))
    values, table = found(opened(["59,915"] * MANY + ["512"], others=["7"] * MANY + ["7,5"]))
    assert (values[0], table.decimal) == (59.915, DecimalSign(","))


def test_what_nothing_proves_is_assumed_and_said(opened):
    values, table = found(opened(["59,915", "512"] * MANY))
    assert values[:2] == [59915.0, 512.0]
    assert table.decimal == DecimalSign(".", assumed=True)
    (note,) = table.notes
    assert "59,915 is read as 59915; no value proves it (--decimal , if it is the decimal sign)" in note
    values, table = found(opened(["59,915", "512"] * MANY, decimal=","))
    assert (values[:2], table.decimal) == ([59.915, 512.0], DecimalSign(","))
    values, table = found(opened(["59,915", "512"] * MANY, decimal="."))
    assert (values[:2], table.decimal) == ([59915.0, 512.0], DecimalSign("."))
    with pytest.raises(UserError, match="the decimal sign is ';'"):
        opened(["1"], decimal=";")


def test_where_rows_prove_both_no_word_becomes_a_number(opened):
    values, table = found(opened(["59,915", "7,5"] * MANY, others=["7.5", "2"] * MANY))
    assert values[:2] == ["59,915", "7,5"]
    assert table.decimal == DecimalSign(".")
    assert table.notes == (
        "'pay' is read as text: 300 of its 600 values are no numbers, such as '7,5' in row 2 (--decimal , if that is "
        "its decimal sign)",
    )


def test_a_point_may_group_thousands_too(opened):
    for late in ("1.234.567", "60.120"):
        values, table = found(opened(["59.915", late] * MANY, others=["2"] * MANY + ["7,5"] * MANY))
        assert values[:2] == [59915.0, float(late.replace(".", ""))]
    assert table.notes[1] == "the point is taken to group thousands in 'pay': 59.915 is read as 59915"


def test_where_commas_separate_one_in_quotes_groups_thousands(opened):
    values, table = found(opened(['"59,915"', "512"], ","))
    assert (values, table.decimal) == ([59915.0, 512.0], DecimalSign(".", assumed=True))
    # it may be a list of codes
    assert found(opened(['"7,5"', '"1,2"'], ","))[0] == ["7,5", "1,2"]
    assert found(opened(['"7,5"', '"1,2"'], ",", decimal=","))[0] == [7.5, 1.2]


def test_dates_versions_and_codes_are_no_numbers(opened):
    for words in (["31.12.2020", "01.01.2021"], ["1.2.3", "1.2.4"], ["012,345", "1,2,3"]):
        values, table = found(opened(words * MANY))
        assert values[:2] == words
        assert table.decimal.sign == "." or words[0] == "012,345"


def test_a_number_that_is_text_far_below_makes_a_column_of_text_and_a_note(opened):
    values, table = found(opened([*["5"] * MANY, "many", *["6"] * 3]))
    assert values[MANY - 1 : MANY + 1] == ["5", "many"]
    assert table.notes == ("'pay' is read as text: 1 of its 304 values are no numbers, such as 'many' in row 301",)
    # and a column of words with a few numbers is no surprise
    assert found(opened(["some", "many", "7"] * MANY))[1].notes == ()


@settings(deadline=None, max_examples=40)
@given(
    values=st.lists(
        st.sampled_from(["59,915", "512", "7,5", "1,234,567", "0,5", "1.5", "1.234", "", "1e5"]),
        min_size=2,
        max_size=60,
    ),
    size=st.integers(20, 200),
)
def test_blocks_packed_and_whole_give_the_same(values, size, tmp_path_factory):
    folder = tmp_path_factory.mktemp("t")
    text = "pay;name\n" + "".join(f"{value};x\n" for value in values)
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    whole, rows = open_table(folder / "t.csv", header=True).load()
    for name in ("t.csv", "t.csv.gz"):
        table = open_table(folder / name, header=True).scanned()
        assert table.notes == whole.notes
        assert table.decimal == whole.decimal
        assert pa.concat_tables(table.batches()).to_pydict() == rows.to_pydict()
    table = open_table(folder / "t.csv", header=True)
    small = replace(table, source=replace(table.source, block=size)).scanned()
    assert small.decimal == whole.decimal
    assert small.schema == whole.schema
    assert pa.concat_tables(small.batches()).to_pydict() == rows.to_pydict()
    assert [small.part(i, ["pay"]).num_rows for i in range(len(small.starts) - 1)]


def test_a_table_that_goes_with_another_is_read_like_it(opened):
    unclear = ["59,915", "512"]
    decided = opened([*unclear, "7,5"]).scanned().decimal
    values, table = found(opened(unclear).like(decided))
    assert (values, table.decimal) == ([59.915, 512.0], DecimalSign(","))
    # its own values go first: it may come from another country
    assert found(opened(["1,234,567"]).like(decided))[0] == [1234567.0]
    assumed = opened(unclear).scanned().decimal
    assert found(opened(unclear).like(assumed))[1].decimal == DecimalSign(".", assumed=True)
    assert found(opened(["1,234,567", "5"]).like(assumed))[0] == [1234567.0, 5.0]
    with pytest.raises(
        UserError, match=r"',' is the decimal sign in t\.csv, and was taken to group thousands"
    ) as caught:
        opened(["7,5", "5"]).like(assumed).scanned()
    assert "--decimal ," in caught.value.do
    assert found(opened(["7,5", "5"], decimal=",").like(assumed))[0] == [7.5, 5.0]


@pytest.mark.parametrize(("late", "first"), [("7,5", 59.915), ("1,234,567", 59915.0)])
def test_parts_are_read_with_the_sign_that_all_rows_prove(opened, late, first):
    table = opened([*["59,915", "512"] * MANY, late], ";").scanned()
    assert next(table.batches(["pay"]))["pay"].to_pylist()[:2] == [first, 512.0]
    assert table.part(0, ["pay"])["pay"].to_pylist()[:2] == [first, 512.0]


def test_shapes():
    assert shape_of("9.9", ".").number and not shape_of("9.9", ",").number
    assert not shape_of("0,999", ".").number
    assert not any(shape_of("x", "."))
    assert shape_of("9e9", ".").fraction and shape_of("9E9", ".").fraction and not shape_of("99", ".").fraction
    # of a part of an array
    words = pa.array(["no number", "-07", "", "1.5e3"]).slice(1)
    assert _shapes(words).to_pylist() == ["-09", "", "9.9e9"]
    assert proven_sign(["a", "1"]) == "."
    assert proven_sign([]) == "."
    assert ungrouped(pa.chunked_array([["1.234,5", " 7"]]), ",").to_pylist() == [1234.5, 7.0]
    assert looks_numeric(pa.array([""] + ["1"] * 5))
    assert not is_number("٣")  # pyarrow does not read it either


@pytest.mark.parametrize(
    ("numbers", "proven"),
    [
        ([59.915, 1.0], False),
        ([1.5], False),
        ([0.0, 999999.125], False),
        ([0.999], True),
        ([-0.5], True),
        ([1.0001], True),
        ([-2.71828], True),
        ([float("nan"), float("inf"), 3.0], False),
        # the last digits of a large number are no places
        ([123456789.12345], False),
    ],
)
def test_a_point_that_cannot_group_thousands(numbers, proven):
    found = Numerals(".")
    found.add_numbers(pa.chunked_array([pa.array(numbers)]))
    assert found.decisive is proven
    assert found.fractions
    assert found.numbers == len(numbers)


def test_a_fraction_in_one_block_is_remembered_in_the_next():
    found = Numerals(".")
    for block in (["1.5", "2"], ["3", "4"]):
        found.add(pa.chunked_array([block]), 0)
        assert found.fractions
    assert found.numbers == 4
