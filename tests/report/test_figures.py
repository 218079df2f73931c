"""Figures hold the numbers they are given, leave out what is undefined, and never take a name for markup."""

import json

import pytest

from setminus.report.figures import coarse, rates_figure
from setminus.report.theme import SIGNS, plot_text
from setminus.report.trade import frontier_figure, frontier_rows


def rows(**values):
    return [
        {"group": group, "rate": {"value": value, "low": value and value - 0.1, "high": value and value + 0.1}}
        for group, value in values.items()
    ]


def draw(models, places):
    return rates_figure(models, "rate", places=places, span=(0.0, 1.0))


def test_the_band_is_the_gap_of_all_groups_also_of_those_without_a_sign():
    figure = draw([("before", rows(a=0.5, b=0.7, c=0.2)), ("after", rows(a=0.5, b=0.5, c=0.5))], {"a": 0, "b": 1})
    assert [(band["x0"], band["x1"]) for band in figure["layout"]["shapes"]] == [(0.2, 0.7), (0.5, 0.5)]
    assert [trace["x"] for trace in figure["data"]] == [[0.5, 0.5], [0.7, 0.5], [0.2, 0.5]]
    assert "error_x" not in figure["data"][2]


def test_no_two_groups_of_a_model_share_a_line():
    figure = draw([("before", rows(a=0.5, b=0.5, c=0.5))], {"a": 0, "b": 1})
    levels = [trace["y"][0] for trace in figure["data"]]
    assert len({*levels}) == 3
    assert all(-0.4 < level < 0.4 for level in levels)


def test_an_undefined_rate_is_not_drawn():
    figure = draw([("before", rows(a=None, b=0.5)), ("after", rows(a=None, b=None))], {"a": 0, "b": 1})
    assert [trace["x"] for trace in figure["data"]] == [[], [0.5]]
    assert len(figure["layout"]["shapes"]) == 1


def test_signs_differ_in_shape_and_dash_not_only_in_colour():
    for part in ("colour", "symbol", "path", "dash", "dashes"):
        assert len({getattr(sign, part) for sign in SIGNS}) == len(SIGNS)


@pytest.mark.parametrize("name", ["<b>x</b>", "%{x}", "a & b", '"', "x" * 200])
def test_text_reaches_plotly_without_tags_or_fields(name):
    text = plot_text(name)
    assert not {"<", ">", '"', "{"} & {*text}
    assert len(text) <= 70


def test_bins_are_merged_in_pairs():
    edges, share = coarse({"edges": [i / 50 for i in range(51)], "share": [0.02] * 50})
    assert len(edges) == 26
    assert share == [0.04] * 25


def point(gap, score, **decision):
    return {"strength": 0.5, "gap": gap, "score": score, **(decision or {"threshold": 0.4})}


def frontier_of(best):
    return {
        "best": best,
        "chosen": best[0],
        "untouched": point(0.3, 0.8),
        "tolerance": 0.05,
        "score_name": "accuracy",
        "gap_name": "demographic_parity",
    }


def test_the_best_trade_is_in_sight_also_where_it_beats_the_model_as_it_was():
    figure = frontier_figure(frontier_of([point(0.04, 0.7), point(0.2, 0.95)]), [])
    low, high = figure["layout"]["yaxis"]["range"]
    assert low < 0.7 < 0.95 < high


def test_offsets_take_the_place_of_a_threshold():
    figure = frontier_figure(frontier_of([point(0.04, 0.7, offsets=[0.0, -0.5, 0.25])]), [])
    assert figure["data"][0]["customdata"] == ["strength 0.50, offsets 0, -0.5, 0.25"]
    assert "threshold" not in json.dumps(figure["data"][0])


@pytest.mark.parametrize("count", [1, 2, 40, 41, 500])
def test_a_long_frontier_is_thinned_in_the_table_with_both_ends(count):
    best = [point(i / count, i / count) for i in range(count)]
    table = frontier_rows(frontier_of(best), [("after, on the test rows", 0.1, 0.8)])
    assert [row["point"] for row in table[:3]] == ["chosen", "untouched", "tested"]
    trades = [row["gap"] for row in table[3:]]
    assert len(trades) == min(count, 40)
    assert (trades[0], trades[-1]) == (best[0]["gap"], best[-1]["gap"])
