"""The verdict of adapt against the truth: what is counted."""

from functools import partial

import pytest

pytest.importorskip("torch")

from benchmarks import verdicts
from benchmarks.adapters_page import judged


def record(adapted, recommended, part="test", status="ok"):
    return {
        "name": "vada_orthogonal",
        "config": {"task": "moons 30", "shift": 0.7, "part": part},
        "seed": 0,
        "metrics": {
            "accuracy": {"source only": 0.6, "corrected": 0.7, "adapted": adapted},
            "recommended": recommended,
            "findings": {"one": "ok", "another": status},
        },
    }


def test_runs_that_hurt_or_help_are_counted_with_those_warned_of():
    runs = [record(0.5, "corrected"), record(0.67, "adapted"), record(0.69, "corrected"), record(0.8, "adapted")]
    runs += [record(0.8, "corrected", status="fail"), record(0.1, "adapted", part="development", status="warn")]
    rows = judged(runs)
    earlier, now = "any failed check (earlier)", "recommends another model"
    # below the corrected model by more than 2 points: two, one of them warned of; above: two, one of them warned of
    assert ["vada_orthogonal", "test", "5", "corrected", now, "1 of 2", "1 of 2"] in rows
    assert ["vada_orthogonal", "test", "5", "corrected", earlier, "0 of 2", "1 of 2"] in rows
    # 0.67 and 0.69 are above the source alone
    assert ["vada_orthogonal", "test", "5", "source only", now, "1 of 1", "2 of 4"] in rows
    assert ["vada_orthogonal", "development", "1", "corrected", now, "0 of 1", "0 of 0"] in rows


def test_one_setting_is_measured_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(verdicts, "AdaptConfig", partial(verdicts.AdaptConfig, steps=3))
    path = tmp_path / "records.jsonl"
    verdicts.run(range(1), path, [("moons 30", 0.7)])
    found = verdicts.read_records(path)
    assert [one["name"] for one in found] == list(verdicts.METHODS)
    for one in found:
        assert set(one["metrics"]["accuracy"]) == {"source only", "corrected", "adapted"}
        assert one["metrics"]["measures"]["agreement"] <= 1
    verdicts.run(range(1), path, [("moons 30", 0.7)])
    assert len(verdicts.read_records(path)) == len(found)
