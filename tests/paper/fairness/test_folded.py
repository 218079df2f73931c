"""Tuning out of fold: no row is predicted by a network that saw it, and the gap is kept."""

from dataclasses import replace

import numpy as np
import pytest
from setminus_paper.fairness.folded import FOLDS, fold, tuned_on_folds
from setminus_paper.fairness.measuring import measure
from setminus_paper.fairness.vanilla import vanilla

EPOCHS = 6


@pytest.fixture(scope="module")
def found(trials):
    return tuned_on_folds(trials, epochs=EPOCHS)


def mean_of(metric, predictions, trials):
    return np.mean([one["validation"][metric] for one in measure(predictions, trials)])


def test_each_row_is_held_out_once_and_by_networks_that_never_saw_it_or_the_test_rows(trials):
    folds = fold(trials)
    assert len({*folds.seeds}) == FOLDS * len(trials.seeds)
    for train, held_out, test in zip(folds.train, folds.validation, folds.test, strict=True):
        assert not {*train} & {*held_out}
        assert not ({*train} | {*held_out}) & {*test}
    for k, rows in enumerate(folds.validation.reshape(len(trials.seeds), -1)):
        pooled = {*trials.train[k], *trials.validation[k]}
        assert len({*rows}) == len(rows) > len(pooled) - FOLDS
        assert {*rows} <= pooled


def test_the_gap_falls_and_the_choice_is_within_its_ranges(trials, found):
    before = vanilla(trials, epochs=EPOCHS)
    assert mean_of("eo_gap", before, trials) > 0.3 > 0.2 > mean_of("eo_gap", found, trials)
    assert found.test.proba.shape == (3, 1, trials.test.shape[1])
    assert (found.settings["strength"] > 0).all()
    assert ((found.settings["threshold"] > 0) & (found.settings["threshold"] < 1)).all()


def test_without_a_bound_nothing_is_given_up(trials, found):
    free = tuned_on_folds(trials, tolerance=2.0, epochs=EPOCHS)
    assert mean_of("accuracy", free, trials) > mean_of("accuracy", found, trials)
    assert mean_of("eo_gap", free, trials) > mean_of("eo_gap", found, trials) + 0.1


def test_the_proxy_needs_no_groups_of_new_rows(trials):
    one = replace(trials, **{name: getattr(trials, name)[:1] for name in ("seeds", "train", "validation", "test")})
    turned = one.u.copy()
    turned[one.test] = 1 - turned[one.test]
    other = replace(one, u=turned)
    proxy, again = (tuned_on_folds(some, principal="proxy", epochs=2).test.proba for some in (one, other))
    assert np.array_equal(proxy, again)
    group, told = (tuned_on_folds(some, principal="group", epochs=2).test.proba for some in (one, other))
    assert not np.array_equal(group, told)
