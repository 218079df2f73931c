"""A seed is measured once and written at once, whatever happens to the others."""

import logging
import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest
from setminus_paper import run as runner
from setminus_paper.run import FailedRunsError, Failure, Machine, Run, execute, source_commit, spread, train_run

from setminus.progress import listen
from setminus.records import read_records


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy" / "records.jsonl"


def run(toy, seeds, config=None, measure=None):
    return Run("toy", config or {}, tuple(seeds), measure or toy.measure)


def seeds(path):
    return sorted(record["seed"] for record in read_records(path))


def ended(group, seconds=5.0):
    """Whether all processes of a group end within some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_seed_has_one_record_with_everything_that_made_it(toy, path, jobs):
    config = {"scale": "quick", "sizes": [1, 2]}
    found = execute([run(toy, range(3), config)], path, jobs=jobs, command="setminus reproduce toy", claim="so")
    assert [record["seed"] for record in found] == [0, 1, 2]
    assert [record["metrics"]["value"] for record in found] == [0.5, 1.5, 2.5]
    for record in found:
        assert record["config"] == config
        assert (record["name"], record["job"], record["claim"]) == ("toy", "laboratory", "so")
        assert record["command"] == "setminus reproduce toy"
        assert {"python", "setminus", "numpy", "torch"} <= {*record["versions"]}
        assert record["commit"] == source_commit()
        assert record["precision"] == "float64"
        assert record["seconds"] >= 0
        assert (record["metrics"]["process"] == os.getpid()) == (jobs == 1)
    assert sorted(map(str, found)) == sorted(map(str, read_records(path)))


def test_one_run_is_shared_out_where_there_are_more_processes(toy, path):
    found = execute([run(toy, range(4), measure=partial(toy.measure, seconds=0.3))], path, jobs=2)
    assert len({record["metrics"]["process"] for record in found}) == 2


def test_what_is_recorded_is_not_measured_again(toy, path):
    execute([run(toy, [0, 2], {"a": 1})], path)
    said = []
    with listen(lambda event: said.append((event.done, event.total)) if event.kind == "advanced" else None):
        found = execute([run(toy, range(4), {"a": 1}), run(toy, [0], {"a": 2}), run(toy, [0], {"a": 2})], path)
    # two of five are there; the run that is asked for twice counts once
    assert said == [(2, 5), (3, 5), (4, 5), (5, 5)]
    assert [(record["config"]["a"], record["seed"]) for record in found] == [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert len(read_records(path)) == 5


def test_a_config_is_the_same_whatever_the_order_of_its_keys(toy, path):
    execute([run(toy, [0], {"a": 1, "b": (1, 2)})], path)
    execute([run(toy, [0], {"b": [1, 2], "a": 1})], path)
    assert len(read_records(path)) == 1


def test_a_process_that_is_killed_takes_nothing_along_and_the_rest_is_done_later(toy, path, tmp_path):
    alive = tmp_path / "alive"
    fragile = partial(toy.dies_at, seed=1, alive=alive)
    runs = [run(toy, range(3), {"kind": "fragile"}, fragile), run(toy, range(3), {"kind": "solid"})]
    with pytest.raises(FailedRunsError, match=r'"fragile"\}, seeds 0, 1, 2: its process ended with exit code -9'):
        execute(runs, path, jobs=2)
    # what the killed one had measured, and all of the other
    assert seeds(path) == [0, 0, 1, 2]
    alive.touch()
    found = execute(runs, path, jobs=2)
    assert [record["seed"] for record in found] == [0, 1, 2, 0, 1, 2]
    assert seeds(path) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_fails_is_named_and_the_others_are_done(toy, path, jobs):
    said = []
    runs = [run(toy, [0, 1], {"kind": "bad"}, toy.raises), run(toy, [0, 1], {"kind": "good"})]
    with pytest.raises(FailedRunsError) as caught:
        execute(runs, path, jobs=jobs, failed=lambda why, trace: said.append((why, trace)))
    ((why, trace),) = said
    assert caught.value.failures == [why]
    assert why == 'toy {"kind": "bad"}, seeds 0, 1: ZeroDivisionError: no half of nothing'
    assert "in raises" in trace
    assert seeds(path) == [0, 0, 1]
    assert "repeat the command" in caught.value.do


def test_a_run_has_to_measure_each_seed_once_with_numbers_that_json_has(toy, path):
    for measure, why in (
        (lambda seeds: [{}], "measured nothing for the seeds 1"),
        (lambda seeds: [{}] * 3, "measured more than its 2 seeds"),
        (lambda seeds: [{"x": float("nan")}] * 2, "holds a NaN"),
    ):
        with pytest.raises(FailedRunsError, match=why):
            execute([run(toy, [0, 1], {"why": why}, measure)], path)


def test_no_process_is_no_number_of_processes(toy, path):
    with pytest.raises(ValueError, match="jobs is 0, but at least one process has to work: give 1 or more"):
        execute([run(toy, [0])], path, jobs=0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_has_one_thread_and_the_settings_are_put_back(toy, path, jobs, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    found = execute([run(toy, [0, 1], measure=toy.threads)], path, jobs=jobs)
    threads = [number for record in found for number in record["metrics"]["threads"]]
    assert threads
    assert set(threads) == {1}
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ


def test_an_interrupt_leaves_whole_records_and_no_process_behind(toy, path):
    script = f"""
