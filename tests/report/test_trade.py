"""The frontier as a figure and as a table: every trade that is in one is findable in the other."""

import json

import pytest

from setminus.report.trade import frontier_figure, frontier_rows


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
