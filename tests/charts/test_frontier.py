"""The chart of a frontier has every best trade in sight."""

from setminus.charts.frontier import frontier_chart


def point(gap, score, **decision):
    return {"strength": 0.5, "gap": gap, "score": score, **(decision or {"threshold": 0.4})}


def test_the_best_trade_is_in_sight_also_where_it_beats_the_model_before():
    best = [point(0.04, 0.7), point(0.2, 0.95)]
    marked = [("before", "before", point(0.3, 0.8)), ("chosen", "chosen", best[0])]
    chart = frontier_chart("accuracy", "demographic_parity", best, marked, tolerance=0.05)
    (low, high), (_, right) = chart.y_range, chart.x_range
    assert low < 0.7 < 0.95 < high and right > 0.3
    assert [mark.name for mark in chart.marks] == ["best trades", "before", "chosen", "tolerance"]
    assert (chart.y_format, chart.y_label, chart.x_label) == ("%", "accuracy", "demographic parity gap")


def test_new_rows_are_open_and_offsets_take_the_place_of_a_threshold():
    best = [point(0.04, 0.7, offsets=[0.0, -0.5, 0.25])]
    tested = {"gap": 0.1, "score": 0.6}
    chart = frontier_chart("log_loss", "gap", best, [("after, test rows", "chosen", tested)])
    line, opened = chart.marks
    assert line.notes == ["strength 0.50, offsets 0, -0.5, 0.25"]
    assert opened.open and opened.notes == [""]
