"""Proposition 4: equalized odds of the orthogonal classifier, exactly where u and z2 are independent given y."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from setminus_paper.claims import prop4

from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import DiscreteModel


def gaps(seed, dependence, shape=(3, 3, 4), prior=None):
    model = DiscreteModel.random(*shape, seed, dependence)
    u, z2 = np.indices(shape[1:])
    full = model.full(u.ravel(), z2.ravel())
    orthogonal = orthogonalize(full, model.principal(u.ravel()), model.prior if prior is None else prior)
    return tuple(prop4.exact_gaps(model.joint, proba.reshape(*shape[1:], -1)) for proba in (full, orthogonal))


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_no_gap_without_dependence(seed):
    full, orthogonal = gaps(seed, 0.0)
    assert orthogonal["scores"] < 1e-12 and orthogonal["decisions"] < 1e-12
    assert full["scores"] > 1e-3


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_a_gap_with_dependence(seed):
    assert gaps(seed, 0.5)[1]["scores"] > 1e-4


def test_the_wrong_prior_changes_the_scores_but_opens_no_gap():
    # it is the same for every u: a matter of thresholds, not of equalized odds
    assert gaps(0, 0.0, prior="uniform")[1]["scores"] < 1e-12


def test_the_exact_gap_is_the_difference_of_the_rates():
    joint = DiscreteModel.random(2, 2, 3, seed=1).joint
    proba = np.random.default_rng(0).dirichlet(np.ones(2), size=(2, 3))
    positive = (joint * proba[:, :, 1]).sum(axis=2) / joint.sum(axis=2)
    assert prop4.exact_gaps(joint, proba)["scores"] == pytest.approx(np.abs(positive[:, 0] - positive[:, 1]).sum())


def test_samples_agree_with_the_exact_gap():
    (metrics,) = prop4.measure((0,), rows=40_000)
    for who in ("full", "orthogonal"):
        np.testing.assert_allclose(metrics[who]["decisions_sampled"], metrics[who]["decisions"], atol=0.04)
    assert metrics["orthogonal"]["decisions_sampled"][0] < 0.04 < metrics["full"]["decisions_sampled"][0]
