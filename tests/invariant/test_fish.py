import copy

import pytest

torch = pytest.importorskip("torch")

from setminus.invariant.environment_task import risk  # noqa: E402
from setminus.invariant.fish import Fish, FishConfig, walk  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402


def displacement(network, environments, rate):
    """How far the walk goes, in units of its rate."""
    walk(network, environments, rate)
    return torch.cat([weight.grad.flatten() for weight in network.parameters()]) / rate


def summed_gradient(network, environments):
    total = sum(risk(network, one) for one in environments)
    return torch.cat([g.flatten() for g in torch.autograd.grad(total, list(network.parameters()))])


def test_a_walk_of_small_steps_is_descent_on_the_sum(parts, environment):
    environments = [environment(1.0, 0.5, 0), environment(-0.5, 2.0, 1)]
    environments = [(x.double(), y) for x, y in environments]
    network = parts().double()
    exact = summed_gradient(network, environments)
    far = {rate: float((displacement(network, environments, rate) - exact).norm()) for rate in (1e-6, 1.0)}
    assert far[1e-6] < 1e-5 < 1e-2 < far[1.0]


def test_the_second_order_of_the_walk_is_the_gradient_of_the_inner_product(parts, environment):
    """Over both orders: sum g - rate/2 * grad <g_1, g_2>, as the paper derives."""
    environments = [(x.double(), y) for x, y in (environment(1.0, 0.5, 0), environment(-0.5, 2.0, 1))]
    network = parts().double()
    with torch.no_grad():
        network.head.weight.copy_(torch.tensor([[0.0, 0.2], [1.0, 0.1]]))
    weights = list(network.parameters())
    first, second = (torch.autograd.grad(risk(network, one), weights, create_graph=True) for one in environments)
    product = sum((a * b).sum() for a, b in zip(first, second, strict=True))
    matching = torch.cat([g.flatten() for g in torch.autograd.grad(product, weights)])
    rate = 1e-4
    both = sum(displacement(network, order, rate) for order in (environments, environments[::-1])) / 2
    measured = (summed_gradient(network, environments) - both) / (rate / 2)
    torch.testing.assert_close(measured, matching, rtol=1e-2, atol=1e-3)
    assert float(matching.norm()) > 0.1


def test_a_step_goes_the_meta_rate_of_the_way(parts, environment):
    environments = [environment(1.0, 0.5, 0), environment(1.0, 0.5, 0)]
    config = FishConfig(steps=1, batch_size=1000, rate=0.3, meta_rate=0.5, weight_decay=0.0)
    network = parts()
    task = Fish(environments, network, config)
    walked = copy.deepcopy(network)
    start = walked.head.weight.detach().clone()
    walk(walked, environments, 0.3)
    train(task, TrainingConfig(steps=1))
    torch.testing.assert_close(network.head.weight.detach(), start - 0.5 * walked.head.weight.grad)
