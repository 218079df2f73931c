"""The sources of style transfer are measured by pixels without error, records are not run twice, the page is theirs."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks import translators
from benchmarks.translators_page import write
from setminus.records import read_records

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "translators" / "records.jsonl"


@pytest.mark.parametrize("name", ["small_digits", "shapes", "clothes"])
def test_pixels_give_both_factors_of_real_pictures(name):
    source = translators.SOURCES[name]
    drawn = source.draw(300, np.random.default_rng(0), translators.CELL_SHARES["independent"])
    changed, kept = source.measure(drawn.x)
    assert np.mean(changed == drawn.z1) > 0.98 and np.mean(kept == drawn.z2) > 0.98
    assert drawn.x.shape == (300, source.size, source.size, 3)
    # a measure that ignores its pictures would fail
    assert np.mean(source.measure(drawn.x[::-1])[0] == drawn.z1) < 0.7


def made(changed, kept, verdict, strips="iVBORw0K"):
    reported = {"changed": changed, "kept": kept, "verdict": verdict}
    direction = {"changed": changed, "kept": kept, "reported": reported}
    return {"cpu_seconds": 1.0, "strips": strips, "a_to_b": direction, "b_to_a": direction}


def test_records_are_made_once_and_for_the_asked_part(tmp_path, monkeypatch):
    asked = []

    def score(name, seed, labelled):
        asked.append((name, seed, labelled))
        return made(1.0, 1.0, "good")

    monkeypatch.setattr(translators, "score", score)
    path = tmp_path / "translators" / "records.jsonl"
    translators.run(range(1), path, part="test")
    assert asked == [("clothes", 0, 400), ("faces", 0, 400)]
    translators.run(range(1), path, part="all")
    assert len(asked) == len(set(asked)) == len(translators.SOURCES) + len(translators.FEW_LABELS)


def test_the_page_counts_directions_and_verdicts(tmp_path, monkeypatch):
    scores = iter([made(0.95, 0.99, "good"), made(0.5, 0.99, "good")])
    monkeypatch.setattr(translators, "score", lambda *asked: next(scores))
    path = tmp_path / "records.jsonl"
    translators.run(range(1), path, part="test")
    page = write(read_records(path))
    assert "2 of 4 directions reach the bar" in page
    assert "| good" in page and "Few labels" not in page


def test_the_committed_page_is_what_the_records_say():
    assert (ROOT / "docs" / "translators.md").read_text(encoding="utf-8") == write(read_records(RECORDS))
