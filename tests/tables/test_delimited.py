import csv
import gzip
import io
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus import files
from setminus.errors import UserError
from setminus.tables import delimited
from setminus.tables.delimited import end_by_reading, last_row_end
from setminus.tables.reading import open_table
from setminus.tables.writing import writing

QUICK = settings(deadline=None, max_examples=50)


def in_blocks(path, size, **options):
    """The table, cut into blocks of a few bytes as a long one is into blocks of 16 MiB."""
    table = open_table(path, **options)
    return replace(table, source=replace(table.source, block=size))


# a letter first: the types are then text, and no value counts as missing
values = st.text(alphabet='ab",;\n é', max_size=12).map("x".__add__)


@QUICK
@given(rows=st.lists(st.tuples(values, values), min_size=1, max_size=20), size=st.integers(16, 60))
def test_blocks_end_where_rows_end(rows, size, tmp_path_factory):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("first", "second"), *rows])
    table = in_blocks(path, size, header=True, separator=",").scanned()
    # the writer leaves a carriage return alone only inside quotes, and there is none
    assert [tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()] == rows
    parts = [table.part(i) for i in range(len(table.starts) - 1)]
    assert pa.concat_tables(parts).num_rows == len(rows) == table.n_rows
    assert table.read().equals(open_table(path, header=True, separator=",").read())


@pytest.mark.parametrize("above", [b"", b"\n", b"\xef\xbb\xbf\n\n", b"\r\n"])
def test_empty_lines_above_the_names_make_no_row_of_them(above, tmp_path):
    end = b"\r\n" if b"\r" in above else b"\n"
    (tmp_path / "t.csv").write_bytes(above + end.join([b"age,sex", b"39,m", b"", b"50,f", b""]))
    assert open_table(tmp_path / "t.csv").read().to_pydict() == {"age": [39, 50], "sex": ["m", "f"]}


def test_the_last_line_of_a_short_file_is_looked_at_too(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n2\n3,4")
    assert open_table(tmp_path / "t.csv").read().to_pydict() == {"a": [1, 2, 3.4]}


def test_as_text_values_are_as_they_stand(tmp_path):
    (tmp_path / "t.csv").write_text("id,x\n007, ?\nNA, 1.50\n")
    table = open_table(tmp_path / "t.csv")
    assert table.read().to_pydict() == {"id": [7, None], "x": [None, 1.5]}
    for source in (table.as_text(), table.scanned().as_text()):
        assert source.read().to_pydict() == {"id": ["007", "NA"], "x": [" ?", " 1.50"]}
    # other formats have values of a type, which stay
    with writing(tmp_path / "t.parquet") as writer:
        writer.write(table.read())
    assert open_table(tmp_path / "t.parquet").as_text().read().to_pydict() == table.read().to_pydict()


def test_inch_marks_do_not_hold_back_the_blocks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + '5" pipe,1\n' * 1000)
    table = in_blocks(path, 200).scanned()
    assert len(table.starts) > 20
    assert table.n_rows == 1000


def test_types_hold_for_every_block(tmp_path):
    path = tmp_path / "t.csv"
    late = "x1,2.5,2020-01-01 10:00,,true,1\n"
    path.write_text("a,b,c,d,e,f\n" + "1,1,2020-01-01,,true,\n" * 50 + late + "1,1,2020-01-01,,7,\n" * 3)
    table = in_blocks(path, 100).scanned()
    types = dict(zip(table.names, table.schema.types, strict=True))
    assert types["a"] == types["e"] == pa.string()
    assert types["b"] == pa.float64()
    assert pa.types.is_timestamp(types["c"])
    assert types["d"] == pa.null()
    assert types["f"] == pa.int64()
    assert table.read().schema == table.schema == pa.concat_tables(table.batches()).schema
    assert table.read()["a"].to_pylist()[49:52] == ["1", "x1", "1"]


