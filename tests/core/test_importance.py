"""The weights make z1 and y independent, and the effective sample size is Kish's."""

import numpy as np
import pytest

from setminus.core.importance import (
    chi_square_divergence,
    effective_sample_size,
    generalization_bound,
    importance_variance,
    importance_weights,
)

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


PRIOR_OF_THREE = np.array([0.2, 0.5, 0.3])
Z1_OF_THREE = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
Z2_OF_THREE = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])


def simulated_terms(n):
    """Draws of phi(x, y) log w_2(x)_y, from the definition of each factor."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=n, p=PRIOR_OF_THREE)
    z1 = (rng.uniform(size=n)[:, None] > Z1_OF_THREE.cumsum(axis=1)[y]).sum(axis=1)
    z2 = (rng.uniform(size=n)[:, None] > Z2_OF_THREE.cumsum(axis=1)[y]).sum(axis=1)
    phi = (PRIOR_OF_THREE @ Z1_OF_THREE)[z1] / Z1_OF_THREE[y, z1]
    orthogonal = PRIOR_OF_THREE[y] * Z2_OF_THREE[y, z2] / (PRIOR_OF_THREE @ Z2_OF_THREE)[z2]
    return phi * np.log(orthogonal)


def test_variance_equals_that_of_simulated_rows():
    terms = simulated_terms(1_000_000)
    squared = (terms - terms.mean()) ** 2
    standard_error = squared.std() / 1000
    formula = importance_variance(PRIOR_OF_THREE, Z1_OF_THREE, Z2_OF_THREE)
    assert abs(squared.mean() - formula) < 4 * standard_error
    # the other direction of the divergence would be seen
    marginal = PRIOR_OF_THREE @ Z1_OF_THREE
    forward = np.array([chi_square_divergence(marginal, q) for q in Z1_OF_THREE])
    backward = np.array([chi_square_divergence(q, marginal) for q in Z1_OF_THREE])
    joint = PRIOR_OF_THREE[:, None] * Z2_OF_THREE
    second = (Z2_OF_THREE * np.log(joint / joint.sum(axis=0)) ** 2).sum(axis=1)
    wrong = formula + (PRIOR_OF_THREE * (backward - forward) * second).sum()
    assert abs(squared.mean() - wrong) > 10 * standard_error


def test_variance_falls_with_n_and_is_plain_where_z1_says_nothing():
    one = importance_variance(PRIOR_OF_THREE, Z1_OF_THREE, Z2_OF_THREE)
    assert importance_variance(PRIOR_OF_THREE, Z1_OF_THREE, Z2_OF_THREE, n=50) == pytest.approx(one / 50)
    same = np.tile([0.2, 0.3, 0.5], (3, 1))
    joint = PRIOR_OF_THREE[:, None] * Z2_OF_THREE
    log_orthogonal = np.log(joint / joint.sum(axis=0))
    plain = (joint * log_orthogonal**2).sum() - (joint * log_orthogonal).sum() ** 2
    assert importance_variance(PRIOR_OF_THREE, same, Z2_OF_THREE) == pytest.approx(plain)
    assert one > plain


def test_variance_without_overlap_is_infinite_unless_nothing_is_at_stake():
    disjoint = [[1.0, 0.0], [0.0, 1.0]]
    assert importance_variance([0.5, 0.5], disjoint, [[0.8, 0.2], [0.2, 0.8]]) == np.inf
    assert importance_variance([0.5, 0.5], disjoint, disjoint) == 0
    # a label that never occurs changes nothing, whatever its z1 would be
    z2 = [[0.8, 0.2], [0.2, 0.8]]
    two = importance_variance([0.5, 0.5], [[0.5, 0.5, 0], [0.25, 0.75, 0]], z2)
    three = importance_variance([0.5, 0.5, 0], [[0.5, 0.5, 0], [0.25, 0.75, 0], [0, 0, 1]], [*z2, [0.5, 0.5]])
    assert three == pytest.approx(two, rel=1e-12)


def test_chi_square_by_hand():
    assert chi_square_divergence([0.5, 0.5], [0.25, 0.75]) == pytest.approx(0.0625 / 0.25 + 0.0625 / 0.75)
    assert chi_square_divergence([0.2, 0.8], [0.2, 0.8]) == 0
    assert chi_square_divergence([0.5, 0.5, 0], [1, 0, 0]) == np.inf
    assert chi_square_divergence([0.5, 0.25, 0.25], [0.5, 0.5, 0]) == np.inf
    assert chi_square_divergence([1, 0, 0], [0.5, 0.5, 0]) == 1
    assert chi_square_divergence([1, 0], [1, 0]) == 0
    assert chi_square_divergence([0.9, 0.1], [0.5, 0.5]) != chi_square_divergence([0.5, 0.5], [0.9, 0.1])


def test_single_precision_is_only_in_the_input():
    p, q = np.random.default_rng(0).dirichlet(np.ones(50), size=2).astype(np.float32)
    assert chi_square_divergence(p, q) == chi_square_divergence(p.astype(float), q.astype(float))


def test_bound_by_hand():
    # log(1/m) = 1 and log(1/delta) = 2: the root is sqrt(4 / 100)
    bound = generalization_bound(0.05, 100, np.exp(-1), 3.0, np.exp(-2))
    assert bound == pytest.approx(4 * (0.1 + 2 * 0.2))
    assert generalization_bound(0.0, 400, np.exp(-1), 3.0, np.exp(-2)) == pytest.approx(4 * 2 * 0.1)
    assert generalization_bound(0.0, 1, np.exp(-1), 0.5, np.exp(-2)) == pytest.approx(1.5 * 2 * 2)


def test_the_step_of_the_proof_that_fails():
    """Nudge the exact full classifier by eps: its own risk moves by eps^2, the orthogonal one's by eps."""
    joint = 0.5 * np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.25, 0.45]])
    full = joint / joint.sum(axis=0)
    halves = joint.reshape(2, 2, 2).sum(axis=2)
    principal = np.repeat(halves / halves.sum(axis=0), 2, axis=1)
    gamma = (1 / full).max()

    def risk(classifier):
        return -(joint * np.log(classifier)).sum()

    def excesses(eps):
        nudged = full + eps * np.array([[1.0, 1, 0, 0], [-1.0, -1, 0, 0]])
        ratio, exact = nudged / principal, full / principal
        orthogonal = abs(risk(ratio / ratio.sum(axis=0)) - risk(exact / exact.sum(axis=0)))
        return risk(nudged) - risk(full), orthogonal

    full_excess, orthogonal_excess = excesses(1e-4)
    assert orthogonal_excess > 10 * (1 + gamma) * full_excess
    coarse = excesses(1e-3)
    assert coarse[0] / full_excess == pytest.approx(100, rel=0.05)
    assert coarse[1] / orthogonal_excess == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize(
    "change",
    [{"rademacher": -1}, {"n": 0}, {"m": 0.5}, {"m": 0}, {"gamma": 0}, {"delta": 1}, {"delta": np.nan}],
)
def test_bound_refuses(change):
    good = {"rademacher": 0.0, "n": 10, "m": 0.1, "gamma": 2, "delta": 0.1}
    generalization_bound(**good)
    (name,) = change
    with pytest.raises(ValueError, match=f"{name} is .*: expected a value between"):
        generalization_bound(**(good | change))


