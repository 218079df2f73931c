"""An archive of little that unpacks to much is refused before it fills the memory."""

import gzip
from dataclasses import replace

import pytest

from setminus.tables import delimited, memory
from setminus.tables.errors import TableError
from setminus.tables.reading import open_table


@pytest.fixture
def bomb(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000))
    assert path.stat().st_size < 50_000
    return path


def test_rows_that_do_not_fit_are_refused(bomb, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 20e6)
    with pytest.raises(TableError, match=r"bomb\.csv\.gz needs more than 0\.0 GB of memory") as caught:
        open_table(bomb).load()
    assert "a sample of its rows" in caught.value.advice
    # part by part they do
    assert open_table(bomb).scanned().n_rows == 2_000_000
    monkeypatch.setattr(memory, "available_memory", lambda: 100e6)
    assert open_table(bomb).read().num_rows == 2_000_000


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 1 << 16)
    path, long = tmp_path / "t.csv.gz", b"x" * (1 << 24)
    path.write_bytes(gzip.compress(long))
    with pytest.raises(TableError, match="a line of more than") as caught:
        open_table(path)
    assert "a line for each row" in caught.value.advice
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n" + long))
    table = open_table(path)
    with pytest.raises(TableError, match="a line of more than"):
        replace(table, source=replace(table.source, block=1 << 16)).scanned()


def test_the_container_counts_too(tmp_path, monkeypatch):
    assert 0 < memory.available_memory() < float("inf")
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory.available_memory() == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() > 2000
