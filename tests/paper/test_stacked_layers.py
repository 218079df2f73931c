"""Layers of many networks are those of each alone."""

import pytest
import torch
from setminus_paper.fairness.training import TabularNetwork
from setminus_paper.stacked import Stacked
from setminus_paper.stacked_layers import StackedLayers
from torch import nn

from setminus.nn.networks import mlp


def test_values_and_gradients_are_those_of_vmap():
    networks = [TabularNetwork(7, 1).head for _ in range(4)]
    ours, reference = StackedLayers(networks).double(), Stacked(networks).double()
    x = torch.randn(4, 9, 10, dtype=torch.float64)
    assert torch.allclose(ours(x), reference(x), atol=1e-12)
    ours(x).square().sum().backward()
    reference(x).square().sum().backward()
    first = reference.weights["0__weight"].grad
    assert first.abs().max() > 0
    assert torch.allclose(ours.linear[0].weight.grad.transpose(1, 2), first, atol=1e-12)


def test_sizes():
    assert StackedLayers([mlp((3, 5, 2))]).sizes == (3, 5, 2)


@pytest.mark.parametrize("layers", [(nn.ReLU(), nn.Linear(2, 2)), (nn.Linear(2, 2), nn.BatchNorm1d(2))])
def test_other_layers_are_refused(layers):
    with pytest.raises(ValueError, match=r"expected linear layers.*setminus_paper\.stacked\.Stacked"):
        StackedLayers([nn.Sequential(*layers)])


def test_networks_come_back_as_they_went_in():
    networks = [mlp((3, 5, 2)) for _ in range(3)]
    x = torch.randn(6, 3)
    for network, back in zip(networks, StackedLayers(networks).unstacked(), strict=True):
        assert torch.equal(network(x), back(x))
    assert not torch.equal(networks[0](x), StackedLayers(networks).unstacked()[1](x))
