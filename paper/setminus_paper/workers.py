"""Generators run in other processes, one thread each: what they give comes as it is there, and one may die alone."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

__all__ = ["Failed", "one_thread", "spread"]

Task = TypeVar("Task")
Item = TypeVar("Item")
Work = Callable[[Task], Iterable[Item]]
Outcomes = Generator[tuple[int, "Item | Failed"], None, None]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Failed:
    """Why a task ended before its time: the error in one line, and where it came from."""

    error: str
    trace: str = ""


def spread(work: Work[Task, Item], tasks: Sequence[Task], processes: int) -> Outcomes[Item]:
    """What `work` gives for each task, with the place of the task, in the order in which it comes.

    A task that raises, or whose process dies, ends with a `Failed`; the others go on.

    Parameters
    ----------
    work : callable
        From a task to an iterable of items. With more processes than one, a function of a module or a partial of one.
    tasks : sequence
    processes : int
        1 stays in this process.

    Yields
    ------
    (int, item or Failed)

    Examples
    --------
    >>> [*spread(range, [2, 1], 1)]
    [(0, 0), (0, 1), (1, 0)]
    >>> [*spread(lambda task: [1 // task], [0, 1], 1)][0][1].error
    'ZeroDivisionError: integer division or modulo by zero'
    """
    if processes == 1:
        return _here(work, tasks)
    return _elsewhere(work, tasks, processes)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep numerical libraries, here and in processes that are started meanwhile, to one thread each."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in THREADS}
    # for libraries that are loaded later, and in other processes
    os.environ.update(dict.fromkeys(THREADS, "1"))
    torch = sys.modules.get("torch")
    torch_threads = torch.get_num_threads() if torch else 1
    try:
        with threadpool_limits(1):
            if torch:
                torch.set_num_threads(1)
            yield
    finally:
        if torch:
            torch.set_num_threads(torch_threads)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _here(work: Work[Task, Item], tasks: Sequence[Task]) -> Outcomes[Item]:
    for place, task in enumerate(tasks):
        try:
            for item in work(task):
                yield place, item
        except Exception as error:
            yield place, _failed(error)


def _elsewhere(work: Work[Task, Item], tasks: Sequence[Task], processes: int) -> Outcomes[Item]:
    waiting = [*enumerate(tasks)][::-1]
    idle: list[_Worker[Task]] = []
    busy: dict[Any, tuple[_Worker[Task], int]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                worker = idle.pop() if idle else _Worker(work)
                place, task = waiting.pop()
                busy[worker.connection] = worker, place
                worker.connection.send(task)
            for connection in wait([*busy]):
                worker, place = busy[connection]
                try:
                    goes_on, value = worker.connection.recv()
                except (EOFError, OSError):
                    del busy[connection]
                    yield place, Failed(f"its process ended with exit code {worker.stop()}")
                    continue
                if not goes_on:
                    del busy[connection]
                    idle.append(worker)
                if goes_on or value is not None:
                    yield place, value
    finally:
        for worker in (*idle, *(worker for worker, _ in busy.values())):
            worker.stop()


class _Worker(Generic[Task]):
    """A process that waits for tasks at the other end of a connection."""

    def __init__(self, work: Work[Task, Any]):
        # never forked: a copy of a process that has threads may wait for ever
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, theirs))
        self.process.start()
        # else the end of the process would not be the end of the connection
        theirs.close()

    def stop(self) -> int | None:
        """End the process; gives its exit code."""
        self.process.terminate()
        self.process.join()
        self.connection.close()
        return self.process.exitcode


def _serve(work: Work[Any, Any], connection: Connection[Any, Any]) -> None:
    """Answer each task with (True, item) for each of its items, then (False, why it failed or None)."""
    # an interrupt reaches the whole group; the first process decides what becomes of the others
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what libraries say of themselves would stand between the lines of the first process
    logging.disable(logging.INFO)
    while True:
        failed = None
        try:
            for item in work(connection.recv()):
                connection.send((True, item))
        except (EOFError, BrokenPipeError):
            # nobody listens any more
            return
        except Exception as error:
            failed = _failed(error)
        connection.send((False, failed))


def _failed(error: Exception) -> Failed:
    return Failed(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))
