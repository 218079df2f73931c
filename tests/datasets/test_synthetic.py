from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from setminus.datasets.synthetic import DiscreteModel, GaussianModel, linear_gaussian

sizes = {"n_classes": st.integers(2, 6), "n_z1": st.integers(1, 4), "n_z2": st.integers(1, 4)}
seeds = st.integers(0, 2**32 - 1)


@given(**sizes, seed=seeds, dependence=st.sampled_from([0.0, 0.5]))
@settings(deadline=None, max_examples=25)
def test_discrete_posteriors_equal_those_in_exact_arithmetic(n_classes, n_z1, n_z2, seed, dependence):
    model = DiscreteModel.random(n_classes, n_z1, n_z2, seed, dependence)
    joint = np.vectorize(Fraction, otypes=[object])(model.joint)
    z1, z2 = (grid.ravel() for grid in np.indices((n_z1, n_z2)))

    def exact(table):
        return np.array(table / table.sum(axis=0), dtype=float).T

    np.testing.assert_allclose(model.full(z1, z2), exact(joint.reshape(n_classes, -1)), rtol=1e-13)
    np.testing.assert_allclose(model.principal(np.arange(n_z1)), exact(joint.sum(axis=2)), rtol=1e-13)
    np.testing.assert_allclose(model.orthogonal(np.arange(n_z2)), exact(joint.sum(axis=1)), rtol=1e-13)
    np.testing.assert_allclose(model.prior, joint.sum(axis=(1, 2)).astype(float), rtol=1e-13)


def conditional_dependence(model):
    """Largest distance of p(z1, z2|y) from p(z1|y) p(z2|y)."""
    given_y = model.joint / model.prior[:, None, None]
    product = given_y.sum(axis=2, keepdims=True) * given_y.sum(axis=1, keepdims=True)
    return np.abs(given_y - product).max()


