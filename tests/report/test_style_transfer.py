"""The section on style transfer says what its records say, and nothing of them reaches the page unescaped."""

import subprocess
import sys

import pytest

from setminus.report import page
from setminus.report.style_transfer import charts, score_rows, style_transfer_section, summary

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"


def record(method, seed, z1, z2, label=None):
    curves = {"step": [10, 20], **{name: [0.1, value] for name, value in (("z1", z1), ("z2", z2))}}
    return {
        "name": "table1",
        "job": "style_transfer",
        "config": {
            "method": method,
            "scale": "quick",
            "pixels": 28,
            "width": 32,
            "translation": {"steps": 1600, "batch_size": 32, "rate": 1e-3},
            "norm": "group",
            "learned": "network",
        },
        "seed": seed,
        "versions": {"python": "3"},
        "command": "setminus reproduce table1",
        "claim": "one <b>claim</b>",
        "seconds": 60.0,
        "metrics": {
            "row": {"label": label or method.title(), "paper": {"z1": 0.902, "z2": 0.143}},
            "z1": z1,
            "z2": z2,
            "z1_measured": z1 - 0.01,
            "z2_measured": z2,
            "agreement": 0.98,
            "judges": {"z1": 0.999, "z2": 1.0},
            "curves": curves,
            "losses": {"step": [10, 20], "generators": [9.0, 3.0]},
            "samples": dict.fromkeys(("a", "a_to_b", "b", "b_to_a"), PNG),
        },
    }


@pytest.fixture
def records():
    return [
        record("vanilla", 0, 0.9, 0.2),
        record("vanilla", 1, 0.8, 0.4),
        record("orthogonal", 0, 0.95, 1.0, label="w_x <i> w_1"),
    ]


def test_scores_are_means_over_seeds_beside_the_papers(records):
    plain, orthogonal = score_rows(records)
    z1, z2, measured, _ = plain["cells"]
    assert (plain["label"], plain["n"]) == ("Vanilla", 2)
    assert z1["value"] == pytest.approx(0.85) and z1["sd"] == pytest.approx(0.0707, abs=1e-4) and z1["paper"] == 0.902
    assert z2["value"] == pytest.approx(0.3) and z2["paper"] == 0.143
    assert measured["value"] == pytest.approx(0.84) and measured["paper"] is None
    assert orthogonal["cells"][0]["sd"] is None


def test_the_summary_puts_the_papers_number_first(records):
    assert summary(records)[1] == ("Vanilla: Z2 accuracy", "14.3 %", "30.0 ± 14.1 %")
    assert len(summary(records)) == 4


def test_curves_are_means_over_seeds(records):
    z1, z2, loss = charts(records)
    assert [line.name for line in z1.marks] == ["Vanilla", "w_x <i> w_1"]
    assert z1.marks[0].y == pytest.approx([0.1, 0.85])
    assert z2.marks[1].y == pytest.approx([0.1, 1.0])
    assert loss.marks[0].y == [9.0, 3.0]


def test_images_are_those_of_the_first_seed_for_every_method(records):
    a, b = style_transfer_section(records)["samples"]
    assert [strip["label"] for strip in a["strips"]] == ["Images", "Vanilla", "w_x <i> w_1"]
    assert b["title"] == "From domain B to A"


def test_what_differs_from_the_paper_is_said_and_no_more(records):
    size, norm, chosen = style_transfer_section(records)["notes"]
    assert (
        "28 pixels a side" in size and "32 channels; 1,600 steps of 32 images of each domain at a rate of 0.001" in size
    )
    assert "GroupNorm in place of the paper's BatchNorm" in norm
    assert "chosen on seed 0" in chosen
    for record in records:
        record["config"] |= {"norm": "batch", "learned": "last_layer", "scale": "paper"}
    (_, learned) = style_transfer_section(records)["notes"]
    assert "That stage is ours" in learned


def test_the_page_shows_it_escaped(records):
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    html = page.build_page(records)
    body = html[html.index("<main") : html.index("</main>")]
    assert "<i>" not in body and "<b>" not in body and "w_x &lt;i&gt; w_1" in body
    assert 'data-metric="z2" data-value="1.0"' in body
    assert "paper: 14.3 %" in body
    assert body.count(f"data:image/png;base64,{PNG}") == 6


@pytest.mark.parametrize("text", ["not base64!", "PHNjcmlwdD4="])
def test_samples_that_are_no_png_are_refused(records, text):
    records[0]["metrics"]["samples"]["a"] = text
    with pytest.raises(ValueError, match="samples are no"):
        style_transfer_section(records)


def test_it_needs_no_torch():
    code = "import sys, setminus.report.style_transfer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
