import os
import socket
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from setminus import files
from setminus.errors import UserError
from setminus.files import atomic_write, atomic_writes, scratch_folder


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_nothing_behind(tmp_path, error):
    path = tmp_path / "file"
    with pytest.raises(error), atomic_write(path) as partial:
        partial.write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_error_at_the_last_of_several_files_costs_none_of_the_old_ones(tmp_path):
    old = [tmp_path / name for name in ("model", "page")]
    for path in old:
        path.write_text("old")
    with pytest.raises(OSError, match="full"), atomic_writes(*old) as (model, page):
        model.write_text("new")
        page.write_text("ne")
        raise OSError("full")
    assert [path.read_text() for path in old] == ["old", "old"]
    # the same without the error, so that the check above could have failed
    with atomic_writes(*old) as partials:
        for partial in partials:
            partial.write_text("new")
    assert [path.read_text() for path in old] == ["new", "new"]
    assert sorted(tmp_path.iterdir()) == old


def test_a_file_that_was_forgotten_costs_none_of_the_others(tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    with pytest.raises(FileNotFoundError, match="page was not written"), atomic_writes(path, tmp_path / "page") as both:
        both[0].write_text("new")
    assert path.read_text() == "old"


def test_a_name_as_long_as_the_disk_allows(tmp_path):
    path = tmp_path / ("x" * 255)
    with atomic_write(path) as partial:
        partial.write_text("whole")
    assert path.read_text() == "whole"


KILLED = """
import os, signal, sys
from pathlib import Path
from setminus.files import atomic_write
with atomic_write(Path(sys.argv[1]) / "file") as partial:
    partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are asked by signal 0")
def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(tmp_path):
    (tmp_path / "file").write_text("old")
    assert subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False).returncode < 0
    (left,) = set(tmp_path.iterdir()) - {tmp_path / "file"}
    host = f"{zlib.crc32(socket.gethostname().encode()):08x}"
    alive = tmp_path / f".setminus-{host}-{os.getppid()}-abc.part"
    elsewhere = tmp_path / left.name.replace(host, "0" * 8)
    target = tmp_path / "precious"
    linked = tmp_path / left.name.replace(".part", "x.part")
    foreign = tmp_path / ".setminus-notes"
    for folder in (alive, elsewhere, target, foreign):
        folder.mkdir()
    linked.symlink_to(target)
    files._remove_leftovers.cache_clear()
    with atomic_write(tmp_path / "file") as partial:
        partial.write_text("new")
    assert not left.exists()
    assert {*tmp_path.iterdir()} == {tmp_path / "file", alive, elsewhere, target, linked, foreign}


def test_a_scratch_folder_is_readable_by_its_owner_alone(tmp_path):
    with scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path
        if os.name == "posix":
            assert folder.stat().st_mode & 0o077 == 0
    assert not Path(folder).exists()


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "17").write_text("old")
    link, other = tmp_path / "latest.txt", tmp_path / "new.txt"
    link.symlink_to("store/17")
    other.symlink_to("store/18")
    with atomic_writes(link, other) as partials:
        assert [partial.name for partial in partials] == ["latest.txt", "new.txt"]
        for partial in partials:
            partial.write_text("new")
    assert link.is_symlink()
    assert other.is_symlink()
    assert [(tmp_path / "store" / name).read_text() for name in ("17", "18")] == ["new", "new"]


def test_a_link_that_leads_to_itself_is_not_replaced(tmp_path):
    link = tmp_path / "loop"
    link.symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"), atomic_write(link) as partial:
        partial.write_text("new")
    assert link.is_symlink()


def test_the_container_counts_too(tmp_path, monkeypatch):
    assert 0 < files.available_memory() < float("inf")
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    monkeypatch.setattr(files, "CGROUP", tmp_path)
    assert files.available_memory() == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert files.available_memory() > 2000


def test_without_a_word_of_what_is_free_all_of_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CGROUP", tmp_path)
    monkeypatch.setattr(files, "Path", lambda name: tmp_path / "not there")
    machine = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(files.os, "sysconf", machine.__getitem__, raising=False)
    assert files.available_memory() == 4_096_000
    monkeypatch.setattr(files.os, "sysconf", {}.__getitem__)
    with pytest.raises(KeyError):
        files.available_memory()
    monkeypatch.delattr(files.os, "sysconf")
    assert files.available_memory() == float("inf")


def test_what_is_free_is_read_in_kilobytes(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:   30 kB\nSwapFree: 1 kB\n")
    monkeypatch.setattr(files, "CGROUP", tmp_path)
    monkeypatch.setattr(files, "Path", lambda name: {"/proc/meminfo": tmp_path / "meminfo"}[name])
    assert files.available_memory() == 30 * 1024


def test_four_fifths_of_what_is_free_may_be_used():
    files.check_memory(0.8 * 5e9, "t.csv", 5e9)
    words = r"^t\.csv needs more than 4\.1 GB of memory, and 5\.0 GB are free: give a sample of its rows"
    with pytest.raises(UserError, match=words):
        files.check_memory(4.1e9, "t.csv", 5e9)
