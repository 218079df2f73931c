"""Figures hold the numbers they are given, leave out what is undefined, and never take a name for markup."""

import pytest

from setminus.report.figures import coarse, rates_figure
from setminus.report.theme import SIGNS, plot_text


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
