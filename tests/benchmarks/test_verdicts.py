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
            "measures": {"agreement_with_auto": 0.4 if status == "fail" else 0.6},
        },
    }


def test_runs_that_hurt_or_help_are_counted_with_those_warned_of():
    runs = [record(0.5, "corrected"), record(0.67, "adapted"), record(0.69, "corrected"), record(0.8, "adapted")]
    runs += [record(0.8, "corrected", status="fail"), record(0.1, "adapted", part="development", status="warn")]
    rows = {(row[1], row[3].partition(" (")[0]): row[4:] for row in judged(runs)}
    # beside the source: 0.5 is below it, four are above; beside the corrected model: two below, two above
    counts = {"another model is recommended": (1, 2, 1, 1), "any failed check": (0, 1, 0, 1)}
    counts["predictions unlike those of auto"] = counts["any failed check"]
    for rule, (a, b, c, d) in counts.items():
        both = [f"{a + c} of 3 ({100 * (a + c) / 3:.0f} %)", f"{b + d} of 6 ({100 * (b + d) / 6:.0f} %)"]
        alone = [
            f"{a} of 1 ({100 * a} %)",
            f"{b} of 4 ({25 * b} %)",
            f"{c} of 2 ({50 * c} %)",
            f"{d} of 2 ({50 * d} %)",
        ]
        assert rows["Settings for test", rule] == [*alone, *both]
    assert rows["Settings for development", "another model is recommended"][1:3] == ["0 of 0", "0 of 1 (0 %)"]


def test_one_setting_is_measured_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(verdicts, "AdaptConfig", partial(verdicts.AdaptConfig, steps=3))
    path = tmp_path / "records.jsonl"
    verdicts.run(range(1), path, [("moons 30", 0.7)])
    found = verdicts.read_records(path)
    assert [one["name"] for one in found] == list(verdicts.METHODS)
    for one in found:
        assert set(one["metrics"]["accuracy"]) == {"source only", "corrected", "auto", "adapted"}
        assert one["metrics"]["measures"]["agreement"] <= 1
        assert (one["metrics"]["measures"]["agreement_with_auto"] == 1) >= (one["name"] == "auto")
    verdicts.run(range(1), path, [("moons 30", 0.7)])
    assert len(verdicts.read_records(path)) == len(found)
