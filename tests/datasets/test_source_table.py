import hashlib
import re

import pytest
from setminus_paper.data.images import IMAGE_SETS

from setminus.datasets import sources
from setminus.datasets.source_table import SOURCES, Source
from setminus.datasets.sources import ChecksumError, DataUnavailableError, fetch, find_local, forget, read_bytes

ARCHIVE = b"an archive, as it is served"
TOY = Source("toy.tar.gz", "images/toy.tar.gz", md5=hashlib.md5(ARCHIVE).hexdigest())
PLAIN = Source("toy.csv", "tabular/toy.csv.gz", hashlib.sha256(b"1, 2\n").hexdigest())


@pytest.fixture
def toy_world(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "SOURCES", {row.name: row for row in (TOY, PLAIN)})
    monkeypatch.setenv("SETMINUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path / "data"))
    return tmp_path


def put(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_every_row_has_one_checksum_and_says_no_place_without_its_part(source):
    assert re.fullmatch(r"[0-9a-f]{64}|", source.sha256)
    assert re.fullmatch(r"[0-9a-f]{32}|", source.md5)
    assert bool(source.sha256) != bool(source.md5)
    assert bool(source.package) == bool(source.member)
    assert all(url.startswith("https://") for url in source.urls)
    assert not source.package or re.fullmatch(r"[\w-]+==[\d.]+", source.package)


def test_no_two_rows_share_a_place():
    assert len({source.path.removesuffix(".gz") for source in SOURCES.values()}) == len(SOURCES)


def test_every_image_set_may_lie_prepared_in_the_folder():
    prepared = {f"{name}.npz" for name, known in IMAGE_SETS.items() if not known.drawn}
    assert prepared == {name for name in SOURCES if name.endswith(".npz")}


def test_an_archive_is_summed_as_it_is_and_not_unpacked(toy_world):
    given = put(toy_world / "data" / TOY.path, ARCHIVE)
    assert fetch("toy.tar.gz") == given
    assert read_bytes("toy.tar.gz") == ARCHIVE
    given.write_bytes(ARCHIVE[:-1])
    with pytest.raises(ChecksumError, match=f"md5 of its content is .*: expected {TOY.md5}"):
        fetch("toy.tar.gz")


def test_a_gzip_file_may_lie_there_uncompressed(toy_world):
    given = put(toy_world / "data" / "tabular" / "toy.csv", b"1, 2\n")
    assert find_local("toy.csv") == given
    assert read_bytes("toy.csv") == b"1, 2\n"
    given.write_bytes(b"1, 3\n")
    with pytest.raises(ChecksumError, match="sha256"):
        find_local("toy.csv")


def test_forgetting_empties_the_cache_and_leaves_the_folder(toy_world):
    cached = put(toy_world / "cache" / "images" / "toy.tar.gz", ARCHIVE)
    assert fetch("toy.tar.gz") == cached
    forget("toy.tar.gz")
    forget("toy.tar.gz")
    with pytest.raises(DataUnavailableError, match="no intact file"):
        fetch("toy.tar.gz")
    given = put(toy_world / "data" / TOY.path, ARCHIVE)
    forget("toy.tar.gz")
    assert fetch("toy.tar.gz") == given
