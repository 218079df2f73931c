import codecs
import gzip
import os

import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from setminus.errors import UserError
from setminus.tables.reading import Kind, check_kind, file_stamp, named_kind, open_table
from setminus.tables.writing import writing

HOSTILE = [
    'a "quoted" name',
    "with, comma",
    "<script>alert(1)</script>",
    "two\nlines",
    "dot.in.name",
    "dot",
    " ",
    "é\t;",
]


@pytest.fixture
def put(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refused(path, problem, advice, **options):
    with pytest.raises(UserError) as caught:
        open_table(path, **options).read()
    assert problem in caught.value.came, caught.value.came
    assert advice in caught.value.do, caught.value.do
    assert str(caught.value) == f"{caught.value.came}: {caught.value.do}"
    return caught.value


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "arrow", "feather"])
def test_a_table_reads_back_from_every_format(ending, tmp_path):
    wrote = pa.table({name: [1.5, 2.5] for name in HOSTILE} | {"text": ['say "x", y', "line\nbreak"]})
    with writing(tmp_path / f"t.{ending}") as writer:
        writer.write(wrote)
    table = open_table(tmp_path / f"t.{ending}")
    assert table.names == (*HOSTILE, "text")
    assert table.read().to_pydict() == wrote.to_pydict()
    assert table.read(["dot", "two\nlines"]).column_names == ["dot", "two\nlines"]
    assert pa.concat_tables(table.batches(["dot"])).to_pydict() == {"dot": [1.5, 2.5]}
    assert table.scanned().n_rows == 2
    assert not table.notes


def test_what_polars_and_pyarrow_write_is_read_by_row_groups(tmp_path):
    frame = polars.DataFrame({"x": range(100), "s": ["a", "b"] * 50})
    frame.write_parquet(tmp_path / "p.parquet", row_group_size=30)
    table = open_table(tmp_path / "p.parquet")
    assert table.starts[-1] == table.n_rows == 100
    assert table.schema.names == ["x", "s"]
    parts = [table.part(i) for i in range(len(table.starts) - 1)]
    assert pa.concat_tables(parts)["x"].to_pylist() == list(range(100))
    assert [part.num_rows for part in table.batches()] == [part.num_rows for part in parts]
    pyarrow.feather.write_feather(pa.table({"x": range(100)}), tmp_path / "f.feather", chunksize=40)
    feather = open_table(tmp_path / "f.feather")
    assert feather.starts == (0, 40, 80, 100)
    assert feather.part(2)["x"].to_pylist() == list(range(80, 100))


@pytest.mark.parametrize("missing", ["", "?", "NA", "N/A", "null", "nan"])
def test_missing_values_of_csv(missing, put):
    table = open_table(put(f"age,sex\n39,m\n{missing},{missing}\n")).read()
    assert table.to_pydict() == {"age": [39, None], "sex": ["m", None]}


def test_endings_that_say_nothing_leave_it_to_the_content(put, tmp_path):
    assert open_table(put("a,b\n1,2\n", "adult.data")).format == "csv"
    assert open_table(put(gzip.compress(b"a,b\n1,2\n"), "adult.data.gz")).read().num_rows == 1
    pq.write_table(pa.table({"a": [1]}), tmp_path / "data")
    assert open_table(tmp_path / "data").format == "parquet"


def test_encodings(put):
    text = "name,age\nJosé,39\n"
    assert open_table(put(text.encode("latin-1")), encoding="latin-1").read()["name"].to_pylist() == ["José"]
    assert open_table(put(text.encode("utf-16")), encoding="utf-16").read()["name"].to_pylist() == ["José"]
    assert open_table(put(codecs.BOM_UTF8 + text.encode())).names == ("name", "age")
    error = refused(put(text.encode("latin-1")), "byte 12 (line 2)", "--encoding latin-1")
    assert "not UTF-8" in error.came
    refused(put(text.encode("utf-16")), "not UTF-8", "--encoding utf-16")
    refused(put("näme,age\nx,1\n".encode("latin-1")), "byte 1 (line 1)", "latin-1")
    refused(put(text), "no text encoding 'klingon'", "latin-1", encoding="klingon")
    refused(put(text), "not utf-16 text", "saved in", encoding="utf-16")
    # far behind the first look
    late = b"a,b\n" + b"1,x\n" * 100_000 + b"2,\xff\n"
    refused(put(late), f"byte {len(late) - 2} (line 100002)", "latin-1")


@pytest.mark.parametrize(
    "name", ["rot13", "base64", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "charmap", "", "a" * 999]
)
def test_encodings_that_are_none(name, put):
    error = refused(put("a,b\n1,2\n"), "no text encoding", "utf-8", encoding=name)
    assert len(error.came) < 150


