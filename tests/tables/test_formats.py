"""What a file is by its name and by its first bytes, and what is said where both disagree."""

import os

import pytest

from setminus.tables.errors import TableError
from setminus.tables.formats import Kind, check_kind, file_stamp, named_kind

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
    with pytest.raises(TableError) as caught:
        check_kind(path)
    assert "people" in str(caught.value) and str(KINDS[said]) in caught.value.problem
    assert str(KINDS[found]) in caught.value.problem and f".{found}" in caught.value.advice


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
        with pytest.raises(TableError, match=f"{name} is .*{word}"):
            check_kind(path)
    # in the middle it is only text
    path.write_bytes(b"a," + head)
    assert check_kind(path) == Kind("csv")


def test_nothing_folders_and_pipes(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    with pytest.raises(TableError, match=r"empty\.csv is empty"):
        check_kind(empty)
    for function in (check_kind, file_stamp):
        with pytest.raises(TableError, match=r"there is no file .*missing\.csv"):
            function(tmp_path / "missing.csv")
    with pytest.raises(TableError, match="is a folder"):
        file_stamp(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="no regular file"):
        file_stamp(tmp_path / "pipe")
    with pytest.raises(TableError, match="cannot be opened"):
        file_stamp(tmp_path / ("x" * 5000))


def test_a_stamp_is_size_and_time(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"12345")
    os.utime(path, ns=(7, 123_456_789_000))
    assert file_stamp(path) == (5, 123_456_789_000)
