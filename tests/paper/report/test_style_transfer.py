"""The tables of style transfer show the numbers of their records, notes on their settings, and no text as markup."""

import numpy as np
import pytest
from setminus_paper.report.style_transfer import charts, gains, notes, rows_of, style_transfer_section, summary

from setminus.report import page
from tests.made_transfers import made_digits, made_faces, made_transfer, png


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
        made_faces("orthogonal_oracle", steps=2000),
        made_faces("vanilla", 0.9, 0.2, steps=2000),
        made_faces("orthogonal_trm", steps=800),
    ]


def body(records):
    pytest.importorskip("vl_convert")
    html = page.build_page(records)
    return html[html.index("<main") : html.index("</main>")]


def test_rows_are_means_over_seeds_in_the_papers_order(digits, faces):
    row = rows_of(digits).loc["vanilla"]
    assert (row.z1, row["z2.std"], row["z2.paper"], row.seeds) == pytest.approx((0.85, 0.1414, 0.143, 2), abs=1e-4)
    assert rows_of(faces).index.tolist() == ["vanilla", "orthogonal_trm", "orthogonal_oracle"]
    assert "fid" not in rows_of(digits) and "z1_measured" not in rows_of(faces)
    without = made_faces("orthogonal_oracle")
    del without["metrics"]["fid"]
    assert np.isnan(rows_of([*faces[1:], without]).loc["orthogonal_oracle", "fid"])
    other = made_transfer("vanilla", 1, steps=800)
    assert rows_of([made_transfer("vanilla", 0, steps=2000), other]).steps.iloc[0] == [800, 2000]


def test_the_summary_has_the_papers_number_and_ours(digits):
    assert summary(digits[:2]) == [
        ("Vanilla: Z1 accuracy", "90.2 %", "85.0 ± 7.1 %"),
        ("Vanilla: Z2 accuracy", "14.3 %", "30.0 ± 14.1 %"),
    ]
    assert summary([made_faces("vanilla")])[2] == ("Vanilla: FID", "38.5", "12.5")


def test_the_gain_needs_both_rows():
    plain, orthogonal = made_transfer("vanilla", z1=0.9, z2=0.2), made_transfer("orthogonal_oracle", z1=0.85, z2=0.7)
    assert gains(rows_of([plain])) == []
    assert [(one["here"], one["paper"]) for one in gains(rows_of([orthogonal, plain]))] == [
        ("-5.0", "+0.0"),
        ("+50.0", "+0.0"),
    ]


def noted(records, words):
    return any(words in note for note in notes(records))


def test_notes_are_those_of_the_settings(digits, faces):
    assert noted(digits, "third attempt") and noted(digits, "agree on 98.0 %")
    assert not noted(digits, "GroupNorm") and not noted(digits, "FID") and not noted(digits, "Images of faces")
    digits[-1]["config"] |= {"norm": "group", "clamp": 30.0}
    assert noted(digits, "GroupNorm") and noted(digits, "clamped at 30")
    assert noted(faces, "3,200 men without blond hair") and noted(faces, "800 to 2,000 steps")
    assert noted(faces, "Compare rows with the same number of steps") and noted(faces, "last layer")
    assert noted(faces, "The paper uses Inception") and not noted(faces, "GroupNorm")
    ratio = made_faces("orthogonal_oracle", log_ratio={"mean": [2.0, 0.0, 1.0, -1.0]})
    assert noted([ratio], "w_x \\ w_1 (Oracle) 2.0 and 1.0")


def test_curves_are_means_over_seeds(digits, faces):
    z1, z2, loss = charts(digits)
    assert [line.name for line in z1.marks] == ["Vanilla", "w_x <i> w_1"]
    assert z1.marks[0].y == pytest.approx([0.1, 0.85]) and z2.marks[1].y == pytest.approx([0.1, 1.0])
    assert loss.marks[0].y == [9.0, 3.0]
    assert (z1.title, charts(faces)[1].title) == ("Z1: the digit's color changes", "Z2: the hair color stays")


def test_the_section_has_seeds_and_steps_of_each_row(faces, digits):
    assert [(row["seeds"], row["steps"]) for row in style_transfer_section(digits)["scores"]] == [(2, "20"), (1, "20")]
    assert [row["steps"] for row in style_transfer_section(faces)["scores"]] == ["2,000", "800", "2,000"]


def test_the_page_shows_digits_escaped(digits):
    html = body(digits)
    assert "<i>" not in html and "<b>" not in html and "w_x &lt;i&gt; w_1" in html
    assert 'data-metric="z2" data-value="1.0"' in html and "30.0 ± 14.1 %" in html and "paper: 14.3 %" in html
    assert html.count(f"data:image/png;base64,{png('blue')}") == 2


def test_the_page_shows_faces_without_images_and_with_fid(faces):
    html = body(faces)
    assert "<img" not in html and 'data-metric="fid" data-value="12.5"' in html and "paper: 38.5" in html
    assert "a classifier of &lt;four&gt; groups" in html
    images = {"a": png("green"), "b": png("white"), "a_to_b": png("blue"), "b_to_a": png("red")}
    for record in faces:
        record["metrics"]["samples"] = images
    assert body(faces).count("<img") == 8
