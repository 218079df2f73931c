"""The same name has the same sign, in colour and without."""

from setminus.report.charts.chart import Area, Chart, Line, Points, Rule
from setminus.report.charts.signs import kind_colours, look, places
from setminus.report.theme import SIGNS


def chart(*names):
    return Chart("", "", "", [Line([0], [0], name) for name in names])


def test_a_name_keeps_its_place_from_chart_to_chart():
    assert places([chart("a", "b"), chart("c", "b"), chart("a")]) == [{"a": 0, "b": 1}, {"c": 2, "b": 1}, {"a": 0}]


def test_with_more_names_than_signs_each_chart_starts_anew():
    assert places([chart(*"abcd"), chart(*"efg")]) == [
        dict(zip("abcd", range(4), strict=True)),
        {"e": 0, "f": 1, "g": 2},
    ]


def test_the_ground_takes_no_sign():
    mixed = Chart("", "", "", [Rule(0.0, "rule"), Area([0], [0], [1], "area"), Points([0], [0], "rows")])
    assert places([mixed]) == [{"rows": 0}]


def test_signs_differ_without_colours_too():
    first = [look(place) for place in range(len(SIGNS))]
    for part in ("colour", "symbol", "dash", "hatch"):
        assert len({getattr(one, part) for one in first}) == len(SIGNS)


def test_kinds_have_colors_of_their_own():
    for count in (1, 2, 10, 43):
        assert len({*kind_colours(count)}) == count
    assert kind_colours(0) == []
