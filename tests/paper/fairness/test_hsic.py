"""HSIC against its definition, by hand, and its mean under independence."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus_paper.fairness.rivals import hsic  # noqa: E402


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def slow_hsic(x, y, bandwidth):
    """The definition, as a mean over all ordered four different rows."""
    n = len(x)

    def kernel(rows):
        return [[math.exp(-((a - b) ** 2).sum() / (2 * bandwidth**2)) for b in rows] for a in rows]

    k, m = kernel(x), kernel(y)
    terms = [k[i][j] * (m[i][j] + m[q][r] - 2 * m[i][q]) for i, j, q, r in itertools.permutations(range(n), 4)]
    return sum(terms) / len(terms)


@pytest.mark.parametrize("n", [4, 5, 9])
def test_hsic_equals_its_definition(n):
    x, y = normal(n, 3), normal(n, 2, seed=1)
    y = y + x[:, :2]
    expected = slow_hsic(x.numpy(), y.numpy(), 0.8)
    assert hsic(x, y, 0.8).item() == pytest.approx(expected, abs=1e-14)
    assert abs(hsic(x, y, 1.7).item() - expected) > 1e-4


def test_hsic_by_hand_on_four_rows():
    # two pairs of twins: within a pair k = 1, between pairs k = e^-2; four rows leave (n - 1)(n - 2) = 6
    x = torch.tensor([0.0, 0.0, 2.0, 2.0], dtype=torch.float64)
    e = math.exp(-2)
    trace, total, product = 4 + 8 * e**2, 4 + 8 * e, 4 * (1 + 2 * e) ** 2
    by_hand = (trace + total**2 / 6 - 2 * product / 2) / 4
    assert hsic(x, x).item() == pytest.approx(by_hand, abs=1e-14)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_hsic_is_unbiased_at_any_size(correlation):
    """The mean over draws of six rows is the HSIC of the normal distribution, whose integrals are closed forms."""
    cov = np.array([[1, correlation], [correlation, 1]])
    eye = np.eye(2)
    exact = np.linalg.det(eye + 2 * cov) ** -0.5 + 1 / 3 - 2 * np.linalg.det(2 * eye + cov) ** -0.5
    rows = torch.tensor(np.random.default_rng(0).multivariate_normal([0, 0], cov, size=(4000, 6)))
    draws = torch.func.vmap(lambda r: hsic(r[:, 0], r[:, 1]))(rows)
    error = draws.std() / math.sqrt(len(draws))
    assert abs(draws.mean() - exact) < 4 * error
    # the negative control: the usual estimate, which keeps the diagonal, is not
    kernels = torch.exp(-((rows[:, :, None] - rows[:, None]) ** 2) / 2).unbind(-1)
    centre = torch.eye(6, dtype=torch.float64) - 1 / 6
    biased = torch.einsum("nij,jk,nkl,li->n", kernels[0], centre, kernels[1], centre) / 36
    assert abs(biased.mean() - exact) > 8 * error


def test_hsic_distinguishes_dependence_from_independence():
    x, noise = normal(400, 1), normal(400, 1, seed=1)
    assert abs(hsic(x, noise).item()) < 1e-3 < 1e-2 < hsic(x, x**2 + 0.1 * noise).item()


def test_hsic_of_stacked_samples():
    x, y = normal(3, 8, 2), normal(3, 8, seed=1)
    one_by_one = torch.stack([hsic(*pair) for pair in zip(x, y, strict=True)])
    torch.testing.assert_close(torch.func.vmap(hsic)(x, y), one_by_one)


def test_hsic_of_a_constant_is_zero():
    assert hsic(normal(30, 2), torch.ones(30, dtype=torch.float64)).item() == pytest.approx(0, abs=1e-14)


def test_hsic_gradient():
    x, y = normal(6, 2).requires_grad_(), normal(6, 1, seed=1)
    assert torch.autograd.gradcheck(lambda x: hsic(x, y), (x,))
    twins = torch.zeros(6, 2, requires_grad=True)
    hsic(twins, y.float()).backward()
    assert torch.isfinite(twins.grad).all()


def test_hsic_refuses_what_it_cannot_estimate():
    with pytest.raises(ValueError, match="x has 3 rows and y 3: expected the same number for both, 4 or more"):
        hsic(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ValueError, match="x has 5 rows and y 4"):
        hsic(torch.zeros(5), torch.zeros(4))
