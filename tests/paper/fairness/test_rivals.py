"""Each rival moves the predictions the way its equation says, on rows where the group predicts the label."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from setminus_paper.fairness.rivals import LmifrTask, Multipliers, laftr, lmifr, rebias, sum_of_cell_means
from setminus_paper.fairness.training import trained, vanilla
from setminus_paper.fairness.trials import measure

from setminus.nn.training import TrainingConfig, train

EPOCHS = 6


def mean_of(metric, predictions, trials, rule="validation"):
    return np.mean([found[rule][metric] for found in measure(predictions, trials)])


@pytest.fixture(scope="module")
def full(trials):
    return vanilla(trials, epochs=EPOCHS)


def test_laftr_is_fairer_than_vanilla_and_gamma_0_is_vanilla(trials, full):
    assert np.allclose(laftr(trials, gamma=0.0, epochs=EPOCHS).test.proba, full.test.proba, atol=1e-4)
    assert mean_of("eo_gap", laftr(trials, gamma=1.0, epochs=12), trials) < mean_of("eo_gap", full, trials) - 0.05


def test_the_distance_of_the_adversary_is_a_sum_of_means():
    rng = np.random.default_rng(0)
    y, u = rng.integers(0, 2, (2, 1, 400))
    distance = rng.random((1, 400))
    share = np.array([[np.mean((u == i) & (y == j)) for j in (0, 1)] for i in (0, 1)])[None]
    expected = sum(distance[(u == i) & (y == j)].mean() for i in (0, 1) for j in (0, 1))
    found = sum_of_cell_means(*map(torch.from_numpy, (distance, y, u, share)))
    assert float(found) == pytest.approx(expected)


def test_rebias_is_fairer_the_more_it_counts(trials):
    gaps = [mean_of("dp_gap", rebias(trials, gamma=gamma, epochs=EPOCHS), trials) for gamma in (0.0, 100.0)]
    assert gaps[1] < gaps[0] - 0.1


def test_rebias_without_its_term_is_vanilla(trials, full):
    assert np.allclose(rebias(trials, gamma=0.0, epochs=EPOCHS).test.proba, full.test.proba, atol=1e-4)


def test_lmifr_keeps_its_budget_by_raising_the_price(trials):
    tight, free = LmifrTask(trials, 0.01), LmifrTask(trials, 10.0)
    fair, unfair = trained(tight, 12), trained(free, 12)
    assert tight.prices.information.min() > 0
    assert free.prices.information.max() == 0
    assert mean_of("dp_gap", fair, trials) < mean_of("dp_gap", unfair, trials)


def test_prices_rise_where_a_budget_is_exceeded_and_stop_at_0():
    prices = Multipliers(2)
    prices.rise(information=torch.tensor([1.0, -100.0]))
    assert prices.information[0] > 1
    assert prices.information[1] == 0
    assert torch.equal(prices.rate, torch.ones(2))


def test_in_two_stages_the_label_does_not_train_the_encoder_of_lmifr(trials):
    other = replace(trials, y=1 - trials.y)
    encoders = {}
    for two_stages in (True, False):
        for labels in (trials, other):
            task = LmifrTask(labels, 0.1, two_stages=two_stages)
            train(task, TrainingConfig(steps=5, log_every=0))
            encoders[two_stages, labels is other] = torch.cat([one.flatten() for one in task.encoder.parameters()])
    assert torch.equal(encoders[True, False], encoders[True, True])
    assert not torch.equal(encoders[False, False], encoders[False, True])


def test_lmifr_refuses_columns_that_its_decoder_cannot_predict(trials):
    with pytest.raises(ValueError, match="other numbers than 0 and 1"):
        lmifr(replace(trials, x=trials.x + 0.5), budget=0.1)


def test_networks_of_one_seed_differ_by_stream(trials):
    task = LmifrTask(trials, 0.1)
    for one, two in pairwise([task.decoder, task.adversary, task.encoder]):
        assert not torch.equal(one.linear[0].bias[0, 0, :5], two.linear[0].bias[0, 0, :5])
