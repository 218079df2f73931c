"""Charts and summaries of the claims, from the committed records and from changed ones."""

import copy
import json
from importlib import import_module

import pytest
from setminus_paper.reproduce import LABORATORY

from setminus.charts.chart import Bars, Line, Points, Rule, Surface
from tests.paper.claims.committed import committed, has_the_keys_of

PANELS = [[Points] * 2, *[[Surface] * 2] * 3]
MARKS = {
    "fig1": [*PANELS, *PANELS, [Bars] * 4],
    "fig2a": [[Line, Line, Rule], [Line, Line], [Line, Line]] * 3,
    "fig2b": [[Line, Line, Rule], [Line, Line]] * 2,
    "fig2c": [[Bars, Bars, Rule, Rule]] * 3,
    "prop1": [[*[Points] * 5, Rule]] * 2,
    "prop2": [[Line] * 4, [Bars] * 4],
    "prop3": [[*[Points] * 4, Rule], [Line] * 3],
    "prop4": [[Line] * 2, [Line] * 3],
    "prop5": [[Surface], [Surface, Points, Points], [Bars, Bars, Rule], [Bars, Bars, Rule], [Points, Points]],
    "prop6": [[*[Line] * 4, Rule], [*[Line] * 3, Rule], [Line, Line, Rule]],
    "prop7": [*[[Line] * 3] * 6, [Bars, Bars, Rule]],
    "theorem1": [[Line] * 5, [Line] * 2],
    "pitfalls": [[Bars, Rule, Rule], *[[Line] * 2, [Line] * 3] * 2],
}


@pytest.fixture(scope="module", params=LABORATORY)
def claim(request):
    return import_module(f"setminus_paper.claims.{request.param}"), request.param, committed(request.param)


SMALL = {
    "prop1": {"sizes": {"n_classes": 2, "n_z1": 2, "n_z2": 3, "draws": 5}},
    "prop2": {"shape": (2, 3), "starts": 2},
    "prop3": {"starts": 1},
    "prop4": {"rows": 2000},
    "theorem1": {"draws": 20},
}


@pytest.mark.parametrize("name", SMALL)
def test_experiments_still_write_such_records_as_are_committed(name):
    run = import_module(f"setminus_paper.claims.{name}").plan("quick", (0,))[0]
    (metrics,) = run.measure((0,), **SMALL[name])
    # NaN is not JSON
    assert has_the_keys_of(name, {}, json.loads(json.dumps(metrics, allow_nan=False)))


def changed(records, change):
    """The same settings with other measurements."""
    wrong = copy.deepcopy(records)
    for record in wrong:
        record["metrics"] = change(record["metrics"])
    return wrong


def test_charts_have_their_marks_captions_and_different_titles(claim):
    module, name, records = claim
    charts = module.charts(records)
    assert sorted(map(str, ([type(mark) for mark in chart.marks] for chart in charts))) == sorted(map(str, MARKS[name]))
    assert len({chart.title for chart in charts}) == len(charts)
    for chart in charts:
        assert chart.caption
        names = [mark.name for mark in chart.marks]
        assert len({*names}) == len(names) <= 6, "six signs can be distinguished in black and white"
        for mark in chart.marks:
            # proposition 4 has the quartiles around a mean
            if isinstance(mark, Line | Bars) and mark.low is not None and name != "prop4":
                assert all(low <= y <= high for low, y, high in zip(mark.low, mark.y, mark.high, strict=True))


def test_summary_rows_are_three_texts_with_different_quantities_or_neighbours(claim):
    module, _, records = claim
    rows = module.summary(records)
    assert len(rows) >= 6
    assert all(len(row) == 3 and all(isinstance(cell, str) for cell in row) and row[0] and row[2] for row in rows)


def test_the_numbers_come_from_the_records(claim):
    module, _, records = claim
    tripled = changed(records, lambda metrics: json.loads(json.dumps(metrics), parse_float=lambda x: 3 * float(x)))
    before, after = module.summary(records), module.summary(tripled)
    assert sum(one[2] != other[2] for one, other in zip(before, after, strict=False)) > len(before) / 2
    assert module.charts(tripled)[-1].marks != module.charts(records)[-1].marks


