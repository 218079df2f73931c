from dataclasses import replace

import pyarrow as pa
import pytest

from setminus.errors import UserError
from setminus.tables.layout import Below, Layout, Survey, first_is_data, sniff
from setminus.tables.reading import open_table


def layout(text, **options):
    return sniff(text, True, "t.csv", **options)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(separator):
    text = "\n".join(separator.join(row) for row in (["a", "b", "c"], ["1", "x", "2.5"], ["2", "y", "3.5"]))
    assert layout(text).separator == separator
    assert layout(text).names == ("a", "b", "c")


def test_a_comma_inside_values_is_not_the_separator():
    found = layout("a;b\n1,5;2,25\n2,5;3\n")
    assert (found.separator, found.decimal) == (";", ",")
    assert layout('a\tb\n"x, y"\tz\n').separator == "\t"
    # a point somewhere: the comma may group thousands
    assert layout("a;b\n1,5;2.25\n").decimal == "."
    assert layout("one\n1\n2\n").names == ("one",)
    # both cut as well: the ending decides
    for tabs, names in (False, ("a", "b\tc")), (True, ("a,b", "c")):
        assert layout("a,b\tc\nx,y\tz\n", tabs=tabs).names == names


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("age,sex\n39,m\n", True),
        ("39,m\n50,f\n", False),
        ("0,1,2\n5.5,6.5,7.5\n", True),  # as pandas names the columns of an array
        ("country,2019,2020\nx,5,6\n", True),
        ("5,9\n1,2\n", False),
        ("red,yes\nblue,no\nred,yes\n", False),
        ("colour,yes\nred,yes\nblue,no\n", True),
        ("a,b\n?,\n", True),
        ("1,?\n2,x\n", False),
        ("name,2019,sex\nann,5,m\nbob,6,f\ncy,7,m\n", True),
        ("ann,5,m\nbob,6,f\ncy,7,m\n", False),
    ],
)
def test_headers_are_taken_for_data_only_where_that_is_plain(text, header):
    found = layout(text)
    assert found.header is header
    assert bool(found.notes) == (not header or "0,1" in text or "2019,2020" in text)
    assert layout(text, header=not header).header is not header


def test_padding_is_no_part_of_values():
    assert layout("a, b\n1, x\n").padded
    assert layout("a, b\n1, x\n").names == ("a", "b")
    # who writes names above such a file does not pad them
    assert layout("a,b\n1, x\n2, y\n").padded and not layout("a, b\n1,x\n").padded
    assert not layout("a, b\n1,x\n").padded


def test_a_nameless_column_gets_its_position():
    assert layout(",a\n0,x\n").names == ("column_1", "a")


def test_a_line_that_is_cut_off_is_not_looked_at():
    assert sniff("a,b\n1,2\n3", False, "t.csv").separator == ","
    with pytest.raises(UserError, match="one line only"):
        sniff("a,b", True, "t.csv")
    assert sniff("a,b\n", False, "t.csv").names == ("a", "b")


def test_old_line_ends():
    assert layout("a,b\r1,2\r").line_end == b"\r"
    assert layout("a,b\r\n1,2\r\n").line_end == b"\n"


def test_numbers_decide_between_separators_that_cut_alike():
    found = layout("1,5;2,5;abc\n2,5;3,5;abd\n")
    assert (found.separator, found.decimal, found.header) == (";", ",", False)
    # and words do not
    assert layout("red,blue;big\nred,green;small\n").separator == ","


def test_a_missing_value_or_a_stray_one_does_not_hide_the_padding():
    assert layout("a, b, c\n1,, x\n2, ?, y\n").padded
    assert layout("a, b, c\n" + "1, x, y\n" * 9 + "1,x, y\n").padded
    assert not layout("a,b,c\n" + "1,x,y\n" * 9 + "1, x, y\n").padded


def test_names_of_a_great_many_digits_are_only_names():
    digits = "9" * 5000
    assert layout(f"{digits},b\nx,y\nz,y\n").names[0] == digits


