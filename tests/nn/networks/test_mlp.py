"""Networks on rows: their layers by hand, and what they refuse."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks.mlp import TabularNetwork, mlp  # noqa: E402


def test_mlp_by_hand():
    network, x = mlp((3, 5, 4, 2), torch.nn.Tanh), torch.randn(6, 3)
    linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    by_hand = linear[2](torch.tanh(linear[1](torch.tanh(linear[0](x)))))
    torch.testing.assert_close(network(x), by_hand)
    assert isinstance(network[-1], torch.nn.Linear)


def test_mlp_without_a_hidden_layer_is_linear():
    network = mlp((3, 2))
    assert [type(layer) for layer in network] == [torch.nn.Linear]


@pytest.mark.parametrize("sizes", [(3,), (), (3, 0, 2)])
def test_mlp_refuses_sizes_of_no_layer(sizes):
    with pytest.raises(ValueError, match="expected two or more positive numbers, inputs first, outputs last"):
        mlp(sizes or (1,))


def test_the_tabular_network_is_the_paper_s():
    network = TabularNetwork(102)
    layers = [(m.in_features, m.out_features) for m in network.modules() if isinstance(m, torch.nn.Linear)]
    assert layers == [(102, 50), (50, 10), (10, 50), (50, 2)]
    assert sum(isinstance(m, torch.nn.Softplus) for m in network.modules()) == 2
    # the representation itself is linear: it may be negative, softplus may not
    assert (network.encoder(torch.randn(50, 102)) < 0).any()


def test_the_parts_of_the_tabular_network_make_the_whole():
    network, x = TabularNetwork(7, 3, width=5, n_latent=4), torch.randn(6, 7)
    assert torch.equal(network.head(network.encoder(x)), network(x))
    assert network(x).shape == (6, 3)


def test_rows_of_another_width_are_refused():
    network = TabularNetwork(7)
    with pytest.raises(ValueError, match=r"shape \(2, 6\): expected \(n, 7\); build the network with n_features=6"):
        network(torch.zeros(2, 6))
    with pytest.raises(ValueError, match="flatten each row"):
        network.encoder(torch.zeros(2, 7, 1))
