"""The mutants that are made and not made, the tests that are run for them, and the score."""

import py_compile
import sys
import time
import tomllib

import pytest
from scipy.stats import binomtest

from benchmarks.mutant_runs import Covered, in_fork, outcome
from benchmarks.mutants import KNOWN, drawn, reasons, summary, wilson

SOURCE = b"""
from typing import cast

__all__ = ["half"]
LIMIT = 3
Number = float


def half(x: int | None = 4) -> float:
    if x is None or x > LIMIT:
        raise ValueError(f"x is {x}: " "expected less.")
    word = "a-key"
    text = "words for people"
    return cast(float, (x / 2)) + sum(a for a, _ in zip([1], [2], strict=True))
"""


REST = " + sum(a for a, _ in zip([1], [2], strict=True))"


@pytest.fixture(scope="module")
def mutants():
    pytest.importorskip("mutmut", reason="make mutants installs it")
    from benchmarks.mutations import mutants_of

    return mutants_of("src/setminus/core/half.py", SOURCE)


def test_each_mutant_is_one_change_that_python_reads(mutants):
    sources = [mutant.source(SOURCE) for mutant in mutants]
    assert len(set(sources)) == len(sources) > 10
    for mutant, source in zip(mutants, sources, strict=True):
        compile(source, "half.py", "exec")
        assert mutant.before in SOURCE.decode() and mutant.after in source.decode()
    changes = {(mutant.before.strip(), mutant.after.strip()) for mutant in mutants}
    assert (f"return cast(float, (x / 2)){REST}", f"return cast(float, (x * 2)){REST}") in changes
    assert ("LIMIT = 3", "LIMIT = 4") in changes
    assert ('word = "a-key"', 'word = "XXa-keyXX"') in changes


def test_text_types_and_names_are_left_alone(mutants):
    changed = " ".join(mutant.after for mutant in mutants)
    for kept in ("XXexpected", "XXwords", "XXhalf", "Number = None", "cast(None", "-> None", "strict=False", "[2])"):
        assert kept not in changed


def test_an_argument_is_changed_in_one_way(mutants):
    from benchmarks.mutations import mutants_of

    found = {mutant.after for mutant in mutants_of("a.py", b"f(x, y, key=z)\ng(key=z)\nh(x)\n")}
    assert found == {"f(None, y, key=z)", "f(x, None, key=z)", "f(x, y, )", "g(key=None)", "h(None)"}


def test_lines_are_those_that_run_with_the_change(mutants):
    by_change = {mutant.after: mutant.lines for mutant in mutants}
    assert set(by_change[f"return cast(float, (x / 3)){REST}"]) == {14}
    assert by_change["LIMIT = 4"] == ()
    # a default is set when the function is made
    assert by_change["def half(x: int | None = 5) -> float:"] == ()


def test_tests_that_touch_the_line_come_first_and_quick_ones_before_slow():
    seconds = {f"tests/core/test_{name}.py::test": cost for name, cost in [("a", 3), ("b", 2), ("c", 1), ("half", 0)]}
    path = "src/setminus/core/half.py"
    by_line = {path: {"7": ["tests/core/test_a.py::test", "tests/core/test_b.py::test"], "8": []}}
    covered = Covered(seconds, by_line, [])
    names = [test[16:-9] for test in covered.tests_for(path, [7, 8])]
    assert names == ["b", "a", "half"]
    assert [test[16:-9] for test in covered.tests_for(path, [8])] == ["half"]
    assert covered.tests_for(path, ()) == covered.tests_for(path, [7])
    tests = covered.tests_for(path, [7])
    assert covered.within(tests, None) == tests and covered.within(tests, 4) == [tests[0], tests[-1]]


def test_a_process_that_hangs_is_ended_and_one_that_fails_says_so():
    start = time.monotonic()
    assert in_fork(lambda: time.sleep(60), 0.2) is None
    assert time.monotonic() - start < 30
    assert in_fork(lambda: 0, 30) == 0 and in_fork(lambda: 5, 30) == 5


def test_a_tree_notices_what_its_tests_notice_and_is_left_as_it_was(monkeypatch, tmp_path):
    # a busy machine takes three seconds to report a failure
    monkeypatch.setattr("benchmarks.mutant_runs.PATIENCE", 8)
    (tmp_path / "src/setminus").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "tests").mkdir()
    file = tmp_path / "src/setminus/half.py"
    file.write_text("def half(x):\n    return x / 2\n")
    py_compile.compile(str(file))
    (tmp_path / "tests/test_half.py").write_text(
        "from setminus.half import half\n\n\ndef test_half():\n    assert half(4) == 2\n"
    )
    (tmp_path / "src/setminus/__init__.py").write_text("")
    tests = ["tests/test_half.py::test_half"]
    covered = Covered({tests[0]: 0.01}, {}, [])

    def judged(new):
        return outcome("src/setminus/half.py", lambda source: source.replace(b"x / 2", new), tests, covered, tmp_path)

    def in_clean_process():
        # this process has imported setminus: a mutant would not be seen
        for name in [name for name in sys.modules if name.partition(".")[0] == "setminus"]:
            del sys.modules[name]
        # the last one waits and uses no processor
        changes = (b"x * 2", b"x / 2.0", b"half(x)", b"__import__('time').sleep(100)")
        return [judged(change) for change in changes] != ["killed", "survived", "killed", "timeout"]

    assert in_fork(in_clean_process, 120) == 0
    assert file.read_text() == "def half(x):\n    return x / 2\n"


def test_score_and_interval():
    outcomes = {str(i): "survived" if i < 20 else "timeout" if i < 25 else "killed" for i in range(400)}
    record = summary("core", outcomes, 1000, 400, 7)
    assert (
        record["score"] == 0.95 and record["killed"] == 375 and record["timeout"] == 5 and "seed 7" in record["drawn"]
    )
    reference = binomtest(380, 400).proportion_ci(method="wilson")
    assert record["interval"] == pytest.approx((reference.low, reference.high)) == wilson(380, 400)
    assert summary("core", outcomes, 400, 0, 0)["interval"] is None


def test_a_sample_is_the_same_for_the_same_seed_and_in_order():
    assert drawn(list(range(100)), 10, 1) == drawn(list(range(100)), 10, 1) == sorted(drawn(list(range(100)), 10, 1))
    assert drawn(list(range(100)), 10, 1) != drawn(list(range(100)), 10, 2)
    assert drawn([1, 2], 10, 1) == [1, 2]


def test_each_known_survivor_has_one_reason():
    known = tomllib.loads(KNOWN.read_text())
    assert set(known) <= {"equivalent", "accepted"}
    names = [name for kind in known.values() for group in kind for name in group["mutants"]]
    assert len(set(names)) == len(names) == sum(len(reasons(known, kind)) for kind in known)
    assert all(group["reason"] for kind in known.values() for group in kind)
