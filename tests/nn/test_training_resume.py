"""A training that was killed and resumed ends with the bits of one that was left alone."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cross_entropy  # noqa: E402

from setminus.nn import training as resume  # noqa: E402
from setminus.nn.checkpoints import load_checkpoint, save_checkpoint  # noqa: E402
from setminus.nn.passes import Batches  # noqa: E402
from setminus.nn.training import Task, TrainingConfig, train  # noqa: E402

SCRIPT = Path(__file__).with_name("killed_training.py")
CONFIG = TrainingConfig(steps=8, seed=2, clip=1.0, ema=0.9, log_every=1, evaluate_every=2, checkpoint_every=2)


class Stopped(Exception):
    """Somebody pulled the plug."""


def stop_at(stop):
    def observe(step, values):
        if step == stop:
            raise Stopped

    return observe


class Fit(Task):
    def __init__(self):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            features = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 6, 3)
            head = torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(24, 3)
            self.net = torch.nn.Sequential(*features, *head).to(memory_format=torch.channels_last)
            x = torch.randn(24, 3, 8, 8).to(memory_format=torch.channels_last)
            y = torch.randint(3, (24,))
        self.modules = {"net": self.net}
        self.optimizers = {"net": torch.optim.Adam(self.net.parameters(), 1e-2, fused=True)}
        self.batches = Batches(x, y, size=8, seed=1)

    def step(self, loop):
        x, y = loop.batch(self.batches)
        loop.update("net", cross_entropy(self.net(x), y))

    def evaluate(self, loop):
        return {"weight": self.net[0].weight[0, 0, 0, 0].item()}

    def rate(self, step):
        return 0.9**step


def tensors(folder):
    """Weights, averages, moments and random state, as they lie on the disk."""
    (path,) = folder.glob("checkpoint-*.safetensors")
    return path.read_bytes()


def entries(folder):
    outcome = load_checkpoint(folder)[1]["outcome"]
    return outcome["history"], outcome["evaluations"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(Fit(), CONFIG, folder=folder)
    return folder


@pytest.fixture
def stopped(tmp_path):
    """The folder of one that was stopped after 5 steps, with a checkpoint of 4."""
    with pytest.raises(Stopped):
        train(Fit(), CONFIG, folder=tmp_path, observers=[stop_at(5)])
    assert load_checkpoint(tmp_path)[0] == 4
    return tmp_path


def test_kills_leave_no_trace(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == 4
    # without this the renames would not have been tried at all
    assert found["while_writing"] > 0
    assert tensors(tmp_path / "killed") == tensors(tmp_path / "whole")
    assert entries(tmp_path / "killed") == entries(tmp_path / "whole")
    assert [entry["step"] for entry in entries(tmp_path / "killed")[0]] == list(range(1, 21))
    assert sorted(p.name for p in (tmp_path / "killed").iterdir()) == [
        "checkpoint-000000020.safetensors",
        "checkpoint.json",
    ]


def test_resumed_bits_are_those_of_the_whole(whole, stopped):
    outcome = train(Fit(), CONFIG, folder=stopped, resume=True)
    assert tensors(stopped) == tensors(whole)
    assert entries(stopped) == entries(whole) == (outcome.history, outcome.evaluations)
    assert sorted(load_checkpoint(whole)[1]) == ["averaged", "config", "modules", "optimizers", "outcome", "randoms"]


@pytest.mark.parametrize("part", ["modules", "averaged", "optimizers", "randoms"])
def test_each_part_of_the_state_matters(whole, stopped, part):
    """The negative control: forget one part, and the bits are others."""
    step, state = load_checkpoint(stopped)
    if part == "randoms":
        state["randoms"]["cpu"] = torch.Generator().manual_seed(9).get_state()
    elif part == "optimizers":
        state["optimizers"]["net"]["state"] = {}
    else:
        fresh = Fit().net.state_dict()
        kept = state[part]["net"]
        state[part]["net"] = {name: fresh.get(name.removeprefix("module."), kept[name]) for name in kept}
    save_checkpoint(stopped, step, state)
    train(Fit(), CONFIG, folder=stopped, resume=True)
    assert tensors(stopped) != tensors(whole)


def test_another_seed_gives_other_bits(whole, tmp_path):
    train(Fit(), replace(CONFIG, seed=3), folder=tmp_path)
    assert tensors(tmp_path) != tensors(whole)


@pytest.mark.parametrize("laid_out", [True, False])
def test_moments_lie_in_memory_as_their_weights_do(whole, stopped, monkeypatch, laid_out):
    def strides(task):
        states = task.optimizers["net"].state
        return [states[weight]["exp_avg"].stride() for weight in task.net.parameters()]

    if not laid_out:
        # the negative control: as they come from the file, a fused step mixes them up
        monkeypatch.setattr(resume, "_laid_out", lambda state, optimizer: state)
    task = Fit()
    train(task, CONFIG, folder=stopped, resume=True)
    assert (strides(task) == [weight.stride() for weight in task.net.parameters()]) is laid_out
    assert (tensors(stopped) == tensors(whole)) is laid_out


def test_a_longer_training_is_a_long_one(whole, tmp_path):
    train(Fit(), replace(CONFIG, steps=4), folder=tmp_path)
    train(Fit(), CONFIG, folder=tmp_path, resume=True)
    assert tensors(tmp_path) == tensors(whole)
    assert entries(tmp_path) == entries(whole)


def test_looking_more_often_is_allowed(whole, stopped):
    train(Fit(), replace(CONFIG, log_every=3, evaluate_every=1, checkpoint_every=0), folder=stopped, resume=True)
    assert tensors(stopped) == tensors(whole)


def test_a_finished_training_returns_at_once(whole):
    class Idle(Fit):
        def step(self, loop):
            raise AssertionError("there is nothing left to do")

    task, before = Idle(), tensors(whole)
    outcome = train(task, CONFIG, folder=whole, resume=True)
    saved = load_checkpoint(whole)[1]
    assert (outcome.steps, outcome.seconds) == (8, saved["outcome"]["seconds"])
    assert (outcome.history, outcome.evaluations) == entries(whole)
    assert all(torch.equal(weight, saved["modules"]["net"][name]) for name, weight in task.net.state_dict().items())
    averaged = outcome.averaged["net"].state_dict()
    assert all(torch.equal(averaged[name], saved["averaged"]["net"][f"module.{name}"]) for name in averaged)
    assert tensors(whole) == before
    with pytest.raises(AssertionError, match="nothing left"):
        train(Idle(), replace(CONFIG, steps=9), folder=whole, resume=True)


def test_seconds_are_of_all_parts(stopped):
    before = load_checkpoint(stopped)[1]["outcome"]["seconds"]
    assert train(Fit(), CONFIG, folder=stopped, resume=True).seconds > before > 0


def test_resume_without_a_checkpoint_starts_anew(whole, tmp_path):
    # what is left by somebody who was killed in the first checkpoint
    (tmp_path / ".checkpoint.json-abc").mkdir()
    (tmp_path / "checkpoint-000000002.safetensors").write_bytes(b"half")
    train(Fit(), CONFIG, folder=tmp_path, resume=True)
    assert tensors(tmp_path) == tensors(whole)
    assert len(list(tmp_path.iterdir())) == 2


def test_does_not_overwrite_by_accident(whole):
    before = tensors(whole)
    with pytest.raises(ValueError, match="holds a checkpoint: resume from it, remove it, or choose another folder"):
        train(Fit(), CONFIG, folder=whole)
    assert tensors(whole) == before


@pytest.mark.parametrize(
    "change", [{"seed": 3}, {"ema": 0.5}, {"clip": None}, {"precision": "bf16-mixed"}, {"deterministic": False}]
)
def test_another_config_is_refused(whole, change):
    ((name, value),) = change.items()
    before = getattr(CONFIG, name)
    with pytest.raises(ValueError) as caught:
        train(Fit(), replace(CONFIG, **change), folder=whole, resume=True)
    assert f"is of a training with { ({name: before}) }, this one has { ({name: value}) }: use the same" in str(
        caught.value
    )


def test_a_shorter_training_is_refused(whole):
    with pytest.raises(ValueError, match=r"is of step 8, this training ends at step 6: ask for as many steps"):
        train(Fit(), replace(CONFIG, steps=6), folder=whole, resume=True)


def test_a_damaged_checkpoint_is_said(stopped):
    (path,) = stopped.glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"is damaged .*remove it and start again"):
        train(Fit(), CONFIG, folder=stopped, resume=True)
