"""The runner: a config and its seeds in, one record per seed out, measured in one or several processes."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from setminus.errors import UserError
from setminus.progress import tracked
from setminus.records import Record, append_record, read_records, versions

if TYPE_CHECKING:
    from setminus.nn.training import Observer, Outcome, Task, TrainingConfig

__all__ = [
    "FailedRunsError",
    "Machine",
    "Measure",
    "Run",
    "Scale",
    "current_machine",
    "execute",
    "on",
    "source_commit",
    "steps_here",
    "train_on_machine",
    "train_run",
]

Scale = Literal["quick", "large", "paper"]
"""Sizes for minutes on two cores, for nights on them, or the paper's. Most experiments have no large one."""
Measure = Callable[[tuple[int, ...]], Iterable[dict[str, Any]]]
Work = Callable[[Any], Iterable[Any]]
Outcomes = Generator[tuple[int, Any], None, None]
"""The place of a task, and one of its items or a `Failure`."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Machine:
    """Where runs are computed.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "mps"}
    devices : int
        Processes of one training, one on each device.
    threads : int
        Of each process.
    steps : int, optional
        Largest number of steps of a training, to try a plan out.
    checkpoints : Path, optional
        Where trainings are kept while they go on, to be resumed after a stop.
    """

    device: str = "cpu"
    devices: int = 1
    threads: int = 1
    steps: int | None = None
    checkpoints: Path | None = None

    @property
    def kind(self) -> str:
        """The device that "auto" means here, or the one that was named."""
        if self.device != "auto":
            return self.device
        from setminus.nn.passes import pick_device

        return pick_device("auto")


ONE_THREAD = Machine()
"""One thread of the processor."""
_MACHINE: ContextVar[Machine] = ContextVar("machine", default=ONE_THREAD)
CHECKPOINT_EVERY = 250
"""Steps."""


@contextmanager
def on(machine: Machine) -> Iterator[None]:
    """Within it, `train_run` and `train_on_machine` compute on this machine."""
    before = _MACHINE.set(machine)
    try:
        yield
    finally:
        _MACHINE.reset(before)


def steps_here(steps: int) -> int:
    """A number of steps, or the largest one of the machine."""
    most = current_machine().steps
    return steps if most is None else min(steps, most)


def current_machine() -> Machine:
    """The machine of the run that goes on."""
    return _MACHINE.get()


def train_run(
    task: Task,
    name: str = "",
    *,
    observers: Sequence[Observer] = (),
    begin: Callable[[Path, TrainingConfig], object] | None = None,
    **settings: Any,
) -> tuple[Outcome, str]:
    """Train a task on the machine of the run; `settings` are those of `setminus.nn.training.TrainingConfig`.

    `name` is the seed, or a path that begins with it, where a training is to be kept while it goes on. `begin` may put
    the checkpoint of another training, with which this one begins, into the folder that it is called with.

    Returns
    -------
    outcome : Outcome
    precision : str
        That of the settings, or the quickest of the device, if they have None.
    """
    from setminus.nn.checkpoints import has_checkpoint
    from setminus.nn.passes import fast_precision
    from setminus.nn.training import TrainingConfig

    machine = current_machine()
    if settings.get("precision", "") is None:
        settings["precision"] = fast_precision(machine.kind)
    folder = machine.checkpoints / name if machine.checkpoints and name else None
    config = TrainingConfig(**settings, checkpoint_every=CHECKPOINT_EVERY if folder else 0)
    if begin is not None and folder is not None and not has_checkpoint(folder):
        begin(folder, config)
    return train_on_machine(task, config, folder=folder, resume=True, observers=observers), config.precision


def train_on_machine(task: Task, config: TrainingConfig, **options: Any) -> Outcome:
    """`setminus.nn.training.train` with the device, the threads and the largest number of steps of the machine."""
    from setminus.nn.training import train

    machine = current_machine()
    config = replace(
        config,
        steps=steps_here(config.steps),
        accelerator=machine.kind,
        devices=machine.devices,
        threads=machine.threads,
    )
    return train(task, config, **options)


@dataclass(frozen=True)
class Run:
    """One configuration of an experiment, for some seeds.

    `config` is plain JSON that identifies the run, without the seed. `measure` maps the seeds to their metrics (plain
    JSON), one dictionary for each seed, in order; a generator yields each as soon as it is measured. It is a function
    of a module, or a partial of one, because other processes load it, and the metrics of a seed must not depend on the
    other seeds. `precision` is that of the arithmetic, unless the metrics have that key.

    Examples
    --------
    >>> run = Run("coin", {"scale": "quick"}, (0, 1), lambda seeds: [{"heads": seed % 2} for seed in seeds])
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = execute([run], Path(folder, "records.jsonl"))
    >>> [record["metrics"]["heads"] for record in found]
    [0, 1]
    """

    name: str
    config: dict[str, Any]
    seeds: tuple[int, ...]
    measure: Measure
    precision: str = "float64"
    machine: Machine = ONE_THREAD

    def record_keys(self) -> list[str]:
        """What identifies the record of each seed."""
        return [_key({"name": self.name, "config": self.config, "seed": seed}) for seed in self.seeds]


@dataclass(frozen=True)
class Failure:
    """Why a task ended early: the error in one line, and its traceback."""

    error: str
    trace: str = ""


class FailedRunsError(UserError):
    """Some runs failed; all others were completed.

    Attributes
    ----------
    failures : list of str
        Each failed run with its error, in one line.
    """

    def __init__(self, failures: Sequence[str]):
        self.failures = list(failures)
        others = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        super().__init__(
            f"a run failed{others}: {self.failures[0].rstrip('.')}",
            do="What the others measured is kept: correct the cause and repeat the command.",
        )


def execute(
    runs: Sequence[Run],
    records: Path,
    *,
    jobs: int = 1,
    job: str = "laboratory",
    command: str = "",
    claim: str = "",
    machine: Machine = ONE_THREAD,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    """Measure the seeds that a file of records lacks; append the record of each as soon as it is measured.

    A seed that the file holds under the same name and config is not measured again. `jobs` is the number of processes,
    each with one thread; 1 stays in this process. `job` names the section of the page, `command` repeats the runs,
    `claim` is what they test, `machine` where they are computed. `failed` is called at once with the error and the
    traceback of a run that fails; the others continue, and a `FailedRunsError` ends the work.

    Returns
    -------
    list of dict
        The records of these runs as the file holds them, in the order of the runs and their seeds. Each has the
        config, seed, metrics and seconds, and the versions, commit and precision that it was measured with.
    """
    if jobs < 1:
        raise UserError(f"jobs is {jobs}, but at least one process has to work", do="give 1 or more.")
    if machine.steps is not None:
        # never to be mistaken for the whole run
        runs = [replace(run, config={**run.config, "steps_at_most": machine.steps}) for run in runs]
    wanted = list(dict.fromkeys(key for run in runs for key in run.record_keys()))
    runs = [replace(run, machine=machine) for run in runs]
    parts = _missing_parts(runs, {_key(record) for record in _existing(records)}, jobs)
    installed = versions(*(["torch"] if find_spec("torch") else []))
    shared = {"job": job, "versions": installed, "commit": source_commit(), "command": command, "claim": claim}
    failures = []
    names = ", ".join(dict.fromkeys(run.name for run in runs))
    with (
        tracked(names, total=len(wanted), unit="runs") as progress,
        one_thread(),
        closing(spread(_measured, parts, max(min(jobs, len(parts)), 1))) as outcomes,
    ):
        progress.advance(len(wanted) - sum(len(part.seeds) for part in parts))
        for place, outcome in outcomes:
            run = parts[place]
            if not isinstance(outcome, Failure):
                seed, metrics, seconds = outcome
                about = {"name": run.name, "config": run.config, "seed": seed, **shared}
                about["precision"] = metrics.get("precision", run.precision)
                try:
                    append_record(records, {**about, "metrics": metrics, "seconds": seconds})
                except (TypeError, ValueError) as error:
                    # a number that JSON does not have, for example
                    outcome = Failure(str(error))
                else:
                    progress.advance()
                    _forget(_of_run(run).checkpoints, seed)
                    continue
            failures.append(f"{run.name} {json.dumps(run.config)}, seeds {_listed(run.seeds)}: {outcome.error}")
            failed(failures[-1], outcome.trace)
    if failures:
        raise FailedRunsError(failures)
    found = {_key(record): record for record in _existing(records)}
    return [found[key] for key in wanted]


def source_commit() -> str:
    """The commit of this package's source, with "-dirty" where files differ from it; "unknown" outside a checkout."""
    git, here = shutil.which("git"), Path(__file__).parent

    def answer(*arguments: str) -> str:
        asked = [str(git), "-C", str(here), *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()

    # an installed copy may lie inside another project's checkout
    if git and answer("ls-files", Path(__file__).name):
        return answer("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or "unknown"
    return "unknown"


def spread(work: Work, tasks: Sequence[Any], processes: int) -> Outcomes:
    """Run ``work(task)`` for each task, and yield its items as they come, with the place of the task.

    A task that raises, or whose process dies, ends with a `Failure`; the others continue. With several processes,
    `work` is a function of a module or a partial of one.

    Examples
    --------
    >>> [*spread(range, [2, 1], 1)]
    [(0, 0), (0, 1), (1, 0)]
    >>> [*spread(lambda task: [1 // task], [0, 1], 1)][0][1].error
    'ZeroDivisionError: integer division or modulo by zero'
    """
    return _in_this_process(work, tasks) if processes == 1 else _in_processes(work, tasks, processes)


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict numerical libraries, here and in processes started meanwhile, to one thread each."""
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


def _measured(run: Run) -> Iterator[tuple[int, dict[str, Any], float]]:
    """Each seed of a run with its metrics and its seconds; seeds measured together count on the first."""
    start = time.perf_counter()
    left = list(run.seeds)
    with on(_of_run(run)):
        measured = iter(run.measure(run.seeds))
    while True:
        # not across the yield: a generator and its caller share the context
        with on(_of_run(run)):
            metrics = next(measured, None)
        if metrics is None:
            break
        if not left:
            raise UserError(f"it measured more than its {len(run.seeds)} seeds", do="give one dictionary for each.")
        yield left.pop(0), metrics, round(time.perf_counter() - start, 4)
        start = time.perf_counter()
    if left:
        raise UserError(f"it measured nothing for the seeds {_listed(left)}", do="give one dictionary for each.")


def _of_run(run: Run) -> Machine:
    """The machine of a run, whose checkpoints have a separate folder."""
    if run.machine.checkpoints is None:
        return run.machine
    digest = hashlib.sha256(json.dumps([run.name, run.config], sort_keys=True).encode()).hexdigest()
    return replace(run.machine, checkpoints=run.machine.checkpoints / digest[:16])


def _forget(checkpoints: Path | None, seed: int) -> None:
    """Remove what was kept of a seed, and folders that this leaves empty."""
    if checkpoints is not None:
        shutil.rmtree(checkpoints / str(seed), ignore_errors=True)
        for folder in (checkpoints, checkpoints.parent):
            with suppress(OSError):
                folder.rmdir()


def _missing_parts(runs: Sequence[Run], known: set[str], jobs: int) -> list[Run]:
    """The unmeasured seeds of each run, split where there are fewer runs than processes."""
    missing = []
    for run in runs:
        seeds = [seed for seed, key in zip(run.seeds, run.record_keys(), strict=True) if key not in known]
        known |= {*run.record_keys()}
        if seeds:
            missing.append(replace(run, seeds=tuple(dict.fromkeys(seeds))))
    splits = -(-jobs // len(missing)) if missing else 1
    parts = []
    for run in missing:
        size = -(-len(run.seeds) // splits)
        starts = range(0, len(run.seeds), size)
        parts += [replace(run, seeds=run.seeds[start : start + size]) for start in starts]
    return parts


def _key(record: Record) -> str:
    return json.dumps([record["name"], record["config"], record["seed"]], sort_keys=True)


def _existing(records: Path) -> list[Record]:
    return read_records(records) if records.exists() else []


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _in_this_process(work: Work, tasks: Sequence[Any]) -> Outcomes:
    for place, task in enumerate(tasks):
        try:
            for item in work(task):
                yield place, item
        except Exception as error:
            yield place, _failure(error)


def _in_processes(work: Work, tasks: Sequence[Any], processes: int) -> Outcomes:
    waiting = [*enumerate(tasks)][::-1]
    idle: list[_Worker] = []
    busy: dict[Any, tuple[_Worker, int]] = {}
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
                    continues, value = worker.connection.recv()
                except (EOFError, OSError):
                    del busy[connection]
                    yield place, Failure(f"its process ended with exit code {worker.stop()}")
                    continue
                if not continues:
                    del busy[connection]
                    idle.append(worker)
                if continues or value is not None:
                    yield place, value
    finally:
        for worker in (*idle, *(worker for worker, _ in busy.values())):
            worker.stop()


class _Worker:
    """A process that waits for tasks at the other end of a connection."""

    def __init__(self, work: Work):
        # never forked: a copy of a process that has threads may wait for ever
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, theirs))
        self.process.start()
        # otherwise the end of the process would not be the end of the connection
        theirs.close()

    def stop(self) -> int | None:
        """End the process and return its exit code."""
        self.process.terminate()
        self.process.join()
        self.connection.close()
        return self.process.exitcode


def _serve(work: Work, connection: Connection[Any, Any]) -> None:
    """Answer each task with (True, item) for each of its items, then (False, its failure or None)."""
    # an interrupt reaches the whole group; the first process decides about the others
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # log lines of libraries would appear between the lines of the first process
    logging.disable(logging.INFO)
    while True:
        failure = None
        try:
            for item in work(connection.recv()):
                connection.send((True, item))
        except (EOFError, BrokenPipeError):
            # the first process is gone
            return
        except Exception as error:
            failure = _failure(error)
        connection.send((False, failure))


def _failure(error: Exception) -> Failure:
    return Failure(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))
