"""The card shows the record, and none of it becomes markup; a browser prints the page, or its failure is reported."""

import json
import re
import stat

import pytest
import yaml
from markdown_it import MarkdownIt

from setminus.errors import UserError
from setminus.report.evidence import build_card, find_browser, print_page
from setminus.report.page import write_page

from .conftest import HOSTILE


def rendered(card):
    """The card as a program shows it that lets HTML through, as most do."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(card.split("---\n", 2)[2])


def with_provenance(record, **more):
    record = json.loads(json.dumps(record))
    file = {"what": "table", "name": "people.csv", "bytes": 12345, "sha256": "ab" * 32}
    settings = [
        {"name": "tolerance", "value": 0.05, "typed": True},
        {"name": "confidence", "value": 0.95, "typed": False},
        {"name": "bins", "value": ["age=40,62"], "typed": True},
    ]
    own = {"approved_by": "Ada", "notes": "# Why\n\nagreed on *Monday*", "files": [file], "settings": settings}
    return {**record, "date": "2026-01-02T03:04:05+00:00", "provenance": {**own, **more}}


@pytest.mark.parametrize("name", ["record", "audit_record"])
def test_the_card_has_what_the_record_has(name, request):
    record = with_provenance(request.getfixturevalue(name))
    card = build_card(record)
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["library_name"] == "setminus" and front["date"] == record["date"]
    html = rendered(card)
    for model in record["metrics"]["models"]:
        for row in model["audit"]["group_rates"]:
            for rate in ("true_positive_rate", "false_positive_rate", "selection_rate"):
                found = row[rate]
                shown = f"{100 * found['value']:.1f} % ({100 * found['low']:.1f} % to {100 * found['high']:.1f} %)"
                assert shown in html
    (table,) = record["metrics"]["models"][-1]["audit"]["impact"]
    for row in table["rows"]:
        assert f"<td>{row['n']}</td>\n<td>{row['selected']}</td>" in html
        assert f"<td>{row['impact_ratio']['value']:.3f}" in html
    for text in ("Ada", "ab" * 32, "12,345", "0.05 (on the command line)", "0.95 (by default)", "age=40,62"):
        assert text in html
    assert record["command"] in html and "<h1>Why</h1>" in html and "<em>Monday</em>" in html
    # every table row has as many cells as its head
    for lines in re.findall(r"(?:^\|.*\n)+", card, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines.splitlines()}) == 1


def test_no_text_of_a_record_becomes_markup(hostile_record):
    notes = f"{HOSTILE} ![picture](http://example.org/a.png)\n---\n| a | b |"
    html = rendered(build_card(with_provenance(hostile_record, notes=notes, approved_by=HOSTILE + "|**x**\n# y")))
    assert "<script" not in html and "<b>" not in html and "<img" not in html and "<strong>x" not in html
    assert html.count("<h1>") == 1 and "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    # the control: the same page without escaping
    assert "<script" in rendered(f"---\n---\n\n{HOSTILE}\n")


def test_records_of_older_versions_and_other_jobs(altered):
    del altered["metrics"]["models"][0]["audit"]["impact"], altered["metrics"]["models"][1]["audit"]["impact"]
    card = build_card(altered)
    assert "impact ratio" not in card and "not recorded" in card
    with pytest.raises(UserError, match="no card of the job 'translation'"):
        build_card({**altered, "job": "translation"})


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


def test_a_missing_browser_is_said_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SETMINUS_BROWSER", raising=False)
    with pytest.raises(UserError, match="needs Chromium or Chrome, and none is installed"):
        find_browser()
    monkeypatch.setenv("SETMINUS_BROWSER", "nothing")
    with pytest.raises(UserError, match="SETMINUS_BROWSER=nothing is no program"):
        find_browser()
    program(tmp_path / "chromium-browser", "true")
    monkeypatch.delenv("SETMINUS_BROWSER")
    assert find_browser() == str(tmp_path / "chromium-browser")


@pytest.mark.parametrize("script", ["echo it broke >&2; exit 3", "echo it broke >&2", "sleep 5"])
def test_a_browser_that_fails_is_said_to(monkeypatch, tmp_path, script):
    monkeypatch.setenv("SETMINUS_BROWSER", program(tmp_path / "browser", script))
    monkeypatch.setattr("setminus.report.evidence.PRINT_SECONDS", 0.5)
    with pytest.raises(UserError, match="did not print" if "sleep" in script else "could not print the page: it broke"):
        print_page(tmp_path / "page.html", tmp_path / "page.pdf")


def test_the_page_is_printed_on_several_sheets(record, tmp_path):
    try:
        find_browser()
    except UserError:
        pytest.skip("there is no browser")
    write_page(tmp_path / "page.html", [record])
    print_page(tmp_path / "page.html", tmp_path / "page.pdf")
    content = (tmp_path / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF") and content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") > 3
