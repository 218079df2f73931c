"""Runs of an experiment: each seed is measured once, written down at once, and found again after a stop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from setminus.errors import UserError
from setminus.progress import tracked
from setminus.records import Record, append_record, read_records, versions
from setminus_paper.workers import Failed, one_thread, spread

__all__ = ["FailedRunsError", "Measure", "Run", "execute"]

Measure = Callable[[tuple[int, ...]], Iterable[dict[str, Any]]]


@dataclass(frozen=True)
class Run:
    """One configuration of an experiment, for some seeds.

    Attributes
    ----------
    name : str
        The experiment, as in ``setminus reproduce NAME``.
    config : dict
        Plain JSON that identifies the run, without the seed.
    seeds : tuple of int
    measure : callable
        From the seeds to the metrics (plain JSON), one dictionary for each seed, in order; a generator
        gives each as soon as it is there. A function of a module, or a partial of one: it goes to other processes.
        What it measures for a seed must not depend on the other seeds, which may be recorded already.

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


class FailedRunsError(UserError):
    """Some runs failed, after all others were done.

    Attributes
    ----------
    failures : tuple of str
        What failed and why, each in one line.
    """

    def __init__(self, failures: Sequence[str]):
        others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        super().__init__(
            f"a run failed{others}: {failures[0].rstrip('.')}",
            do="what the others measured is kept: remove the cause and repeat the command for the rest.",
        )
        self.failures = tuple(failures)
        self.args = (self.failures,)


def execute(
    runs: Sequence[Run],
    records: Path,
    *,
    jobs: int = 1,
    job: str = "laboratory",
    command: str = "",
    claim: str = "",
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    """Measure what a file of records lacks, adding one record for each seed as soon as it is there.

    Parameters
    ----------
    runs : sequence of Run
    records : Path
        The file; a seed that it holds under the same name and config is not measured again.
    jobs : int
        Processes, each with one thread; 1 stays in this one.
    job : str
        Which section of a page shows the records.
    command : str
        What a user types to repeat the runs.
    claim : str
        What the runs are to show, for whoever reads the records.
    failed : callable
        Called at once with what failed and why, and with a traceback; the other runs go on.

    Returns
    -------
    list of dict
        The records of these runs as the file holds them, in the order of the runs and their seeds.

    Raises
    ------
    FailedRunsError
        When all the others are done, if any run failed.
    """
    if jobs < 1:
        raise UserError(f"jobs is {jobs}, but at least one process has to work", do="give 1 or more.")
    wanted = list(dict.fromkeys(key for run in runs for key in _keys(run)))
    pieces = _pieces(runs, {_key(record) for record in _existing(records)}, jobs)
    shared = {"job": job, "versions": _versions(), "command": command, "claim": claim}
    processes = max(min(jobs, len(pieces)), 1)
    failures = []
    names = ", ".join(dict.fromkeys(run.name for run in runs))
    with (
        tracked(names, total=len(wanted), unit="runs") as progress,
        one_thread(),
        closing(spread(_measured, pieces, processes)) as outcomes,
    ):
        progress.advance(len(wanted) - sum(len(piece.seeds) for piece in pieces))
        for place, outcome in outcomes:
            run = pieces[place]
            if not isinstance(outcome, Failed):
                seed, metrics, seconds = outcome
                try:
                    append_record(records, {**_about(run, seed), **shared, "metrics": metrics, "seconds": seconds})
                except (TypeError, ValueError) as error:
                    # a number that JSON does not have, for example
                    outcome = Failed(str(error))
                else:
                    progress.advance()
                    continue
            failures.append(f"{run.name} {json.dumps(run.config)}, seeds {_listed(run.seeds)}: {outcome.error}")
            failed(failures[-1], outcome.trace)
    if failures:
        raise FailedRunsError(failures)
    found = {_key(record): record for record in _existing(records)}
    return [found[key] for key in wanted]


def _measured(run: Run) -> Iterator[tuple[int, dict[str, Any], float]]:
    """Each seed of a run with its metrics and the seconds since the one before.

    A run that measures all seeds together puts the time of all on the first.
    """
    start = time.perf_counter()
    left = list(run.seeds)
    for metrics in run.measure(run.seeds):
        if not left:
            raise UserError(f"it measured more than its {len(run.seeds)} seeds", do="give one dictionary for each.")
        yield left.pop(0), metrics, round(time.perf_counter() - start, 4)
        start = time.perf_counter()
    if left:
        raise UserError(f"it measured nothing for the seeds {_listed(left)}", do="give one dictionary for each.")


def _pieces(runs: Sequence[Run], known: set[str], jobs: int) -> list[Run]:
    """What is left of each run, cut in parts where there are fewer runs than processes."""
    missing = []
    for run in runs:
        seeds = []
        for seed, key in zip(run.seeds, _keys(run), strict=True):
            if key not in known:
                known.add(key)
                seeds.append(seed)
        if seeds:
            missing.append(Run(run.name, run.config, tuple(seeds), run.measure))
    parts = -(-jobs // len(missing)) if missing else 1
    pieces = []
    for run in missing:
        size = -(-len(run.seeds) // parts)
        for first in range(0, len(run.seeds), size):
            pieces.append(Run(run.name, run.config, run.seeds[first : first + size], run.measure))
    return pieces


def _about(run: Run, seed: int) -> Record:
    return {"name": run.name, "config": run.config, "seed": seed}


def _keys(run: Run) -> list[str]:
    return [_key(_about(run, seed)) for seed in run.seeds]


def _key(record: Record) -> str:
    return json.dumps([record["name"], record["config"], record["seed"]], sort_keys=True)


def _existing(records: Path) -> list[Record]:
    return read_records(records) if records.exists() else []


def _versions() -> dict[str, str]:
    return versions(*(["torch"] if find_spec("torch") else []))


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
