"""Table 1 on squares: rows share inputs and classifiers, records are plain, small and say what the ratio is."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from setminus_paper.transfer import table1
from setminus_paper.transfer.translation import ROWS, Translation

from setminus.transfer.domain_classifiers import ClassifierConfig

SIZE = table1.Size(
    pixels=16,
    train_digits=2000,
    judged=40,
    width=4,
    translation=Translation(steps=6, batch_size=8, evaluate_every=2, precision="32-true"),
    classifier=ClassifierConfig(width=4, epochs=4, batch_size=64, average=0.95),
    judge_digits=1000,
    judge=ClassifierConfig(width=4, epochs=2, batch_size=64, average=0.9),
    norm="group",
    learned="last_layer",
)


@pytest.fixture(scope="module")
def found():
    """The metrics of some rows, on squares instead of digits: no data is needed."""
    ink = np.zeros((2400, 16, 16, 1), dtype=np.uint8)
    ink[:, 4:12, 4:12] = 255
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table1, "shrunk_digits", lambda pixels: ink)
        patch.setattr(table1, "LAST_LAYER_ROWS", 400)
        return {
            method: next(iter(table1.measure((0,), method=method, size=SIZE)))
            for method in ("vanilla", "orthogonal_mldg", "importance_oracle", "orthogonal_oracle")
        }


def test_records_are_plain_and_small(found):
    for metrics in found.values():
        assert len(json.dumps(metrics, allow_nan=False)) < 60_000


def test_a_score_is_the_mean_over_the_last_evaluations(found):
    for metrics in found.values():
        curves = metrics["curves"]
        assert curves["step"] == [2, 4, 6]
        for name in ("z1", "z2", "z1_measured", "z2_measured", "agreement"):
            assert metrics[name] == pytest.approx(np.mean(curves[name]))
        assert metrics["z1"] == pytest.approx((metrics["a_to_b"]["z1"] + metrics["b_to_a"]["z1"]) / 2, abs=1e-3)
        assert metrics["losses"]["step"] == [2, 4, 6]


def test_all_rows_show_the_same_images_and_start_alike(found):
    plain, oracle = found["vanilla"], found["orthogonal_oracle"]
    assert plain["samples"]["a"] == oracle["samples"]["a"] != plain["samples"]["b"]
    assert plain["samples"]["a_to_b"] != oracle["samples"]["a_to_b"]
    assert plain["judges"] == oracle["judges"]


def test_the_oracles_that_judge_see_the_colors(found):
    assert min(found["vanilla"]["judges"].values()) > 0.95


def test_the_log_ratio_is_recorded_beside_the_exact_one(found):
    assert found["vanilla"]["log_ratio"] is None
    for method in ("importance_oracle", "orthogonal_oracle"):
        ratio = found[method]["log_ratio"]
        assert ratio["exact"] == pytest.approx([np.log(9), -np.log(9)], abs=1e-3)
        assert ratio["mean"] == pytest.approx(ratio["exact"], abs=0.9)
    # another principal classifier, another ratio
    assert found["orthogonal_mldg"]["log_ratio"]["mean"] != found["orthogonal_oracle"]["log_ratio"]["mean"]


def test_a_row_whose_last_layer_is_ours_says_so(found):
    labels = [metrics["row"]["label"] for metrics in found.values()]
    assert labels == ["Vanilla", "w_x \\ w_1 (MLDG, last layer)", "IS (Oracle)", "w_x \\ w_1 (Oracle)"]


def test_the_plan_has_the_rows_of_the_paper_in_its_order():
    runs = table1.plan("paper", (0, 1))
    assert [run.config["method"] for run in runs] == list(ROWS) == list(table1.TABLE1)
    assert runs[0].config["width"] == 128 and runs[0].config["translation"]["batch_size"] == 128
    assert (runs[0].config["norm"], runs[0].config["learned"]) == ("batch", "network")
    json.dumps(runs[0].config)
    assert [run.config["method"] for run in table1.plan("quick", (0,), ("vanilla",))] == ["vanilla"]
