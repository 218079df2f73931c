"""A small part of the fuzzer, the same in every run; `make test-all` runs more of it, `make fuzz` all."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.fuzz.cases import Case, attack
from tests.fuzz.forks import Forks
from tests.fuzz.inputs import all_cases
from tests.fuzz.machine import Commands, can_mount
from tests.fuzz.world import build

CASES = sorted(Path(__file__).with_name("cases").glob("*.json"))
MORE = "SETMINUS_FUZZ" in os.environ
SAME = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def forks():
    with Forks(torch=False) as server:
        yield server


@pytest.fixture(scope="module")
def world(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "world"
    build(folder, forks, torch=False)
    return folder


def test_no_input_breaks_a_command(world, forks, tmp_path):
    @settings(SAME, max_examples=100 if MORE else 10, phases=[Phase.generate])
    @given(all_cases(world, torch=False))
    def check(case):
        done, found = attack(case, world, forks)
        assert not found, (found, f"python -m tests.fuzz --replay {case.save(tmp_path, found[0])}", done.err[-2000:])

    check()


@pytest.mark.parametrize("file", CASES, ids=[file.stem for file in CASES])
def test_what_was_found_stays_mended(file, world, forks):
    done, found = attack(Case.from_json(file.read_text()), world, forks)
    assert not found, done


@pytest.mark.parametrize("small_disk", [False, True], ids=["limited files", "a full disk"])
def test_no_trouble_breaks_what_was_written(world, forks, small_disk):
    if small_disk and not can_mount():
        pytest.skip("a small disk can be mounted by root only; limited files stand in for it")
    if not small_disk and can_mount() and not MORE:
        pytest.skip("limited files stand in for a small disk, which can be mounted here")
    machine = type("Machine", (Commands,), {"world": world, "forks": forks, "small_disk": small_disk})
    runs = settings(SAME, max_examples=6 if MORE else 1, stateful_step_count=8, phases=[Phase.generate])
    run_state_machine_as_test(machine, settings=runs)