@given(**sizes, seed=seeds)
@settings(deadline=None, max_examples=25)
def test_discrete_dependence_changes_the_coupling_and_nothing_else(n_classes, n_z1, n_z2, seed):
    free = DiscreteModel.random(n_classes, n_z1, n_z2, seed)
    bound = DiscreteModel.random(n_classes, n_z1, n_z2, seed, dependence=0.8)
    assert conditional_dependence(free) < 1e-14
    if min(n_z1, n_z2) > 1:
        assert conditional_dependence(bound) > 1e-3
    assert bound.joint.min() > 0
    np.testing.assert_allclose(free.joint.sum(axis=1), bound.joint.sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(free.joint.sum(axis=2), bound.joint.sum(axis=2), atol=1e-14)


def test_discrete_samples_follow_the_table():
    model = DiscreteModel.random(3, 2, 4, seed=0)
    split = model.sample(200_000, seed=1)
    counts = np.zeros_like(model.joint)
    np.add.at(counts, (split.y, split.z1, split.z2), 1)
    np.testing.assert_allclose(counts / len(split), model.joint, atol=0.005)
    np.testing.assert_array_equal(split.x, np.column_stack([split.z1, split.z2]))
    np.testing.assert_array_equal(split.x, model.sample(200_000, seed=1).x)
    assert not np.array_equal(split.x, model.sample(200_000, seed=2).x)


def test_wrong_tables_are_refused():
    with pytest.raises(ValueError, match="it must be p"):
        DiscreteModel(np.full((2, 2, 2), 0.2))
    with pytest.raises(ValueError, match="dependence is 1: it must be at least 0 and below 1"):
        DiscreteModel.random(2, 2, 2, seed=0, dependence=1)


@given(**sizes, seed=seeds, mixed=st.booleans(), dependence=st.sampled_from([0.0, 0.6]))
@settings(deadline=None, max_examples=25)
def test_gaussian_posteriors_equal_bayes_rule_with_scipy(n_classes, n_z1, n_z2, seed, mixed, dependence):
    model = GaussianModel.random(n_classes, n_z1, n_z2, seed, dependence, mixed)
    split = model.sample(20, seed)
    mixing = np.eye(n_z1 + n_z2) if model.mixing is None else model.mixing

    def bayes(points, means, covariances):
        log_joint = np.log(model.prior) + np.column_stack(
            [
                multivariate_normal.logpdf(points, mean, covariance)
                for mean, covariance in zip(means, covariances, strict=True)
            ]
        )
        joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        return joint / joint.sum(axis=1, keepdims=True)

    # the full posterior is found in the space of x here, in the space of z in the model
    seen = bayes(split.x, model.means @ mixing.T, mixing @ model.covariances @ mixing.T)
    np.testing.assert_allclose(model.full(split.x), seen, atol=1e-12)
    first, second = slice(None, n_z1), slice(n_z1, None)
    z1 = bayes(split.z1, model.means[:, first], model.covariances[:, first, first])
    z2 = bayes(split.z2, model.means[:, second], model.covariances[:, second, second])
    np.testing.assert_allclose(model.principal(split.z1), z1, atol=1e-12)
    np.testing.assert_allclose(model.orthogonal(split.z2), z2, atol=1e-12)


def test_gaussian_posteriors_are_accurate_to_1e_13():
    mpmath = pytest.importorskip("mpmath")
    model = GaussianModel.random(4, 2, 2, seed=3, dependence=0.4, mixed=True)
    split = model.sample(20, seed=0)
    with mpmath.workdps(50):
        inverse = mpmath.inverse(mpmath.matrix(model.mixing.tolist()))
        inverses = [mpmath.inverse(mpmath.matrix(covariance.tolist())) for covariance in model.covariances]
        scales = [1 / mpmath.sqrt(mpmath.det(mpmath.matrix(covariance.tolist()))) for covariance in model.covariances]
        for row, found in zip(split.x, model.full(split.x), strict=True):
            z = inverse * mpmath.matrix(row.tolist())
            joint = []
            for prior, mean, precision, scale in zip(model.prior, model.means, inverses, scales, strict=True):
                centered = z - mpmath.matrix(mean.tolist())
                joint.append(prior * scale * mpmath.exp(-(centered.T * precision * centered)[0] / 2))
            exact = np.array([float(value / sum(joint)) for value in joint])
            np.testing.assert_allclose(found, exact, atol=1e-13)


def test_gaussian_logs_stay_finite_where_probabilities_underflow():
    model = linear_gaussian()
    far = np.array([[1e4, 1e4]])
    log_full = model.log_full(far)
    assert np.isfinite(log_full).all()
    assert model.full(far)[0, 0] == 0
    difference = model.means[1] - model.means[0]
    np.testing.assert_allclose(log_full[0, 0] - log_full[0, 1], -(far @ difference).item(), rtol=1e-12)


@pytest.mark.parametrize("dependence", [0.0, 0.7])
def test_gaussian_samples_have_the_moments_of_the_model(dependence):
    model = GaussianModel.random(3, 1, 2, seed=0, dependence=dependence, mixed=True)
    split = model.sample(100_000, seed=1)
    z = np.column_stack([split.z1, split.z2])
    np.testing.assert_allclose(split.x, z @ model.mixing.T, rtol=1e-12)
    np.testing.assert_allclose(np.bincount(split.y) / len(split), model.prior, atol=0.01)
    for label in range(3):
        rows, covariance = z[split.y == label], model.covariances[label]
        variance = np.diag(covariance)
        mean_error = np.sqrt(variance / len(rows))
        covariance_error = np.sqrt((np.outer(variance, variance) + covariance**2) / len(rows))
        assert np.abs((rows.mean(axis=0) - model.means[label]) / mean_error).max() < 4.5
        assert np.abs((np.cov(rows.T) - covariance) / covariance_error).max() < 4.5
        # n_z1 = 1: the correlation of z1 with its best predictor from z2
        best = np.linalg.solve(covariance[1:, 1:], covariance[1:, 0])
        explained = covariance[0, 1:] @ best / covariance[0, 0]
        assert np.sqrt(explained) == pytest.approx(dependence)


def test_classes_of_the_gaussian_model_differ_in_prior_and_covariance():
    model = GaussianModel.random(3, 2, 2, seed=0)
    assert np.ptp(model.prior) > 0.01
    assert np.abs(model.covariances[0] - model.covariances[1]).max() > 0.1


def test_the_log_odds_of_equal_variances_are_linear_along_the_difference_of_the_means():
    mixing = np.array([[2.0, 1.0], [0.0, 1.0]])
    plain = linear_gaussian(separation=1.5, angle=60)
    mixed = GaussianModel(plain.prior, plain.means, plain.covariances, 1, mixing)
    slope = 1.5 * np.array([0.5, np.sqrt(0.75)])
    for model, expected in ((plain, slope), (mixed, np.linalg.solve(mixing.T, slope))):
        odds = (
            np.diff(model.log_full(np.eye(2)), axis=1)[:, 0] - np.diff(model.log_full(np.zeros((1, 2))), axis=1)[:, 0]
        )
        np.testing.assert_allclose(odds, expected, atol=1e-10)


def test_wrong_models_are_refused():
    with pytest.raises(ValueError, match="dependence is 1: it must be at least 0 and below 1"):
        GaussianModel.random(2, 2, 2, seed=0, dependence=1)
    with pytest.raises(ValueError, match=r"need a prior of shape \(2,\)"):
        GaussianModel(np.ones(3) / 3, np.zeros((2, 2)), np.stack([np.eye(2)] * 2), n_z1=1)
    with pytest.raises(ValueError, match="n_z1 is 2: z1 and z2 each need at least one of the 2 coordinates"):
        GaussianModel(np.ones(2) / 2, np.zeros((2, 2)), np.stack([np.eye(2)] * 2), n_z1=2)


def test_unequal_variances_give_the_posteriors_of_the_introduction():
    model = linear_gaussian(separation=2.0, angle=30.0, deviations=(0.7, 1.3))
    split = model.sample(200, seed=0)
    densities = [
        multivariate_normal.pdf(split.x, mean, deviation**2 * np.eye(2))
        for mean, deviation in zip(model.means, (0.7, 1.3), strict=True)
    ]
    np.testing.assert_allclose(model.full(split.x)[:, 1], densities[1] / sum(densities), atol=1e-13)
    # on the line through both means, as far from each in its own deviations, the narrow class still is the denser
    nearest = (model.means[0] * 1.3 + model.means[1] * 0.7) / 2
    assert model.full(nearest[None])[0, 0] == pytest.approx(1.3**2 / (0.7**2 + 1.3**2))
    with pytest.raises(ValueError, match="a standard deviation must be above 0"):
        linear_gaussian(deviations=(1.0, 0.0))
