"""The network for tables: its sizes, its parts, and rows that it refuses."""

import pytest

torch = pytest.importorskip("torch")

from setminus_paper.fairness.network import TabularNetwork  # noqa: E402


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
