"""What a chart shows can be read, and heard, without seeing it."""

from itertools import pairwise

from setminus_paper.figures import charts_of

from setminus.report.charts.chart import Area, Bars, Chart, Line, Points, Rule, Surface
from setminus.report.charts.numbers import chart_in_words, chart_table


def test_columns_are_those_that_have_numbers():
    heads, rows = chart_table(
        Chart("t", "n", "gap", [Points([1], [0.5], "a"), Rule(0.25, "truth"), Rule(3, "at", "x")])
    )
    assert heads == ["n", "gap"]
    assert rows == [("a", ["1", "0.5"]), ("truth", ["", "0.25"]), ("at", ["3", ""])]
    heads, rows = chart_table(Chart("t", "n", "gap", [Area([1], [0], [2], "allowed"), Bars(["x"], [None], "b")]))
    assert heads == ["n", "from", "to"]
    assert rows == [("allowed", ["1", "0", "2"]), ("b", ["x", "", ""])]


def test_a_point_says_of_which_kind_it_is():
    heads, rows = chart_table(Chart("t", "x", "y", [Points([0], [1], "here", [1])], kinds=("a", "b")))
    assert (heads, rows) == (["x", "y", "kind"], [("here", ["0", "1", "b"])])


def test_long_series_are_thinned_evenly_and_keep_both_ends():
    _, rows = chart_table(Chart("t", "n", "gap", [Line([*range(1000)], [*range(1000)], "long")]))
    places = [int(cells[0]) for _, cells in rows]
    assert (len(places), places[0], places[-1]) == (40, 0, 999)
    steps = {after - before for before, after in pairwise(places)}
    assert max(steps) - min(steps) <= 1


def test_a_surface_is_read_at_the_corners_too():
    side = [*range(50)]
    heads, rows = chart_table(Chart("t", "a", "b", [Surface(side, side, [[x * y for x in side] for y in side], "f")]))
    assert heads == ["a", "b", "value"]
    assert ("f", ["49", "49", "2401"]) in rows
    assert len(rows) <= 40


def test_every_chart_is_told_in_numbers(toy_records):
    for chart in charts_of(toy_records):
        words = chart_in_words(chart)
        assert all(mark.name in words for mark in chart.marks)
        assert any(character.isdigit() for character in words)
    assert "empty: nothing" in chart_in_words(Chart("t", "", "", [Line([], [], "empty")]))
