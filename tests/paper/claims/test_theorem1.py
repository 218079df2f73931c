"""Theorem 1: the rates of both excess risks, and the step of the proof that does not hold."""

import numpy as np
import pytest
from setminus_paper.claims import theorem1

from setminus.datasets.synthetic import DiscreteModel


@pytest.fixture(scope="module")
def metrics():
    return next(theorem1.measure((2,), draws=300))


def test_the_slopes_are_one_and_one_half(metrics):
    assert metrics["slope_full"] == pytest.approx(-1, abs=0.03)
    assert metrics["slope_orthogonal"] == pytest.approx(-0.5, abs=0.03)
    assert metrics["slope_bound"] == pytest.approx(-0.5, abs=0.01)


@pytest.mark.parametrize("name", ["full", "orthogonal"])
def test_large_samples_meet_the_closed_forms(metrics, name):
    np.testing.assert_allclose(metrics[name][-4:], metrics[f"{name}_exact"][-4:], rtol=0.15)


def test_the_bound_holds_and_the_step_of_its_proof_does_not(metrics):
    assert max(metrics["above_bound"]) == 0
    for gamma in ("proof", "printed"):
        fails = metrics[f"step_fails_{gamma}"]
        assert fails[0] < 0.05 and fails[-1] > 0.5


def test_a_useless_z1_makes_both_classifiers_one_and_the_step_hold():
    z2 = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    model = DiscreteModel(np.repeat(z2[:, None, :], 2, axis=1) / 4)
    counts = np.random.default_rng(0).multinomial(10**6, model.joint.ravel(), size=50).reshape(50, 2, -1)
    full, orthogonal = theorem1.excess_risks(model, counts, m=0.01)
    np.testing.assert_allclose(full, orthogonal, atol=1e-12)
    assert (full >= 0).all()


def test_the_rademacher_complexity_is_the_mean_over_all_signs():
    # rows at two values of x: enumerate the signs, and for each the best w between m and 1 - m
    m, place, label = 0.2, np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 0, 1])
    signs = 2 * (np.arange(32)[:, None] >> np.arange(5) & 1) - 1
    best = np.zeros(32)
    for x in (0, 1):
        at = [(signs[:, place == x] * np.where(label[place == x] == 1, w, 1 - w)).sum(axis=1) for w in (m, 1 - m)]
        best += np.maximum(*at)
    assert theorem1.rademacher([3, 2], m) == pytest.approx(best.mean() / 5)
    assert theorem1.rademacher([3, 2, 0], m) == theorem1.rademacher([3, 2], m)
