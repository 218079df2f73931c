import pytest
from setminus_paper.report import principals

from setminus.charts.chart import Bars, Rule

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
    distances, *probabilities = principals.charts(records)
    assert [type(mark) for mark in distances.marks] == [Bars, Bars, Rule]
    network, last_layer = distances.marks[:2]
    assert network.x == last_layer.x == ["oracle", "pooled", "MLDG", "TRM", "TRM ext"]
    assert [value and round(value, 3) for value in network.y] == [0.011, 0.081, 0.086, 0.078, None]
    assert [value and round(value, 3) for value in last_layer.y] == [None, None, 0.026, 0.071, 0.021]
    assert (last_layer.low[2], last_layer.high[2]) == pytest.approx((0.025, 0.027))
    assert [len(chart.marks) for chart in probabilities] == [5, 4]
    assert len(principals.charts([one for one in records if one["config"]["stage"] == "network"])) == 2


def test_the_caption_says_what_was_measured_and_not_what_is_claimed(records):
    caption = principals.charts(records)[0].caption
    assert "whole network, the paper's values, these do not: MLDG (0.086); TRM (0.078)." in caption
    assert "pooled network, these do not: TRM (0.071)." in caption
    assert "less than half of pooling's distance: MLDG (0.026); TRM ext (0.021)." in caption
    worse = [record("mldg", "last_layer", 0.06, 0)]
    assert "less than half" not in principals.charts(worse)[0].caption


def test_summary_has_a_row_for_each_way_with_what_was_chosen(records):
    rows = {what.partition(": ")[2]: (expected, measured) for what, expected, measured in principals.summary(records)}
    assert len(rows) == 7
    assert rows["oracle"] == ("near 0; pooled classifier 0.080", "0.011 (0.010 to 0.012)")
    assert rows["MLDG, last layer of the pooled network"][1] == "0.026 (0.025 to 0.027); inner rate 10, 11"
