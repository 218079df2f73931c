import numpy as np
import pytest

pytest.importorskip("torch")

from setminus_paper.run import execute
from setminus_paper.transfer import invariant_digits
from setminus_paper.transfer.invariant_digits import METHODS, Size, against_exact, calibrated, plan

from setminus.datasets.split import Split

TINY = Size(side=8, width=4, n_train=2_000, n_test=500, steps=60, oracle_steps=60, decay_at=40)


@pytest.fixture
def tiny(monkeypatch):
    """Squares for digits, half of the size on reading."""
    squares = np.zeros((1_600, 16, 16), dtype=np.uint8)
    squares[:, 4:12, 4:12] = 200
    monkeypatch.setattr(
        invariant_digits, "load_images", lambda name, part: Split(x=squares[..., None], y=np.zeros(len(squares)))
    )
    monkeypatch.setattr(invariant_digits, "SIZES", {"quick": TINY})


def measured(tmp_path, method, stage, seed=0):
    runs = [run for run in plan("quick", (seed,), methods=(method,)) if run.config["stage"] == stage]
    (record,) = execute(runs, tmp_path / "records.jsonl")
    assert record["name"] == "principals"
    return record["metrics"]


def test_the_oracle_is_near_the_exact_principal_and_pooling_is_near_its_own_closed_form(tiny, tmp_path):
    oracle, pooled = (measured(tmp_path, method, "network") for method in ("oracle", "pooled"))
    assert oracle["difference_calibrated"] < 0.04 < pooled["difference_calibrated"]
    assert abs(oracle["background"]) < 1.0 < 2.0 < pooled["background"] < 3.8
    assert len(oracle["risks_held_out"]) == 1
    assert len(pooled["risks_held_out"]) == 2


@pytest.mark.parametrize("method", ["mldg", "trm", "fish"])
def test_every_method_is_measured_on_the_whole_network(tiny, tmp_path, method):
    found = measured(tmp_path, method, "network", seed=1)
    assert 0 < found["difference_calibrated"] < 0.2
    assert "chosen" not in found


def test_on_the_last_layer_a_method_drops_the_background_and_says_what_it_chose(tiny, tmp_path):
    pooled, mldg = measured(tmp_path, "pooled", "network"), measured(tmp_path, "mldg", "last_layer")
    assert mldg["difference_calibrated"] < 0.04 < pooled["difference_calibrated"]
    assert abs(mldg["background"]) < pooled["background"] / 2
    assert mldg["chosen"]["inner_rate"] > 1


def test_closed_forms_have_the_differences_that_they_should():
    split = invariant_digits.MODEL.oracle_principal().paint(np.full((40_000, 2, 2), 255, dtype=np.uint8), 0)
    exact = invariant_digits.MODEL.principal(split.z1)
    log_odds = np.log(exact[:, 1] / exact[:, 0])
    found = against_exact(log_odds, calibrated(log_odds, split.y), split)
    assert found["difference"] == pytest.approx(0, abs=1e-12)
    assert found["difference_calibrated"] < 0.01
    assert found["background"] == pytest.approx(0, abs=1e-9)
    # by hand: backgrounds of 0.6 on average make .95 into .987 and .826
    assert found["difference_pooled_exact"] == pytest.approx(0.0805, abs=1e-3)
    assert found["background_pooled_exact"] == pytest.approx(2 * np.log(4))


def test_the_plan_has_every_method_and_both_stages_where_there_are_two():
    runs = plan("paper", (0,))
    assert {run.config["method"] for run in runs} == set(METHODS)
    assert [run.config["stage"] for run in runs if run.config["method"] == "fish"] == ["network", "last_layer"]
    assert [run.config["stage"] for run in runs if run.config["method"] == "oracle"] == ["network"]
    assert {run.config["method"] for run in plan("paper", (0,), methods=("trm",))} == {"trm"}
