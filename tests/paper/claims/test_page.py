"""The laboratory's page is what its templates make of the committed records."""

from pathlib import Path

import pytest
from setminus_paper.claims import page

ROOT = Path(__file__).parents[3]


@pytest.fixture
def no_pictures(monkeypatch):
    monkeypatch.setattr(page, "draw_picture", lambda *_: False)


def test_the_committed_pages_are_those_of_the_committed_records(no_pictures, tmp_path):
    paths = page.build(ROOT / "results", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "laboratory.md",
        "laboratory/limits.md",
        "laboratory/numbers.md",
    ]
    for path in paths:
        assert path.read_text() == (ROOT / "docs" / path.relative_to(tmp_path)).read_text()


@pytest.mark.parametrize("name", [*page.LABORATORY, *page.PICTURES])
def test_every_claim_has_a_picture_of_moderate_size(name):
    assert 5_000 < (ROOT / "docs" / "laboratory" / f"{name}.png").stat().st_size < 150_000


def test_a_claim_without_records_has_its_command_instead(no_pictures, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "theorem1").symlink_to(ROOT / "results" / "theorem1")
    page.build(tmp_path / "results", tmp_path / "docs")
    text = (tmp_path / "docs" / "laboratory.md").read_text()
    assert "Not measured yet: `setminus reproduce prop4`." in text and "prop4.png" not in text
    assert "(theorem1.png)" in (tmp_path / "docs" / "laboratory" / "limits.md").read_text()


def test_a_row_that_was_not_measured_is_an_error():
    result = page.Result("So.", [("angle", "90", "89")], "3", "setminus reproduce toy")
    assert result.rows_of(["angle"]) == [("angle", "90", "89")]
    with pytest.raises(KeyError):
        result.rows_of(["distance"])
