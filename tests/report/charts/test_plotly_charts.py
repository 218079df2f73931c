"""Charts reach the page with their numbers, in dictionaries that plotly knows, and no name as markup."""

import json

import plotly.graph_objects as go
import pytest
from setminus_paper.figures import charts_of

from setminus.report.charts.chart import Area, Bars, Chart, Line, Points, Rule, Surface
from setminus.report.charts.plotly_charts import plotly_figure
from setminus.report.charts.signs import kind_colours


def draw(*marks, **more):
    return plotly_figure(Chart("title", "x", "y", marks, **more))


def test_every_kind_of_mark_is_known_to_plotly(toy_records):
    charts = charts_of(toy_records)
    assert {type(mark) for chart in charts for mark in chart.marks} == {Line, Points, Bars, Surface, Area, Rule}
    for chart in charts:
        figure = json.loads(json.dumps(plotly_figure(chart), allow_nan=False))
        go.Figure(figure)
    with pytest.raises(ValueError, match="dash"):
        go.Figure({"data": [], "layout": {"shapes": [{"line": {"dash": [1]}}]}})


def test_few_points_have_error_bars_and_many_a_band():
    few, many = [1, 2], [*range(1, 31)]
    (line,) = draw(Line(few, [1.0, 2.0], "a", [0.5, 1.0], [2.0, 4.0]))["data"]
    assert line["error_y"]["array"] == [1.0, 2.0]
    assert line["error_y"]["arrayminus"] == [0.5, 1.0]
    band, line = draw(Line(many, many, "a", [n - 1 for n in many], [n + 1 for n in many]))["data"]
    assert "error_y" not in line
    assert (min(band["y"]), max(band["y"])) == (0, 31)
    assert band["hoverinfo"] == "skip"
    assert not band["showlegend"]


def test_a_missing_number_is_a_gap():
    (line,) = draw(Line([1, 2], [None, 2.0], "a", [None, 1.0], [None, 3.0]))["data"]
    assert line["y"] == [None, 2.0]
    assert line["error_y"]["array"] == [None, 1.0]
    (area,) = draw(Area([1, 2, 3], [0, None, 0], [1, 1, 1], "a"))["data"]
    assert area["x"] == [1, 3, 3, 1]


def test_a_surface_has_shades_between_its_ends_and_one_contour():
    shades, boundary = draw(Surface([0, 1], [0, 1], [[0, 1], [2, 4]], "f", low=0, high=4, level=3))["data"]
    assert (shades["type"], shades["zmin"], shades["zmax"]) == ("heatmap", 0, 4)
    assert (boundary["contours"]["start"], boundary["contours"]["end"]) == (3, 3)
    (alone,) = draw(Surface([0, 1], [0, 1], [[0, 1], [2, 4]], "f", level=None))["data"]
    assert alone["type"] == "heatmap"


def test_a_rule_crosses_the_whole_chart_at_its_value():
    level, upright = draw(Rule(0.5, "truth"), Rule(2.0, "chosen", axis="x"))["layout"]["shapes"]
    assert (level["y0"], level["y1"], level["x0"], level["x1"], level["xref"]) == (0.5, 0.5, 0, 1, "x domain")
    assert (upright["x0"], upright["x1"], upright["yref"]) == (2.0, 2.0, "y domain")
    assert level["name"] == "truth (0.5)"
    assert level["line"]["dash"] != upright["line"]["dash"]


def test_scales_and_shape_of_the_axes():
    axes = draw(Line([1, 1000], [1.0, 2.0], "a"), x_scale="log", y_scale="log", square=True)["layout"]
    # three decades: a label for each; less than one: more of them
    assert (axes["xaxis"]["type"], axes["xaxis"]["dtick"], axes["yaxis"]["dtick"]) == ("log", 1, "D2")
    assert axes["yaxis"]["scaleanchor"] == "x"
    plain = draw(Line([1, 2], [1.0, 2.0], "a"))["layout"]
    assert plain["xaxis"]["type"] == "linear"
    assert "scaleanchor" not in plain["yaxis"]
    assert draw(Bars(["a", "1"], [1.0, 2.0], "n"))["layout"]["xaxis"]["type"] == "category"


def test_names_stay_text():
    name = "<b>x</b> {y}"
    chart = Chart(
        name, name, name, [Line([1], [1], name), Bars([name], [1], name), Rule(1, name), Area([1], [0], [1], name)]
    )
    text = json.dumps(plotly_figure(chart), ensure_ascii=False)
    assert "<b>" not in text
    assert "&lt;b&gt;" in text


def test_points_of_several_kinds_have_the_shape_of_their_cloud_and_the_color_of_their_kind():
    clouds = Points([0, 1], [0, 1], "here", [0, 1]), Points([2], [2], "there", [1])
    chart = Chart("t", "x", "y", clouds, kinds=("a", "<b>"))
    shape, points, _, other = plotly_figure(chart)["data"]
    assert points["marker"]["color"] == kind_colours(2) and other["marker"]["color"] == kind_colours(2)[1:]
    assert points["customdata"] == ["a", "&lt;b&gt;"] and "%{customdata}" in points["hovertemplate"]
    # the legend names the cloud once, and shows no kind
    assert (shape["showlegend"], points["showlegend"], shape["x"]) == (True, False, [None])
    assert shape["marker"]["color"] not in kind_colours(2)
    assert shape["marker"]["symbol"] == points["marker"]["symbol"] != other["marker"]["symbol"]
    go.Figure(plotly_figure(chart))
