"""The paper's main claim on models whose posteriors are known: full setminus principal is p(y|z2)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import DiscreteModel, GaussianModel

CONTROL_SEEDS = (0, 1, 2, 3)


def discrete(n_classes, n_z1, n_z2, seed, dependence=0.0):
    """The exact full, principal, orthogonal and prior on every pair of values."""
    model = DiscreteModel.random(n_classes, n_z1, n_z2, seed, dependence)
    z1, z2 = (grid.ravel() for grid in np.indices((n_z1, n_z2)))
    return model.full(z1, z2), model.principal(z1), model.orthogonal(z2), model.prior


def gaussian(n_classes, n_z1, n_z2, seed, dependence=0.0, mixed=True):
    """The same on 200 draws."""
    model = GaussianModel.random(n_classes, n_z1, n_z2, seed, dependence, mixed)
    split = model.sample(200, seed)
    return model.full(split.x), model.principal(split.z1), model.orthogonal(split.z2), model.prior


def largest_error(found, exact):
    return np.abs(found - exact).max()


models = st.builds(
    lambda world, *sizes: world(*sizes),
    st.sampled_from([discrete, gaussian]),
    st.integers(2, 6),
    st.integers(2, 4),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
)


@given(models)
@settings(deadline=None, max_examples=50)
def test_full_setminus_principal_is_orthogonal(model):
    full, principal, orthogonal, prior = model
    assert largest_error(orthogonalize(full, principal, prior), orthogonal) < 1e-12


@given(models)
@settings(deadline=None, max_examples=25)
def test_full_setminus_orthogonal_is_principal(model):
    full, principal, orthogonal, prior = model
    assert largest_error(orthogonalize(full, orthogonal, prior), principal) < 1e-12


@pytest.mark.parametrize("world", [discrete, gaussian])
@pytest.mark.parametrize("layout", [np.asfortranarray, lambda proba: np.repeat(proba, 2, axis=1)[:, ::2]])
def test_the_layout_in_memory_does_not_matter(world, layout):
    # frames hand out Fortran order, slices of wider arrays have gaps
    full, principal, orthogonal, prior = world(3, 3, 3, seed=0)
    out = layout(np.empty_like(full))
    assert largest_error(orthogonalize(layout(full), layout(principal), prior), orthogonal) < 1e-12
    assert largest_error(orthogonalize(full, principal, prior, out=out), orthogonal) < 1e-12
    assert largest_error(out, orthogonal) < 1e-12


@given(models)
@settings(deadline=None, max_examples=25)
def test_strength_zero_takes_nothing_away(model):
    full, principal, _, prior = model
    assert largest_error(orthogonalize(full, principal, prior, strength=0.0), full) < 1e-13


@given(models)
@settings(deadline=None, max_examples=25)
def test_full_setminus_itself_knows_only_the_prior(model):
    full, _, _, prior = model
    assert largest_error(orthogonalize(full, full, prior), prior) < 1e-13


@given(models)
@settings(deadline=None, max_examples=25)
def test_a_principal_that_knows_nothing_changes_nothing(model):
    full, _, _, prior = model
    ignorant = np.broadcast_to(prior, full.shape)
    assert largest_error(orthogonalize(full, ignorant, prior), full) < 1e-13


@pytest.mark.parametrize("world", [discrete, gaussian])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("seed", CONTROL_SEEDS)
class TestNegativeControls:
    def test_dependence_given_the_class_breaks_it(self, world, n_classes, seed):
        full, principal, orthogonal, prior = world(n_classes, 3, 3, seed, dependence=0.5)
        assert largest_error(orthogonalize(full, principal, prior), orthogonal) > 1e-3

    def test_the_uniform_prior_breaks_it(self, world, n_classes, seed):
        full, principal, orthogonal, prior = world(n_classes, 3, 3, seed)
        uniform = np.full_like(prior, 1 / n_classes)
        assert largest_error(orthogonalize(full, principal, uniform), orthogonal) > 1e-3

    def test_half_the_strength_is_not_enough(self, world, n_classes, seed):
        full, principal, orthogonal, prior = world(n_classes, 3, 3, seed)
        assert largest_error(orthogonalize(full, principal, prior, strength=0.5), orthogonal) > 1e-3
