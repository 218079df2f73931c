"""Rows, comparisons and the section of a fairness table follow the numbers of its records: turn them, and they turn."""

import random

import numpy as np
import pytest
from setminus_paper.figures import charts_of
from setminus_paper.report.fairness_tables import (
    _frontier,
    charts,
    comparison,
    fairness_tables_section,
    order,
    rows_of,
    summary,
)
from setminus_paper.reproduce import summary_of

from setminus.charts.chart import SIGNS, places
from setminus.report.page import build_page
from tests.made_tables import ROWS, made_records


@pytest.fixture(scope="module")
def records():
    return made_records()


@pytest.fixture(scope="module")
def section(records):
    return fairness_tables_section(records)


def of_paper(shift=0.0, noise=1e-4, **replaced):
    """The paper's rows with the paper's own numbers, or away from them."""
    own = {method: row[7] for method, row in ROWS.items() if row[7]}
    moved = {method: tuple(value + shift for value in numbers) for method, numbers in own.items()}
    return made_records(methods=tuple(own), noise=noise, **{**moved, **replaced})


def outcome(rival="LEACE", **replaced):
    return next(one for one in comparison(made_records(**replaced)) if one["rival"] == rival)


def test_rows_do_not_depend_on_the_order_of_the_records(records):
    rows, shuffled = rows_of(records), rows_of(random.Random(0).sample(records, len(records)))
    assert rows.index.tolist() == shuffled.index.tolist() and len(rows) == len(ROWS)
    assert rows.label.iloc[0] == "Vanilla" and rows.kind.tolist() == ["paper"] * 9 + ["ours"] * 5 + ["peer"] * 5
    assert rows.index.get_loc("rebias_50") < rows.index.get_loc("rebias_100")
    assert rows.loc["laftr_0.1", "eo_gap.paper"] == 0.09 and np.isnan(rows.loc["tuned", "eo_gap.paper"])


def test_a_seed_that_was_measured_again_counts_once():
    records = made_records(methods=("vanilla",), seeds=3)
    again = {**records[0], "metrics": {**records[0]["metrics"], "validation": records[1]["metrics"]["validation"]}}
    row = rows_of([*records, again]).loc["vanilla"]
    values = [one["metrics"]["validation"]["accuracy"] for one in (records[1], records[1], records[2])]
    assert row.seeds == 3 and row.accuracy == pytest.approx(np.mean(values))


def test_the_interval_holds_one_more_run_as_often_as_it_says():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(60):
        records = made_records(methods=("vanilla", "boosting", "tuned", "leace", "oxonfair"), seeds=7, noise=0.01)
        for record in records:
            record["metrics"]["validation"] = {**record["metrics"]["validation"], "accuracy": rng.normal(0.5, 0.05)}
        rows = rows_of([one for one in records if one["seed"] < 6])
        for one in records:
            if one["seed"] == 6:
                row, value = rows.loc[one["config"]["method"]], one["metrics"]["validation"]["accuracy"]
                inside += row["accuracy.low"] <= value <= row["accuracy.high"]
    assert inside / 300 == pytest.approx(0.95, abs=0.04)


def test_no_interval_without_a_second_seed_and_none_below_zero():
    row = rows_of(made_records(methods=("tuned",), seeds=1)).iloc[0]
    assert np.isnan(row["accuracy.std"]) and np.isnan(row["accuracy.low"])
    assert rows_of(made_records(methods=("tuned",), seeds=2, tuned=(0.8, 0.01, 0.001)))["eo_gap.low"].iloc[0] == 0.0


def test_the_papers_own_numbers_are_near_and_others_are_not():
    assert [(one["inside"], one["numbers"]) for one in order(of_paper(), "validation")] == [(9, 9)] * 3
    far = order(of_paper(shift=0.03), "validation")
    assert [(one["inside"], one["off"]) for one in far] == [(0, "3.0"), (0, "0.03"), (0, "0.03")]


def test_the_papers_order_is_found_and_a_turned_row_is_named():
    # of 36 pairs, those that the paper has level have no order
    accuracy, *_ = order(of_paper(), "validation")
    assert (accuracy["pairs"], accuracy["same"], accuracy["unclear"], accuracy["reversed"]) == (33, 33, 0, "")
    accuracy, _, gap = order(of_paper(vanilla=(0.80, 0.19, 0.20)), "validation")
    assert accuracy["same"] == 25 and accuracy["reversed"].count("> Vanilla") == 8 and gap["reversed"] == ""
    assert order(of_paper(noise=0.2), "validation")[2]["unclear"] > 25


