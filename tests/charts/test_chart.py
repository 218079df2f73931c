"""A chart in words and numbers, and the sign of each of its series."""

from itertools import pairwise

from setminus_paper.figures import charts_of

from setminus.charts.chart import (
    SIGNS,
    Area,
    Bars,
    Chart,
    Dots,
    Line,
    Points,
    Rule,
    Span,
    Surface,
    chart_in_words,
    chart_table,
    contour,
    kind_colours,
    places,
    sign_of,
)


def chart(*names):
    return Chart("", "", "", [Line([0], [0], name) for name in names])


def test_columns_are_those_that_have_numbers():
    heads, rows = chart_table(
        Chart("t", "n", "gap", [Points([1], [0.5], "a"), Rule(0.25, "truth"), Rule(3, "at", "x")])
    )
    assert heads == ["n", "gap"]
    assert rows == [("a", ["1", "0.5"]), ("truth", ["", "0.25"]), ("at", ["3", ""])]
    heads, rows = chart_table(Chart("t", "n", "gap", [Area([1], [0], [2], "allowed"), Bars(["x"], [None], "b")]))
    assert heads == ["n", "from", "to"]
    assert rows == [("allowed", ["1", "0", "2"]), ("b", ["x", "", ""])]


def test_dots_and_spans_are_read_row_by_row():
    dots = Dots(["before", "after"], [0.5, None], [0.25, None], [0.75, None], "f")
    both = Chart("t", "rate", "", [Span(["before", "after"], [0.5, None], [0.7, None], "gap"), dots])
    heads, rows = chart_table(both)
    assert heads == ["rate", "", "from", "to"]
    assert ("f", ["0.5", "before", "0.25", "0.75"]) in rows and ("gap", ["", "before", "0.5", "0.7"]) in rows
    assert "f: before 0.5, after undefined." in chart_in_words(both)


def test_a_point_has_its_kind():
    heads, rows = chart_table(Chart("t", "x", "y", [Points([0], [1], "here", [1])], kinds=("a", "b")))
    assert (heads, rows) == (["x", "y", "kind"], [("here", ["0", "1", "b"])])


def test_long_series_are_thinned_evenly_and_keep_both_ends():
    _, rows = chart_table(Chart("t", "n", "gap", [Line([*range(1000)], [*range(1000)], "long")]))
    shown = [int(cells[0]) for _, cells in rows]
    assert (len(shown), shown[0], shown[-1]) == (40, 0, 999)
    steps = {after - before for before, after in pairwise(shown)}
    assert max(steps) - min(steps) <= 1


def test_a_surface_is_read_at_the_corners_too():
    side = [*range(50)]
    heads, rows = chart_table(Chart("t", "a", "b", [Surface(side, side, [[x * y for x in side] for y in side], "f")]))
    assert heads == ["a", "b", "value"]
    assert ("f", ["49", "49", "2401"]) in rows
    assert len(rows) <= 40


def test_every_chart_has_its_numbers_in_words(toy_records):
    for one in charts_of(toy_records):
        words = chart_in_words(one)
        assert all(mark.name in words for mark in one.marks)
        assert any(character.isdigit() for character in words)
    assert "empty: nothing" in chart_in_words(Chart("t", "", "", [Line([], [], "empty")]))


def test_a_name_keeps_its_place_from_chart_to_chart():
    assert places([chart("a", "b"), chart("c", "b"), chart("a")]) == [{"a": 0, "b": 1}, {"c": 2, "b": 1}, {"a": 0}]


def test_with_more_names_than_signs_each_chart_starts_anew():
    assert places([chart(*"abcd"), chart(*"efg")]) == [
        dict(zip("abcd", range(4), strict=True)),
        {"e": 0, "f": 1, "g": 2},
    ]


def test_background_and_roles_take_no_sign():
    marks = [Rule(0.0, "rule"), Area([0], [0], [1], "area"), Points([0], [0], "rows"), Span(["a"], [0], [1], "gap")]
    marks += [Points([0], [0], "chosen", role="chosen"), Line([0], [0], "exact", role="reference")]
    assert places([Chart("", "", "", marks)]) == [{"rows": 0}]


def test_signs_differ_without_colours_too():
    first = [sign_of(place) for place in range(len(SIGNS))]
    for part in ("colour", "path", "dashes"):
        assert len({getattr(one, part) for one in first}) == len(SIGNS)


def test_kinds_have_colors_of_their_own():
    for count in (1, 2, 10, 43):
        assert len({*kind_colours(count)}) == count
    assert kind_colours(0) == []


def test_a_contour_is_where_the_surface_has_its_level():
    side = [i / 20 for i in range(-20, 21)]
    circle = contour(side, side, [[x * x + y * y for x in side] for y in side], 0.5)
    (ring,) = circle
    assert ring[0] == ring[-1] and len(ring) > 40
    assert all(abs(x * x + y * y - 0.5) < 0.005 for x, y in ring)
    assert contour(side, side, [side for _ in side], 2.0) == []
