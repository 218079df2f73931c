"""The section says what this run did, not what runs usually do."""

import json
import re
import struct

import pytest

from setminus.report.evidence import build_card
from setminus.report.fairness import (
    audit_section,
    draw_picture,
    fairness_section,
    frontier_chart,
    frontier_rows,
    group_shares,
)
from setminus.report.page import build_page, outcome_text


def test_one_score_has_figures_and_no_frontier(audit_record):
    section = audit_section(audit_record)
    names = {figure.id for figure in section["figures"]}
    assert names == {"reliability-0-0", "scores-0-0", "scores-1-0", "rates-0-0", "rates-0-1"}
    page = build_page([audit_record])
    assert "Audit of proba_1: plain label by plain ignored" in page
    assert "One row was left out." in page


def test_the_limit_comes_first_and_says_whether_it_is_kept(audit_record):
    assert audit_section(audit_record)["gap"] == "demographic_parity"
    assert '<span class="badge ok">kept</span>' in build_page([audit_record])
    failed = {**audit_record, "limit": {**audit_record["limit"], "passed": False}}
    assert '<span class="badge fail">exceeded</span>' in build_page([failed])


def test_without_a_limit_the_leakage_takes_its_place(audit_record):
    record = json.loads(json.dumps(audit_record))
    del record["limit"]
    page = build_page([record])
    assert "Limit of the gap" not in page
    assert "Leakage; 0 is none" in page
    assert 'class="tag"' not in page


def test_what_to_do_next_is_there_where_the_record_says_so(audit_record):
    assert "What to do next" not in build_page([audit_record])
    assert "What to do next" in build_page([{**audit_record, "usage_command": "setminus fit data.csv"}])


def test_both_jobs_fit_on_one_page(record, audit_record):
    page = build_page([record, audit_record])
    assert page.count("<h1") == 2
    assert 'href="#compare-0"' in page
    assert 'href="#compare-1"' in page


def audit_of(rates, n_classes=2):
    rows = [
        {"group": group, "true_positive_rate": {"value": rate}, "selection_rate": {"value": rate and rate / 2}}
        for group, rate in rates.items()
    ]
    return {"classes": [*range(n_classes)], "group_rates": rows}


@pytest.mark.parametrize(
    ("rates", "rate", "expected"),
    [
        ({"f": 0.5, "m": 0.75}, "true_positive_rate", [("f", 0.5), ("m", 0.75)]),
        ({"f": 0.5, "m": 0.75}, "selection_rate", [("f", 0.25), ("m", 0.375)]),
        ({"a": 0.5, "b": 0.25, "c": 0.75, "d": 0.5}, "true_positive_rate", [("b", 0.25), ("c", 0.75)]),
        ({"f": None, "m": 0.75}, "true_positive_rate", [("m", 0.75)]),
        ({"f": None, "m": None}, "true_positive_rate", []),
    ],
)
def test_the_summary_has_the_extreme_rates(rates, rate, expected):
    assert group_shares(audit_of(rates), rate) == expected
    assert group_shares(audit_of(rates, 3), rate) == []


def test_the_summary_has_both_errors_and_the_selection_rate(altered, audit_record):
    for record in (altered, audit_record):
        summary = re.search('<ul class="summary">(.*?)</ul>', words(record))[1].replace("\u00a0", " ")
        assert summary.count("<li>") == 3
        for name in ("true_positive_rate", "false_positive_rate", "selection_rate"):
            for model in record["metrics"]["models"]:
                for row in model["audit"]["group_rates"]:
                    assert f"{100 * row[name]['value']:.1f} % ({row['group']})" in summary
    record = json.loads(json.dumps(audit_record))
    for row in record["metrics"]["models"][0]["audit"]["group_rates"]:
        row["true_positive_rate"] = row["false_positive_rate"] = {"value": None, "low": None, "high": None}
    assert re.search('<ul class="summary">(.*?)</ul>', words(record))[1].count("<li>") == 1


OUTCOMES = {
    ("certified", True): ("certified", "Certified: for new rows"),
    ("left alone", True): ("certified as it was", "Certified, and left as it was"),
    ("left alone", False): ("within noise", "Not certified, and left as it was"),
    ("not certified", False): ("not certified", "Not certified: for new rows"),
}


