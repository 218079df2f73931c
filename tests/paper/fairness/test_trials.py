"""Each seed deals its own rows; nothing is dealt twice; what does not fit is refused in words."""

import numpy as np
import pytest
from setminus_paper.fairness.trials import Trials, adult_trials, german_trials

from setminus.datasets.split import Split


def test_the_parts_of_a_seed_are_all_rows_once(trials):
    for k in range(3):
        dealt = np.concatenate([trials.train[k], trials.validation[k], trials.test[k]])
        assert np.array_equal(np.sort(dealt), np.arange(len(trials.x)))
    assert not np.array_equal(np.sort(trials.test[0]), np.sort(trials.test[1]))


def test_a_seed_is_dealt_the_same_whichever_others_are_there():
    rows = Split(x=np.zeros((200, 2)), y=np.arange(200) % 2, z1=np.arange(200) // 100)
    together, alone = Trials.dealt(rows, (3, 7)), Trials.dealt(rows, (7,))
    assert np.array_equal(together.train[1], alone.train[0])
    assert np.array_equal(together.test[1], alone.test[0])


def test_given_test_rows_are_those_of_every_seed():
    rows = Split(x=np.zeros((100, 2)), y=np.arange(100) % 2, z1=np.arange(100) // 50)
    held_out = Split(x=np.ones((30, 2)), y=np.arange(30) % 2, z1=np.arange(30) // 15)
    found = Trials.dealt(rows, (0, 1), held_out)
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
        Trials.dealt(rows, (0,))


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
