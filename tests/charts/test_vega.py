"""Charts reach Vega-Lite with their numbers, in dictionaries of its schema, and no name as an expression."""

import json

import pytest
from jsonschema import ValidationError
from setminus_paper.figures import charts_of

from setminus.charts.chart import Area, Bars, Chart, Dots, Line, Points, Rule, Span, Surface, kind_colours
from setminus.charts.vega import figures, legend, vega_lite
from tests.vega_schema import vega_lite_schema


def drawn(*marks, **more):
    return vega_lite(Chart("title", "x", "y", marks, **more))


def layers(spec, kind):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def values(layer, field):
    return [row[field] for row in layer["data"]["values"]]


EVERY = [
    Line([1, 2], [1, None], "line", [0, None], [2, None], notes=["a", "b"]),
    Line([0.1, 0.2], [1, 2], "steps", steps=True, markers=False),
    Line([0, 1], [0, 1], "exact", markers=False, role="reference"),
    Points([1], [1], "open", role="chosen", open=True),
    Points([1, 2], [1, 2], "kinds", [0, 1]),
    Area([1, 2], [0, 1], [2, 3], "area"),
    Rule(1.5, "rule", axis="x"),
    Surface([0, 1], [0, 1], [[0, 1], [0, None]], "surface"),
]
ROWS = [Span(["a", "b"], [0.1, None], [0.2, None], "gap"), Dots(["a", "b"], [0.1, None], [0, None], [1, None], "f")]
ROWS.append(Dots(["a", "a"], [0.3, 0.4], [0, 0], [1, 1], "others", notes=["g", "h"], role="reference"))


def test_every_kind_of_mark_keeps_to_the_schema(toy_records):
    charts = charts_of(toy_records)
    charts += [Chart("t", "x", "y", EVERY, kinds=("k", "l")), Chart("t", "x", "", ROWS, x_range=(0, 1), x_format="%")]
    charts += [Chart("none", "x", "y", []), Chart("t", "", "", [Bars(["a long name of a class"] * 2, [1, 2], "b")])]
    kinds = {type(mark) for chart in charts for mark in chart.marks}
    assert kinds == {Line, Points, Bars, Dots, Span, Surface, Area, Rule}
    for chart in charts:
        vega_lite_schema().validate(json.loads(json.dumps(vega_lite(chart), allow_nan=False)))
    with pytest.raises(ValidationError):
        vega_lite_schema().validate({**vega_lite(charts[0]), "width": "wide"})


def test_few_points_have_error_bars_and_many_a_band():
    few, many = [1, 2], [*range(1, 31)]
    spec = drawn(Line(few, [1.0, 2.0], "a", [0.5, 1.0], [2.0, 4.0]))
    (bars,) = layers(spec, "rule")
    assert (values(bars, "low"), values(bars, "high")) == ([0.5, 1.0], [2.0, 4.0])
    assert not layers(spec, "area")
    spec = drawn(Line(many, many, "a", [n - 1 for n in many], [n + 1 for n in many]))
    (band,) = layers(spec, "area")
    assert (min(values(band, "low")), max(values(band, "high"))) == (0, 31)
    assert not layers(spec, "rule") and "tooltip" not in band["encoding"]


def test_a_missing_number_is_a_gap():
    spec = drawn(Line([1, 2], [None, 2.0], "a", [None, 1.0], [None, 3.0]))
    assert values(layers(spec, "line")[0], "y") == [None, 2.0]
    assert values(layers(spec, "point")[0], "y") == values(layers(spec, "rule")[0], "y") == [2.0]
    (area,) = layers(drawn(Area([1, 2, 3], [0, None, 0], [1, 1, 1], "a")), "area")
    assert values(area, "x") == [1, 3]


def test_a_log_scale_leaves_out_what_it_cannot_show():
    assert values(layers(drawn(Line([1, 10], [float("nan"), 2.0], "a")), "line")[0], "y") == [None, 2.0]
    spec = drawn(Line([1, 10], [0.0, 2.0], "a"), y_scale="log")
    assert values(layers(spec, "line")[0], "y") == [None, 2.0]
    assert values(layers(spec, "point")[0], "y") == [2.0]


def test_a_line_keeps_the_order_of_its_points():
    (line,) = layers(drawn(Line([2, 1, 3], [1, 2, 3], "back")), "line")
    assert values(line, "x") == [2, 1, 3]
    assert line["encoding"]["order"]["field"] == "i" and values(line, "i") == [0, 1, 2]


def test_a_surface_has_shades_between_its_ends_and_one_contour():
    spec = drawn(Surface([0, 1], [0, 1], [[0, 1], [2, 4]], "f", low=0, high=4, level=3))
    (shades,), (boundary,) = layers(spec, "rect"), layers(spec, "line")
    assert shades["encoding"]["opacity"]["scale"]["domain"] == [0, 4]
    assert values(shades, "value") == [0, 1, 2, 4] and values(shades, "label")[-1] == "f 4.000"
    assert sorted(zip(values(boundary, "x"), values(boundary, "y"), strict=True)) == [(0.5, 1.0), (1.0, 0.66667)]
    assert not layers(drawn(Surface([0, 1], [0, 1], [[0, 1], [2, 4]], "f", level=None)), "line")


def test_a_rule_crosses_the_whole_chart_at_its_value():
    level, upright = layers(drawn(Rule(0.5, "truth"), Rule(2.0, "chosen", axis="x")), "rule")
    assert values(level, "y") == [0.5] and "x" not in level["encoding"]
    assert values(upright, "x") == [2.0] and "y" not in upright["encoding"]
    assert level["mark"]["strokeDash"] != upright["mark"]["strokeDash"]


