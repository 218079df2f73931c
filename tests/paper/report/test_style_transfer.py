"""The section on style transfer says what its records say, and nothing of them reaches the page unescaped."""

import subprocess
import sys

import pytest
from setminus_paper.report.style_transfer import charts, style_transfer_section

from setminus.report import page
from tests.made_transfers import made_digits, made_faces, png


@pytest.fixture
def digits():
    return [
        made_digits("vanilla", 0, 0.9, 0.2),
        made_digits("vanilla", 1, 0.8, 0.4),
        made_digits("orthogonal_oracle", 0, 0.95, 1.0, label="w_x <i> w_1"),
    ]


@pytest.fixture
def faces():
    return [
        made_faces("vanilla", 0.9, 0.2, steps=2000),
        made_faces("orthogonal_trm", steps=800),
        made_faces("orthogonal_oracle", steps=2000),
    ]


def body(records):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    html = page.build_page(records)
    return html[html.index("<main") : html.index("</main>")]


def test_curves_are_means_over_seeds(digits):
    z1, z2, loss = charts(digits)
    assert [line.name for line in z1.marks] == ["Vanilla", "w_x <i> w_1"]
    assert z1.marks[0].y == pytest.approx([0.1, 0.85])
    assert z2.marks[1].y == pytest.approx([0.1, 1.0])
    assert loss.marks[0].y == [9.0, 3.0]
    assert "Mean over seeds" in z1.caption


def test_charts_are_called_after_what_changes_and_what_stays(digits, faces):
    assert [chart.title for chart in charts(digits)][:2] == [
        "Z1: the digit's color changes",
        "Z2: the background stays",
    ]
    assert [chart.title for chart in charts(faces)][:2] == ["Z1: the sex changes", "Z2: the hair color stays"]
    assert "Mean over seeds" not in charts(faces)[0].caption


def test_rows_say_their_steps_where_these_differ(digits, faces):
    assert [row["about"] for row in style_transfer_section(digits)["scores"]] == ["2 seeds", "1 seed"]
    assert [row["about"] for row in style_transfer_section(faces)["scores"]] == [
        "1 seed, 2,000 steps",
        "1 seed, 800 steps",
        "1 seed, 2,000 steps",
    ]


def test_the_page_shows_digits_escaped(digits):
    html = body(digits)
    assert "<i>" not in html
    assert "<b>" not in html
    assert "w_x &lt;i&gt; w_1" in html
    assert 'data-metric="z2" data-value="1.0"' in html
    assert "30.0 ± 14.1 %" in html
    assert "paper: 14.3 %" in html
    assert html.count(f"data:image/png;base64,{png('blue')}") == 2
    assert "FID" not in html


def test_the_page_shows_faces_without_images_and_with_fid(faces):
    html = body(faces)
    assert "<img" not in html
    assert "Images of faces stay beside the records" in html
    assert 'data-metric="fid" data-value="12.5"' in html
    assert "paper: 38.5" in html
    assert "a classifier of &lt;four&gt; groups" in html
    assert "measured" not in html[html.index("<table") : html.index("</table>")]


def test_faces_that_are_there_are_shown(faces):
    images = {"a": png("green"), "b": png("white"), "a_to_b": png("blue"), "b_to_a": png("red")}
    for record in faces:
        record["metrics"]["samples"] = images
    html = body(faces)
    assert html.count("<img") == 8
    assert "Images of faces stay" not in html


def test_it_needs_no_torch():
    code = "import sys, setminus_paper.report.style_transfer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
