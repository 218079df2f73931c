import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setminus.errors import UserError
from setminus.tables.reading import open_table
from setminus.tables.writing import neutralized, original_words, writing

TABLE = pa.table({"x": [1.5, 2.5], 'na"me, <b>\n': ["a", "b"]})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.pq", "t.arrow", "t.feather"])
def test_pieces_come_back_as_one_table(name, tmp_path):
    with writing(tmp_path / name) as writer:
        writer.write(TABLE)
        assert not (tmp_path / name).exists()
        writer.write(TABLE)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert open_table(tmp_path / name).read().to_pydict() == pa.concat_tables([TABLE, TABLE]).to_pydict()


def test_parquet_options(tmp_path):
    with writing(tmp_path / "t.parquet", compression="zstd", dictionary=["x"]) as writer:
        writer.write(TABLE)
        writer.write(TABLE)
    meta = pq.ParquetFile(tmp_path / "t.parquet").metadata
    assert meta.num_row_groups == 2
    assert meta.row_group(0).column(0).compression == "ZSTD"
    assert [meta.row_group(0).column(k).has_dictionary_page for k in (0, 1)] == [True, False]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.arrow"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("pieces", [0, 2])
def test_an_interrupted_write_leaves_what_was_there(name, error, pieces, tmp_path):
    (tmp_path / name).write_bytes(b"before")

    def interrupted():
        with writing(tmp_path / name) as writer:
            for _ in range(pieces):
                writer.write(TABLE)
            raise error

    with pytest.raises(error):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"before"


def test_targets_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.csv").mkdir()

    def refused(path, match):
        with pytest.raises(UserError, match=match), writing(path):
            pytest.fail("the work began")

    refused(tmp_path / "no" / "t.csv", "there is no folder")
    refused(tmp_path / "file" / "t.csv", "cannot write .*Not a directory")
    refused(tmp_path / "folder.csv", "is a folder")
    refused(tmp_path / "t.xlsx", r"of no format.*\.parquet")
    refused(tmp_path / f"{'x' * 300}.csv", "File name too long")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_and_what_csv_cannot_hold(tmp_path):
    with pytest.raises(UserError, match="write it as Parquet"), writing(tmp_path / "t.csv") as writer:
        writer.write(pa.table({"x": [[1]]}))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(UserError, match=r"cannot write .*No space left"),
        writing(tmp_path / "t.arrow") as writer,
    ):
        writer._sink = full
        writer.write(pa.table({"x": np.zeros(1_000_000)}))
    with pytest.raises(UserError, match="nothing to write"), writing(tmp_path / "t.csv"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").write_text("")
    with writing(tmp_path / "t.csv.gz") as writer:
        writer.write(TABLE)
    assert (tmp_path / "t.csv.gz").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).startswith(b'"x"')


@pytest.mark.parametrize(
    ("name", "line"), [("t.csv", b"1,2"), ("t.tsv", b"1\t2"), ("T.TSV", b"1\t2"), ("t.tsv.gz", b"1\t2")]
)
def test_the_ending_decides_on_the_separator(name, line, tmp_path):
    with writing(tmp_path / name) as writer:
        writer.write(pa.table({"a": [1], "b": [2]}))
    content = (tmp_path / name).read_bytes()
    assert line in (gzip.decompress(content) if name.endswith("gz") else content)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "store").mkdir()
    link, loop = tmp_path / "latest.csv", tmp_path / "loop.csv"
    link.symlink_to("store/17.csv")
    loop.symlink_to("loop.csv")
    with writing(link) as writer:
        writer.write(TABLE)
    assert link.is_symlink()
    assert open_table(tmp_path / "store" / "17.csv").read().num_rows == 2
    with pytest.raises(UserError, match="cannot write"), writing(loop) as writer:
        writer.write(TABLE)
    assert loop.is_symlink()


words = st.text(alphabet="'=+-@\t\r\n\uff1d1.,e a", max_size=8)


def written(column):
    return neutralized(pa.table({"c": column}))["c"].to_pylist()


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("+1+1", "'+1+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-", "'-"),
        ("+49 170", "'+49 170"),
        ("-3.5", "-3.5"),
        ("+7", "+7"),
        ("-1,5", "-1,5"),
        ("-1e-3", "-1e-3"),
        ("'=1", "''=1"),
        ("'quoted'", "'quoted'"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_what_a_spreadsheet_would_run_is_set_apart(text, safe):
    assert written([text, None, "x"]) == [safe, None, "x"]
    assert list(neutralized(pa.table({text: [1]})).column_names) == [safe]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text(kind):
    array = pa.array(["=1", "x"], kind)
    assert written(array) == ["'=1", "x"]
    if kind != pa.string_view():
        assert written(array.dictionary_encode()) == ["'=1", "x"]
    assert written(pa.array([-1, 2])) == [-1, 2]


@given(texts=st.lists(words, min_size=1, max_size=10))
def test_the_way_back_is_exact(texts):
    safe = written(texts)
    assert len({*safe}) == len({*texts})
    # a word that nobody knows says that the column is not as it was
    back = original_words([*safe, "'=never seen"], set())
    assert [back[word] for word in safe] == texts


def test_words_that_are_known_stay():
    assert original_words(["'=a", "b"], ["'=a", "b", "=a"]) == {"'=a": "'=a", "b": "b"}
    assert original_words(["'=a", "b"], ["=a", "b"]) == {"'=a": "=a", "b": "b"}
    assert original_words(["'-3.5"], []) == {"'-3.5": "-3.5"}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arrow"])
def test_a_file_of_formulas(name, tmp_path):
    # in a later block only, and in a column of codes, which an Arrow file wants to be the same in every block
    blocks = [pa.array(["x", "y"]), pa.array(["=1", "y"])]
    if name != "t.arrow":
        blocks = [block.dictionary_encode() for block in blocks]
    for neutralize in (False, True):
        with writing(tmp_path / name, neutralize=neutralize) as writer:
            for block in blocks:
                writer.write(pa.table({"@c": block, "n": [-1.5, 2]}))
        table = open_table(tmp_path / name, header=True)
        safe = neutralize and name.startswith(("t.csv", "t.tsv"))
        assert table.names == ("'@c" if safe else "@c", "n")
        assert table.read().column(0).to_pylist() == ["x", "y", "'=1" if safe else "=1", "y"]
        assert table.read()["n"].to_pylist() == [-1.5, 2] * 2
