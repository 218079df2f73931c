"""The card is Markdown that shows the record, and nothing that a record holds becomes markup."""

import json
import re

import pytest
import yaml
from markdown_it import MarkdownIt

from setminus.errors import UserError
from setminus.report.card import build_card

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
