"""The section on scores from elsewhere: one model, no frontier, perhaps a limit."""

import json

from setminus.report.audit import audit_section
from setminus.report.page import build_page


def test_one_score_has_figures_and_no_frontier(audit_record):
    section = audit_section(audit_record)
    assert not any("frontier" in name for name in section["figures"])
    assert {"reliability-0-0", "scores-0-0", "scores-1-0", "rates-true_positive_rate-0"} <= {*section["figures"]}
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
