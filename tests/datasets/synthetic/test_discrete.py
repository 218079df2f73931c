from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.datasets.synthetic.discrete import DiscreteModel

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


def test_wrong_models_are_refused():
    with pytest.raises(ValueError, match="it must be p"):
        DiscreteModel(np.full((2, 2, 2), 0.2))
    with pytest.raises(ValueError, match="dependence is 1: it must be at least 0 and below 1"):
        DiscreteModel.random(2, 2, 2, seed=0, dependence=1)
