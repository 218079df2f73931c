"""The section on a user's translation says what its record says, and nothing of it reaches the page unescaped."""

import subprocess
import sys
from typing import get_args

import pytest

from setminus.report import page
from setminus.report.translation import GOOD, summary, translation_section
from setminus.transfer.networks import Kind
from setminus.transfer.verdict import MIN_CHANGED, MIN_KEPT
from tests.made_translation import PNG, made_translation


@pytest.fixture(params=["change", "keep"])
def record(request):
    return made_translation(request.param)


def test_each_direction_has_its_numbers_and_its_word(record):
    heads, rows = summary(record)
    assert heads[1:] == ["changed", "kept", "structure", "grain", "distance", "verdict"]
    assert [row[1:] for row in rows] == [
        ["70.0 %", "95.0 %", "0.70", "1.20", "0.12", "train longer"],
        ["80.0 %", "95.0 %", "0.70", "1.20", "0.12", "train longer"],
    ]
    section = translation_section(record)
    assert ("changing" if record["task"]["role"] == "change" else "keeping") in section["title"]
    assert section["baseline"] == []


def test_the_reason_to_train_longer_is_the_one_that_the_numbers_give(record):
    reasons = "less than 88 %", "do not look like real images yet"
    assert [reason in page.build_page([record]) for reason in reasons] == [True, False]
    for scores in record["metrics"]["directions"].values():
        scores.update(changed=0.89, kept=0.86, grain=2.0)
    assert [reason in page.build_page([record]) for reason in reasons] == [False, True]
    assert GOOD == {"changed": MIN_CHANGED, "kept": MIN_KEPT}


def test_plain_cyclegan_stands_beside_it():
    record = made_translation("change", baseline=True)
    assert [row[6] for row in summary(record)[1]] == ["train longer"] * 2 + ["do not use"] * 2
    assert len(translation_section(record)["baseline_samples"]) == 2


def test_a_record_of_an_earlier_version_has_no_grain_and_no_distance(record):
    for scores in record["metrics"]["directions"].values():
        for name in ("distance", "distance_interval", "grain", "matched"):
            del scores[name]
    assert [row[4:6] for row in summary(record)[1]] == [["-", "-"]] * 2


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_network_has_a_page(kind):
    record = made_translation("change")
    record["task"]["network"] = kind
    assert "channels in the first layers" in page.build_page([record])


def test_the_page_escapes_everything(record):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    html = page.build_page([record])
    body = html[html.index("<main") : html.index("</main>")]
    for tag in ("<i>", "<b>", "<u>", "<script>"):
        assert tag not in body
    assert "&lt;script&gt;careful" in body
    assert body.count(f"data:image/png;base64,{PNG}") == 4
    assert 'data-classifier="rest"' in body


@pytest.mark.parametrize("text", ["not base64!", "PHNjcmlwdD4="])
def test_samples_that_are_no_png_are_refused(record, text):
    record["metrics"]["samples"]["b_to_a"] = text
    with pytest.raises(ValueError, match="samples are no"):
        translation_section(record)


def test_it_needs_no_torch():
    code = "import sys, setminus.report.translation; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
