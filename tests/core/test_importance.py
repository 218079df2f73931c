"""The weights make z1 and y independent, and the effective sample size is Kish's."""

import numpy as np
import pytest

from setminus.core.importance import effective_sample_size, importance_weights

PRIOR = np.array([0.3, 0.7])
Z1_GIVEN_Y = np.array([[0.6, 0.3, 0.1], [0.1, 0.4, 0.5]])


def test_weights_are_the_density_ratio_and_decouple_z1_from_y():
    joint = PRIOR[:, None] * Z1_GIVEN_Y
    y, z1 = (grid.ravel() for grid in np.indices(joint.shape))
    principal = (joint / joint.sum(axis=0)).T[z1]
    phi = importance_weights(y, principal, PRIOR)
    marginal = joint.sum(axis=0)
    np.testing.assert_allclose(phi, marginal[z1] / Z1_GIVEN_Y[y, z1], rtol=1e-12)
    reweighted = joint * phi.reshape(joint.shape)
    np.testing.assert_allclose(reweighted, np.outer(PRIOR, marginal), rtol=1e-12)
    # without the weights they are coupled; with the wrong prior the class frequencies move
    assert not np.allclose(joint, np.outer(PRIOR, marginal))
    uniform = joint * importance_weights(y, principal, "uniform").reshape(joint.shape)
    assert not np.allclose(uniform.sum(axis=1), PRIOR)


def test_uniform_is_one_over_the_number_of_classes():
    principal = [[0.2, 0.3, 0.5]]
    np.testing.assert_allclose(
        importance_weights([2], principal, "uniform"), importance_weights([2], principal, [1 / 3] * 3)
    )


def test_effective_sample_size():
    assert effective_sample_size(np.ones(50)) == pytest.approx(50)
    assert effective_sample_size([3, 1]) == pytest.approx(16 / 10)
    weights = np.random.default_rng(0).uniform(size=20)
    assert effective_sample_size(1e200 * weights) == pytest.approx(effective_sample_size(weights))
    assert 1 < effective_sample_size(weights) < 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([0, 1, 1], [[0.0, 1], [1, 0], [0.5, 0.5]], PRIOR),
            "in 2 of 3 rows .1 of class 0, 1 of class 1.: their weight",
        ),
        (([0], [[np.nan, 1]], PRIOR), "1 values that are NaN"),
        (([0], [[2.0, 3.0]], PRIOR), "2 values that are above 1"),
        (([0], [[0.4, 0.4]], PRIOR), "1 rows that do not sum to 1"),
        (
            ([0], np.ma.masked_array([[0.4, 0.6]], mask=[[True, False]]), PRIOR),
            "^principal_proba is a masked array with 1 hidden",
        ),
        (([0, 1], [[0.5, 0.5]], PRIOR), "expected .n,. and .n, n_classes."),
        (([2], [[0.5, 0.5]], PRIOR), "integers from 0 to 1"),
        ((["a"], [[0.5, 0.5]], PRIOR), "encode the labels first"),
        (([0], [[0.5, 0.5]], [1.0]), "one frequency for each class"),
        (([0], [[0.5, 0.5]], [0.5, 0.4]), "sum to 1"),
        (([0], [[0.5, 0.5]], "empirical"), "expected 'uniform' or 2"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        importance_weights(*arguments)


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [np.inf, 1], [[1, 2]]])
def test_effective_sample_size_refuses(weights):
    with pytest.raises(ValueError, match="weights of shape"):
        effective_sample_size(weights)


def test_probabilities_that_are_none_are_named():
    with pytest.raises(ValueError, match=r"^principal_proba has 1 values that are negative"):
        importance_weights([0], [[-0.1, 1.1]], PRIOR)
    with pytest.raises(ValueError, match=r"^principal_proba has 1 rows that do not sum to 1"):
        importance_weights([0], [[0.4, 0.4]], PRIOR)
