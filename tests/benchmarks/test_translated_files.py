"""A killed translation of a folder is resumed: nothing is missing, nothing differs, and the costs are of each run."""

import pytest

pytest.importorskip("torch")

from benchmarks import translated_files
from setminus.records import read_records


def test_a_killed_run_is_resumed_and_both_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(translated_files, "PER_FOLDER", 500)
    monkeypatch.setattr(translated_files, "PAUSE", 0.01)
    translated_files.run(tmp_path / "files" / "records.jsonl", pictures=3_000)
    (record,) = read_records(tmp_path / "files" / "records.jsonl")
    found = record["metrics"]
    assert 1_500 <= found["killed"]["written"] < 3_000
    assert found["killed"]["written"] + found["resumed"]["written"] == 3_000
    assert found["all_written"] and found["compared"] == found["tenth"]["written"] == 300
    # the last digit of a pixel may depend on the pictures beside it in a batch
    assert found["largest_difference"] <= 1
    assert all(
        found[part]["peak_mib"] > 50 and found[part]["cpu_seconds"] > 0 for part in ("killed", "resumed", "tenth")
    )


def test_a_run_that_ends_before_it_is_killed_is_an_error(tmp_path):
    translated_files._save_model(tmp_path / "model")
    translated_files._write_pictures(tmp_path / "given", 3)
    with pytest.raises(RuntimeError, match="ended with 0"):
        translated_files._apply(tmp_path / "model", tmp_path / "given", tmp_path / "out", kill_after=4)
