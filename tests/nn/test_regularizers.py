"""Consistency losses by hand, VAT against the exact curvature, HSIC against its definition and closed form."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.nn.regularizers import (  # noqa: E402
    conditional_entropy,
    cycle_loss,
    hsic,
    identity_loss,
    virtual_adversarial_loss,
)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("loss", [cycle_loss, identity_loss])
def test_consistency_by_hand(loss):
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0], [4.0]])
    # |1 - 1| and |0 - 2|, then |3 - 0| and |4 - 4|
    assert loss(a, torch.tensor([[1.0, 0.0]]), b, torch.tensor([[3.0], [4.0]])).item() == 1 + 1.5
    assert loss(a, a, b, b).item() == 0


def test_consistency_refuses_images_that_do_not_pair():
    a = torch.zeros(4, 3)
    with pytest.raises(ValueError, match=r"b_again has shape \(1, 3\), its original \(4, 3\)"):
        cycle_loss(a, a, a, a[:1])
    with pytest.raises(ValueError, match=r"a_from_a has shape \(3,\)"):
        identity_loss(a, a[0], a, a)


def test_entropy_by_hand():
    logits = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64).log()
    by_hand = (-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) + math.log(2)) / 2
    assert conditional_entropy(logits).item() == pytest.approx(by_hand, abs=1e-12)
    # logits and log-probabilities are the same to it
    assert conditional_entropy(logits + 3).item() == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5, 43])
def test_entropy_lies_between_none_and_log_c(n_classes):
    assert conditional_entropy(torch.zeros(3, n_classes)).item() == pytest.approx(math.log(n_classes))
    sure = 1000 * torch.nn.functional.one_hot(torch.arange(2), n_classes).float()
    assert conditional_entropy(sure.requires_grad_()).item() == 0
    conditional_entropy(sure).backward()
    assert torch.isfinite(sure.grad).all()


def kl(p_logits, q_logits):
    log_p, log_q = p_logits.log_softmax(-1), q_logits.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def test_vat_of_a_constant_classifier_is_zero():
    constant = torch.nn.Linear(5, 3)
    torch.nn.init.zeros_(constant.weight)
    x = normal(8, 5, dtype=torch.float32)
    loss = virtual_adversarial_loss(constant, x)
    assert loss.item() == 0
    loss.backward()
    assert torch.isfinite(constant.weight.grad).all()
    assert virtual_adversarial_loss(torch.nn.Linear(5, 3), x).item() > 0


def test_vat_by_hand_on_two_classes():
    """With one log odds v @ x the worst direction is v itself, whatever the start: the curvature has rank one."""
    v, x = normal(6), normal(4, 6, seed=1)

    def classifier(x):
        return torch.stack([torch.zeros(len(x), dtype=x.dtype), x @ v], dim=1)

    toward = 0.5 * v / v.norm()
    candidates = torch.stack([kl(classifier(x), classifier(x + s * toward)) for s in (1, -1)])
    losses = [
        virtual_adversarial_loss(classifier, row, radius=0.5, xi=1e-4, clean_logits=classifier(row))
        for row in x[:, None]
    ]
    # both signs have the same curvature; which one comes out is the start's choice
    gap = (torch.stack(losses) - candidates).abs().min(0).values
    assert gap.max() < 1e-6
    a_random_step = 0.5 * torch.nn.functional.normalize(normal(4, 6, seed=2), dim=1)
    assert kl(classifier(x), classifier(x + a_random_step)).mean() < torch.stack(losses).mean()


def test_vat_climbs_with_power_steps_to_the_largest_curvature():
    weight, x = normal(10, 3), normal(1, 10, seed=1)

    def classifier(x):
        return x @ weight

    p = classifier(x).softmax(-1)[0]
    fisher = weight @ (torch.diag(p) - torch.outer(p, p)) @ weight.T
    top = torch.linalg.eigvalsh(fisher)[-1]
    radius = 1e-3
    few, many = (
        virtual_adversarial_loss(
            classifier, x, radius=radius, xi=1e-5, power_steps=k, generator=torch.Generator().manual_seed(3)
        )
        for k in (1, 30)
    )
    assert many.item() == pytest.approx(0.5 * radius**2 * top.item(), rel=1e-2)
    assert 0 < few <= many * (1 + 1e-2)


def test_vat_step_has_the_radius_in_every_row():
    steps, x = [], normal(5, 2, 3, 3, dtype=torch.float32)
    weight = normal(18, 4, seed=1, dtype=torch.float32)

    def classifier(inputs):
        steps.append((inputs - x).flatten(1).norm(dim=1).detach())
        return inputs.flatten(1) @ weight

    virtual_adversarial_loss(classifier, x, xi=1e-2)
    clean, probe, final = steps
    assert clean.max() == 0
    torch.testing.assert_close(probe, torch.full((5,), 1e-2), rtol=1e-3, atol=0)
    torch.testing.assert_close(final, torch.full((5,), 3.5), rtol=1e-5, atol=0)
    steps.clear()
    virtual_adversarial_loss(classifier, x, clean_logits=x.flatten(1) @ weight)
    assert len(steps) == 2


def test_vat_reaches_the_weights_by_its_last_pass_alone():
    network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    x = normal(7, 5).requires_grad_()
    one, two = (
        virtual_adversarial_loss(network, x, xi=1e-4, generator=torch.Generator().manual_seed(4)) for _ in range(2)
    )
    assert one.item() == two.item()
    assert all(p.grad is None for p in network.parameters())
    one.backward()
    assert x.grad is None
    assert all(p.grad.abs().sum() > 0 for p in network.parameters())
    clean_logits = network(x).detach().requires_grad_()
    virtual_adversarial_loss(network, x, clean_logits=clean_logits).backward()
    assert clean_logits.grad is None
    with torch.no_grad():
        read = virtual_adversarial_loss(network, x, xi=1e-4, generator=torch.Generator().manual_seed(4))
    assert read.item() == one.item()


@pytest.mark.parametrize("wrong", [{"radius": 0}, {"xi": -1e-6}, {"power_steps": 0}])
def test_vat_refuses_steps_that_go_nowhere(wrong):
    with pytest.raises(ValueError, match="expected positive lengths and 1 or more"):
        virtual_adversarial_loss(lambda x: x, torch.zeros(2, 2), **wrong)


def slow_hsic(x, y, bandwidth_x, bandwidth_y):
    """The definition, as a mean over all ordered four different rows."""
    n = len(x)

    def kernel(rows, bandwidth):
        return [[math.exp(-((a - b) ** 2).sum() / (2 * bandwidth**2)) for b in rows] for a in rows]

    k, m = kernel(x, bandwidth_x), kernel(y, bandwidth_y)
    terms = [k[i][j] * (m[i][j] + m[q][r] - 2 * m[i][q]) for i, j, q, r in itertools.permutations(range(n), 4)]
    return sum(terms) / len(terms)


@pytest.mark.parametrize("n", [4, 5, 9])
def test_hsic_equals_its_definition(n):
    x, y = normal(n, 3), normal(n, 2, seed=1)
    y = y + x[:, :2]
    expected = slow_hsic(x.numpy(), y.numpy(), 0.8, 1.7)
    assert hsic(x, y, bandwidth_x=0.8, bandwidth_y=1.7).item() == pytest.approx(expected, abs=1e-14)
    assert abs(hsic(x, y, bandwidth_x=0.8, bandwidth_y=0.7).item() - expected) > 1e-4


def test_hsic_by_hand_on_four_rows():
    # two pairs of twins: within a pair k = 1, between pairs k = e^-2; four rows leave (n - 1)(n - 2) = 6
    x = torch.tensor([0.0, 0.0, 2.0, 2.0], dtype=torch.float64)
    e = math.exp(-2)
    trace, total, product = 4 + 8 * e**2, 4 + 8 * e, 4 * (1 + 2 * e) ** 2
    by_hand = (trace + total**2 / 6 - 2 * product / 2) / 4
    assert hsic(x, x, bandwidth_x=1, bandwidth_y=1).item() == pytest.approx(by_hand, abs=1e-14)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_hsic_is_unbiased_at_any_size(correlation):
    """The mean over draws of six rows is the HSIC of the normal distribution, whose integrals are closed forms."""
    cov = np.array([[1, correlation], [correlation, 1]])
    eye = np.eye(2)
    exact = np.linalg.det(eye + 2 * cov) ** -0.5 + 1 / 3 - 2 * np.linalg.det(2 * eye + cov) ** -0.5
    rows = torch.tensor(np.random.default_rng(0).multivariate_normal([0, 0], cov, size=(4000, 6)))
    draws = torch.func.vmap(lambda r: hsic(r[:, 0], r[:, 1], bandwidth_x=1.0, bandwidth_y=1.0))(rows)
    error = draws.std() / math.sqrt(len(draws))
    assert abs(draws.mean() - exact) < 4 * error
    # the negative control: the usual estimate, which keeps the diagonal, is not
    kernels = torch.exp(-((rows[:, :, None] - rows[:, None]) ** 2) / 2).unbind(-1)
    centre = torch.eye(6, dtype=torch.float64) - 1 / 6
    biased = torch.einsum("nij,jk,nkl,li->n", kernels[0], centre, kernels[1], centre) / 36
    assert abs(biased.mean() - exact) > 8 * error


def test_hsic_tells_dependence_from_independence_with_its_own_bandwidth():
    x, noise = normal(400, 1), normal(400, 1, seed=1)
    assert abs(hsic(x, noise).item()) < 1e-3 < 1e-2 < hsic(x, x**2 + 0.1 * noise).item()


def test_hsic_median_bandwidth():
    x, y = normal(7, 2), normal(7, seed=1)
    medians = [np.median(torch.pdist(rows).numpy()) for rows in (x, y[:, None])]
    given = hsic(x, y, bandwidth_x=medians[0], bandwidth_y=medians[1])
    # 21 distances have a middle one, and counting each twice does not move it
    assert hsic(x, y).item() == pytest.approx(given.item(), abs=1e-14)


def test_hsic_of_stacked_samples():
    x, y = normal(3, 8, 2), normal(3, 8, seed=1)
    one_by_one = torch.stack([hsic(*pair) for pair in zip(x, y, strict=True)])
    torch.testing.assert_close(torch.func.vmap(hsic)(x, y), one_by_one)


def test_hsic_of_groups_and_of_constants():
    x, group = normal(30, 2), torch.arange(30) < 3
    # most distances between groups are 0; the median of the others is 1
    expected = hsic(x, group.double(), bandwidth_y=1.0)
    assert hsic(x, group.long()).item() == pytest.approx(expected.item(), abs=1e-7)
    assert hsic(x, torch.ones(30, dtype=torch.float64)).item() == pytest.approx(0, abs=1e-14)


def test_hsic_gradient():
    x, y = normal(6, 2).requires_grad_(), normal(6, 1, seed=1)
    assert torch.autograd.gradcheck(lambda x: hsic(x, y, bandwidth_x=1.0), (x,))
    twins = torch.zeros(6, 2, requires_grad=True)
    hsic(twins, y.float()).backward()
    assert torch.isfinite(twins.grad).all()


def test_hsic_refuses_what_it_cannot_estimate():
    with pytest.raises(ValueError, match="x has 3 rows and y 3: expected the same number for both, 4 or more"):
        hsic(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ValueError, match="x has 5 rows and y 4"):
        hsic(torch.zeros(5), torch.zeros(4))
    with pytest.raises(ValueError, match="bandwidth_y is 0: expected a positive number, or None"):
        hsic(torch.zeros(5), torch.zeros(5), bandwidth_y=0)
