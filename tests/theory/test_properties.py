"""Appendix A: what maps leave unchanged, the variable that always exists, and the classifier that is unique."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from setminus_paper.data.proposition_models import Diffeomorphism, EntangledModel, NonlinearModel

from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import DiscreteModel, GaussianModel

seeds = st.integers(0, 2**32 - 1)
sizes = {"n_classes": st.integers(2, 5), "n_z1": st.integers(1, 4), "n_z2": st.integers(1, 4)}


def largest_error(found, exact):
    return np.abs(found - exact).max()


def full_minus_principal(model, x):
    z1, _ = model.latents(x)
    return orthogonalize(model.full(x), model.principal(z1), model.prior)


@given(**sizes, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_behind_any_diffeomorphism_full_minus_principal_is_orthogonal(n_classes, n_z1, n_z2, seed):
    model = NonlinearModel.random(n_classes, n_z1, n_z2, seed)
    split = model.sample(50, seed)
    assert largest_error(full_minus_principal(model, split.x), model.orthogonal(split.z2)) < 1e-10


@given(**sizes, seed=seeds, other=seeds)
@settings(deadline=None, max_examples=40)
def test_distribution_free_two_views_of_the_same_latents_have_one_orthogonal_classifier(
    n_classes, n_z1, n_z2, seed, other
):
    model = NonlinearModel.random(n_classes, n_z1, n_z2, seed)
    view = NonlinearModel(model.latent, Diffeomorphism.random(n_z1 + n_z2, other))
    x = model.sample(50, seed).x
    seen = view.warp.forward(model.warp.inverse(x))
    assert largest_error(full_minus_principal(model, x), full_minus_principal(view, seen)) < 1e-9


@given(**sizes, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_invariance_linear_maps_of_each_latent_leave_the_orthogonal_classifier(n_classes, n_z1, n_z2, seed):
    # the posteriors given g(z1), g(z2) are found anew from the moments of those, not taken from z1, z2
    model = GaussianModel.random(n_classes, n_z1, n_z2, seed)
    rng = np.random.default_rng(seed)
    g = np.zeros((n_z1 + n_z2, n_z1 + n_z2))
    g[:n_z1, :n_z1] = rng.normal(size=(n_z1, n_z1)) + 3 * np.eye(n_z1)
    g[n_z1:, n_z1:] = rng.normal(size=(n_z2, n_z2)) + 3 * np.eye(n_z2)
    mapped = GaussianModel(model.prior, model.means @ g.T, g @ model.covariances @ g.T, n_z1)
    split = model.sample(50, seed)
    first, second = split.z1 @ g[:n_z1, :n_z1].T, split.z2 @ g[n_z1:, n_z1:].T
    found = orthogonalize(mapped.full(np.column_stack([first, second])), mapped.principal(first), mapped.prior)
    assert largest_error(found, model.orthogonal(split.z2)) < 1e-9
    assert largest_error(mapped.orthogonal(second), model.orthogonal(split.z2)) < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_control_a_map_that_mixes_the_latents_changes_which_variables_are_orthogonal(seed):
    model = GaussianModel.random(3, 2, 2, seed)
    mix = np.eye(4)
    mix[2:, :2] = 0.7 * np.eye(2)
    mixed = GaussianModel(model.prior, model.means @ mix.T, mix @ model.covariances @ mix.T, 2)
    split = model.sample(200, seed)
    z = np.column_stack([split.z1, split.z2]) @ mix.T
    found = orthogonalize(mixed.full(z), mixed.principal(z[:, :2]), mixed.prior)
    # full minus principal stays p(y|z2); the second half of the mixed vector is something else
    assert largest_error(found, model.orthogonal(split.z2)) < 1e-10
    assert largest_error(found, mixed.orthogonal(z[:, 2:])) > 0.05


@pytest.mark.parametrize("seed", range(4))
def test_control_dependence_given_the_class_breaks_it_behind_a_diffeomorphism_too(seed):
    model = NonlinearModel.random(3, 2, 2, seed, dependence=0.5)
    split = model.sample(200, seed)
    assert largest_error(full_minus_principal(model, split.x), model.orthogonal(split.z2)) > 1e-2


@given(
    z1_shift=st.floats(0.1, 1.5),
    u_shift=st.floats(0.1, 1.5),
    seed=seeds,
    label=st.integers(0, 1),
    bins=st.integers(1, 9),
)
@settings(deadline=None, max_examples=40)
def test_existence_and_uniqueness_by_conditional_cdfs(z1_shift, u_shift, seed, label, bins):
    """Theorem 2: rows that share the constructed variable share full minus principal, whatever their z1."""
    model = EntangledModel(z1_shift, u_shift)
    x = model.sample(50, seed).x
    # the row with the same CDF at another z1: the CDF is monotone, hence its inverse follows from that of u
    other_z1 = np.random.default_rng(seed).uniform(-bins / 3, bins / 3, size=len(x))
    moved = np.column_stack(
        [other_z1, 1.5 * np.sin(other_z1) + np.exp(0.6 * np.tanh(other_z1)) * model.hidden(x)],
    )
    np.testing.assert_allclose(model.conditional_cdf(moved, label), model.conditional_cdf(x, label), atol=1e-10)
    found, again = (orthogonalize(model.full(rows), model.principal(rows[:, 0]), model.prior) for rows in (x, moved))
    assert largest_error(found, again) < 1e-9
    assert largest_error(found, model.orthogonal(model.hidden(x))) < 1e-9


def test_control_without_a_common_cdf_full_minus_principal_still_depends_on_z1():
    model = EntangledModel(mismatch=0.8)
    z1 = np.linspace(-2, 2, 9)
    # class 1 has the same CDF in all these rows
    u = 0.8 + 0.8 * z1 + 0.3
    x = np.column_stack([z1, 1.5 * np.sin(z1) + np.exp(0.6 * np.tanh(z1)) * u])
    assert np.ptp(model.conditional_cdf(x, label=1)) < 1e-12
    found = orthogonalize(model.full(x), model.principal(z1), model.prior)
    assert np.ptp(found[:, 1]) > 0.2


@given(n_classes=st.integers(2, 4), n_z1=st.integers(1, 4), n_z2=st.integers(1, 4), seed=seeds)
@settings(deadline=None, max_examples=30)
def test_discrete_bijections_change_nothing(n_classes, n_z1, n_z2, seed):
    """The remark of section 2: for finite variables a bijection takes the place of the diffeomorphism."""
    model = DiscreteModel.random(n_classes, n_z1, n_z2, seed)
    rng = np.random.default_rng(seed)
    cells = rng.permutation(n_z1 * n_z2)
    # x is a shuffled number of the cell; p(y|x) and p(y|z1(x)) are read from the table by x alone
    p_xy = model.joint.reshape(n_classes, -1)[:, cells]
    z1, z2 = np.unravel_index(cells, (n_z1, n_z2))
    full = (p_xy / p_xy.sum(axis=0)).T
    principal = np.stack([p_xy[:, z1 == value].sum(axis=1) / p_xy[:, z1 == value].sum() for value in z1])
    found = orthogonalize(full, principal, p_xy.sum(axis=1))
    assert largest_error(found, model.orthogonal(z2)) < 1e-12
