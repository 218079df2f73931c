"""The section of a fairness table: both rules, the paper beside ours, clouds of seeds, and no text as markup."""

import pytest
from setminus_paper.figures import charts_of, summary_of
from setminus_paper.report.fairness_tables import charts, fairness_tables_section, summary

from setminus.charts.chart import SIGNS, places
from setminus.report.page import build_page
from tests.made_tables import ROWS, made_records


@pytest.fixture(scope="module")
def records():
    return made_records()


@pytest.fixture(scope="module")
def section(records):
    return fairness_tables_section(records)


def test_each_cell_stands_beside_the_papers(section):
    assert [block["rule"] for block in section["blocks"]] == ["validation", "test_oracle"]
    for block in section["blocks"]:
        found = {one["row"].method: one for _, rows in block["groups"] for one in rows}
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
        assert [mark.name for mark in small] == [mark.name for mark in large] == [one["name"] for one in plot.legend]
    assert sum(len(mark.x) for mark in plot.chart.marks) == 11 * len(ROWS)
    assert len({(plot.chart.x_range, plot.chart.y_range) for plot in section["plots"]}) == 1


def test_the_command_finds_the_same_by_the_name_of_the_table(records):
    assert charts_of(records) == charts(records)
    told = {what: (paper, measured) for what, paper, measured in summary_of(records)[: len(ROWS) + 1]}
    assert summary_of(records) == summary(records)
    assert told["  Vanilla"][0] == "84.5, 0.19, 0.20"
    assert told["  Vanilla"][1].startswith("84.2 ± 0.2, ")
    assert told["  LEACE"][0] == ""


def test_a_single_seed_and_a_single_row_are_enough():
    html = build_page(made_records(methods=("tuned",), seeds=1))
    assert "No rival was measured" in html
    assert "±" not in html[html.index("<tbody>") : html.index("</tbody>")]


def test_the_page_has_a_section_for_each_table_and_escapes_what_it_shows(records):
    hostile = made_records("table5", seeds=2)
    for record in hostile:
        record["metrics"]["row"] = {**record["metrics"]["row"], "label": f"<b>{record['metrics']['row']['label']}"}
        record["config"] = {**record["config"], "data": "<i>German"}
    html = build_page([*records, *hostile])
    body = html[html.index("<main") : html.index("</main>")]
    assert body.count("<h1") == 2
    assert "Table 4: fairness on Adult" in body
    assert "200 other test rows" in body
    assert "<b>" not in body
    assert "<i>" not in body
    assert "&lt;b&gt;Vanilla" in body
    assert body.count("Rule test_oracle") == 2


def test_lost_and_won_are_on_the_page(records, section):
    html = build_page(records)
    for rival, outcome, _ in section["standing"]:
        assert f'data-rival="{rival}" data-outcome="{outcome}"' in html
    better = build_page(made_records(leace=(0.9, 0.01, 0.001)))
    assert 'data-rival="LEACE" data-outcome="lose"' in better
    assert 'data-rival="LEACE" data-outcome="lose"' not in html
