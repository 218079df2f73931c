"""Progress of long work, as events that a display may render; without a listener they go nowhere.

The library wraps its work in `tracked`; a command listens with `listen`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

__all__ = ["Event", "Listener", "Work", "listen", "seconds_by_name", "tracked"]


@dataclass(frozen=True)
class Event:
    """What happened to a piece of work.

    Attributes
    ----------
    kind : {"started", "advanced", "finished", "failed"}
        Work fails where an exception leaves it.
    name : str
    depth : int
        The number of pieces of work that it is part of.
    done : int
    total : int or None
        How many units there are, where that is known.
    unit : str
        What is counted, in the plural: "rows", "steps".
    seconds : float
        Since it started.
    detail : str
        More about its state, such as the losses of a training.
    """

    kind: Literal["started", "advanced", "finished", "failed"]
    name: str
    depth: int = 0
    done: int = 0
    total: int | None = None
    unit: str = ""
    seconds: float = 0.0
    detail: str = ""


Listener = Callable[[Event], object]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_depth: ContextVar[int] = ContextVar("depth", default=0)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call `listener` with each event of the block.

    Parameters
    ----------
    listener : callable
        Takes an `Event`.

    Examples
    --------
    >>> with listen(lambda event: print(event.kind, event.name, event.done, event.total)):
    ...     with tracked("fit", total=2) as fits:
    ...         fits.advance()
    started fit 0 2
    advanced fit 1 2
    finished fit 1 2
    """
    before = _listeners.get()
    _listeners.set((*before, listener))
    try:
        yield
    finally:
        _listeners.set(before)


class Work:
    """A piece of work that is under way; made by `tracked`."""

    name: str
    total: int | None
    unit: str
    depth: int
    done: int
    detail: str

    def __init__(self, name: str, total: int | None, unit: str, depth: int):
        self.name, self.total, self.unit, self.depth = name, total, unit, depth
        self.done, self.detail = 0, ""
        self.start: float = time.perf_counter()

    def advance(self, by: int = 1, detail: str = "") -> None:
        """Report that `by` more units are done."""
        self.done += by
        self.detail = detail or self.detail
        self._report("advanced")

    def _report(self, kind: Literal["started", "advanced", "finished", "failed"]) -> None:
        listeners = _listeners.get()
        if listeners:
            seconds = time.perf_counter() - self.start
            event = Event(kind, self.name, self.depth, self.done, self.total, self.unit, seconds, self.detail)
            for listener in listeners:
                listener(event)


@contextmanager
def tracked(name: str, total: int | None = None, unit: str = "") -> Iterator[Work]:
    """Report the start, the advance and the end of the work in the block.

    Parameters
    ----------
    name : str
        What is done, for a user to read.
    total : int, optional
        How many units of work there are.
    unit : str
        What is counted, in the plural.

    Yields
    ------
    Work
        Its ``advance()`` reports one more unit.
    """
    depth = _depth.get()
    work = Work(name, total, unit, depth)
    work._report("started")
    _depth.set(depth + 1)
    try:
        yield work
    except BaseException:
        work._report("failed")
        raise
    else:
        work._report("finished")
    finally:
        _depth.set(depth)


@contextmanager
def seconds_by_name() -> Iterator[dict[str, float]]:
    """The seconds of the work that finishes in the block, by name; work within other work of the block is left out.

    Examples
    --------
    >>> with seconds_by_name() as seconds:
    ...     with tracked("read"), tracked("decode"):
    ...         pass
    >>> list(seconds)
    ['read']
    """
    seconds: dict[str, float] = {}
    depth = _depth.get()

    def note(event: Event) -> None:
        if event.kind == "finished" and event.depth == depth:
            seconds[event.name] = event.seconds

    with listen(note):
        yield seconds
