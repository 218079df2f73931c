"""Whether what is read still fits into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from setminus.tables.errors import TableError

__all__ = ["available_memory", "check_memory", "within_memory"]

SHARE = 0.8
"""Of the memory that is free: the rest is for what is done with the rows."""

CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> float:
    """Bytes that this process may still use, of the machine and of its container; infinite where nobody says."""
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
    """Raise where so many bytes of a table are more than fit."""
    if size > SHARE * available:
        raise TableError(
            f"{where} needs more than {size / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are free",
            "Give a sample of its rows, or fewer columns.",
        )


def within_memory(parts: Iterator[pa.Table], where: str) -> Iterator[pa.Table]:
    """The same parts, which are kept; raises before they fill the memory, as an archive of zeros would.

    Examples
    --------
    >>> [part.num_rows for part in within_memory(iter([pa.table({"x": [1, 2]})]), "people.csv")]
    [2]
    """
    available, size = available_memory(), 0
    for part in parts:
        size += part.nbytes
        check_memory(size, where, available)
        yield part
