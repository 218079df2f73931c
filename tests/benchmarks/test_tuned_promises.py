"""The promise of the tuned classifier in simulation: its true gap, that it can be broken, and that a run continues."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks import tuned_promises
from setminus.core.gaps import count_table, equalized_odds_from_table
from setminus.records import read_records


class Cut:
    """Selects values above a threshold of their group."""

    def __init__(self, *thresholds):
        self.thresholds = np.array(thresholds)

    def predict(self, X, sensitive_features):
        return (X[:, 0] > self.thresholds[sensitive_features]).astype(int)


@pytest.mark.parametrize("thresholds", [(0.0, 0.0), (-0.5, 0.5)])
def test_the_true_gap_is_that_of_many_rows(thresholds):
    model, rng = Cut(*thresholds), np.random.default_rng(0)
    X, y, group = tuned_promises.people(400_000, 2, rng)
    measured = equalized_odds_from_table(count_table(group, y, model.predict(X, group), (2, 2, 2)))
    assert tuned_promises.true_gap(model, 2) == pytest.approx(float(measured), abs=0.01)
    # thresholds that follow the groups' centres leave no gap, others do
    assert (tuned_promises.true_gap(model, 2) < 0.002) == (thresholds == (-0.5, 0.5))


def test_the_full_classifier_has_a_gap_that_the_tolerance_forbids():
    # otherwise every model would be left alone, and no promise could be broken
    X, y, group = tuned_promises.people(20_000, 4, np.random.default_rng(0))
    full = LogisticRegression().fit(X, y)
    table = count_table(group, y, full.predict(X), (4, 2, 2))
    assert float(equalized_odds_from_table(table)) > max(tuned_promises.TOLERANCE[4][1:])


def test_a_run_continues_and_counts_every_set(tmp_path, monkeypatch):
    config = {"rows": 1000, "groups": 2, "tolerance": 0.2, "mode": "fitted", "sets": 1, "part": 0}
    monkeypatch.setattr(tuned_promises, "settings", lambda sets: iter([("tuned, simulated", config)]))
    for _ in range(2):
        tuned_promises.run(tmp_path / "records.jsonl", only="tuned")
    (record,) = read_records(tmp_path / "records.jsonl")
    assert record["metrics"]["certified"] in (0, 1) and record["metrics"]["broken"] <= record["metrics"]["certified"]
    assert "| fitted | 2 | 1,000 | 0.2 | 1 |" in tuned_promises.tables(tmp_path / "records.jsonl")[0]
