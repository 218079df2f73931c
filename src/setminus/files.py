"""Files that appear whole or not at all, and whether what is read from them fits into memory."""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from setminus.errors import UserError

__all__ = [
    "atomic_write",
    "atomic_writes",
    "available_memory",
    "check_memory",
    "destination",
    "scratch_folder",
    "within_memory",
]

SCRATCH = re.compile(r"\.setminus-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-\w+\.part")
"""The name of a scratch folder says which process of which machine it belongs to."""

MEMORY_SHARE = 0.8
"""Share of the free memory that a table may fill; the rest is for computing with it."""

CGROUP = Path("/sys/fs/cgroup")


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Part = TypeVar("Part", bound=_Sized)


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside `path` to write to, renamed to it when the block ends; after an error nothing is left of it.

    Whoever reads `path` meanwhile sees the old file, and whoever interrupts loses nothing.

    Parameters
    ----------
    path : path
        In a folder that exists.

    Yields
    ------
    Path
        In a folder of its own, on the same disk.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "answer.txt")) as partial:
    ...         _ = partial.write_text("42")
    ...     Path(folder, "answer.txt").read_text()
    '42'
    """
    with atomic_writes(path) as (partial,):
        yield partial


@contextmanager
def atomic_writes(*paths: str | os.PathLike[str]) -> Iterator[Sequence[Path]]:
    """Several paths to write to, each beside its place; renamed one after the other when all are complete.

    A disk that is full before the last of them is complete costs none of the old files.

    Parameters
    ----------
    *paths : path
        In folders that exist; in the order of renaming.

    Yields
    ------
    sequence of Path
        In the order of `paths`; each must be a file when the block ends.
    """
    targets = [destination(path) for path in paths]
    with ExitStack() as stack:
        # named as was asked: some writers go by the ending
        partials = [
            stack.enter_context(scratch_folder(target.parent)) / Path(path).name
            for target, path in zip(targets, paths, strict=True)
        ]
        yield partials
        for partial, target in zip(partials, targets, strict=True):
            if not partial.is_file():
                raise FileNotFoundError(f"{target.name} was not written: none of {len(targets)} files was replaced.")
        for partial, target in zip(partials, targets, strict=True):
            partial.replace(target)


def destination(path: str | os.PathLike[str]) -> Path:
    """The file that writing to `path` replaces: where a symbolic link leads, so that the link stays a link.

    Raises
    ------
    OSError
        If the link leads to itself.
    """
    target = Path(path)
    if not target.is_symlink():
        return target
    end = Path(os.path.realpath(target))
    if end.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    return end


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, removed when the block ends.

    A process that is killed leaves its folder behind. The next one that writes to `parent` removes it, once its owner
    is dead.
    """
    _remove_leftovers(parent.absolute())
    prefix = f".setminus-{_host()}-{os.getpid()}-"
    with tempfile.TemporaryDirectory(dir=parent, prefix=prefix, suffix=".part", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


# once for each folder: looking through 100,000 pictures before each of them would take longer than writing them
@functools.lru_cache(maxsize=64)
def _remove_leftovers(parent: Path) -> None:
    with os.scandir(parent) as entries:
        for entry in entries:
            name = SCRATCH.fullmatch(entry.name)
            # processes of another machine that shares the disk cannot be asked
            if name and name["host"] == _host() and entry.is_dir(follow_symlinks=False) and not _runs(int(name["pid"])):
                shutil.rmtree(entry.path, ignore_errors=True)


def _host() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _runs(pid: int) -> bool:
    if os.name != "posix":
        # there is no signal 0 to ask with, and a signal would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def available_memory() -> float:
    """Bytes that this process may still use, of the machine and of its container; infinite where that is unknown."""
    free = [float("inf")]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with suppress(OSError, ValueError):
        limit, used = (int((CGROUP / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        free.append(limit - used)
    if len(free) == 1:
        with suppress(AttributeError, OSError, ValueError):
            free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(free)


def check_memory(size: float, where: str, available: float) -> None:
    """Raise where a table of `size` bytes does not fit into the `available` memory."""
    if size > MEMORY_SHARE * available:
        raise UserError(
            f"{where} needs more than {size / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are free",
            do="give a sample of its rows, or fewer columns.",
        )


def within_memory(parts: Iterable[Part], where: str) -> Iterator[Part]:
    """Pass on parts that the caller keeps; raise before they fill the memory, as an archive of zeros would.

    Parameters
    ----------
    parts : iterable of objects with `nbytes`
    where : str
        The name of the file, for the error.

    Examples
    --------
    >>> [len(part) for part in within_memory([memoryview(b"42")], "people.csv")]
    [2]
    """
    available, size = available_memory(), 0
    for part in parts:
        size += part.nbytes
        check_memory(size, where, available)
        yield part
