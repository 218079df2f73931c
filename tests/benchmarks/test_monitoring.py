"""The drift of simulated rows is what it is said to be."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from benchmarks.monitoring import DRIFTS, KINDS, draw, run
from setminus.records import read_records

N = 200_000


@pytest.mark.parametrize("drift", [0.05, 0.3])
def test_drift_has_its_size(drift):
    before = draw(N, np.random.default_rng(0))
    scores, groups, mix = (draw(N, np.random.default_rng(1), kind, drift) for kind in KINDS)
    assert ks_2samp(before.proba[:, 0], scores.proba[:, 0]).statistic == pytest.approx(drift, abs=0.01)
    shares = [np.mean(np.asarray(rows.groups.column("sex")) == "m") for rows in (before, groups)]
    assert shares[1] - shares[0] == pytest.approx(drift, abs=0.01)
    shares = [np.mean(rows.words == "high") for rows in (before, mix)]
    assert shares[1] - shares[0] == pytest.approx(drift, abs=0.01)


def test_the_scores_are_the_probabilities_of_the_labels():
    rows = draw(N, np.random.default_rng(0))
    bins = np.digitize(rows.proba[:, 0], [0.2, 0.4, 0.6, 0.8])
    for k in range(5):
        inside = bins == k
        assert np.mean(rows.words[inside] == "high") == pytest.approx(rows.proba[inside, 0].mean(), abs=0.02)


def test_a_record_has_the_share_of_alarms_of_each_drift(tmp_path):
    run(tmp_path / "records.jsonl", simulations=1, sizes=(1000,))
    (record,) = read_records(tmp_path / "records.jsonl")
    assert len(record["metrics"]) == 1 + len(KINDS) * len(DRIFTS)
    assert record["metrics"]["none 0"] == 0 and record["metrics"]["scores 0.3"] == 1
