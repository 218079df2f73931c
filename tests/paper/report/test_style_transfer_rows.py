"""Rows of style transfer: the paper's order, means over seeds, and only the columns that were measured."""

import pytest
from setminus_paper.report.style_transfer_rows import compared, rows_of, scores_of, summary

from tests.made_transfers import made_digits, made_faces, made_transfer


def test_rows_are_in_the_papers_order_whatever_that_of_the_records():
    records = [made_transfer(method) for method in ("orthogonal_oracle", "importance_oracle", "vanilla")]
    records.append(made_transfer("ours", label="ours"))
    assert [row.method for row in rows_of(records)] == ["vanilla", "importance_oracle", "orthogonal_oracle", "ours"]


def test_scores_are_means_over_seeds_beside_the_papers():
    records = [made_digits("vanilla", 0, 0.9, 0.2), made_digits("vanilla", 1, 0.8, 0.4), made_digits("orthogonal_trm")]
    plain, other = rows_of(records)
    assert (plain.label, len(plain.records)) == ("Vanilla", 2)
    z1, z2, measured = (plain.cells[name] for name in ("z1", "z2", "z1_measured"))
    assert z1.value == pytest.approx(0.85)
    assert z1.deviation == pytest.approx(0.0707, abs=1e-4)
    assert (z1.paper, z2.paper, measured.paper) == (0.902, 0.143, None)
    assert measured.value == pytest.approx(0.84)
    # one seed has no spread, and none is made up
    assert other.cells["z1"].deviation is None


def test_columns_are_those_that_were_measured():
    digits, faces = [made_digits("vanilla")], [made_faces("vanilla")]
    assert [score.metric for score in scores_of(digits)] == ["z1", "z2", "z1_measured", "z2_measured"]
    assert [score.metric for score in scores_of(faces)] == ["z1", "z2", "fid"]
    without = made_faces("orthogonal_oracle")
    del without["metrics"]["fid"]
    assert rows_of([*faces, without])[1].cells["fid"].value is None


def test_the_summary_puts_the_papers_number_first():
    records = [made_digits("vanilla", 0, 0.9, 0.2), made_digits("vanilla", 1, 0.8, 0.4)]
    assert summary(records) == [
        ("Vanilla: Z1 accuracy", "90.2 %", "85.0 ± 7.1 %"),
        ("Vanilla: Z2 accuracy", "14.3 %", "30.0 ± 14.1 %"),
    ]
    faces = made_faces("vanilla")
    assert summary([faces])[2] == ("Vanilla: FID", "38.5", "12.5")
    del faces["metrics"]["row"]["paper"]["fid"]
    assert summary([faces])[2] == ("Vanilla: FID", "", "12.5")


def test_the_comparison_needs_both_rows():
    plain, orthogonal = made_transfer("vanilla", z1=0.9, z2=0.2), made_transfer("orthogonal_oracle", z1=0.85, z2=0.7)
    assert compared(rows_of([plain])) == ""
    assert compared(rows_of([orthogonal, plain])) == (
        "w_x \\ w_1 (Oracle) against Vanilla: Z1 accuracy -5.0 points (paper: +0.0), "
        "Z2 accuracy +50.0 points (paper: +0.0)."
    )


def test_steps_are_those_of_the_runs():
    records = [made_transfer("vanilla", 0, steps=2000), made_transfer("vanilla", 1, steps=800)]
    assert rows_of(records)[0].steps == [800, 2000]
