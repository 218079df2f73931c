"""Figure 2c on small images: the formula meets the truth, one hasty epoch does not."""

import numpy as np
import pytest
from setminus_paper.claims import fig2c
from setminus_paper.claims import fig2c as drawn

from setminus.transfer.domain_classifiers import ClassifierConfig


@pytest.fixture(scope="module")
def records():
    """One seed on squares instead of digits: no data is needed."""
    ink = np.zeros((5000, 8, 8, 1), dtype=np.uint8)
    ink[:, 2:6, 2:6] = 255
    config = fig2c.DigitsConfig(8, 4000, ClassifierConfig(width=4, epochs=4, batch_size=64, average=0.95), 300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig2c, "shrunk_digits", lambda pixels: ink)
        metrics = list(fig2c.measure((0,), config=config))
    return [{"name": "fig2c", "config": {}, "seed": 0, "metrics": one} for one in metrics]


def test_the_formula_ends_near_the_two_true_values_and_a_hasty_epoch_does_not(records):
    metrics = records[0]["metrics"]
    assert metrics["truth"] == pytest.approx([0.1, 0.9])
    ways = metrics["ways"]
    assert np.abs(np.subtract(ways["formula"]["mean"], metrics["truth"])).max() < 0.08
    hasty = ways["formula, one short epoch"]
    assert ways["formula"]["absolute_error"] < hasty["absolute_error"]
    assert ways["formula"]["excess_loss"] < hasty["excess_loss"]


def test_histograms_are_shares_and_lie_around_their_means(records):
    middles = (np.arange(fig2c.BINS) + 0.5) / fig2c.BINS
    for way in records[0]["metrics"]["ways"].values():
        for color in (0, 1):
            shares = np.array(way["histogram"][color])
            assert shares.sum() == pytest.approx(1, abs=1e-4)
            assert shares @ middles == pytest.approx(way["mean"][color], abs=0.011)


def test_charts_show_each_way_with_both_truths(records):
    charts = drawn.charts(records)
    assert [chart.title for chart in charts] == ["Formula, one short epoch", "Formula", "Importance sampling"]
    rules = [mark.at for mark in charts[1].marks if type(mark).__name__ == "Rule"]
    assert rules == pytest.approx([0.1, 0.9])
    mean = records[0]["metrics"]["ways"]["formula"]["mean"][0]
    assert f"{mean:.3f}" in charts[1].caption
    assert len(drawn.summary(records)) == 9


def test_the_plan_names_its_sizes():
    (run,) = fig2c.plan("paper", (0, 1))
    assert run.seeds == (0, 1) and run.config["pixels"] == 28 and run.config["classifier"]["width"] == 64