@pytest.mark.parametrize(("choice", "certified"), OUTCOMES)
def test_left_alone_is_not_said_to_be_certified(altered, choice, certified):
    """On the page, on the terminal and on the card."""
    altered["metrics"] |= {
        "choice": choice,
        "certificate": {
            "certified": certified,
            "tolerance": 0.05,
            "confidence": 0.95,
            "bound": 0.123,
            "gap": 0.02,
            "noise_floor": {"expected": 0.03, "quantile": 0.06, "p_value": 0.37},
            "method": "exact",
        },
    }
    name, said = OUTCOMES[choice, certified]
    for text in (words(altered), outcome_text(altered), build_card(altered)):
        assert said in text and "0.123" in text
        others = {sentence for _, sentence in OUTCOMES.values()} - {said}
        assert not any(sentence in text for sentence in others)
    assert f'data-outcome="{name}"' in words(altered)
    assert ("badge ok" if certified else "badge fail") in words(altered).split('data-metric="certificate"')[1][:200]


def test_without_a_confidence_nothing_is_promised(altered):
    assert "Nothing is promised of new rows" in words(altered) and "Nothing is promised" in build_card(altered)


def words(record):
    html = build_page([record])
    return " ".join(html[: html.index("<script>")].split())


@pytest.mark.parametrize(
    ("constraint", "agg", "key", "title"),
    [
        ("equalized_odds", "sum", "equalized_odds_sum", "Equalized odds gap (sum)"),
        ("equalized_odds", "max", "equalized_odds_max", "Equalized odds gap (max)"),
        ("demographic_parity", "max", "demographic_parity", "Demographic parity gap"),
        ("equal_opportunity", "sum", "equal_opportunity", "Equal opportunity gap"),
    ],
)
def test_the_gap_that_was_bounded_comes_first(altered, constraint, agg, key, title):
    altered["config"] |= {"constraint": constraint, "agg": agg}
    page = words(altered)
    cards = page[page.index('<ul class="cards">') :]
    assert cards.index(f"{title}; 0 is fair") < cards.index("Strength")
    after = altered["metrics"]["models"][-1]["audit"][key]["value"]
    assert f'data-metric="{key}" data-value="{after}"' in cards[: cards.index("</ul>")]
    assert f'{title} <span class="tag">bounded</span>' in page


def test_how_well_the_features_predict_what_is_ignored(altered):
    section = fairness_section(altered)
    assert section["attribute_predictable"]
    assert 'data-metric="attribute_predictability.auc" data-value="0.9"' in words(altered)
    # the key in records of version 0.1.0
    old = {key: value for key, value in altered["metrics"].items() if key != "attribute_predictability"}
    old["betrayed"] = altered["metrics"]["attribute_predictability"]
    assert words(altered | {"metrics": old}) == words(altered)
    altered["metrics"]["attribute_predictability"]["auc"] = None
    assert "attribute_predictability.auc" not in words(altered)
    altered["metrics"]["attribute_predictability"]["accuracy"] = 0.6
    assert not fairness_section(altered)["attribute_predictable"]
    altered["metrics"]["attribute_predictability"] = None
    assert "attribute_predictability" not in words(altered)


def test_whether_the_model_sees_and_needs_what_it_ignores(altered):
    task = altered["task"]
    section = fairness_section(altered)
    assert not section["sees_ignored"] and not section["groups_needed"]
    task["ignored"], task["groups_needed"] = "sex, age", True
    section = fairness_section(altered)
    assert section["sees_ignored"] and section["groups_needed"]
    assert "the model needs sex, age of each row" in words(altered)


def test_a_tolerance_that_could_not_be_kept_is_admitted(altered):
    assert "no pair keeps the tolerance" not in words(altered)
    altered["metrics"]["frontier"]["chosen"]["gap"] = 0.06
    assert "no pair keeps the tolerance of 0.05" in words(altered)


def test_a_gap_that_came_back_on_the_test_rows_is_admitted(altered):
    gap = altered["metrics"]["models"][-1]["audit"]["equalized_odds_sum"]
    altered["metrics"]["frontier"]["tolerance"] = gap["value"] + 0.01
    assert "kept on the test rows" in words(altered)
    assert "not kept on the test rows" not in words(altered)
    altered["metrics"]["frontier"]["tolerance"] = gap["value"] - 0.01
    assert "not kept on the test rows" in words(altered)


