"""The numbers of the tables are those of the metrics, at the epoch that each rule picks."""

from dataclasses import replace

import numpy as np
import pytest
from setminus_paper.fairness.measuring import measure
from setminus_paper.fairness.predictions import Part, Predictions
from sklearn.metrics import accuracy_score, roc_auc_score

from setminus.core.gaps import demographic_parity_gap, equalized_odds_gap


@pytest.fixture(scope="module")
def predictions(trials):
    """Each epoch right on another share of the rows: the second on validation, the third on test."""
    rng = np.random.default_rng(0)

    def part(rows, shares):
        right = rng.random((3, len(shares), rows.shape[1])) < np.array(shares)[None, :, None]
        y = trials.y[rows][:, None] == 1
        return Part.of(np.where(right == y, 0.9, 0.1) * rng.uniform(0.9, 1, right.shape))

    return Predictions(part(trials.validation, (0.6, 0.9, 0.7)), part(trials.test, (0.6, 0.7, 0.9)), 1.5)


def test_rules_pick_the_epoch_that_they_say(predictions, trials):
    for found in measure(predictions, trials):
        assert (found["validation"]["epoch"], found["test_oracle"]["epoch"]) == (2, 3)
        assert found["seconds_per_seed"] == 1.5


def test_the_oracle_may_read_a_fit_on_all_rows(predictions, trials):
    other = replace(predictions, test=Part(predictions.test.proba[:, ::-1], predictions.test.decisions[:, ::-1]))
    for alone, found in zip(measure(predictions, trials), measure(predictions, trials, other), strict=True):
        assert found["validation"] == alone["validation"]
        assert found["test_oracle"] == {**alone["test_oracle"], "epoch": 1}


def test_numbers_are_those_of_the_metrics(predictions, trials):
    found = measure(predictions, trials)
    for k, rows in enumerate(trials.test):
        decided, y, groups = predictions.test.decisions[k, 1], trials.y[rows], {"sensitive_features": trials.u[rows]}
        block = found[k]["validation"]
        assert block["accuracy"] == pytest.approx(accuracy_score(y, decided))
        assert block["dp_gap"] == pytest.approx(demographic_parity_gap(y, decided, **groups))
        assert block["eo_gap"] == pytest.approx(equalized_odds_gap(y, decided.astype(int), agg="sum", **groups))
        assert block["auc"] == pytest.approx(roc_auc_score(y, predictions.test.proba[k, 1]))


def test_one_epoch_needs_no_validation_and_several_do(predictions, trials):
    once = Part(predictions.test.proba[:, :1], predictions.test.decisions[:, :1])
    assert measure(Predictions(None, once, 0.0), trials)[0]["validation"]["epoch"] == 1
    with pytest.raises(ValueError, match="no predictions of the validation rows"):
        measure(replace(predictions, validation=None), trials)


def test_settings_are_shown_at_the_epoch(predictions, trials):
    strengths = np.arange(9.0).reshape(3, 3)
    found = measure(replace(predictions, settings={"strength": strengths}), trials)
    assert [block["validation"]["strength"] for block in found] == [1.0, 4.0, 7.0]
