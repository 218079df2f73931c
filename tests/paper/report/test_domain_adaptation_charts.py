"""The charts of table 3 draw what the records hold."""

import json

import numpy as np
import pytest
from setminus_paper.report.domain_adaptation import (
    class_chart,
    feature_charts,
    frame_of,
    frequency_charts,
    gain_charts,
    shift_charts,
    signs_of,
)

from setminus.charts.chart import Bars, Line, Points, Rule, sign_of
from setminus.charts.picture import draw
from setminus.charts.vega import vega_lite
from tests.made_adaptation import STEPS, made_record, made_records
from tests.vega_schema import vega_lite_schema


def parts(frame):
    return [own for _, own in frame.groupby(["pair", "shift"], sort=False)]


@pytest.fixture(scope="module")
def frame():
    curve = [
        made_record(method, value + 0.01 * seed, pair="mnist-usps", seed=seed, shift=shift)
        for shift in (0.5, 0.95)
        for method, value in (("vada", 0.6), ("vada_orthogonal_em", 0.6 + shift / 10))
        for seed in range(3)
    ]
    return frame_of([*made_records("mnist-usps"), *made_records(), *made_records("mnist-svhn", seeds=1), *curve])


@pytest.fixture(scope="module")
def every(frame):
    per_pair = [chart for own in parts(frame) for chart in (*frequency_charts(own), *feature_charts(own))]
    return [*gain_charts(frame), *shift_charts(frame), *filter(None, map(class_chart, parts(frame))), *per_pair]


def test_gains_stand_beside_the_papers_with_intervals_where_there_are_seeds(frame):
    several, one = gain_charts(frame)
    ours, paper = several.marks
    assert [*ours.x] == ["mnist-usps", "svhn-mnist"] and paper.y[0] is None and paper.y[1] == pytest.approx(4)
    assert all(low < mean < high for low, mean, high in zip(ours.low, ours.y, ours.high, strict=True))
    assert [*one.marks[0].x] == ["mnist-svhn"] and one.marks[0].low is None


def test_the_curve_has_spread_and_the_gain_its_interval(frame):
    accuracy, gain = shift_charts(frame)
    lines = {line.name: line for line in accuracy.marks}
    assert {*lines} == {"VADA", "VADA + w_x \\ w_1 (EM)"}
    vada = lines["VADA"]
    assert [*vada.x] == [50, 70, 95] and vada.y[0] == pytest.approx(61)
    assert vada.high[0] - vada.y[0] == pytest.approx(1)
    (line, rule) = gain.marks
    assert line.y[0] == pytest.approx(5) and line.y[-1] == pytest.approx(9.5) and isinstance(rule, Rule)


def test_whiskers_are_left_out_where_a_shift_has_one_seed():
    records = [made_record(method, 0.5, shift=s) for s in (0.5, 0.7) for method in ("vada", "vada_orthogonal_em")]
    accuracy, gain = shift_charts(frame_of(records))
    assert all(line.low is None for line in (*accuracy.marks, gain.marks[0]))


def test_classes_are_means_over_those_that_have_a_number(frame):
    chart = class_chart(parts(frame)[0])
    assert [bars.name for bars in chart.marks][:2] == ["Source-Only", "VADA"] and len(chart.marks) == 3
    assert chart.marks[0].y[0] is None
    own = parts(frame)[0]
    found = [one["class_accuracy"][3] for one in own[own.method == "vada"].metrics]
    assert chart.marks[1].y[3] == pytest.approx(100 * np.mean(found), abs=0.01)
    assert chart.caption == "The first 5 classes are 70 % of the source, and 30 % of the target."


def test_distances_to_the_true_frequencies_are_those_of_total_variation(frame):
    distance, final = frequency_charts(parts(frame)[0])
    lines = {mark.name: mark for mark in distance.marks if isinstance(mark, Line)}
    assert [*lines] == ["VADA + IW", "EM", "BBSE", "shrunk pseudo-labels", "pseudo-labels", "VADA: its predictions"]
    # the made estimate begins at the source's frequencies, 0.4 away, and ends at a tenth of that
    assert lines["EM"].y[0] == pytest.approx(0.4) and lines["EM"].y[-1] == pytest.approx(0.04)
    assert [*lines["EM"].x] == STEPS and lines["EM"].low is not None
    assert lines["VADA: its predictions"].y[-1] == pytest.approx(0.4)
    assert [mark.at for mark in distance.marks if isinstance(mark, Rule)] == [0.4, 0.2]
    truth, *estimates = final.marks
    assert truth.y == pytest.approx([6] * 5 + [14] * 5) and len(estimates) == 5
    assert estimates[0].y[0] == pytest.approx(6.8)


def test_of_many_classes_fewer_bars_are_drawn():
    (pair,) = parts(frame_of(made_records(classes=tuple(map(str, range(43))))))
    _, final = frequency_charts(pair)
    assert [bars.name for bars in final.marks] == ["true", "EM"]


def test_without_an_estimate_there_is_no_chart_of_frequencies():
    (pair,) = parts(frame_of([made_record("vada", 0.5)]))
    assert frequency_charts(pair) == []


def test_features_have_a_color_for_each_class_and_what_is_shared_is_drawn_once(frame):
    charts = feature_charts(parts(frame)[1])
    assert [chart.title.split(": ")[0] for chart in charts] == [
        "svhn-mnist, before adaptation",
        *["svhn-mnist, at the end"] * 3,
    ]
    assert charts[0].title.endswith("Source-Only, VADA, VADA + w_x \\ w_1 (shrunk)")
    source, target = charts[1].marks
    assert isinstance(source, Points) and (source.name, target.name) == ("source", "target")
    assert len(source.x) == len(target.x) == 150 and [*source.kinds[:3]] == [0, 1, 2]
    assert charts[1].kinds == list("0123456789")
    assert charts[0].caption.startswith("For 100 % of the target's points")


def test_a_method_has_one_sign_and_no_two_of_a_chart_are_alike(frame, every):
    signs = signs_of(frame)
    for chart in every:
        names = [mark.name for mark in chart.marks if isinstance(mark, Line | Bars | Points)]
        looks = [sign_of(signs[name]) for name in names]
        assert len({one.colour for one in looks}) == len(names)


def test_all_of_them_are_drawn(frame, every, tmp_path):
    # one of each sort: the schema takes its time to check them
    sorts = {chart.title.split(": ")[-1][:12]: chart for chart in every}
    for chart in sorts.values():
        vega_lite_schema().validate(json.loads(json.dumps(vega_lite(chart, signs_of(frame)), allow_nan=False)))
    draw(every[:1] + every[-1:], tmp_path / "charts.png")
    assert (tmp_path / "charts.png").stat().st_size > 10_000