def test_wide_characters_are_named(put):
    text = "name,age\nx,39\n"
    refused(put(text.encode("utf-16-le")), "zero bytes", "--encoding utf-16-le")
    refused(put(text.encode("utf-32")), "not UTF-8", "--encoding utf-32")
    for encoding in ("utf-16-le", "utf-16-be", "utf-32"):
        assert open_table(put(text.encode(encoding)), encoding=encoding).read()["age"].to_pylist() == [39]
    # far behind the first look
    refused(put(b"a,b\n" + b"1,x\n" * 100_000 + b"2,\x00\n"), "zero bytes", "Parquet")


def test_a_line_of_names_longer_than_the_first_look(put):
    names = [f"{'n' * 60}{k}" for k in range(10_000)]
    table = open_table(put("\n".join([",".join(names), *[",".join("123456789" * 1000 + "0" * 1000)] * 2])))
    assert table.names == tuple(names)
    assert table.read([names[-1]]).to_pydict() == {names[-1]: [0, 0]}
    names[3] = "x" * 10_000
    table = open_table(put(f"{','.join(names[:5])}\n1,2,3,4,5\n"))
    assert table.names[3] == names[3]
    with pytest.raises(UserError) as caught:
        table.read(["y" * 10_000])
    assert len(str(caught.value)) < 600


def test_files_that_are_not_there_or_empty(tmp_path, put):
    refused(tmp_path / "no.csv", "there is no file", "check the path")
    refused(tmp_path, "is a folder", "one file")
    for empty in (b"", b"\n\n", codecs.BOM_UTF8):
        refused(put(empty), "is empty", "column names")
    refused(put(gzip.compress(b""), "e.csv.gz"), "is empty", "column names")
    refused(put("a,b\n"), "one line only", "header=False")
    assert open_table(put("1,2\n"), header=False).read().num_rows == 1
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "e.parquet")
    refused(tmp_path / "e.parquet", "no rows", "rows")
    pq.write_table(pa.table({}), tmp_path / "n.parquet")
    refused(tmp_path / "n.parquet", "no columns", "columns")


def test_files_that_are_not_what_they_say(put, tmp_path):
    parquet = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), parquet)
    whole = parquet.read_bytes()
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    refused(put("a,b\n1,2\n", "x.parquet"), "expected Parquet, but it looks like CSV", "rename")
    refused(put("a,b\n1,2\n", "x.arrow"), "expected Arrow IPC", "rename")
    refused(put("a,b\n1,2\n", "x.csv.gz"), "expected CSV in gzip, but it looks like CSV", "rename")
    refused(put(whole, "x.csv"), "expected CSV, but it looks like Parquet", ".parquet")
    refused(put(packed, "x.csv"), "looks like CSV in gzip", ".csv.gz")
    refused(put(b"PK\x03\x04....", "x.csv"), "zip archive", "save the table as CSV")
    refused(put(whole[:-100], "cut.parquet"), "cannot be read as Parquet", "not complete")
    refused(put(packed[:-20], "cut.csv.gz"), "cannot be unpacked", "cut off")
    refused(put(packed[:50] + b"garbage" + packed[57:], "bad.csv.gz"), "cannot be unpacked", "damaged")
    refused(put(b"a,b\n1,\x00\n"), "no text", "CSV or Parquet")
    pyarrow.feather.write_feather(pa.table({"a": [1]}), tmp_path / "f.arrow")
    refused(put((tmp_path / "f.arrow").read_bytes()[:-40], "cut.arrow"), "cannot be read as Arrow IPC", "not complete")


def test_ragged_rows_are_named_by_their_line(put):
    refused(put("a,b\n1,2\n3\n4,5\n"), "line 3 of table.csv has 1 values, expected 2", "same number")
    refused(put('a,b\n"1\n1",2\n3,4,5\n'), "line 4 of table.csv has 3 values", "quote values")
    refused(put(b"a,b\n" + b"1,2\n" * 50_000 + b"3\n"), "line 50002", "same number")


def test_a_quote_that_never_ends_is_not_one_long_value(put):
    refused(put('a,b\n1,"2\n3,4\n5,6\n'), "never closed", "double a quote")
    assert open_table(put('a,b\n1,"two\nlines"\n3,"and, more\nof, them"\n')).read().num_rows == 2
    assert open_table(put('a,b\n1,5" pipe\n3,x\n')).read()["b"].to_pylist() == ['5" pipe', "x"]