def test_a_value_too_long_for_the_parser_does_not_hide_the_rows_above_it():
    long = "m" * 300_000
    assert layout(f"a,b\n1,x\n{long},y\n").names == ("a", "b")
    assert layout(f"a,b\n{long},y\n").names == ("a", "b")
    with pytest.raises(UserError, match=r"the first line of t\.csv has a value of more than 131,072 characters"):
        layout(f"{long},b\n1,2\n")


def test_one_row_is_enough_to_see_the_padding():
    # nobody pads the names
    assert layout("a,b\nx, y\n").padded
    assert not layout("a, b\nx,y\n").padded
    assert layout("x, y\n", header=False).padded


def test_what_a_layout_is_unless_it_is_said():
    plain = Layout(("a", "b"))
    assert (plain.separator, plain.decimal, plain.line_end) == (",", ".", b"\n")
    assert plain.header
    assert not plain.padded


MANY = 300
"""Rows, more than the first look takes in."""


@pytest.fixture
def opened(tmp_path):
    def put(text, block=None, **options):
        (tmp_path / "t.csv").write_text(text)
        table = open_table(tmp_path / "t.csv", **options)
        return table if block is None else replace(table, source=replace(table.source, block=block))

    return put


def test_a_first_line_whose_words_come_again_far_below_is_not_lost(opened):
    text = "rare,odd\n" + "red,yes\nblue,no\n" * MANY + "rare,odd\n"
    for load in (lambda table: table.load(), lambda table: table.scanned()):
        with pytest.raises(
            UserError, match="looks like column names by the first rows, and like a row by all"
        ) as caught:
            load(opened(text))
        assert "--no-header if it is a row" in caught.value.do
    assert opened(text, header=True).load()[0].names == ("rare", "odd")
    assert opened(text, header=False).read().num_rows == 2 * MANY + 2
    # and where they do not come again, nothing is asked
    assert opened(text.removesuffix("rare,odd\n")).read().num_rows == 2 * MANY


def test_a_first_line_of_numbers_above_words_far_below(opened):
    with pytest.raises(UserError, match="looks like a row by the first rows, and like column names by all"):
        opened("5\n" + "1\n2\n" * MANY + "many\n").read()


def test_names_above_numbers_stay_names_whatever_comes(opened):
    table, rows = opened("age,sex\n" + "39,m\n50,f\n" * MANY + "many,m\n").load()
    assert table.names == ("age", "sex")
    assert rows["age"].to_pylist()[-2:] == ["50", "many"]


def test_the_names_that_pandas_gives_are_names_above_words_too(opened):
    assert opened("0,1,2\n5.5,a,7.5\n6.5,b,8.5\n").names == ("0", "1", "2")


@pytest.mark.parametrize("block", [None, 64])
@pytest.mark.parametrize(
    ("late", "kind"),
    [
        ("many", pa.string()),
        ("2.5", pa.float64()),
        ("true", pa.string()),
        ("2020-01-01", pa.string()),
        ("99999999999999999999", pa.float64()),
        ("", pa.int64()),
    ],
)
def test_types_are_those_of_all_rows_in_blocks_and_whole(opened, block, late, kind):
    text = "a,b\n" + "1,x\n0,y\n" * MANY + f"{late},z\n"
    table, rows = opened(text, block).load()
    assert rows.schema.field("a").type == kind
    scanned = opened(text, block).scanned()
    assert scanned.schema == rows.schema == table.schema
    assert scanned.notes == table.notes
    assert pa.concat_tables(scanned.batches()).equals(rows)
    assert len(scanned.starts) > 2 or block is None


def test_true_and_false_are_the_same_in_blocks_and_whole(opened):
    text = "a,b\n" + "true,x\nFALSE,y\n" * MANY
    assert opened(text).read()["a"].to_pylist()[:2] == opened(text, 64).read()["a"].to_pylist()[:2] == [True, False]
    mixed = text + "1,x\n0,y\n" * MANY
    assert opened(mixed).read()["a"].to_pylist() == opened(mixed, 64).read()["a"].to_pylist()