def test_scales_ticks_and_ranges_of_the_axes():
    spec = drawn(Line([1, 1000], [1.0, 2.0], "a"), x_scale="log", y_scale="log")
    x, y = (spec["layer"][0]["encoding"][axis] for axis in "xy")
    # three decades: a label for each; less than one: more of them
    assert x["scale"]["type"] == "log" and x["axis"]["values"] == [1, 10, 100, 1000]
    assert y["axis"]["values"][:4] == [1, 2, 5, 10]
    plain = drawn(Line([1, 2], [1.0, 2.0], "a"), x_range=(0, 3), y_format="%")
    x, y = (plain["layer"][0]["encoding"][axis] for axis in "xy")
    assert x["scale"] == {"type": "linear", "zero": False, "domain": [0, 3], "nice": False}
    assert y["axis"]["format"] == "~%" and "domain" not in y["scale"]
    assert all(layer["mark"]["clip"] for layer in plain["layer"])


def test_a_square_chart_has_one_scale():
    spec = drawn(Points([0, 2], [0, 1], "a"), square=True)
    (low, high), (bottom, top) = (spec["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
    assert spec["width"] / (high - low) == pytest.approx(spec["height"] / (top - bottom), rel=0.02)
    assert drawn(Points([0, 2], [0, 1], "a"))["width"] == "container"


def test_bars_stand_beside_each_other_above_their_names():
    one, two = drawn(Bars(["a", "b"], [1, None], "one"), Bars(["a", "b"], [3, 4], "two"))["layer"]
    assert one["encoding"]["x"]["scale"]["domain"] == ["a", "b"]
    assert one["encoding"]["xOffset"]["scale"]["domain"] == [0, 1]
    assert (values(one, "s"), values(two, "s")) == ([0], [1, 1])
    (histogram,) = drawn(Bars([0.25, 0.75], [0.5, 0.5], "rows"))["layer"]
    ends = [*zip(values(histogram, "x"), values(histogram, "x2"), strict=True)]
    assert all(low < middle < high for (low, high), middle in zip(ends, [0.25, 0.75], strict=True))
    assert ends[0][1] <= ends[1][0]


def test_names_that_differ_in_spaces_only_keep_their_places():
    (bars,) = drawn(Bars(["a b", "a  b"], [1, 2], "one"))["layer"]
    assert values(bars, "x") == bars["encoding"]["x"]["scale"]["domain"] == ["a b", "a  b"]


def test_dots_of_several_series_share_a_row_in_lanes():
    spec = drawn(*ROWS, x_format="%")
    (band,) = layers(spec, "bar")
    assert band["data"]["values"] == [{"x": 0.1, "x2": 0.2, "y": "a"}]
    own, others = layers(spec, "point")
    assert values(own, "label") == ["f, a\nx 10.0 %\ninterval 0.0 % to 100.0 %"]
    assert [label.split("\n")[0] for label in values(others, "label")] == ["g, a", "h, a"]
    assert (values(own, "s"), values(others, "s")) == ([0], [1, 1])


def test_points_of_several_kinds_have_the_shape_of_their_cloud_and_the_color_of_their_kind():
    clouds = Points([0, 1], [0, 1], "here", [0, 1]), Points([2], [2], "there", [1])
    chart = Chart("t", "x", "y", clouds, kinds=("a", "<b>"))
    one, other = vega_lite(chart)["layer"]
    assert (values(one, "colour"), values(other, "colour")) == (kind_colours(2), kind_colours(2)[1:])
    assert values(one, "label") == ["a, here", "<b>, here"]
    assert one["mark"]["shape"] != other["mark"]["shape"]
    entries = legend(chart, {"here": 0, "there": 1})
    assert [entry["name"] for entry in entries] == ["here", "there"]
    assert not {entry["colour"] for entry in entries} & {*kind_colours(2)}


def expressions(value, inside=False):
    """Every text of a dictionary that Vega would evaluate."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from expressions(item, inside or key in {"expr", "signal", "labelExpr", "calculate", "filter"})
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item, inside)
    elif inside and isinstance(value, str):
        yield value


def test_no_expression_contains_a_name():
    name = "');alert(1)//"
    marks = [Line([1], [1], name), Rule(1, name), Area([1], [0], [1], name), Points([1], [1], name, notes=[name])]
    charts = [Chart(name, name, name, marks), Chart(name, name, name, [Bars([name], [1], name)])]
    charts.append(Chart(name, name, name, [Dots([name], [1], [0], [2], name), Span([name], [0], [1], name)]))
    found = [text for chart in charts for text in expressions(vega_lite(chart))]
    assert found == ["split(datum.label, '\\n')"]
    # the negative control
    assert [*expressions({"tooltip": {"signal": name}})] == [name]


def test_the_legend_names_every_mark_once(toy_records):
    for figure in figures(charts_of(toy_records)):
        names = [entry["name"] for entry in figure.legend]
        assert len(names) == len({*names})
        assert all(any(mark.name in name for name in names) for mark in figure.chart.marks)
    both = Chart("", "", "", [Points([1], [1], "a", small=True), Line([1], [1], "a")])
    (entry,) = legend(both, {"a": 0})
    assert {"path", "dashes"} <= {*entry}


def test_figures_share_signs_and_have_ids():
    a, b = Chart("", "", "", [Line([0], [0], "x"), Line([0], [0], "y")]), Chart("", "", "", [Line([0], [0], "y")])
    first, second = figures([a, b], "curve")
    assert (first.id, second.id) == ("curve-0", "curve-1")
    assert first.legend[1] == second.legend[0]
    (wide,) = figures([Chart("", "", "", [Bars([f"class {i}" for i in range(20)], [1] * 20, "b")])])
    assert wide.wide and not first.wide
