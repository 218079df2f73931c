"""Each table by the paper's configuration for two steps, on tiny data and on a pretended device, as on a GPU.

Networks and batches are small, as the places of tensors do not depend on them. They have the paper's sizes where
SETMINUS_FUZZ is set (`make test-all`).
"""

import io
import os
from dataclasses import is_dataclass, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from setminus_paper.adaptation import table3  # noqa: E402
from setminus_paper.adaptation.rivals import Adda, BalancedVada, Cycada  # noqa: E402
from setminus_paper.data.images import IMAGE_SETS  # noqa: E402
from setminus_paper.fairness import tables as fairness_tables  # noqa: E402
from setminus_paper.fairness.trials import Trials  # noqa: E402
from setminus_paper.reproduce import run_experiment  # noqa: E402
from setminus_paper.run import FailedRunsError, Machine, on, train_run  # noqa: E402
from setminus_paper.transfer import faces, table1  # noqa: E402

from setminus.adaptation.methods import AdaptationConfig  # noqa: E402
from setminus.adaptation.vada import VadaConfig  # noqa: E402
from setminus.errors import UserError  # noqa: E402
from tests.paper.adaptation.test_rivals import colored, papers_networks  # noqa: E402
from tests.paper.fairness.conftest import biased_split  # noqa: E402
from tests.pretended_device import pretended_device  # noqa: E402

PER_CLASS = 12
DIGITS = 40
FACES = {(True, False): 10, (False, True): 10, (False, False): 8, (True, True): 8}
"""Of each (male, blond): where both hair colors are equally frequent with either sex, the ratio of the hair is 0."""


def image_set(known, rng):
    labels = np.tile(np.arange(len(known.class_names)), PER_CLASS)
    images = rng.integers(0, 256, (len(labels), *known.shape), dtype=np.uint8)
    half = len(labels) // 4
    return {"x_train": images, "y_train": labels, "x_test": images[:half], "y_test": labels[:half]}


def write_faces(folder, rng):
    place = folder / "img_align_celeba"
    place.mkdir(parents=True)
    rows = []
    for (male, blond), n in FACES.items():
        for _ in range(n):
            name = f"{len(rows) + 1:06d}.jpg"
            file = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(file, "JPEG")
            (place / name).write_bytes(file.getvalue())
            rows.append(f"{name} {2 * male - 1} {2 * blond - 1}")
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(len(rows)), "Male Blond_Hair", *rows]) + "\n")


@pytest.fixture(scope="module")
def tiny_data(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    (folder / "images").mkdir()
    for known in IMAGE_SETS.values():
        if not known.drawn:
            np.savez(folder / "images" / f"{known.name}.npz", **image_set(known, rng))
    write_faces(folder / "images" / "celeba", rng)
    return folder


class Brightness(torch.nn.Module):
    """In place of Inception, whose weights are not here."""

    def forward(self, images):
        return images.float().mean((2, 3))


def narrowed(size):
    """A size with narrow networks and few images in a step, and nothing else changed."""
    small = {"width": 4, "discriminator_width": 4, "batch_size": 8}
    parts = {name: narrowed(part) for name, part in vars(size).items() if is_dataclass(part)}
    return replace(size, **parts, **{name: value for name, value in small.items() if hasattr(size, name)})


@pytest.fixture(autouse=True)
def tiny(tiny_data, monkeypatch):
    monkeypatch.setenv("SETMINUS_DATA", str(tiny_data))
    trials = {
        table: lambda seeds, encoding: Trials.from_split(biased_split(300), seeds) for table in fairness_tables.TRIALS
    }
    monkeypatch.setattr(fairness_tables, "TRIALS", trials)
    ink = np.random.default_rng(0).choice([0, 255], (DIGITS, 28, 28, 1)).astype(np.uint8)
    monkeypatch.setattr(table1, "shrunk_digits", lambda pixels: ink)
    monkeypatch.setattr(faces, "Inception", Brightness)
    for module in () if "SETMINUS_FUZZ" in os.environ else (table1, faces, table3):
        monkeypatch.setitem(module.SIZES, "paper", narrowed(module.SIZES["paper"]))
    yield
    for module in (table1, faces):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def dry_run(name, folder, *, steps=2, checkpoints="checkpoints", **options):
    traces = []
    with pretended_device() as device:
        try:
            records = run_experiment(
                name,
                folder / "records.jsonl",
                scale="paper",
                seeds=1,
                machine=Machine(device, steps=steps, checkpoints=folder / checkpoints if checkpoints else None),
                failed=lambda why, trace: traces.append(trace),
                **options,
            )
        except FailedRunsError:
            pytest.fail("\n".join(traces))
    for record in records:
        assert record["config"]["steps_at_most"] == steps
        assert record["commit"]
        assert record["precision"] == "32-true", record["config"]
    assert not (folder / "checkpoints").exists()
    return {record["config"]["method"]: record["metrics"] for record in records}


def test_table1(tmp_path):
    methods = ("orthogonal_mldg", "importance_oracle", "orthogonal_oracle")
    found = dry_run("table1", tmp_path, methods=methods)
    assert {*found} == {*methods}
    assert all(one["curves"]["step"] == [2] for one in found.values())
    # whole networks, as in the paper
    assert found["orthogonal_mldg"]["row"]["label"] == "w_x \\ w_1 (MLDG)"


@pytest.mark.parametrize(
    ("table", "method", "steps"), [("table2", "orthogonal_fish", 2), ("table6", "importance_oracle", 1)]
)
def test_faces(table, method, steps, tmp_path):
    # checkpoints of the paper's networks for faces have more than a gigabyte
    found = dry_run(table, tmp_path, steps=steps, checkpoints=None, methods=(method,))[method]
    assert found["fid_features"] == "Inception"
    assert "last layer" not in found["row"]["label"]


def test_faces_without_inception_are_refused_before_the_first_step(tmp_path, monkeypatch):
    def absent():
        raise UserError("no weights")

    def trained(*arguments, **options):
        pytest.fail("a network was trained")

    monkeypatch.setattr(faces, "Inception", absent)
    monkeypatch.setattr("setminus.nn.training.train", trained)
    with pytest.raises(FailedRunsError, match="no weights"):
        run_experiment("table2", tmp_path / "records.jsonl", scale="paper", methods=("vanilla",))


def test_table3(tmp_path):
    methods = ("vada_iw", "vada_orthogonal_em", "cycada")
    found = dry_run("table3", tmp_path, pairs=("mnist-usps",), methods=methods)
    assert {*found} == {*methods}
    assert all(one["curves"]["step"] == [1, 2] for one in found.values())


@pytest.mark.parametrize("table", ["table4", "table5", "table5_split"])
def test_fairness(table, tmp_path):
    methods = ("vanilla", "laftr_0.1", "lmifr_stages_0.05", "rebias_50", "orthogonal", "tuned_folds_proxy")
    assert {*dry_run(table, tmp_path, methods=methods)} == {*methods}


@pytest.mark.parametrize("task_type", [Adda, BalancedVada, Cycada])
def test_all_phases_of_rivals_are_on_the_device(task_type):
    data, _ = colored()

    def accuracy(device):
        config = AdaptationConfig(VadaConfig(domain=0.1), batch=4, warmup=2, estimate_every=2)
        task = task_type(papers_networks(), data, config, 0)
        with on(Machine(device)):
            outcome, _ = train_run(task, steps=7, seed=0, log_every=1)
        return [one["classifier"] for one in outcome.history if "classifier" in one], task.predict_proba(data.target)

    here = accuracy("cpu")
    with pretended_device() as device:
        there = accuracy(device)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-2, atol=1e-2)