import sys
sys.path.insert(0, {str(Path(toy.__file__).parent)!r})
from functools import partial
from pathlib import Path
import toy_experiment as toy
from setminus_paper.run import Run, execute
execute([Run("toy", {{}}, tuple(range(40)), partial(toy.measure, seconds=0.3))], Path({str(path)!r}), jobs=2)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        # whoever starts the tests in the background ignores interrupts, and so would this process
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 30
    while not (path.exists() and len(read_records(path)) >= 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not ended(process.pid, 0.2)
    # as a terminal does it: to the whole group
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert said.count("KeyboardInterrupt") == 1
    assert ended(process.pid)
    before = read_records(path)
    assert 2 <= len(before) < 40
    found = execute([run(toy, range(40))], path)
    assert [record["seed"] for record in found] == [*range(40)]
    assert read_records(path)[: len(before)] == before


def test_every_item_arrives_in_the_order_of_its_task():
    # a function of the standard library: other processes find it
    found = [*spread(range, [3, 0, 2, 1], 2)]
    by_task = {place: [item for at, item in found if at == place] for place in range(4)}
    assert by_task == {0: [0, 1, 2], 1: [], 2: [0, 1], 3: [0]}


def test_other_processes_log_only_what_is_wrong():
    disabled = "__import__('logging').root.manager.disable"
    assert {level for _, level in spread(partial(map, eval), [[disabled], [disabled]], 2)} == {logging.INFO}
    assert logging.root.manager.disable < logging.INFO


def test_a_process_that_ends_is_replaced():
    found = dict(spread(os._exit, [7, 8, 9], 2))
    assert {place: outcome.error for place, outcome in found.items()} == {
        place: f"its process ended with exit code {7 + place}" for place in range(3)
    }


def test_a_task_that_raises_is_told_from_one_that_gives():
    ((place, outcome), *rest) = spread(partial(map, int), [["x"], ["1", "2"]], 1)
    assert (place, rest) == (0, [(1, 1), (1, 2)])
    assert isinstance(outcome, Failure)
    assert "ValueError: invalid literal" in outcome.error
    assert "Traceback" in outcome.trace


def test_processes_are_ended_with_the_generator():
    # other libraries keep processes of their own
    others = {*active_children()}
    outcomes = spread(range, [10**6, 10**6], 2)
    next(outcomes)
    assert len({*active_children()} - others) == 2
    outcomes.close()
    assert {*active_children()} <= others


def test_metrics_may_name_another_precision(toy, path):
    (found,) = execute([Run("toy", {}, (0,), lambda seeds: [{"precision": "bf16-mixed"}])], path)
    assert found["precision"] == "bf16-mixed"
    (found,) = execute([Run("toy", {"a": 1}, (0,), lambda seeds: [{}], precision="32-true")], path)
    assert found["precision"] == "32-true"


def test_the_commit_is_that_of_the_source_and_not_of_a_project_around_it(tmp_path, monkeypatch):
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    copy = tmp_path / "run.py"
    copy.write_text("")
    monkeypatch.setattr("setminus_paper.run.__file__", str(copy))
    assert source_commit() == "unknown"
    git("init")
    assert source_commit() == "unknown"
    git("add", "run.py")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "first")
    assert source_commit() == git("rev-parse", "HEAD").strip()
    copy.write_text("1")
    assert source_commit() == git("rev-parse", "HEAD").strip() + "-dirty"


