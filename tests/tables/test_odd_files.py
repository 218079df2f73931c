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


def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    done = threading.Thread(target=refused, args=(tmp_path / "pipe.csv", "a pipe or a device"), daemon=True)
    done.start()
    done.join(10)
    assert not done.is_alive()
    refused(tmp_path / "pipe.csv", "a pipe or a device")
    refused("/dev/null", "a pipe or a device")
    refused(tmp_path, "is a folder")


def test_names_that_cannot_be(tmp_path):
    refused(tmp_path / f"{'x' * 300}.csv", "File name too long")
    refused(tmp_path / "no\0name.csv", "cannot be opened")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    refused(tmp_path / "loop.csv", "symbolic links")
    (tmp_path / "t.csv").write_bytes(CSV)
    refused(tmp_path / "t.csv" / "u.csv", "Not a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
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
