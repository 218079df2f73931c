"""The command in forks of one process that has imported everything: 0.1 s instead of 2 s for each.

A fork may crash, hang, fill its memory or be killed, and nothing of it remains for the next one.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).parents[2]
MEMORY = 16 << 30
"""Bytes of addresses: a table that asks for more ends in a MemoryError, not in a machine without memory."""
SECONDS = 60
IMPORTS = (
    "setminus.commands.terminal setminus.commands.scored_columns setminus.scale.scoring setminus.auditing.audit "
    "setminus.estimators.tuned setminus.report.page sklearn.ensemble skops.io jinja2"
)
WARM_UP = "from setminus.report.page import vega_script; vega_script()"
TORCH_IMPORTS = "setminus.adaptation.adapter setminus.transfer.fitting PIL.Image"


@dataclass(frozen=True)
class Job:
    """One run of the command, and what goes wrong meanwhile."""

    argv: tuple[str, ...]
    folder: str
    kill_after: float | None = None  # seconds
    file_size: int | None = None  # bytes, beyond which a write fails as on a full disk
    fresh: bool = False  # a process of its own, which imports for itself
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What came of it; the code is negative for a signal, None for a run that did not end."""

    code: int | None
    out: str
    err: str


class Forks:
    """A server of forks, as a context; with `torch` it is ready for the commands with networks, too."""

    def __init__(self, torch=True):
        self.imports = [*IMPORTS.split(), *(TORCH_IMPORTS.split() if torch else [])]

    def __enter__(self):
        # bundling the script of the page takes threads, which do not survive a fork: have it cached before
        subprocess.run([sys.executable, "-c", WARM_UP], cwd=PROJECT, check=True)
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.forks", *self.imports],
            cwd=PROJECT,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *error):
        self.server.stdin.close()
        self.server.wait()

    def run(self, *jobs):
        """Run jobs at the same time; what came of each."""
        self.server.stdin.write(json.dumps([vars(job) for job in jobs]) + "\n")
        self.server.stdin.flush()
        return [Done(*one) for one in json.loads(self.server.stdout.readline())]


def _serve():
    # the forks print to files of their own: the pipe is for answers
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in sys.argv[1:]:
        importlib.import_module(name)
    _build_once()
    gc.freeze()
    for line in questions:
        jobs = [Job(**job) for job in json.loads(line)]
        codes = _waited(jobs, [_started(job, n) for n, job in enumerate(jobs)])
        _learn(name for n, job in enumerate(jobs) for name in _said(job, n, "modules").split())
        said = [[_said(job, n, name) for name in ("stdout", "stderr")] for n, job in enumerate(jobs)]
        answers.write(json.dumps([(codes[n], *texts) for n, texts in enumerate(said)]) + "\n")
        answers.flush()


def _build_once():
    """Make typer's commands here: each fork would make the same ones."""
    import typer.main

    from setminus.commands import build_app

    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(build_app())


def _learn(names):
    """Import what a fork had to import for itself, so that the next ones need not."""
    new = [name for name in names if name not in sys.modules]
    for name in new:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if new:
        gc.freeze()


def _started(job, number):
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _command(job, number)
        finally:
            os._exit(code)
    return pid


def _command(job, number):
    """The fork itself: set its place and limits, and call the command."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{job.folder}.{number}.{name}", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), stream)
    os.chdir(job.folder)
    os.environ.update(job.env)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if job.file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job.file_size, job.file_size))
    if job.fresh:
        os.execv(sys.executable, [sys.executable, "-c", "from setminus.commands import main; main()", *job.argv])
    from setminus.commands import main

    known = {*sys.modules}
    sys.argv = ["setminus", *job.argv]
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    if job.file_size is None:
        Path(f"{job.folder}.{number}.modules").write_text("\n".join(name for name in sys.modules if name not in known))
    return code


def _waited(jobs, pids):
    start, codes = time.monotonic(), {}
    while len(codes) < len(jobs):
        for n in set(range(len(jobs))) - codes.keys():
            kill_after = jobs[n].kill_after
            late = time.monotonic() - start > (SECONDS if kill_after is None else kill_after)
            # not yet buried: as long as it is not, its number is no other process
            if late or os.waitid(os.P_PID, pids[n], os.WEXITED | os.WNOHANG | os.WNOWAIT):
                os.kill(pids[n], signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):
                    # also what it may have started itself
                    os.killpg(pids[n], signal.SIGKILL)
                code = os.waitstatus_to_exitcode(os.waitpid(pids[n], 0)[1])
                codes[n] = None if late and kill_after is None else code
        time.sleep(0.003)
    return codes


def _said(job, number, name):
    file = Path(f"{job.folder}.{number}.{name}")
    text = file.read_bytes().decode(errors="surrogateescape") if file.exists() else ""
    file.unlink(missing_ok=True)
    return text


if __name__ == "__main__":
    _serve()
