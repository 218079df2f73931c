"""The section on an adapted model says what its record says, and nothing of it reaches the page unescaped."""

import subprocess
import sys

import pytest

from setminus.report import page
from setminus.report.adapted_table import HEADINGS, adapted_table_section, mix_rows

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def record():
    mixes = {"source": [0.7, 0.2, 0.1], "target, estimated": [0.1, 0.3, 0.6], "target, decided": [0.2, 0.3, 0.5]}
    return {
        "name": "adapt",
        "job": "adapted_table",
        "config": {"method": "vada_orthogonal", "steps": 1000, "predict_prior": "equal"},
        "seed": 0,
        "versions": {"python": "3"},
        "command": f"setminus adapt {SCRIPT}",
        "task": {
            "data": f"a.csv to {SCRIPT}",
            "label": f"outcome{SCRIPT}",
            "classes": ["well", SCRIPT, "ill"],
            "rows": {"source": 1000, "target": 500, "labelled": 50},
            "features": ["age"],
            "columns": [],
            "notes": [SCRIPT],
        },
        "metrics": {
            "mixes": mixes,
            "accuracy": {"adapted": {"value": 0.75, "low": 0.6, "high": 0.85}},
            "verdict": f"Usable with care{SCRIPT}.",
            "findings": [{"name": "steady", "status": "warn", "evidence": SCRIPT, "advice": SCRIPT}],
        },
        "usage": f'model = load("{SCRIPT}")',
        "usage_command": f"setminus apply {SCRIPT}",
        "steps": {"adapt": 1.0},
        "seconds": 1.0,
    }


def test_every_share_is_in_the_table(record):
    assert mix_rows(record)[2] == ("ill", {"source": 0.1, "target, estimated": 0.6, "target, decided": 0.5})
    html = page.build_page([record])
    for name, mix in record["metrics"]["mixes"].items():
        for share in mix:
            assert f'data-metric="{name}" data-value="{share}">{100 * share:.1f} %' in html


def test_the_headline_has_the_class_that_changed_most(record):
    assert adapted_table_section(record)["changed"] == {"name": "well", "before": 0.7, "after": 0.1}


def test_hostile_text_stays_text(record):
    html = page.build_page([record])
    assert SCRIPT not in html and "&lt;script&gt;alert(1)" in html


def test_without_labels_there_is_no_part_about_them(record):
    assert "labelled" in adapted_table_section(record)["headings"]
    record["metrics"]["accuracy"] = {}
    assert "labelled" not in adapted_table_section(record)["headings"]
    assert HEADINGS["labelled"][1] not in page.build_page([record])


def test_each_method_has_its_own_description(record):
    pages = []
    for method in ("vada_orthogonal", "vada_iw", "source_only", "vada"):
        record["config"]["method"] = method
        pages.append(page.build_page([record]).split("<script")[0].replace(method, ""))
    assert len({*pages}) == 4


@pytest.mark.parametrize(
    ("method", "prior", "for_target"),
    [("vada_orthogonal", "equal", False), ("vada_iw", "equal", True), ("vada_orthogonal", "target", True)],
)
def test_what_the_probabilities_are_for(record, method, prior, for_target):
    record["config"] |= {"method": method, "predict_prior": prior}
    assert adapted_table_section(record)["for_target"] == for_target


def test_it_needs_no_torch():
    code = "import sys, setminus.report.adapted_table; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
