import pytest

from setminus.tables.errors import TableError
from setminus.tables.sniffing import Layout, sniff


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
    with pytest.raises(TableError, match="one line only"):
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
    with pytest.raises(TableError, match=r"the first line of t\.csv has a value of more than 131,072 characters"):
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
