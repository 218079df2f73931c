import copy

import pytest

torch = pytest.importorskip("torch")

from setminus.invariant.environments import risk  # noqa: E402
from setminus.invariant.gradient_matching import (  # noqa: E402
    Fish,
    FishConfig,
    meta_risk,
    walk,
)
from setminus.nn.training import TrainingConfig, train  # noqa: E402


class Quadratic(torch.nn.Module):
    """Logits whose cross-entropy with label 0 is ``scale * (theta - center)^2 / 2`` for the input (scale, center)."""

    def __init__(self, theta):
        super().__init__()
        self.theta = torch.nn.Parameter(torch.tensor(theta, dtype=torch.float64))

    def forward(self, x):
        risk = x[:, 0] * (self.theta - x[:, 1]) ** 2 / 2
        # softplus(other logit) = risk
        return torch.stack([torch.zeros_like(risk), torch.log(torch.expm1(risk))], dim=1)


def quadratic_environment(scale, center):
    return torch.tensor([[scale, center]], dtype=torch.float64), torch.tensor([0])


@pytest.mark.parametrize("inner_rate", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_the_meta_gradient_of_quadratics_is_the_one_by_hand(inner_rate, beta):
    theta, (h, b), (g, c) = 0.3, (1.5, 2.0), (0.8, -1.0)
    network = Quadratic(theta)
    meta_risk(network, [quadratic_environment(h, b)], quadratic_environment(g, c), inner_rate, beta).backward()
    moved = theta - inner_rate * h * (theta - b)
    by_hand = h * (theta - b) + beta * g * (moved - c) * (1 - inner_rate * h)
    first_order = h * (theta - b) + beta * g * (moved - c)
    assert float(network.theta.grad) == pytest.approx(by_hand, abs=1e-12)
    assert inner_rate == 0 or float(network.theta.grad) != pytest.approx(first_order, abs=1e-3)


def test_the_virtual_step_leaves_no_trace_in_running_statistics():
    torch.manual_seed(0)
    x, y = torch.randn(32, 3), torch.arange(32) % 2
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    meta_risk(network, [(x, y)], (100 * x, y), inner_rate=1.0, beta=1.0)
    once = torch.nn.BatchNorm1d(4)
    once(network[0](x))
    torch.testing.assert_close(network[1].running_var, once.running_var)
    assert int(network[1].num_batches_tracked) == 1


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