@pytest.mark.parametrize("packed", ["gzip", "latin-1"])
def test_a_packed_table_is_unpacked_to_be_read_in_any_order(packed, tmp_path):
    text = "name,n\n" + "".join(f"é{i},{i}\n" for i in range(200))
    path = tmp_path / ("t.csv.gz" if packed == "gzip" else "t.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed == "gzip" else text.encode("latin-1"))
    table = in_blocks(path, 500, encoding="utf-8" if packed == "gzip" else "latin-1").scanned()
    plain = table.seekable(tmp_path)
    assert plain.part(2)["n"].to_pylist() == list(range(table.starts[2], table.starts[3]))
    assert pa.concat_tables(plain.batches()).equals(table.read())
    assert table.path == plain.path
    unpacked = open_table(tmp_path / "unpacked.csv")
    assert unpacked.seekable(tmp_path) == unpacked


def test_a_row_longer_than_many_blocks_is_a_quote_that_never_ends(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"2\n' + "3,4\n" * 1000)
    with pytest.raises(UserError, match="never closed"):
        in_blocks(path, 16).scanned()


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_a_damaged_table_is_read_or_refused(data, tmp_path_factory):
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    lines = [b"age,sex,income"] + [b'%d,"%s",%d' % (i, b"mf"[i % 2 : i % 2 + 1], i * 7) for i in range(12)]
    content = bytearray(b"\n".join(lines))
    for _ in range(data.draw(st.integers(1, 8))):
        at = rng.randrange(len(content))
        match rng.randrange(4):
            case 0:
                content[at] = rng.randrange(256)
            case 1:
                del content[at : at + rng.randrange(1, 20)]
            case 2:
                content[at:at] = rng.choice([b'"', b",", b"\n", b"\r", b"\x00", b"\xff", b'""', b";;;", b"\t"])
            case _:
                content[at:at] = content[: rng.randrange(1, 40)]
        content = content or bytearray(b"a")
    path = tmp_path_factory.mktemp("t") / rng.choice(["t.csv", "t.tsv", "t.data", "t.parquet", "t.csv.gz"])
    path.write_bytes(bytes(content))
    for size in (1 << 26, 40):
        try:
            table = open_table(path)
            if table.format == "csv":
                table = replace(table, source=replace(table.source, block=size))
            assert table.read().num_rows == table.scanned().n_rows > 0
            assert sum(batch.num_rows for batch in table.batches()) == table.scanned().n_rows
        except UserError as error:
            assert error.came
            assert error.do


@QUICK
@given(content=st.binary(max_size=200), name=st.sampled_from(["t.csv", "t.parquet", "t.arrow", "t.csv.gz", "t"]))
def test_any_bytes_are_read_or_refused(content, name, tmp_path_factory):
    path = tmp_path_factory.mktemp("t") / name
    path.write_bytes(content)
    try:
        assert open_table(path).read().num_rows > 0
    except UserError as error:
        assert error.came
        assert error.do


def test_damage_that_comes_after_the_first_look_is_reported_by_file_and_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "x,1\n" * 500)
    source = open_table(path).scanned().source
    path.write_bytes(path.read_bytes().replace(b"x", b"\xff", 1))
    words = r"^t\.csv is not UTF-8 text: the first byte that is not is byte 4 \(line 2\): .* --encoding latin-1 "
    with pytest.raises(UserError, match=words):
        list(source.stream(None))
    path.write_bytes(b"a,b\n" + b"x,one\n" * 500)
    words = r"^t\.csv cannot be read as CSV: .*'one'.*: check the separator, the quotes and the line ends\.$"
    with pytest.raises(UserError, match=words):
        list(source.stream(None))
    path.write_bytes(b"a,b\n" + b"x,1\n" * 499 + b"y,1,2\n")
    with pytest.raises(UserError, match=r"^line 501 of t\.csv has 3 values, expected 2: .* quote values that hold ','"):
        list(source.stream(None))


def test_a_gzip_file_that_is_cut_off_is_named(tmp_path):
    path = tmp_path / "t.csv.gz"
    content = gzip.compress(b"a,b\n" + b"".join(b"%d,x%d\n" % (i, i * i) for i in range(5000)))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"^t\.csv\.gz cannot be unpacked: .*cut off; fetch it again"):
        open_table(path).read()


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("TRUE", "FALSE"), ("True", "False")])
def test_truth_values_in_each_way_of_writing(yes, no, tmp_path):
    (tmp_path / "t.csv").write_text(f"a,b\n{yes},1\n{no},0\n")
    assert open_table(tmp_path / "t.csv").read().to_pydict() == {"a": [True, False], "b": [1, 0]}


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xff\xfe\0\0", "utf-32"), (b"\xe9", "latin-1")],
)
def test_the_likely_encoding_is_suggested(mark, encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes(mark + b"a,b\n1,2\n")
    with pytest.raises(UserError, match=rf"byte 0 \(line 1\): .* --encoding {encoding} "):
        open_table(tmp_path / "t.csv")


cells = st.text(alphabet='ab",;\n ', max_size=12)


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=20))
def test_both_ways_to_the_end_of_a_row_agree(rows):
    ends = [0]
    text = io.StringIO(newline="")
    for row in rows:
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(row)
        ends.append(text.tell())
    whole = text.getvalue().encode()
    for cut in range(1, len(whole) + 1, 5):
        inside = [end for end in ends if end <= cut]
        assert last_row_end(whole[:cut], ",", b"\n") == inside[-1]
        # reading cannot know that the last row is complete
        assert end_by_reading(whole[:cut], ",") in inside[-2:]


