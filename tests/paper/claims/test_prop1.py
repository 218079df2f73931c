"""Proposition 1: under I(z; z1 | y) = 0 nothing says more about the label beyond z1 than z2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from setminus_paper.claims import prop1
from setminus_paper.claims.prop1 import conditional_mutual_information, mutual_information
from sklearn.metrics import mutual_info_score

from setminus.datasets.synthetic import DiscreteModel

JOINT = DiscreteModel.random(n_classes=3, n_z1=3, n_z2=5, seed=4).joint
Z2 = np.broadcast_to(np.eye(5), (3, 5, 5))
X = np.eye(15).reshape(3, 5, 15)


def test_mutual_information_is_that_of_scikit_learn():
    counts = np.random.default_rng(0).integers(1, 9, size=(3, 4))
    expected = mutual_info_score(None, None, contingency=counts)
    assert mutual_information(counts / counts.sum()) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_the_chain_rule_holds(seed):
    joint = np.random.default_rng(seed).dirichlet(np.ones(24)).reshape(2, 3, 4)
    whole = mutual_information(joint.reshape(2, 12))
    parts = mutual_information(joint.sum(axis=1)) + conditional_mutual_information(joint)
    assert whole == pytest.approx(parts, abs=1e-12)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_no_corner_beats_z2(seed):
    rng = np.random.default_rng(seed)
    channel = prop1.best_corner(JOINT, rng.normal(size=(3, 5, 7)))
    found, z2 = prop1.informations(JOINT, channel), prop1.informations(JOINT, Z2)
    assert found["leak"] < prop1.INDEPENDENT
    assert found["gain"] <= z2["gain"] + 1e-9
    assert found["information"] <= z2["information"] + 1e-9


def test_x_breaks_the_constraint_and_says_more_of_the_label_but_not_beyond_z1():
    x, z2 = prop1.informations(JOINT, X), prop1.informations(JOINT, Z2)
    assert x["leak"] > 0.1
    assert x["information"] > z2["information"] + 0.01
    assert x["gain"] == pytest.approx(z2["gain"], abs=1e-12)


def test_where_z1_and_z2_are_dependent_z2_breaks_the_constraint():
    dependent = DiscreteModel.random(n_classes=3, n_z1=3, n_z2=5, seed=4, dependence=0.5).joint
    assert prop1.informations(dependent, Z2)["leak"] > 0.01
    # and what keeps it says less
    climbed = prop1.climb(dependent, prop1.best_corner(dependent, np.ones((3, 5, 7))), beyond_z1=True)
    found = prop1.informations(dependent, climbed)
    assert found["leak"] < prop1.INDEPENDENT
    assert found["gain"] < prop1.informations(dependent, Z2)["gain"] - 1e-3


@pytest.mark.parametrize("beyond_z1", [True, False])
def test_the_gradient_is_that_of_the_information(beyond_z1):
    rng = np.random.default_rng(1)
    channel, direction = rng.dirichlet(np.ones(4), size=(3, 5)), rng.normal(size=(3, 5, 4))
    direction -= direction.mean(axis=2, keepdims=True)
    name = "gain" if beyond_z1 else "information"
    ends = [prop1.informations(JOINT, channel + step * direction)[name] for step in (-1e-6, 1e-6)]
    slope = (prop1.gradient(JOINT, channel, beyond_z1=beyond_z1) * direction).sum()
    assert slope == pytest.approx((ends[1] - ends[0]) / 2e-6, rel=1e-5)


def test_measured_beside_the_closed_form():
    sizes = {"n_classes": 2, "n_z1": 3, "n_z2": 4, "draws": 25}
    (metrics,) = prop1.measure((0,), sizes=sizes)
    assert metrics["gain_z2"] == pytest.approx(metrics["gain_exact"], abs=1e-12)
    assert abs(metrics["gain_excess"]) < 1e-9 and abs(metrics["information_excess"]) < 1e-9
    assert metrics["climbs_at_maximum"] > 0
    # else nothing but functions of z2 would have been tried
    assert metrics["corners_that_see_z1"] > 0.5
    violators = metrics["candidates"]["function of x"]
    assert max(violators["leak"]) > 0.01
