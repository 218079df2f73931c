"""Two processes are one with the same batches; what is random differs, and neither waits for the other in vain."""

import importlib.util
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from setminus.nn.checkpoints import load_checkpoint  # noqa: E402
from setminus.nn.training import train  # noqa: E402

SCRIPT = Path(__file__).with_name("two_processes.py")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("two_processes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder of all trainings in two processes."""
    folder = tmp_path_factory.mktemp("two")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, SCRIPT, folder],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"two processes wait for each other: {process.communicate()[0]}")
    assert process.returncode == 0, said
    return folder


def weights(folder, name, rank=0):
    return load_file(folder / f"{name}-{rank}.safetensors")


def equal(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def close(a, b):
    return all(torch.allclose(a[name], b[name], rtol=1e-4, atol=1e-6) for name in a)


def test_curve_and_weights_are_those_of_one_process(script, two, tmp_path):
    task = script.Fit()
    outcome = train(task, script.PLAIN, folder=tmp_path)
    saved = load_checkpoint(two / "plain")[1]
    curve = [entry["net"] for entry in outcome.history]
    assert len(curve) == 12
    assert [entry["net"] for entry in saved["outcome"]["history"]] == pytest.approx(curve, rel=1e-4)
    assert close(weights(two, "plain"), task.modules["net"].state_dict())
    assert close(saved["averaged"]["net"], load_checkpoint(tmp_path)[1]["averaged"]["net"])
    # the negative control: with half the rows in a batch, as if shares were not put together, it is another curve
    half = script.Fit()
    half.batches.at = lambda step, share, at=half.batches.at: at(step, (0, 2))
    alone = [entry["net"] for entry in train(half, script.PLAIN).history]
    assert alone != pytest.approx(curve, rel=1e-2)
    assert not close(weights(two, "plain"), half.modules["net"].state_dict())


def test_gradients_are_those_of_each_process_own_loss(script, two):
    # the mean of losses is taken in place: it must not replace the value that the gradient of sqrt is computed from
    task = script.RootInOne()
    train(task, script.PLAIN)
    assert close(weights(two, "root"), task.modules["net"].state_dict())
    other = script.Root()
    train(other, script.PLAIN)
    assert not close(weights(two, "root"), other.modules["net"].state_dict())


@pytest.mark.parametrize("name", ["plain", "root", "init", "whole", "resumed"])
def test_both_processes_end_with_the_same_weights(two, name):
    assert equal(weights(two, name, 0), weights(two, name, 1))
    other = "root" if name == "plain" else "plain" if name in ("whole", "resumed") else "whole"
    assert not equal(weights(two, name, 0), weights(two, other, 1))


def test_all_start_from_the_first_process(two):
    # the second one had drawn other weights
    assert equal(weights(two, "init"), weights(two, "plain"))


def test_noise_differs_and_has_seeds_of_its_own(script, two):
    first, second = load_checkpoint(two / "noise")[1]["outcome"]["evaluations"][0]["kept"]
    assert first != second
    # seed 3 of two processes
    for seed, kept in ((6, first), (7, second)):
        alone = train(script.Noise(), replace(script.PLAIN, steps=1, seed=seed)).evaluations[0]["kept"]
        assert alone == kept
        assert set(alone) == {0.0, 2.0}


def test_resumes_with_the_noise_of_each_process(two):
    assert equal(weights(two, "whole"), weights(two, "resumed"))
    assert not equal(weights(two, "whole"), weights(two, "plain"))


def test_a_nan_in_one_process_stops_both(two):
    for rank in (0, 1):
        said = (two / f"nan-{rank}.txt").read_text()
        assert said.startswith("the loss of 'net' is nan at step 5. The last good checkpoint is that of step 4 in ")
    step, state = load_checkpoint(two / "nan")
    assert step == 4
    assert all(torch.isfinite(weight).all() for weight in state["modules"]["net"].values())