def test_duplicate_columns(put, tmp_path):
    refused(put("a,b,a\n1,2,3\n"), "2 columns called 'a'", "different name")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "d.parquet")
    refused(tmp_path / "d.parquet", "2 columns called 'a'", "different name")


def test_a_missing_column_suggests_the_nearest(put):
    path = put("age,income\n1,2\n")
    with pytest.raises(UserError, match=r"table.csv has no column 'incme': did you mean 'income'\?"):
        open_table(path).read(["incme"])
    with pytest.raises(UserError, match=r"no column 'Age': did you mean 'age'\?"):
        open_table(path).read(["Age"])
    with pytest.raises(UserError, match=r"no column 'zzz': it has 'age', 'income'\."):
        open_table(path).read(["zzz"])


def test_options(put):
    assert open_table(put("a|b\n1|2\n"), separator="|").names == ("a", "b")
    refused(put("a|b\n1|2\n"), "the separator is '||'", "one character", separator="||")
    assert open_table(put("1,2\n3,4\n"), header=True).names == ("1", "2")
    with pytest.raises(ValueError, match="call scanned"):
        _ = open_table(put("a,b\n1,2\n")).schema
    with pytest.raises(ValueError, match="call scanned"):
        _ = open_table(put("a,b\n1,2\n")).starts


STARTS = {
    "csv": b"a,b\n1,2\n",
    "csv.gz": b"\x1f\x8b\x08\x00rest of it",
    "parquet": b"PAR1 and so on",
    "arrow": b"ARROW1\x00\x00 and so on",
}
KINDS = {
    "csv": Kind("csv"),
    "csv.gz": Kind("csv", gzip=True),
    "parquet": Kind("parquet"),
    "arrow": Kind("arrow"),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"),
        ("a.TSV", "csv"),
        ("a.tsv.gz", "csv.gz"),
        ("a.b.Csv.Gz", "csv.gz"),
        ("a.parquet", "parquet"),
        ("a.pq", "parquet"),
        ("a.arrow", "arrow"),
        ("a.feather", "arrow"),
        ("a.ipc", "arrow"),
        ("a.csv/b.parquet", "parquet"),
        ("adult.data", None),
        ("csv", None),
        ("a.gz", None),
    ],
)
def test_kinds_by_name(name, kind):
    assert named_kind(name) == (None if kind is None else KINDS[kind])


@pytest.mark.parametrize("found", STARTS)
@pytest.mark.parametrize("said", [*STARTS, "data"])
def test_the_first_bytes_decide_and_the_name_must_agree(tmp_path, found, said):
    path = tmp_path / f"people.{said}"
    path.write_bytes(STARTS[found])
    if said in (found, "data"):
        assert check_kind(path) == KINDS[found]
        return
    with pytest.raises(UserError) as caught:
        check_kind(path)
    assert "people" in str(caught.value) and str(KINDS[said]) in caught.value.came
    assert str(KINDS[found]) in caught.value.came and f".{found}" in caught.value.do


def test_kinds_have_names_for_people():
    assert len({str(kind) for kind in KINDS.values()}) == 4
    assert str(KINDS["csv.gz"]).startswith(str(KINDS["csv"])) and "gzip" in str(KINDS["csv.gz"])


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (b"PK\x03\x04", "zip"),
        (b"\xd0\xcf\x11\xe0", "Excel"),
        (b"FEA1", "Feather"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh9", "bzip2"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"%PDF-1.7", "PDF"),
    ],
)
def test_other_kinds_of_files_are_named(tmp_path, head, word):
    for name in ("people.csv", "people"):
        path = tmp_path / name
        path.write_bytes(head + b" and more")
        with pytest.raises(UserError, match=f"{name} is .*{word}"):
            check_kind(path)
    # in the middle it is only text
    path.write_bytes(b"a," + head)
    assert check_kind(path) == Kind("csv")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_nothing_folders_and_pipes(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    with pytest.raises(UserError, match=r"empty\.csv is empty"):
        check_kind(empty)
    for function in (check_kind, file_stamp):
        with pytest.raises(UserError, match=r"there is no file .*missing\.csv"):
            function(tmp_path / "missing.csv")
    with pytest.raises(UserError, match="is a folder"):
        file_stamp(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="no regular file"):
        file_stamp(tmp_path / "pipe")
    with pytest.raises(UserError, match="cannot be opened"):
        file_stamp(tmp_path / ("x" * 5000))


def test_a_stamp_is_size_and_time(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"12345")
    os.utime(path, ns=(7, 123_456_789_000))
    assert file_stamp(path) == (5, 123_456_789_000)
