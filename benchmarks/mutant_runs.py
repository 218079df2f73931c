"""A mutant in the place of its file, and the tests that may notice it, in a process of their own.

The tests run in a copy of the tree. They are run once without a mutant, which tells the lines that each of them runs
and what they import; what is not ours is then imported before the processes are forked, so that a run starts at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import math
import os
import py_compile
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Covered", "cover", "in_fork", "mirror", "outcome", "preload"]

COPIED = ("src", "paper", "tests", "benchmarks", "pyproject.toml", "README.md", "SECURITY.md")
OURS = ("setminus", "setminus_paper", "tests", "benchmarks", "__main__")
MEMORY = 12 << 30
"""Bytes of private memory of one run: a mutant that asks for more fails. Not of addresses: V8 reserves more of them."""

PATIENCE = 300
"""Seconds that a test may take beyond ten times its own: one that waits for ever uses no time of the processor."""

DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2): a run that is stopped leaves nothing behind."""

ENVIRONMENT = {
    "CI": "true",  # hypothesis draws the same examples each time and keeps none
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "agg",
}


@dataclass(frozen=True)
class Covered:
    """Which tests of a package run which lines, how long each takes, and the modules that all of them import."""

    seconds: dict[str, float]
    by_line: dict[str, dict[str, list[str]]]
    modules: list[str]

    def tests_for(self, path: str, lines: Sequence[int]) -> list[str]:
        """Names of tests that may notice a change of these lines, the quickest first; without lines, of the file.

        Examples
        --------
        >>> seconds = {"tests/core/test_a.py::one": 2.0, "tests/core/test_b.py::two": 1.0}
        >>> covered = Covered(seconds, {"src/setminus/core/a.py": {"7": ["tests/core/test_b.py::two"]}}, [])
        >>> covered.tests_for("src/setminus/core/a.py", [7])
        ['tests/core/test_b.py::two', 'tests/core/test_a.py::one']
        """
        in_file = self.by_line.get(path, {})
        tests = {test for line in (lines or in_file) for test in in_file.get(str(line), ())}
        # compiled code and other processes leave no trace, and a cached call only in the first test that makes it
        package, stem = Path(path).parts[-2], Path(path).stem
        beside = {test for test in self.seconds if test.startswith((f"tests/{package}/test_{stem}", f"{path}::"))}
        return sorted(tests, key=self.seconds.__getitem__) + sorted(beside - tests, key=self.seconds.__getitem__)

    def within(self, tests: Sequence[str], budget: float | None) -> list[str]:
        """The quickest of these tests that take no longer than `budget` seconds together, in the same order.

        Examples
        --------
        >>> Covered({"one": 2.0, "two": 9.0, "three": 1.0}, {}, []).within(["one", "two", "three"], 4)
        ['one', 'three']
        """
        if budget is None:
            return list(tests)
        quickest = sorted(tests, key=self.seconds.__getitem__)
        ends = accumulate(self.seconds[test] for test in quickest)
        fitting = {test for test, end in zip(quickest, ends, strict=True) if end <= budget}
        return [test for test in tests if test in fitting]


def mirror(root: Path, tree: Path) -> None:
    """Bring the copy up to date; files that are the same keep their time, and with it what was compiled of them."""
    wanted = [path for name in COPIED for path in [root / name, *(root / name).rglob("*")]]
    wanted = [path for path in wanted if path.is_file() and "__pycache__" not in path.parts]
    for path in wanted:
        other = tree / path.relative_to(root)
        if not other.exists() or other.read_bytes() != path.read_bytes():
            other.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, other)
        if path.suffix == ".py" and path.is_relative_to(root / "src"):
            py_compile.compile(str(other))
    names = {path.relative_to(root) for path in wanted}
    for other in list(tree.rglob("*.py")):
        if other.relative_to(tree) not in names:
            other.unlink()


def cover(package: str, store: Path, state: list[str], tree: Path) -> Covered:
    """Run the tests of a package without a mutant and note what they touch, unless `store` has it of this state."""
    if not store.exists() or json.loads(store.read_text())["state"] != state:
        print(f"{package}: running the tests once, to see which lines each runs", flush=True)
        if in_fork(lambda: _cover(package, store, state, tree), math.inf):
            raise SystemExit(f"the tests of {package} fail without a mutant: mend that first.")
    return Covered(**{key: value for key, value in json.loads(store.read_text()).items() if key != "state"})


def preload(modules: Iterable[str]) -> None:
    """Import what is not mutated once, so that each fork has it."""
    os.environ |= ENVIRONMENT
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if any(name.partition(".")[0] == "setminus" for name in sys.modules):
        raise RuntimeError("setminus was imported before the mutants: forks would not see them.")
    gc.freeze()


