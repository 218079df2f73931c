"""Records become a data frame, means with their spread, and paired differences."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from setminus_paper.tables import mean_spread, paired_difference, to_frame


def record(seed, config, metrics):
    return {"name": "toy", "seed": seed, "seconds": 1.5, "config": config, "metrics": metrics}


def test_settings_and_metrics_are_columns():
    frame = to_frame([record(3, {"method": "a", "size": {"rows": 9}}, {"accuracy": 0.5, "classes": [1, 2]})])
    assert frame.to_dict("records") == [
        {"name": "toy", "seed": 3, "seconds": 1.5, "method": "a", "size.rows": 9, "accuracy": 0.5, "classes": [1, 2]}
    ]


def test_a_metric_with_the_name_of_a_setting_has_the_column():
    frame = to_frame([record(0, {"divergence": 2.0}, {"divergence": 2.1})])
    assert (frame["divergence"][0], frame["config.divergence"][0]) == (2.1, 2.0)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    rows = [
        {"pair": pair, "method": method, "seed": seed, "accuracy": rng.normal()}
        for pair in ("y", "x")
        for method in ("ours", "theirs")
        for seed in range(6)
        if not (pair == "x" and method == "theirs" and seed > 3)
    ]
    return pd.DataFrame(rows)


def test_means_and_spreads_are_those_of_each_group_in_its_order(frame):
    found = mean_spread(frame, ["pair", "method"], "accuracy")
    assert [*found.index] == [("y", "ours"), ("y", "theirs"), ("x", "ours"), ("x", "theirs")]
    values = frame["accuracy"][frame["pair"].eq("x") & frame["method"].eq("theirs")]
    assert found.loc[("x", "theirs")].tolist() == pytest.approx([values.mean(), np.std(values, ddof=1), 4])


def test_differences_are_those_of_the_seeds_that_both_have(frame):
    found = paired_difference(frame, "accuracy", "method", "ours", "theirs", by=["pair"])
    assert found["seeds"].to_dict() == {"y": 6, "x": 4}
    ours, theirs = (
        frame[frame["pair"].eq("x") & frame["method"].eq(m)].set_index("seed")["accuracy"] for m in ("ours", "theirs")
    )
    test = stats.ttest_rel(ours[:4], theirs)
    low, high = test.confidence_interval(0.95)
    expected = [(ours[:4] - theirs).mean(), low, high, 4]
    assert found.loc["x"].tolist() == pytest.approx(expected)


def test_one_seed_has_no_interval(frame):
    found = paired_difference(frame[frame["seed"] == 0], "accuracy", "method", "ours", "theirs", by=["pair"])
    assert found["difference"].notna().all()
    assert found[["low", "high"]].isna().all(axis=None)
