"""The charts of figure 2 and of the pitfalls say what the records say."""

import pytest
from setminus_paper.claims import fig2a, fig2b, pitfalls

from setminus.report.charts.chart import Line


def record(name, divergence, rate, seed, importance, data="gaussians"):
    metrics = {"divergence": divergence, "variance": 1.1, "variance_exact": 1.0, "loss_exact": 0.3}
    for method, excess in (("importance", importance), ("orthogonal", 0.01)):
        metrics |= {f"{method}_excess": excess, f"{method}_loss": 0.3 + excess}
    return {"name": name, "config": {"data": data, "batch": 32, "rate": rate}, "seed": seed, "metrics": metrics}


@pytest.fixture
def swept():
    return [record("fig2a", d, 0.1, seed, d * (1 + seed)) for d in (10.0, 0.1) for seed in (0, 1, 2)]


def test_fig2a_draws_medians_in_the_order_of_the_divergence(swept):
    loss, excess, variance = fig2a.charts(swept)
    line = excess.marks[0]
    assert isinstance(line, Line) and line.name == "importance sampling"
    assert [*line.x] == [0.1, 10.0] and line.y == pytest.approx([0.2, 20.0]) and line.low == pytest.approx([0.1, 10])
    assert loss.marks[0].y == pytest.approx([0.5, 20.3])
    assert [mark.name for mark in variance.marks] == ["the paper's formula", "measured"]
    assert "importance sampling from 0.2 to 20" in excess.caption


def test_fig2a_keeps_trainings_apart(swept):
    other = [record("fig2a", 1.0, 0.03, 0, 5.0)]
    assert len(fig2a.charts(swept + other)) == 6
    assert any("rate 0.03" in what for what, _, _ in fig2a.summary(swept + other))


def test_fig2b_draws_rates():
    some = [record("fig2b", 30.0, rate, 0, rate) for rate in (0.3, 0.01, 0.1)]
    _, excess = fig2b.charts(some)
    assert [*excess.marks[0].x] == [0.01, 0.1, 0.3] == [*excess.marks[0].y]
    assert len(fig2b.summary(some)) == 6


def test_pitfalls_say_how_often_the_penalty_helped():
    losses = {"exact": 0.2, "one network": 0.8, "none": 0.5, "dot": 0.45}
    biased = [
        {
            "config": {"pitfall": "simplicity bias"},
            "metrics": {"classifiers": {k: {"loss": v} for k, v in {**losses, "cosine": cosine}.items()}},
        }
        for cosine in (0.4, 0.6)
    ]
    (chart,) = pitfalls.charts(biased)
    assert "in 1 of 2 seeds" in chart.caption
    columns = {"excess": [0.5, 0.1], "leakage": [0.2, 0.0]}
    metrics = {"sharpness": [1, 2], "sharp": columns, "cured": columns, "epochs": [10, 20]}
    metrics["trained"] = dict.fromkeys(("full", "as trained", "temperature"), columns)
    other = [{"config": {"pitfall": "miscalibration"}, "metrics": metrics}]
    assert len(pitfalls.charts(biased + other)) == 5
    assert ("excess loss in nats, logits times 2: no cure", "0", "0.100") in pitfalls.summary(other)