def test_a_score_that_the_audit_lacks_has_no_tested_points(altered):
    assert [row["point"] for row in fairness_section(altered)["frontier_rows"]].count("tested") == 2
    altered["metrics"]["frontier"]["score_name"] = "balanced_accuracy"
    section = fairness_section(altered)
    assert "tested" not in [row["point"] for row in section["frontier_rows"]]
    assert section["trade"].chart.y_label == "balanced accuracy"


@pytest.mark.parametrize("count", [1, 2, 40, 41, 500])
def test_a_long_frontier_is_thinned_in_the_table_with_both_ends(altered, count):
    frontier = altered["metrics"]["frontier"]
    best = [{"strength": 0.5, "threshold": 0.4, "gap": i / count, "score": i / count} for i in range(count)]
    frontier["best"] = best
    table = frontier_rows(frontier, [{"name": "after, test rows", "gap": 0.1, "score": 0.8}])
    assert [row["point"] for row in table[:3]] == ["chosen", "untouched", "tested"]
    trades = [row["gap"] for row in table[3:]]
    assert len(trades) == min(count, 40)
    assert (trades[0], trades[-1]) == (best[0]["gap"], best[-1]["gap"])
    assert table[0]["decision"] == "0.400"


@pytest.mark.parametrize("which", ["record", "hostile_record"])
def test_the_picture_comes_from_the_record_alone(which, request, tmp_path):
    record = request.getfixturevalue(which)
    for name in ("one.png", "two.png", "three.svg"):
        draw_picture(record, tmp_path / name)
    one = (tmp_path / "one.png").read_bytes()
    assert one == (tmp_path / "two.png").read_bytes()
    assert 1200 <= struct.unpack(">II", one[16:24])[0] <= 2000 and len(one) < 100_000
    svg = (tmp_path / "three.svg").read_text()
    assert all(f">{name}<" in svg for name in ("chosen", "tolerance (0.05)", "after"))
    assert "<script" not in svg and "<b>" not in svg


def test_columns_notes_and_commands_are_shown_where_there_are_some(altered):
    assert "The table and its columns" not in words(altered)
    column = {"kind": "number", "missing": 0.5, "distinct": 3, "use": "left out: too few", "warning": "half is missing"}
    altered["task"]["columns"] = [{"name": f"column {i}", **column} for i in range(7)]
    altered["task"]["notes"] = ["2 rows were left out"]
    altered["usage_command"] = ["setminus apply model.skops new.csv", "setminus info model.skops"]
    page = words(altered)
    assert "2 rows were left out." in page
    assert page.count("left out: too few") == 7
    assert "2 more warnings are in the table" in page
    assert "setminus apply model.skops new.csv setminus info model.skops" in page


def test_every_best_trade_is_in_sight_also_one_that_beats_the_model_before(altered):
    frontier = altered["metrics"]["frontier"]
    frontier["best"][1]["score"], frontier["untouched"]["score"] = 0.95, 0.8
    chart = frontier_chart(frontier, "equalized_odds_sum", [{"name": "after, test rows", "gap": 0.3, "score": 0.79}])
    (low, high), (_, right) = chart.y_range, chart.x_range
    assert low < 0.79 < 0.95 < high and right > 0.3
    assert [mark.name for mark in chart.marks] == ["best trades", "before", "chosen", "after, test rows", "tolerance"]
    assert (chart.y_format, chart.y_label, chart.x_label) == ("%", "accuracy", "equalized odds gap (sum)")
    assert [mark.open for mark in chart.marks[1:4]] == [False, False, True]


def test_offsets_take_the_place_of_a_threshold(altered):
    frontier = altered["metrics"]["frontier"]
    frontier["best"] = [{"strength": 0.5, "offsets": [0.0, -0.5, 0.25], "score": 0.7, "gap": 0.01}]
    assert frontier_chart(frontier, "equalized_odds_sum", []).marks[0].notes == ["strength 0.50, offsets 0, -0.5, 0.25"]