@pytest.mark.parametrize("name", ["fig1", "fig2a", "prop5", "prop6", "prop7", "pitfalls"])
def test_one_setting_of_several_is_enough(name):
    module, records = import_module(f"setminus_paper.claims.{name}"), committed(name)
    configs = {json.dumps(record["config"]): record["config"] for record in records}
    for config in configs.values():
        same = [record for record in records if record["config"] == config]
        assert 0 < len(module.charts(same)) <= len(module.charts(records))
        assert 0 < len(module.summary(same)) < len(module.summary(records))


def test_fig1_shows_the_measured_angle_and_not_the_claim():
    from setminus_paper.claims.fig1 import summary

    def turned(metrics):
        return {**metrics, "trained": {**metrics["trained"], "principal_orthogonal": 12.0}}

    equal = [record for record in committed("fig1") if record["config"]["variances"] == "equal"]
    right, wrong = (summary(records)[0] for records in (equal, changed(equal, turned)))
    found = [record["metrics"]["trained"]["principal_orthogonal"] for record in equal]
    assert right[1:] == ("90.00", f"{sum(found) / 3:.2f} ({min(found):.2f} to {max(found):.2f})")
    assert wrong == (*right[:2], "12.00")


def made_training(name, divergence, rate, seed, importance):
    metrics = {"divergence": divergence, "variance": 1.1, "variance_exact": 1.0, "loss_exact": 0.3}
    for way, excess in (("importance", importance), ("orthogonal", 0.01)):
        metrics |= {f"{way}_excess": excess, f"{way}_loss": 0.3 + excess}
    return {"name": name, "config": {"data": "gaussians", "batch": 32, "rate": rate}, "seed": seed, "metrics": metrics}


def test_fig2a_draws_medians_in_the_order_of_the_divergence_and_keeps_trainings_apart():
    from setminus_paper.claims.fig2a import charts, summary

    swept = [made_training("fig2a", d, 0.1, seed, d * (1 + seed)) for d in (10.0, 0.1) for seed in (0, 1, 2)]
    loss, excess, variance = charts(swept)
    line = excess.marks[0]
    assert line.name == "importance sampling"
    assert [*line.x] == [0.1, 10.0] and line.y == pytest.approx([0.2, 20.0]) and line.low == pytest.approx([0.1, 10])
    assert loss.marks[0].y == pytest.approx([0.5, 20.3])
    assert [mark.name for mark in variance.marks] == ["the paper's formula", "measured"]
    other = [made_training("fig2a", 1.0, 0.03, 0, 5.0)]
    assert len(charts(swept + other)) == 6
    assert any("rate 0.03" in quantity for quantity, _, _ in summary(swept + other))


def test_fig2b_draws_rates_in_their_order():
    from setminus_paper.claims.fig2b import charts, summary

    some = [made_training("fig2b", 30.0, rate, 0, rate) for rate in (0.3, 0.01, 0.1)]
    _, excess = charts(some)
    assert [*excess.marks[0].x] == [0.01, 0.1, 0.3] == [*excess.marks[0].y]
    assert len(summary(some)) == 6


def test_pitfalls_count_the_seeds_on_which_the_penalty_helped():
    from setminus_paper.claims.pitfalls import charts, summary

    losses = {"exact": 0.2, "one network": 0.8, "none": 0.5, "dot": 0.45}
    biased = [
        {
            "config": {"pitfall": "simplicity bias"},
            "metrics": {"classifiers": {k: {"loss": v} for k, v in {**losses, "cosine": cosine}.items()}},
        }
        for cosine in (0.4, 0.6)
    ]
    (chart,) = charts(biased)
    assert "in 1 of 2 seeds" in chart.caption
    assert summary(biased)[-1][2] == "0.000 ± 0.100"


def test_both_readings_of_the_matrix_are_shown():
    from setminus_paper.claims.prop7 import summary

    readings = [row[1:] for row in summary(committed("prop7")) if row[0].endswith("condition")]
    assert readings == [("-2", "-2"), ("-2", "104"), ("not in the paper", "-10")]