def test_a_table_is_read_once(opened, monkeypatch):
    table = opened("a;b\n" + "1;59,915\n" * MANY, 64)
    passes = []
    blocks = type(table.source)._blocks
    monkeypatch.setattr(type(table.source), "_blocks", lambda self: passes.append(self) or blocks(self))
    scanned, rows = table.load()
    assert len(passes) == 1
    assert rows["b"].to_pylist() == [59915.0] * MANY
    # some columns of a table that is known are read alone, by what all columns decided
    assert scanned.read(["b"]).to_pydict() == {"b": [59915.0] * MANY}
    assert len(passes) == 2


def grouped_note(*names):
    layout = Layout(names, separator=";")
    survey = Survey(layout)
    survey.add(pa.table([pa.array(["59,915", "1,234,567"])] * len(names), names=list(names)), 1)
    (note,) = survey.findings(False, "t.csv").notes
    return note


def test_a_note_names_three_columns_and_counts_the_others():
    assert "thousands in 'a', 'b', 'c': 59,915 is read as 59915" in grouped_note("a", "b", "c")
    assert "thousands in 'a', 'b', 'c' and 1 more: 59,915" in grouped_note("a", "b", "c", "d")
    assert "thousands in 'a', 'b', 'c' and 2 more: 59,915" in grouped_note("a", "b", "c", "d", "e")


def test_an_error_about_the_first_line_names_the_table(opened):
    with pytest.raises(UserError, match=r"^the first line of t\.csv looks like a row"):
        opened("5\n" + "1\n2\n" * MANY + "many\n").read()


MOMENTS = {"s": pa.timestamp("s"), "ns": pa.timestamp("ns"), "zoned": pa.timestamp("s", tz="UTC"), "day": pa.date32()}


@pytest.mark.parametrize(
    ("kinds", "joined"),
    [
        (["s", "day"], MOMENTS["s"]),
        (["s", "ns"], MOMENTS["ns"]),
        (["ns", "day"], MOMENTS["ns"]),
        (["zoned", "s"], pa.string()),
        (["zoned", "day"], pa.string()),
    ],
)
def test_moments_of_two_kinds_become_the_finer_one(kinds, joined):
    survey = Survey(Layout(("a",)))
    for kind in kinds:
        survey.add(pa.table({"a": pa.array([1], pa.int32() if kind == "day" else pa.int64()).cast(MOMENTS[kind])}), 1)
    assert survey.findings(False, "t.csv").schema.field("a").type == joined


def test_a_first_line_that_was_a_row_does_not_recur_by_itself(opened):
    # "x" stands in the first line alone, which is a row: nothing repeats it below
    text = "5,x\n" + "".join(f"{k},w{k}\n" for k in range(MANY))
    assert opened(text).read().num_rows == MANY + 1


def test_names_beside_values_that_come_again_outweigh_a_number():
    numbers = Below(numeric=True, recurs=False, repeats=False)
    words = Below(numeric=False, recurs=False, repeats=True)
    assert first_is_data(["39", "x"], [numbers, words._replace(repeats=False)])
    assert not first_is_data(["39", "job", "sex"], [numbers, words, words])
    # in whichever order they stand
    assert not first_is_data(["job", "sex", "39"], [words, words, numbers])
    assert first_is_data(["39", "50", "job"], [numbers, numbers, words])


def test_a_last_line_that_is_cut_off_is_left_out_and_only_that():
    text = "a;b\n1;2\n3;4\n5,6,7"
    assert sniff(text, False, "t.csv").separator == ";"
    assert sniff("a,b\n1.5,2\n2.5", False, "t.csv").below[0].numeric
    assert sniff("a,b", False, "t.csv").names == ("a", "b")


def test_a_whole_number_of_many_digits_among_fractions_may_lose_its_last(opened):
    large = 2**53 + 1
    for block in (None, 64):
        rows = opened("a,b\n" + f"{large},x\n" * MANY + "2.5,y\n", block).read()
        assert rows["a"].to_pylist()[-2:] == [float(large), 2.5]