def outcome(path: str, change: Callable[[bytes], bytes], tests: Sequence[str], covered: Covered, tree: Path) -> str:
    """What becomes of a mutant: killed, survived, or timeout."""
    if not tests:
        return "survived"
    file = tree / path
    original, times = file.read_bytes(), file.stat()
    changed = change(original)
    compile(changed, path, "exec")  # what is no Python would count as noticed
    compiled = Path(importlib.util.cache_from_source(str(file)))
    kept = compiled.read_bytes()
    # seconds of the processor: how busy the machine is must not kill a mutant
    limit = 20 + math.ceil(5 * sum(covered.seconds[test] for test in tests))
    try:
        file.write_bytes(changed)
        compiled.unlink()
        code = in_fork(lambda: _pytest(tree, tests, [_Alarm(covered.seconds)], limit=limit), 20 * limit)
    finally:
        file.write_bytes(original)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        compiled.write_bytes(kept)
    return "timeout" if code in (None, -signal.SIGXCPU, -signal.SIGALRM) else "survived" if code == 0 else "killed"


def in_fork(work: Callable[[], int], seconds: float) -> int | None:
    """The exit code of `work` in a forked process and session of its own; None where it did not end in time.

    Examples
    --------
    >>> in_fork(lambda: 3, 10), in_fork(lambda: time.sleep(10), 0.1)
    (3, None)
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        code = 70
        try:
            code = int(work())
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end, pause = time.monotonic() + seconds, 0.005
    try:
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                return None
            time.sleep(pause)
            pause = min(0.1, pause * 1.5)
    finally:  # with whatever it has started
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _cover(package: str, store: Path, state: list[str], tree: Path) -> int:
    import coverage

    measured = coverage.Coverage(data_file=None, include=[f"{tree}/src/setminus/{package}/*"], config_file=False)
    recorder = _Recorder(measured)
    measured.start()
    code = _pytest(tree, [f"tests/{package}", f"src/setminus/{package}"], [recorder])
    measured.stop()
    data = measured.get_data()
    by_line: dict[str, dict[str, list[str]]] = {}
    for file in data.measured_files():
        lines = by_line[str(Path(file).relative_to(tree))] = {}
        for line, contexts in data.contexts_by_lineno(file).items():
            tests = {test for one in contexts for test in recorder.users.get(one, [one])}
            lines[str(line)] = sorted(tests & recorder.seconds.keys())
    modules = [name for name in sys.modules if name.partition(".")[0] not in OURS]
    covered = {"state": state, "seconds": recorder.seconds, "by_line": by_line, "modules": modules}
    if code == 0:
        store.write_text(json.dumps(covered))
    return code


def _pytest(tree: Path, tests: Sequence[str], plugins: Sequence[object] = (), *, limit: int | None = None) -> int:
    """Run these tests, in this order, in the copy; with a limit in seconds, and then in silence."""
    os.chdir(tree)
    os.environ |= ENVIRONMENT | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'paper'}"}
    sys.dont_write_bytecode = limit is not None
    sys.path[:0] = [str(tree / "src"), str(tree / "paper")]
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    arguments = ["-x", "-q", "-p", "no:cacheprovider", f"--rootdir={tree}", "-c", str(tree / "pyproject.toml"), *files]
    named = [test for test in tests if "::" in test]
    return int(pytest.main(arguments, plugins=[*plugins, _Order(named)] if named else list(plugins)))


class _Order:
    """Keeps the tests that are named, in that order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.at = {test: i for i, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((one for one in items if one.nodeid in self.at), key=lambda one: self.at[one.nodeid])


class _Alarm:
    """Ends the process at a test that takes far longer than it did without a mutant."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> None:
        signal.alarm(PATIENCE + math.ceil(10 * self.seconds[item.nodeid]))


class _Recorder:
    """Notes the lines that each test runs, with those of its file and of the shared fixtures that it asks for."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.users: dict[str, list[str]] = {}
        self.contexts = [""]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Any:
        # what a file of tests computes when it is imported is for all of its tests
        with self._within(f"file {collector.nodeid}"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.users.setdefault(f"file {item.nodeid.partition('::')[0]}", []).append(item.nodeid)
        for name in getattr(item, "fixturenames", ()):
            self.users.setdefault(f"fixture {name}", []).append(item.nodeid)
        start = time.perf_counter()
        with self._within(item.nodeid):
            result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        if fixturedef.scope == "function":
            return (yield)
        with self._within(f"fixture {fixturedef.argname}"):
            return (yield)

    @contextlib.contextmanager
    def _within(self, context: str) -> Any:
        self.contexts.append(context)
        self.coverage.switch_context(context)
        try:
            yield
        finally:
            self.contexts.pop()
            self.coverage.switch_context(self.contexts[-1])
