import pytest

torch = pytest.importorskip("torch")

from setminus.invariant.mldg import meta_risk  # noqa: E402


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