def test_tables_that_are_not_distributions_are_refused():
    with pytest.raises(ValueError, match="prior is not a distribution"):
        importance_variance([0.5, 0.6], Z1_OF_THREE[:2], Z2_OF_THREE[:2])
    with pytest.raises(ValueError, match="one row for each class"):
        importance_variance(PRIOR_OF_THREE, Z1_OF_THREE[:2], Z2_OF_THREE)
    with pytest.raises(ValueError, match="z1_given_y has shape"):
        importance_variance(PRIOR_OF_THREE, PRIOR_OF_THREE, Z2_OF_THREE)
    with pytest.raises(ValueError, match="n is 0"):
        importance_variance(PRIOR_OF_THREE, Z1_OF_THREE, Z2_OF_THREE, n=0)
    for p, q, name in ([0.5, 0.6], [0.5, 0.5], "p"), ([0.5, 0.5], [0.5, 0.6], "q"):
        with pytest.raises(ValueError, match=f"^{name} is not a distribution"):
            chi_square_divergence(p, q)
    with pytest.raises(ValueError, match=r"^z2_given_y is not a distribution"):
        importance_variance(PRIOR_OF_THREE, Z1_OF_THREE, 2 * Z2_OF_THREE)
    with pytest.raises(ValueError, match="rademacher is -1: expected a value between 0 and inf"):
        generalization_bound(-1, 10, 0.1, 2, 0.1)
    with pytest.raises(ValueError, match="same support"):
        chi_square_divergence([1.0], [0.5, 0.5])