def line_fit(torch):
    """A task of `setminus.nn.training` that fits a line."""
    from setminus.nn.training import Task

    class Line(Task):
        def __init__(self):
            self.net = torch.nn.utils.skip_init(torch.nn.Linear, 1, 1)
            torch.nn.init.zeros_(self.net.weight)
            torch.nn.init.zeros_(self.net.bias)
            self.modules, self.steps = {"net": self.net}, []
            self.optimizers = {"net": torch.optim.SGD(self.net.parameters(), 0.01)}

        def step(self, loop):
            self.steps.append(loop.index)
            x = torch.randn(4, 1)
            loop.update("net", ((self.net(x) - 2 * x) ** 2).mean())

    return Line()


def test_a_training_goes_on_from_its_checkpoint_which_goes_with_the_record(path, tmp_path):
    torch = pytest.importorskip("torch")
    tasks = []

    def stop(step, values):
        if len(tasks) == 1 and step > runner.CHECKPOINT_EVERY:
            raise RuntimeError("the power fails")

    def measure(seeds):
        for seed in seeds:
            tasks.append(line_fit(torch))
            train_run(tasks[-1], str(seed), steps=runner.CHECKPOINT_EVERY + 3, seed=seed, log_every=1, observers=[stop])
            yield {"slope": tasks[-1].net.weight.item()}

    one, machine = Run("line", {}, (3,), measure), Machine(checkpoints=tmp_path / "checkpoints")
    with pytest.raises(FailedRunsError, match="the power fails"):
        execute([one], path, machine=machine)
    (found,) = execute([one], path, machine=machine)
    assert tasks[1].steps == [runner.CHECKPOINT_EVERY + step for step in range(3)]
    assert not machine.checkpoints.exists()
    # the same without a stop
    (whole,) = execute([one], tmp_path / "others.jsonl")
    assert tasks[2].steps[0] == 0 and found["metrics"] == whole["metrics"]


def test_a_run_that_is_tried_out_is_not_taken_for_the_run(path):
    torch = pytest.importorskip("torch")
    tasks = []

    def measure(seeds):
        tasks.append(line_fit(torch))
        _, precision = train_run(tasks[-1], steps=9, precision=None)
        return [{"precision": precision}]

    one = Run("line", {}, (0,), measure)
    (tried,) = execute([one], path, machine=Machine(steps=2))
    (found,) = execute([one], path)
    assert [len(task.steps) for task in tasks] == [2, 9]
    assert (tried["config"], found["config"]) == ({"steps_at_most": 2}, {})


def test_the_machine_reaches_the_training(monkeypatch):
    torch = pytest.importorskip("torch")
    seen = []
    monkeypatch.setattr("setminus.nn.training.train", lambda task, config, **options: seen.append(config))
    with runner.on(Machine("cuda", devices=2, threads=3)):
        train_run(line_fit(torch), steps=5, precision=None)
    train_run(line_fit(torch), steps=5)
    assert [(one.accelerator, one.devices, one.threads) for one in seen] == [("cuda", 2, 3), ("cpu", 1, 1)]
    assert Machine("auto").kind in ("cpu", "cuda", "mps")
