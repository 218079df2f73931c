import numpy as np
import pytest

pytest.importorskip("torch")

from setminus_paper.run import execute
from setminus_paper.transfer import invariant_digits
from setminus_paper.transfer.invariant_digits import METHODS, Size, against_exact, calibrated, plan

from setminus.charts.chart import Bars, Rule
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


NETWORK = {"oracle": 0.01, "pooled": 0.08, "mldg": 0.085, "trm": 0.077}
LAST_LAYER = {"mldg": 0.025, "trm": 0.07, "trm_beyond": 0.02}


def record(method, stage, difference, seed):
    metrics = {
        "difference_calibrated": difference + 0.002 * seed,
        "difference_pooled_exact": 0.08,
        "proba_by_colors": [0.05 - difference / 2, 0.05 + difference, 0.95 - difference, 0.95 + difference / 2],
        "proba_by_colors_exact": [0.05, 0.05, 0.95, 0.95],
    }
    chosen = {"chosen": {"inner_rate": 10.0 + seed}} if stage == "last_layer" else {}
    config = {"scale": "quick", "method": method, "stage": stage}
    return {"name": "principals", "config": config, "seed": seed, "metrics": {**metrics, **chosen}}


@pytest.fixture
def records():
    stages = {"network": NETWORK, "last_layer": LAST_LAYER}
    return [record(m, stage, d, seed) for stage, some in stages.items() for m, d in some.items() for seed in (0, 1)]


def test_a_chart_of_distances_and_one_of_probabilities_for_each_stage(records):
    distances, *probabilities = invariant_digits.charts(records)
    assert [type(mark) for mark in distances.marks] == [Bars, Bars, Rule]
    network, last_layer = distances.marks[:2]
    assert network.x == last_layer.x == ["oracle", "pooled", "MLDG", "TRM", "TRM ext"]
    assert [value and round(value, 3) for value in network.y] == [0.011, 0.081, 0.086, 0.078, None]
    assert [value and round(value, 3) for value in last_layer.y] == [None, None, 0.026, 0.071, 0.021]
    assert (last_layer.low[2], last_layer.high[2]) == pytest.approx((0.025, 0.027))
    assert [len(chart.marks) for chart in probabilities] == [5, 4]
    assert len(invariant_digits.charts([one for one in records if one["config"]["stage"] == "network"])) == 2


def test_summary_has_a_row_for_each_way_with_what_was_chosen(records):
    rows = {
        what.partition(": ")[2]: (expected, measured) for what, expected, measured in invariant_digits.summary(records)
    }
    assert len(rows) == 7
    assert rows["oracle"] == ("near 0; pooled classifier 0.080", "0.011 (0.010 to 0.012)")
    assert rows["MLDG, last layer of the pooled network"][1] == "0.026 (0.025 to 0.027); inner rate 10, 11"
