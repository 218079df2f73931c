"""Progress of long work: named steps, shown by whoever displays them and timed here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

__all__ = ["Step", "Stopwatch"]

Step = Callable[[str], AbstractContextManager[Any]]
"""Given the name of a step, a context manager around its work: a progress display, or nothing."""


class Stopwatch:
    """Steps that are shown by `step` and timed here.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> with watch("wait"):
    ...     pass
    >>> list(watch.seconds)
    ['wait']
    """

    def __init__(self, step: Step = nullcontext):
        self.step = step
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Around the work of one step."""
        start = time.perf_counter()
        with self.step(name):
            yield
        self.seconds[name] = time.perf_counter() - start