@pytest.mark.parametrize(
    ("block", "end"),
    [
        (b"1,2\n3,4\n5", 8),
        (b"1,2", 0),
        (b'1,"2\n3,4\n', 0),
        (b'"a""b",1\n2,', 9),
        (b'5" pipe,1\n6" pipe,2\n7', 20),
        (b'5" pipe,1\n"a\nb",2\n7', 18),
        (b'5" pipe,1\n2\r,"x\ny",3\n7', 21),
    ],
)
def test_quotes_count_where_a_value_begins(block, end):
    assert last_row_end(block, ",", b"\n") == end


@pytest.fixture
def bomb(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000))
    assert path.stat().st_size < 50_000
    return path


def test_rows_that_do_not_fit_are_refused(bomb, monkeypatch):
    monkeypatch.setattr(files, "available_memory", lambda: 20e6)
    with pytest.raises(UserError, match=r"bomb\.csv\.gz needs more than 0\.0 GB of memory") as caught:
        open_table(bomb).load()
    assert "a sample of its rows" in caught.value.do
    # part by part they do
    assert open_table(bomb).scanned().n_rows == 2_000_000
    monkeypatch.setattr(files, "available_memory", lambda: 100e6)
    assert open_table(bomb).read().num_rows == 2_000_000


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 1 << 16)
    path, long = tmp_path / "t.csv.gz", b"x" * (1 << 24)
    path.write_bytes(gzip.compress(long))
    with pytest.raises(UserError, match="a line of more than") as caught:
        open_table(path)
    assert "a line for each row" in caught.value.do
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n" + long))
    table = open_table(path)
    with pytest.raises(UserError, match="a line of more than"):
        replace(table, source=replace(table.source, block=1 << 16)).scanned()


def test_a_space_after_the_separator_is_no_part_of_a_word(tmp_path):
    (tmp_path / "t.csv").write_text("age, job\n39, clerk\n50, cook\n")
    assert open_table(tmp_path / "t.csv").read().to_pydict() == {"age": [39, 50], "job": ["clerk", "cook"]}
    # a space here and there is
    (tmp_path / "t.csv").write_text("age,job\n39,clerk\n50, cook\n51,cook\n")
    assert open_table(tmp_path / "t.csv").read()["job"].to_pylist() == ["clerk", " cook", "cook"]


def test_rows_before_a_value_too_long_for_the_parser_are_whole():
    first = b'5" pipe,1\n'
    long = b"y" * (csv.field_size_limit() + 1)
    assert end_by_reading(first * 3 + b"z," + long + b"\n", ",") == len(first * 2)
    assert end_by_reading(b"z," + long + b"\n", ",") == 0
