"""Stacked networks are the networks: what they say, their gradients, and where training takes them."""

import pytest

torch = pytest.importorskip("torch")

from setminus_paper.stacked import Stacked  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

from setminus.nn.batches import Batches  # noqa: E402
from setminus.nn.training import Task, TrainingConfig, train  # noqa: E402

SEEDS = 4


def network(seed, dropout=0.0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = torch.nn.Linear(6, 10), torch.nn.Softplus(), torch.nn.Dropout(dropout), torch.nn.Linear(10, 3)
        return torch.nn.Sequential(*layers)


def data(seed=0, n=40):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(SEEDS, n, 6, generator=generator), torch.randint(3, (SEEDS, n), generator=generator)


def total(logits, y):
    """The sum of the networks' own mean losses."""
    return cross_entropy(logits.flatten(0, 1), y.flatten()) * len(y)


def test_says_what_each_network_says():
    networks, (x, _) = [network(k) for k in range(SEEDS)], data()
    alone = torch.stack([net(part) for net, part in zip(networks, x, strict=True)])
    torch.testing.assert_close(Stacked(networks)(x), alone)
    # the negative control: another order is not the same
    assert not torch.allclose(Stacked(networks[::-1])(x), alone, atol=1e-2)


def test_gradients_are_those_of_each_network():
    networks, (x, y) = [network(k) for k in range(SEEDS)], data()
    stacked = Stacked(networks)
    total(stacked(x), y).backward()
    for k, net in enumerate(networks):
        cross_entropy(net(x[k]), y[k]).backward()
        for name, weight in net.named_parameters():
            gradient = stacked.weights[name.replace(".", "__")].grad
            torch.testing.assert_close(gradient[k], weight.grad)
            assert not torch.allclose(gradient[k - 1], weight.grad, atol=1e-3)


def test_training_is_that_of_each_network():
    networks, (x, y) = [network(k) for k in range(SEEDS)], data()
    batches = [Batches(x[k], y[k], size=8, seed=k) for k in range(SEEDS)]
    stacked = Stacked(networks)
    together = torch.optim.Adam(stacked.parameters(), 1e-2, fused=True)
    for step in range(50):
        parts = zip(*(dealt.at(step) for dealt in batches), strict=True)
        inputs, labels = (torch.stack(part) for part in parts)
        together.zero_grad()
        total(stacked(inputs), labels).backward()
        together.step()
    for k, (net, found) in enumerate(zip(networks, stacked.unstacked(), strict=True)):
        before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
        alone = torch.optim.Adam(net.parameters(), 1e-2, fused=True)
        for step in range(50):
            inputs, labels = batches[k].at(step)
            alone.zero_grad()
            cross_entropy(net(inputs), labels).backward()
            alone.step()
        for name, weight in found.named_parameters():
            torch.testing.assert_close(weight, net.get_parameter(name), rtol=1e-3, atol=1e-5)
            assert not torch.allclose(weight, before[name], rtol=1e-3, atol=1e-3)


class Fit(Task):
    """Networks, stacked or one alone, each with its own batches."""

    def __init__(self, seeds):
        x, y = data()
        self.batches = [Batches(x[k], y[k], size=8, seed=k) for k in seeds]
        self.net = Stacked([network(k) for k in seeds])
        self.modules = {"net": self.net}
        self.optimizers = {"net": torch.optim.Adam(self.net.parameters(), 1e-2)}

    def step(self, loop):
        x, y = map(torch.stack, zip(*(loop.batch(dealt) for dealt in self.batches), strict=True))
        loop.update("net", total(self.net(x), y))


def test_the_loop_averages_each_network_as_if_it_were_alone():
    def averages(seeds):
        return train(Fit(seeds), TrainingConfig(steps=10, ema=0.9)).averaged["net"].unstacked()

    together = averages(range(SEEDS))
    for k, found in enumerate(together):
        (alone,) = averages([k])
        for name, weight in found.named_parameters():
            torch.testing.assert_close(weight, alone.get_parameter(name), rtol=1e-4, atol=1e-6)
            assert not torch.allclose(weight, together[k - 1].get_parameter(name), atol=1e-3)


def test_unstacked_gives_the_networks_back():
    networks = [network(k, dropout=0.2) for k in range(SEEDS)]
    stacked = Stacked(networks)
    found = stacked.unstacked()
    for net, back in zip(networks, found, strict=True):
        assert all(
            torch.equal(a, b) for a, b in zip(net.state_dict().values(), back.state_dict().values(), strict=True)
        )
        assert type(back) is type(net)
        assert back.training
    assert not any(net.training for net in stacked.eval().unstacked())
    # copies: neither the networks nor the stack follow
    with torch.no_grad():
        found[0][0].weight.zero_()
    assert stacked.weights["0__weight"][0].any()
    assert networks[0][0].weight.any()


def test_dropout_differs_among_networks_and_stops_in_eval():
    stacked = Stacked([network(0, dropout=0.5)] * SEEDS)
    x = torch.ones(SEEDS, 5, 6)
    torch.manual_seed(0)
    noisy = stacked(x)
    assert all(not torch.equal(noisy[0], other) for other in noisy[1:])
    quiet = stacked.eval()(x)
    assert all(torch.equal(quiet[0], other) for other in quiet)


class Weighted(torch.nn.Module):
    """Buffers that are called as attributes of a stack are, and one that is not saved."""

    def __init__(self, seed):
        super().__init__()
        self.inner = network(seed)
        self.register_buffer("weights", torch.full((3,), float(seed)))
        self.register_buffer("shift", torch.full((3,), 10.0 * seed), persistent=False)

    def forward(self, x):
        return self.inner(x) * self.weights + self.shift


def test_buffers_come_along():
    networks, (x, _) = [Weighted(k) for k in range(SEEDS)], data()
    stacked = Stacked(networks)
    alone = torch.stack([net(part) for net, part in zip(networks, x, strict=True)])
    torch.testing.assert_close(stacked(x), alone)
    back = torch.stack([net(part) for net, part in zip(stacked.unstacked(), x, strict=True)])
    torch.testing.assert_close(back, alone)
    assert len(list(stacked.parameters())) == len(list(networks[0].parameters()))


def test_frozen_weights_stay_frozen():
    networks = [network(k) for k in range(SEEDS)]
    for net in networks:
        net[0].requires_grad_(False)
    stacked = Stacked(networks)
    assert {name for name, weight in stacked.weights.items() if weight.requires_grad} == {"3__weight", "3__bias"}
    assert not stacked.unstacked()[0][0].weight.requires_grad


def test_a_state_comes_back():
    first, second = (Stacked([network(k + start) for k in range(SEEDS)]) for start in (0, 10))
    x, _ = data()
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(x), second(x))


def test_errors():
    with pytest.raises(ValueError, match="no networks came: stack at least one"):
        Stacked([])
    with pytest.raises(
        ValueError, match=r"networks 0 and 2 are not alike .*\(10, 6\).*\(11, 6\).*values of their weights"
    ):
        Stacked([torch.nn.Linear(6, 10), torch.nn.Linear(6, 10), torch.nn.Linear(6, 11)])
    with pytest.raises(ValueError, match="networks 0 and 1 are not alike"):
        Stacked([network(0), network(0).eval()])
    with pytest.raises(ValueError, match="networks 0 and 1 are not alike"):
        Stacked([network(0), torch.nn.Linear(6, 3)])
    with pytest.raises(ValueError, match=r"x has shape \(5, 6\): expected \(4, n, ...\), a part for each network"):
        Stacked([network(k) for k in range(SEEDS)])(torch.zeros(5, 6))
