"""Tables 2 and 6 on painted squares in place of faces: the upper half is z1, the lower z2."""

import json
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from setminus_paper.data.celeba import CELEBA, CELEBA_GH
from setminus_paper.run import Machine, Run, execute
from setminus_paper.transfer import faces, table2, table6
from setminus_paper.transfer.faces import Size
from setminus_paper.transfer.translation import ROWS, Translation

from setminus.core.importance import effective_sample_size
from setminus.datasets.split import Split
from setminus.records import BESIDE
from setminus.transfer.domain_classifiers import ClassifierConfig
from setminus.transfer.transfer_task import TransferTask

SIZE = Size(
    pixels=32,
    width=4,
    discriminator_width=4,
    translation=Translation(steps=4, batch_size=4, evaluate_every=2, precision="32-true"),
    short_steps=2,
    plain_share=0.5,
    classifier=ClassifierConfig(width=4, epochs=6, rate=0.05, batch_size=32, average=0.9),
    clamp=30.0,
    features="groups",
)
SIZES = {(0, 0): 240, (0, 1): 30, (1, 0): 200, (1, 1): 160}
"""Faces of each group; that of blond men is small here, too."""


def painted(task, pixels):
    """Images whose upper half is lighter where z1 is 1, and whose lower half is redder where z2 is 1.

    By how much is random: a factor that could be told for sure would have no ratio that can be estimated.
    """
    rng = np.random.default_rng(0)
    z1, z2 = (np.concatenate([[key[place]] * n for key, n in SIZES.items()]) for place in (0, 1))
    x = np.full((len(z1), pixels, pixels, 3), 100.0)
    for z, area in ((z1, x[:, : pixels // 2]), (z2, x[:, pixels // 2 :, :, :1])):
        area += (100 * z + rng.normal(0, 35, len(z)) - 20)[:, None, None, None]
    x = x.clip(0, 255).astype(np.uint8)
    y, *_ = task.roles(z1 == 0, z2 == 1)
    order = rng.permutation(len(y))
    return Split(x=x, y=y, z1=z1, z2=z2).take(order)


@pytest.fixture(scope="module", autouse=True)
def painted_faces():
    """For all tests of this module, which share the classifiers that are fitted on them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faces, "load_celeba", painted)
        yield
    for cached in (
        "load_faces",
        "full",
        "principal",
        "judges",
        "group_features",
        "_coarse_groups",
        "importance",
        "separate_principal",
    ):
        getattr(faces, cached).cache_clear()


@lru_cache
def measured(method, table="table2"):
    (metrics,) = faces.measure((0,), table=table, method=method, size=SIZE)
    return metrics


def test_a_record_holds_scores_and_no_face():
    metrics = dict(measured("orthogonal_oracle"))
    apart = metrics.pop(BESIDE)
    assert set(apart["samples"]) == {"a", "b", "a_to_b", "b_to_a"}
    text = json.dumps(metrics, allow_nan=False)
    # what every PNG begins with, in base64
    assert "iVBORw0K" not in text
    assert len(text) < 10_000
    assert metrics["groups"] == {"00": 192, "01": 24, "10": 160, "11": 128}
    assert metrics["z1"] == pytest.approx(np.mean(metrics["curves"]["z1"]), abs=1e-4)
    assert "agreement" not in metrics["curves"]
    assert metrics["fid"] == pytest.approx((metrics["fid_a_to_b"] + metrics["fid_b_to_a"]) / 2, abs=2e-3)
    assert metrics["fid_features"].startswith("a classifier")


def test_the_oracles_see_both_factors_of_held_out_images():
    metrics = measured("vanilla")
    assert min(metrics["judges"].values()) > 0.8
    assert metrics["log_ratio"] is None


@pytest.mark.parametrize("method", ["orthogonal_oracle", "importance_oracle", "orthogonal_mldg"])
def test_the_ratio_tells_the_factor_to_keep_and_not_the_other(method):
    # of the groups 00, 01, 10, 11 the hair is that of domain A in the first and the third
    a, other_a, other_b, b = measured(method)["log_ratio"]["mean"]
    assert min(a, other_b) > max(other_a, b) + 0.5


def test_without_a_principal_classifier_the_ratio_would_tell_both():
    """The negative control: what the full classifier says of the mixed groups is not the hair alone."""
    found = faces.load_faces(CELEBA_GH, SIZE.pixels, 0)
    full = faces.full(found, SIZE.classifier)
    orthogonal = faces.log_ratio(ROWS["orthogonal_oracle"], found, replace(SIZE, clamp=1e6))

    def spread(means):
        a, other_a, other_b, b = means
        # what z1 changes in the answer, against what z2 changes
        return abs(a + other_a - other_b - b) / abs(a - other_a + other_b - b)

    class Alone(faces.PairRatio):
        def forward(self, images):
            logits = self.full(images)
            return logits[:, 0] - logits[:, 1]

    alone = faces.by_group(Alone(full, full), found)["mean"]
    taken_out = faces.by_group(orthogonal, found)["mean"]
    assert spread(taken_out) < 0.5 * spread(alone)


def test_rows_of_a_seed_share_the_plain_steps_and_give_what_they_would_alone(tmp_path, monkeypatch):
    trained = []
    step = TransferTask.step

    def counted(self, loop):
        trained.append((loop.index, "log_ratio" in self.modules))
        step(self, loop)

    monkeypatch.setattr(TransferTask, "step", counted)
    size = replace(SIZE, short_steps=None)
    methods = ("vanilla", "orthogonal_oracle")
    rows = [partial(faces.measure, table="table2", method=one, size=size, shared="plain") for one in methods]
    runs = [Run("table2", {"method": one}, (0,), row) for one, row in zip(methods, rows, strict=True)]
    found = execute(runs, tmp_path / "records.jsonl", machine=Machine(checkpoints=tmp_path / "checkpoints"))
    # two plain steps of four, by the first row alone
    assert trained == [(0, False), (1, False), (2, False), (3, False), (2, True), (3, True)]
    for record, method in zip(found, methods, strict=True):
        alone = next(faces.measure((0,), table="table2", method=method, size=size))
        for key in ("curves", "losses", "z1", "z2", "fid"):
            assert record["metrics"][key] == alone[key]


def test_the_papers_oracle_is_two_networks():
    found = faces.load_faces(CELEBA_GH, SIZE.pixels, 0)
    ratio = faces.log_ratio(faces.FACE_ROWS[faces.PAIR], found, SIZE, pair=True)
    assert ratio.full is not ratio.principal
    means = faces.by_group(ratio, found)["mean"]
    assert means[0] > means[3] + 0.5
    with_pair, without = ({run.config["method"] for run in table2.plan(scale, (0,))} for scale in ("large", "quick"))
    assert with_pair - without == {faces.PAIR}


def test_weights_of_importance_are_cut_and_their_effective_sample_size_is_recorded():
    found = faces.load_faces(CELEBA_GH, SIZE.pixels, 0)
    whole, cut = (faces.importance(found, SIZE.classifier, limit) for limit in (None, 1.5))
    assert cut.mean() == pytest.approx(1)
    assert whole.max() / whole.mean() > cut.max()
    assert effective_sample_size(cut) > effective_sample_size(whole)
    metrics = measured("importance_oracle")["importance"]
    assert metrics == {"rows": len(whole), "effective_rows": pytest.approx(effective_sample_size(whole), abs=0.1)}


def test_judges_are_scored_on_every_group():
    by_group = measured("vanilla")["judges_by_group"]
    assert {*by_group} == {"z1", "z2"}
    for z, own in by_group.items():
        assert {*own} == {*faces.GROUPS}
        assert np.mean([*own.values()]) == pytest.approx(measured("vanilla")["judges"][z], abs=1e-3)


def test_the_large_size_begins_with_the_rows_that_are_compared():
    planned = [(run.config["method"], run.seeds) for run in table2.plan("large", (0, 1))]
    assert planned[:2] == [("vanilla", (0,)), ("orthogonal_oracle", (0,))]
    assert planned[-2:] == [("vanilla", (1,)), ("orthogonal_oracle", (1,))]
    assert {method for method, _ in planned} == {*table2.METHODS}
    assert len({run.config["translation"]["steps"] for run in table2.plan("large", (0,))}) == 1


def test_a_ratio_without_variance_is_refused():
    class Diverged(torch.nn.Module):
        def forward(self, images):
            return torch.full((len(images),), 2.1972)

    found = faces.load_faces(CELEBA_GH, SIZE.pixels, 0)
    with pytest.raises(ValueError, match=r"the log ratio is 2.2 for all .* expected a ratio that depends on the face"):
        faces.by_group(Diverged(), found)


def test_an_oracles_classifiers_are_of_one_network_which_no_judge_is():
    found = faces.load_faces(CELEBA_GH, SIZE.pixels, 0)
    ratio = faces.log_ratio(ROWS["orthogonal_oracle"], found, SIZE)
    assert ratio.full.column is ratio.principal.column
    known = [ratio.full.column, *faces.judges(found, SIZE.classifier)]
    assert len({id(network) for network in known}) == 3
    # in the two domains of table 2 there is one group each
    assert ratio.full.log_factors.isinf().sum() == 6


def test_in_table_6_the_domains_have_both_kinds_of_hair():
    metrics = measured("vanilla", "table6")
    assert metrics["row"]["paper"]["z2"] == 0.87
    both = faces.load_faces(CELEBA, SIZE.pixels, 0)
    assert len(both.domain(0)) == 192 + 24
    assert len(both.domains) == len(both.train)


def test_the_long_rows_come_first_and_are_longer():
    runs = table2.plan("quick", (0,))
    steps = {run.config["method"]: run.config["translation"]["steps"] for run in runs}
    assert list(steps)[:2] == ["vanilla", "orthogonal_oracle"]
    assert min(steps["vanilla"], steps["orthogonal_oracle"]) >= 2_000 > max(list(steps.values())[2:])
    assert {run.config["translation"]["steps"] for run in table6.plan("quick", (0,))} == {table6.QUICK_STEPS}
    assert {run.config["pixels"] for run in table2.plan("paper", (0,))} == {128}
