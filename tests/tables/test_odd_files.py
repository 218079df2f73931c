"""What is no table, or no longer the one that was opened, is refused in two parts."""

import gzip
import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from setminus.errors import UserError
from setminus.tables.reading import open_table

CSV = b"a,b\n" + b"1,2\n" * 1000


def refused(path, match):
    with pytest.raises(UserError, match=match) as caught:
        open_table(path).read()
    assert caught.value.do
    return caught.value


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    done = threading.Thread(target=refused, args=(tmp_path / "pipe.csv", "a pipe or a device"), daemon=True)
    done.start()
    done.join(10)
    assert not done.is_alive()
    refused(tmp_path / "pipe.csv", "a pipe or a device")
    refused("/dev/null", "a pipe or a device")
    refused(tmp_path, "is a folder")


@pytest.mark.skipif(os.name != "posix", reason="the words of POSIX")
def test_names_that_cannot_be(tmp_path):
    refused(tmp_path / f"{'x' * 300}.csv", "File name too long")
    refused(tmp_path / "no\0name.csv", "cannot be opened")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    refused(tmp_path / "loop.csv", "symbolic links")
    (tmp_path / "t.csv").write_bytes(CSV)
    refused(tmp_path / "t.csv" / "u.csv", "Not a directory")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "t.csv").write_bytes(CSV)
    (tmp_path / "t.csv").chmod(0)
    refused(tmp_path / "t.csv", "Permission denied")


def test_a_file_that_may_not_be_read_by_others(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(CSV)

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    refused(tmp_path / "t.csv", r"t\.csv cannot be opened: Permission denied")


@pytest.mark.parametrize("ending", [b"csv", b"csv.gz", b"parquet", b"arrow"])
def test_names_that_are_not_utf8(ending, tmp_path):
    path = tmp_path / os.fsdecode(b"p\xff\xe9." + ending)
    table = pa.table({"a": [1, 2]})
    if ending == b"parquet":
        with path.open("wb") as file:
            pq.write_table(table, file)
    elif ending == b"arrow":
        with path.open("wb") as file:
            pyarrow.feather.write_feather(table, file)
    else:
        path.write_bytes(gzip.compress(CSV) if ending == b"csv.gz" else CSV)
    opened = open_table(path).scanned()
    assert opened.read(["a"]).num_rows == opened.n_rows > 0
    if ending != b"csv.gz":
        assert opened.part(0).num_rows == opened.n_rows


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("change", ["grown", "cut", "replaced"])
def test_a_file_that_changes_while_it_is_read(ending, change, tmp_path):
    path = tmp_path / f"t.{ending}"
    table = pa.table({"a": range(1000), "b": range(1000)})
    if ending == "csv":
        path.write_bytes(CSV)
    elif ending == "parquet":
        pq.write_table(table, path, 100)
    else:
        pyarrow.feather.write_feather(table, path, chunksize=100)
    for read in (
        lambda table: table.load(),
        lambda table: table.scanned().part(0),
        lambda table: list(table.batches()),
    ):
        content = path.read_bytes()
        opened = open_table(path)
        assert read(opened)
        match change:
            case "grown":
                path.write_bytes(content + b"3,4\n")
            case "cut":
                path.write_bytes(content[: len(content) // 2])
            case _:
                path.unlink()
                path.write_bytes(content)
                os.utime(path, ns=(1, 1))
        with pytest.raises(UserError, match="changed while it was read"):
            read(opened)
        path.write_bytes(content)
    opened = open_table(path)
    path.unlink()
    with pytest.raises(UserError, match="there is no file"):
        opened.read()


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("$5,923.42", "numbers with a unit"),
        ("7.876,63 €", "numbers with a unit"),
        ("90%", "numbers with a unit"),
        ("(76.50)", "numbers with a unit"),
        ("5 134 608", "numbers with a unit"),
        ("9'332.53", "numbers with a unit"),
        ("EUR 12", "numbers with a unit"),
        ("17.08.2016", "dates or times"),
        ("4/19/2020 3:05 PM", "dates or times"),
        ("23-Jan-2020", "dates or times"),
        ("March 3, 2020", "dates or times"),
        ("99:30:00", "dates or times"),
    ],
)
def test_numbers_and_dates_that_are_read_as_text_are_reported(tmp_path, value, form):
    path = tmp_path / "t.csv"
    path.write_text("y;x\n" + f"0;{value}\n1;{value}\n" * 20)
    table, rows = open_table(path).load()
    assert rows.schema.field("x").type == pa.string()
    (note,) = table.notes
    assert note.startswith(f"'x' is read as text: its values look like {form}")
    assert f"such as {value!r} in row 1" in note
    # one other value among them: it is text
    path.write_text("y;x\n" + f"0;{value}\n1;none of these\n" * 20)
    assert open_table(path).load()[0].notes == ()


@pytest.mark.parametrize(
    "words",
    [
        ("clerk", "cook"),
        ("A12", "B34"),
        ("10-20", "20-30"),
        ("1.2.3", "1.2.4"),
        ("1.2.3.4", "5.6.7.8"),
        ("123-45-6789", "987-65-4321"),
    ],
)
def test_other_text_is_not_reported(tmp_path, words):
    path = tmp_path / "t.csv"
    path.write_text("y,x\n" + "".join(f"0,{word}\n" for word in words) * 20)
    assert open_table(path).load()[0].notes == ()


def test_names_that_differ_in_spaces_only_are_reported(tmp_path):
    # to ignore one of them would leave the other to the model
    path = tmp_path / "t.csv"
    path.write_text("age, age ,Income,income\n" + "1,2,3,4\n5,6,7,8\n")
    assert open_table(path).notes == (
        "the columns 'age' and ' age ' differ only in spaces or capital letters",
        "the columns 'Income' and 'income' differ only in spaces or capital letters",
    )


def test_what_spreadsheets_and_pandas_write_for_a_missing_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n#N/A,<NA>\n2,y\n")
    assert open_table(path).read().to_pydict() == {"a": [1, None, 2], "b": ["x", None, "y"]}


def test_ten_thousand_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(",".join(f"{row}{k}" for k in range(10_000)) for row in ("c", "1", "2")) + "\n")
    table, rows = open_table(path).load()
    assert (rows.num_columns, rows.num_rows, table.notes) == (10_000, 2, ())


def test_a_delimiter_at_the_end_of_each_line_makes_a_column_without_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,\n" + '1,"two\nlines",\n2,x,\n' * 20)
    rows = open_table(path).read()
    assert rows.column_names == ["a", "b", "column_3"]
    assert rows["column_3"].null_count == rows.num_rows == 40


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_point_that_may_group_thousands_is_reported(tmp_path, separator):
    # 850 and 1200, as a German spreadsheet writes them
    path, rows = tmp_path / "t.csv", ["a;b", "850;1", "1.200;2", "2.350;3"]

    def notes(*more, **options):
        path.write_text("\n".join([*rows, *more, ""]).replace(";", separator))
        return open_table(path, **options).load()[0].notes

    (note,) = notes()
    assert "1.200 is read as 1.2; the first rows do not prove it (--decimal , if it groups thousands)" in note
    # a number below 1, or another number of places, proves the point, also far below
    assert notes("0.125;4") == notes("12.5;4") == notes(decimal=".") == ()
    assert notes(*["850;1"] * 300, "0.125;4") == ()
    # a decimal comma proves that it groups thousands
    assert not any("not prove" in note for note in notes("1,5;4"))
    assert open_table(path, decimal=",").read()["a"].to_pylist()[:3] == [850, 1200, 2350]