@pytest.mark.parametrize(
    ("rival", "expected"),
    [((0.820, 0.1, 0.30), "win"), ((0.8412, 0.1, 0.0655), "level"), ((0.860, 0.1, 0.01), "lose")],
)
def test_where_we_lose_is_read_from_the_numbers(rival, expected):
    assert outcome(leace=rival)["outcome"] == expected


def test_a_fairer_rival_that_pays_for_it_is_not_called_beaten():
    assert outcome(leace=(0.80, 0.1, 0.005))["outcome"] == "lose"


def test_only_like_is_compared_with_like():
    replaced = {"tuned": (0.90, 0.01, 0.001), "boosting_tuned_proxy": (0.95, 0.01, 0.001)}
    # LEACE needs no group: it is not compared with a row that does, nor with one of other features
    assert "proxy" in outcome(**replaced)["ours"] and "gradient" not in outcome(**replaced)["ours"]
    found = outcome("AIF360 EqOdds", **replaced)
    assert (found["outcome"], found["ours"], found["ours.accuracy"]) == ("win", "w_x \\ w_1, tuned", "90.0")
    rivals = {one["rival"] for one in comparison(made_records())}
    assert not {"Vanilla", "w_x \\ w_1", "gradient boosting"} & rivals


def test_losses_come_first(records):
    outcomes = [one["outcome"] for one in comparison(records)]
    assert outcomes == sorted(outcomes, key=("lose", "level", "win").index) and {"lose", "win"} <= {*outcomes}


def test_no_row_beats_one_of_the_frontier(records):
    rows = rows_of(records)
    best = _frontier(rows)
    for method, row in rows.iterrows():
        beaten = ((rows.accuracy > row.accuracy) & (rows.eo_gap < row.eo_gap)).any()
        assert beaten == (method not in best.index)


def test_each_cell_stands_beside_the_papers(section):
    assert [block["rule"] for block in section["blocks"]] == ["validation", "test_oracle"]
    for block in section["blocks"]:
        found = {one["method"]: one for _, rows in block["groups"] for one in rows}
        assert found.keys() == ROWS.keys()
        accuracy, dp_gap, eo_gap = found["vanilla"]["cells"]
        assert [cell["paper"] for cell in (accuracy, dp_gap, eo_gap)] == ["84.5", "0.19", "0.20"]
        assert accuracy["text"].endswith(" ± 0.2")
        assert accuracy["found"]["low"] < accuracy["found"]["value"] < accuracy["found"]["high"]
        assert [cell["paper"] for cell in found["tuned"]["cells"]] == ["", "", ""]


def test_no_two_series_of_a_chart_look_alike_in_black_and_white(records):
    for signs in places(charts(records)):
        assert len({place % len(SIGNS) for place in signs.values()}) == len(signs)


def test_every_seed_is_a_small_point_and_every_mean_a_large_one(section):
    assert len(section["plots"]) == 4
    for plot in section["plots"]:
        small = [mark for mark in plot.chart.marks if getattr(mark, "small", False)]
        large = [mark for mark in plot.chart.marks if mark not in small]
        assert sum(len(mark.x) for mark in small) == 10 * sum(len(mark.x) for mark in large)
        assert [mark.name for mark in small] == [mark.name for mark in large]
    assert len({(plot.chart.x_range, plot.chart.y_range) for plot in section["plots"]}) == 1


def test_the_command_finds_the_same_by_the_name_of_the_table(records):
    assert charts_of(records) == charts(records) and summary_of(records) == summary(records)
    by_label = {label: (paper, measured) for label, paper, measured in summary(records)[: len(ROWS) + 1]}
    assert by_label["  Vanilla"][0] == "84.5, 0.19, 0.20" and by_label["  LEACE"][0] == ""
    assert by_label["  Vanilla"][1].startswith("84.2 ± 0.2, ")


def test_a_single_seed_and_a_single_row_are_enough():
    pytest.importorskip("vl_convert")
    html = build_page(made_records(methods=("tuned",), seeds=1))
    assert "No rival was measured" in html
    assert "±" not in html[html.index("<tbody>") : html.index("</tbody>")]


def test_the_page_has_a_section_for_each_table_and_escapes_what_it_shows(records):
    pytest.importorskip("vl_convert")
    hostile = made_records("table5", seeds=2)
    for record in hostile:
        record["metrics"]["row"] = {**record["metrics"]["row"], "label": f"<b>{record['metrics']['row']['label']}"}
        record["config"] = {**record["config"], "data": "<i>German"}
    html = build_page([*records, *hostile])
    body = html[html.index("<main") : html.index("</main>")]
    assert body.count("<h1") == 2 and "Table 4: fairness on Adult" in body
    assert "<b>" not in body and "<i>" not in body and "&lt;b&gt;Vanilla" in body
    for one in comparison(records):
        assert f'data-rival="{one["rival"]}" data-outcome="{one["outcome"]}"' in body
