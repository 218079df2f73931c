"""Each seed has its own rows, no row is in two parts, and scores are those of the metrics at the picked epoch."""

from dataclasses import replace

import numpy as np
import pytest
from setminus_paper.fairness.trials import Part, Predictions, Trials, adult_trials, german_trials, measure
from sklearn.metrics import accuracy_score, roc_auc_score

from setminus.core.gaps import demographic_parity_gap, equalized_odds_gap
from setminus.datasets.split import Split


def test_the_parts_of_a_seed_are_all_rows_once(trials):
    for k in range(3):
        dealt = np.concatenate([trials.train[k], trials.validation[k], trials.test[k]])
        assert np.array_equal(np.sort(dealt), np.arange(len(trials.x)))
    assert not np.array_equal(np.sort(trials.test[0]), np.sort(trials.test[1]))


def test_a_seed_is_dealt_the_same_whichever_others_are_there():
    rows = Split(x=np.zeros((200, 2)), y=np.arange(200) % 2, z1=np.arange(200) // 100)
    together, alone = Trials.from_split(rows, (3, 7)), Trials.from_split(rows, (7,))
    assert np.array_equal(together.train[1], alone.train[0])
    assert np.array_equal(together.test[1], alone.test[0])


def test_given_test_rows_are_those_of_every_seed():
    rows = Split(x=np.zeros((100, 2)), y=np.arange(100) % 2, z1=np.arange(100) // 50)
    held_out = Split(x=np.ones((30, 2)), y=np.arange(30) % 2, z1=np.arange(30) // 15)
    found = Trials.from_split(rows, (0, 1), held_out)
    assert (found.x[found.test] == 1).all()
    assert (found.x[found.train] == 0).all()
    assert found.train.shape[1] + found.validation.shape[1] == 100


def test_learning_from_all_leaves_the_test_rows_alone(trials):
    whole = trials.learning_from_all()
    for k in range(3):
        assert {*whole.train[k]} == {*trials.train[k]} | {*trials.validation[k]}
        assert not {*whole.train[k]} & {*whole.test[k]}


def test_groups_are_counted_by_label(trials):
    rows = trials.train[1]
    expected = [[np.sum((trials.u[rows] == u) & (trials.y[rows] == y)) for y in (0, 1)] for u in (0, 1)]
    assert trials.group_counts[1].tolist() == expected


def test_more_than_two_labels_are_refused():
    rows = Split(x=np.zeros((90, 2)), y=np.arange(90) % 3, z1=np.arange(90) // 45)
    with pytest.raises(ValueError, match=r"y holds \[0, 1, 2\]: expected the codes 0 and 1"):
        Trials.from_split(rows, (0,))


def test_rows_of_another_number_of_seeds_are_refused(trials):
    with pytest.raises(ValueError, match=r"train has shape \(2, .*expected \(3, rows\)"):
        Trials(trials.x, trials.y, trials.u, trials.seeds, trials.train[:2], trials.validation, trials.test)


@pytest.mark.data
def test_the_sizes_of_the_paper():
    adult, german = adult_trials((0, 1)), german_trials((0, 1))
    assert adult.x.shape == (45222, 102)
    assert adult.test.shape == (2, 15060)
    assert german.x.shape == (1000, 58)
    assert german.test.shape == (2, 200)


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
