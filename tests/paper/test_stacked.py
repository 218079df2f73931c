"""Stacked networks are the networks: their outputs, their gradients, and where training takes them."""

import pytest
import torch
from setminus_paper.stacked import StackedLayers
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.nn.networks import mlp, seeded
from setminus.nn.passes import Batches
from setminus.nn.training import Task, TrainingConfig, train

SEEDS = 4


def networks(seeds=range(SEEDS)):
    return [seeded(seed, lambda: mlp((6, 10, 3))) for seed in seeds]


def data(n=40):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(SEEDS, n, 6, generator=generator), torch.randint(3, (SEEDS, n), generator=generator)


def total(logits, y):
    """The sum of the networks' own mean losses."""
    return cross_entropy(logits.flatten(0, 1), y.flatten()) * len(y)


def test_outputs_are_those_of_each_network():
    x, _ = data()
    alone = torch.stack([net(part) for net, part in zip(networks(), x, strict=True)])
    torch.testing.assert_close(StackedLayers(networks())(x), alone)
    # the negative control: another order is not the same
    assert not torch.allclose(StackedLayers(networks()[::-1])(x), alone, atol=1e-2)


def test_gradients_are_those_of_each_network():
    stacked, alone, (x, y) = StackedLayers(networks()), networks(), data()
    total(stacked(x), y).backward()
    for k, net in enumerate(alone):
        cross_entropy(net(x[k]), y[k]).backward()
        for layer, own in zip(stacked.linear, (one for one in net if isinstance(one, nn.Linear)), strict=True):
            torch.testing.assert_close(layer.weight.grad[k].T, own.weight.grad)
            torch.testing.assert_close(layer.bias.grad[k, 0], own.bias.grad)
            assert not torch.allclose(layer.weight.grad[k - 1].T, own.weight.grad, atol=1e-3)


class Fit(Task):
    """Networks, stacked or one alone, each with its own batches."""

    def __init__(self, seeds):
        x, y = data()
        self.batches = [Batches(x[k], y[k], size=8, seed=k) for k in seeds]
        self.net = StackedLayers(networks(seeds))
        self.modules = {"net": self.net}
        self.optimizers = {"net": torch.optim.Adam(self.net.parameters(), 1e-2)}

    def step(self, loop):
        x, y = map(torch.stack, zip(*(loop.batch(dealt) for dealt in self.batches), strict=True))
        loop.update("net", total(self.net(x), y))


@pytest.mark.parametrize("ema", [None, 0.9])
def test_the_loop_trains_and_averages_each_network_as_if_it_were_alone(ema):
    def trained(seeds):
        task = Fit(seeds)
        outcome = train(task, TrainingConfig(steps=20, ema=ema))
        net = outcome.averaged["net"] if ema else task.net
        return [torch.nn.utils.parameters_to_vector(one.parameters()) for one in net.unstacked()]

    together = trained(range(SEEDS))
    for k, (found, start) in enumerate(zip(together, networks(), strict=True)):
        (alone,) = trained([k])
        torch.testing.assert_close(found, alone, rtol=1e-3, atol=1e-5)
        assert not torch.allclose(found, together[k - 1], atol=1e-3)
        assert not torch.allclose(found, torch.nn.utils.parameters_to_vector(start.parameters()), atol=1e-3)


def test_networks_come_back_as_copies():
    stacked = StackedLayers(networks())
    found, x = stacked.unstacked(), torch.randn(6, 6)
    assert all(torch.equal(net(x), back(x)) for net, back in zip(networks(), found, strict=True))
    with torch.no_grad():
        found[0][0].weight.zero_()
    assert stacked.linear[0].weight[0].any()


def test_sizes():
    assert StackedLayers(networks()).sizes == (6, 10, 3)


@pytest.mark.parametrize("layers", [(nn.ReLU(), nn.Linear(2, 2)), (nn.Linear(2, 2), nn.BatchNorm1d(2))])
def test_other_layers_are_refused(layers):
    with pytest.raises(ValueError, match="expected linear layers, each followed by at most one activation"):
        StackedLayers([nn.Sequential(*layers)])
