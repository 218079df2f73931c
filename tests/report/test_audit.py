"""The section on scores from elsewhere: one model, no frontier, perhaps a limit."""

import json

import pytest

from setminus.report.audit import audit_section, group_shares
from setminus.report.page import build_page


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
    ("rates", "gap", "expected"),
    [
        ({"f": 0.5, "m": 0.75}, "equal_opportunity", [("f", 0.5), ("m", 0.75)]),
        ({"f": 0.5, "m": 0.75}, "demographic_parity", [("f", 0.25), ("m", 0.375)]),
        ({"a": 0.5, "b": 0.25, "c": 0.75, "d": 0.5}, "equalized_odds_max", [("b", 0.25), ("c", 0.75)]),
        ({"f": None, "m": 0.75}, "equal_opportunity", [("m", 0.75)]),
        ({"f": None, "m": None}, "equal_opportunity", []),
    ],
)
def test_the_headline_has_the_rate_that_the_gap_compares(rates, gap, expected):
    assert group_shares(audit_of(rates), gap) == expected
    assert group_shares(audit_of(rates, 3), gap) == []


def test_an_undefined_share_has_a_headline(audit_record):
    record = json.loads(json.dumps(audit_record))
    record["limit"]["name"] = "equal_opportunity"
    for row in record["metrics"]["models"][0]["audit"]["group_rates"]:
        row["true_positive_rate"] = {"value": None, "low": None, "high": None}
    assert "an undefined share" in build_page([record])
