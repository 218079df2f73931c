"""The section on a user's translation says what its record says, and nothing of it reaches the page unescaped."""

import subprocess
import sys

import pytest

from setminus.report import page
from setminus.report.translation import summary, translation_section

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"


@pytest.fixture(params=["change", "keep"])
def record(request):
    told = {"accuracy": 0.95, "n": 400, "by_chance": 0.541}
    changed = {"domain": 0.9, "column": 0.8, "rest": 0.1}
    return {
        "name": "transfer",
        "job": "translation",
        "config": {
            "size": 28,
            "translation": {"steps": 400, "batch_size": 32, "rate": 1e-3, "width": 32, "seed": 0},
        },
        "seed": 0,
        "versions": {"python": "3"},
        "command": "setminus transfer fit A B --change <i>hair</i>",
        "task": {
            "data": "men and <b>women</b>",
            "folders": ["men", "<b>women</b>"],
            "column": "<i>hair</i>",
            "values": ["dark", "<u>fair</u>"],
            "role": request.param,
            "network": "digit",
            "images": {"a": 800, "b": 800, "a_held": 200, "b_held": 200, "elsewhere": 0},
            "labelled": 2000,
            "notes": ["<script>careful</script>"],
        },
        "metrics": {
            "accuracy": {
                **dict.fromkeys(("column", "judge_domain", "judge_column"), told),
                "rest": {**told, "accuracy": 0.875},
            },
            "given": {"a": [0.95, 0.05], "b": [0.05, 0.95]},
            "changed": {"both": changed, "a_to_b": {**changed, "column": 0.7}, "b_to_a": changed},
            "curves": {"step": [200, 400], "domain": [0.5, 0.9], "column": [0.4, 0.8], "rest": [0.0, 0.1]},
            "losses": {
                "step": [1, 2],
                **{name: [2.0, 1.0] for name in ("generators", "discriminators", "cycle")},
            },
            "samples": dict.fromkeys(("a", "a_to_b", "b", "b_to_a"), PNG),
            "seconds_per_step": 0.15,
        },
        "steps": {"train the generators": 60.0},
        "seconds": 61.0,
    }


def test_shares_are_of_what_should_have_happened(record):
    changes = record["task"]["role"] == "change"
    shares = [share for _, share, _ in summary(record)]
    assert shares == (["90.0 %", "80.0 %", "90.0 %"] if changes else ["90.0 %", "20.0 %", "10.0 %"])
    section = translation_section(record)
    assert section["scores"][1]["a_to_b"] == pytest.approx(0.7 if changes else 0.3)
    assert ("changing" if changes else "keeping") in section["title"]
    assert "classifiers" in section["lead"]


def test_each_number_names_the_accuracy_of_its_judge(record):
    judges = [judge for _, _, judge in summary(record)]
    assert "95.0 % of 400" in judges[0] and "95.0 % of 400" in judges[1]
    assert "87.5 % of 400 folders without" in judges[2]


def test_the_page_escapes_everything(record):
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    html = page.build_page([record])
    body = html[html.index("<main") : html.index("</main>")]
    for tag in ("<i>", "<b>", "<u>", "<script>"):
        assert tag not in body
    assert "&lt;script&gt;careful" in body
    assert body.count(f"data:image/png;base64,{PNG}") == 4
    assert 'data-classifier="rest"' in body and "not of people" in body


@pytest.mark.parametrize("text", ["not base64!", "PHNjcmlwdD4="])
def test_samples_that_are_no_png_are_refused(record, text):
    record["metrics"]["samples"]["b_to_a"] = text
    with pytest.raises(ValueError, match="samples are no"):
        translation_section(record)


def test_it_needs_no_torch():
    code = "import sys, setminus.report.translation; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
