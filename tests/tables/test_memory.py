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


def test_without_a_word_of_what_is_free_all_of_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "Path", lambda name: tmp_path / "not there")
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert memory.available_memory() == 4_096_000
    monkeypatch.setattr(memory.os, "sysconf", {}.__getitem__)
    with pytest.raises(KeyError):
        memory.available_memory()
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available_memory() == float("inf")


def test_what_is_free_is_read_in_kilobytes(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:   30 kB\nSwapFree: 1 kB\n")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "Path", lambda name: {"/proc/meminfo": tmp_path / "meminfo"}[name])
    assert memory.available_memory() == 30 * 1024


def test_four_fifths_of_what_is_free_may_be_used():
    memory.check_memory(0.8 * 5e9, "t.csv", 5e9)
    words = r"^t\.csv needs more than 4\.1 GB of memory, and 5\.0 GB are free\. Give a sample of its rows"
    with pytest.raises(TableError, match=words):
        memory.check_memory(4.1e9, "t.csv", 5e9)
