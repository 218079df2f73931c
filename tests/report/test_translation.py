"""The section on a user's translation says what its record says, and nothing of it reaches the page unescaped."""

import subprocess
import sys

import pytest

from setminus.report import page
from setminus.report.translation import summary, translation_section
from tests.made_translation import PNG, made_translation


@pytest.fixture(params=["change", "keep"])
def record(request):
    return made_translation(request.param)


def test_shares_are_of_what_should_have_happened(record):
    changes = record["task"]["role"] == "change"
    shares = [share for _, share, _ in summary(record)]
    assert shares == (["90.0 %", "80.0 %", "90.0 %"] if changes else ["90.0 %", "20.0 %", "10.0 %"])
    section = translation_section(record)
    assert section["scores"][1]["a_to_b"] == pytest.approx(0.7 if changes else 0.3)
    assert ("changing" if changes else "keeping") in section["title"]


def test_each_number_names_the_accuracy_of_its_judge(record):
    judges = [judge for _, _, judge in summary(record)]
    assert "95.0 % of 400" in judges[0] and "95.0 % of 400" in judges[1]
    assert "87.5 % of 400" in judges[2]


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
