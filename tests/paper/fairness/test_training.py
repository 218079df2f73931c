"""Batches and networks of many seeds are those of each seed alone, and the full classifier learns the bias."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from setminus_paper.fairness.rivals import LmifrTask
from setminus_paper.fairness.training import FairTask, SeedBatches, TabularNetwork, trained, vanilla
from setminus_paper.fairness.trials import measure

EPOCHS = 6


def test_an_epoch_is_every_row_of_the_seed_once():
    rows = torch.tensor([[0, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4]])
    batches = SeedBatches(torch.arange(10), rows=rows, size=2, seeds=(0, 1))
    for epoch in range(2):
        seen = torch.cat([batches.at(3 * epoch + step)[0] for step in range(3)], dim=1)
        assert torch.equal(seen.sort().values, rows.sort().values)


def test_a_last_part_is_kept_unless_it_is_tiny():
    def sizes(n):
        batches = SeedBatches(torch.arange(n), rows=torch.arange(n)[None], size=8, seeds=(0,))
        return [batches.at(step)[0].shape[1] for step in range(len(batches))]

    assert sizes(20) == [8, 8, 4]
    assert sizes(19) == [8, 8]


def test_a_seed_meets_its_rows_in_the_same_order_whichever_others_are_there():
    rows = torch.arange(40).reshape(2, 20)
    together = SeedBatches(torch.arange(40), rows=rows, size=4, seeds=(3, 5))
    alone = SeedBatches(torch.arange(40), rows=rows[1:], size=4, seeds=(5,))
    other = SeedBatches(torch.arange(40), rows=rows[1:], size=4, seeds=(6,))
    assert torch.equal(together.at(7)[0][1], alone.at(7)[0][0])
    assert not torch.equal(together.at(7)[0][1], other.at(7)[0][0])


def test_processes_share_a_batch():
    batches = SeedBatches(torch.arange(8), rows=torch.arange(8)[None], size=4, seeds=(0,))
    shares = torch.cat([batches.at(1, (rank, 2))[0] for rank in range(2)], dim=1)
    assert torch.equal(shares.sort().values, batches.at(1)[0].sort().values)
    with pytest.raises(ValueError, match="4 rows cannot be dealt to 3 processes"):
        batches.at(0, (0, 3))


def mean_of(metric, predictions, trials, rule="validation"):
    return np.mean([found[rule][metric] for found in measure(predictions, trials)])


@pytest.fixture(scope="module")
def full(trials):
    return vanilla(trials, epochs=EPOCHS)


def test_shapes_are_seeds_epochs_rows(full, trials):
    assert full.test.proba.shape == (3, EPOCHS, trials.test.shape[1])
    assert full.on_validation.proba.shape == (3, EPOCHS, trials.validation.shape[1])
    assert full.seconds > 0


def test_vanilla_learns_the_label_and_the_bias(full, trials):
    base_rate = np.mean([max(trials.y[rows].mean(), 1 - trials.y[rows].mean()) for rows in trials.test])
    assert mean_of("accuracy", full, trials) > base_rate + 0.15
    assert mean_of("eo_gap", full, trials) > 0.3


def test_a_seed_is_trained_the_same_whichever_others_are_there(trials, full):
    one = slice(1, 2)
    alone = replace(
        trials,
        seeds=trials.seeds[one],
        train=trials.train[one],
        validation=trials.validation[one],
        test=trials.test[one],
    )
    found = vanilla(alone, epochs=EPOCHS)
    # not to the bit: a batched product of one matrix is summed in another order
    assert np.abs(found.test.proba[0] - full.test.proba[1]).max() < 1e-3
    assert np.abs(found.test.proba[0] - full.test.proba[0]).max() > 0.1


def test_vanilla_is_remembered(trials, full):
    assert vanilla(trials, epochs=EPOCHS) is full
    assert vanilla(trials, epochs=1) is not full


def test_training_twice_gives_the_same_bits(trials):
    for make in (FairTask, partial(LmifrTask, budget=0.1)):
        one, again = (trained(make(trials), 1) for _ in range(2))
        assert np.array_equal(one.test.proba, again.test.proba)


def test_the_tabular_network_is_the_paper_s():
    network = TabularNetwork(102, 2)
    layers = [(m.in_features, m.out_features) for m in network.modules() if isinstance(m, torch.nn.Linear)]
    assert layers == [(102, 50), (50, 10), (10, 50), (50, 2)]
    assert sum(isinstance(m, torch.nn.Softplus) for m in network.modules()) == 2
    # the representation itself is linear: it may be negative, softplus may not
    assert (network.encoder(torch.randn(50, 102)) < 0).any()


def test_the_parts_of_the_tabular_network_make_the_whole():
    network, x = TabularNetwork(7, 3, width=5, n_latent=4), torch.randn(6, 7)
    assert torch.equal(network.head(network.encoder(x)), network(x))
    assert network(x).shape == (6, 3)
