"""Estimates of the target's class frequencies against closed forms, optimality conditions and QuaPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from setminus.adaptation.label_shift import (
    black_box_prior,
    calibrator,
    check_proportions,
    class_frequencies,
    confusion,
    maximum_likelihood_prior,
)


class Exact:
    """Values of x with known p(x | label), so that posteriors and frequencies are exact."""

    def __init__(self, seed, n_classes=3, n_values=7):
        rng = np.random.default_rng(seed)
        self.given_label = rng.dirichlet(np.full(n_values, 0.5), size=n_classes) + 1e-3
        self.given_label /= self.given_label.sum(axis=1, keepdims=True)
        self.source_prior, self.target_prior = rng.dirichlet(np.full(n_classes, 3.0), size=2)

    def posterior(self, prior):
        joint = (self.given_label * prior[:, None]).T
        return joint / joint.sum(axis=1, keepdims=True)

    def rows(self, n):
        """Values of x as often as the target has them."""
        counts = np.round(n * self.target_prior @ self.given_label).astype(int)
        return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize("seed", range(5))
def test_maximum_likelihood_finds_the_true_frequencies(seed):
    exact = Exact(seed)
    proba = exact.posterior(exact.source_prior)[exact.rows(5000)]
    found = maximum_likelihood_prior(proba, exact.source_prior)
    np.testing.assert_allclose(found, exact.target_prior, atol=0.01)
    assert abs(proba.mean(axis=0) - exact.target_prior).max() > 0.02


def test_maximum_likelihood_of_two_classes_in_closed_form():
    """Posteriors 0.9 and 0.1 from equal classes: a share s of the first is a prior of (s - 0.1) / 0.8."""
    for share in (0.2, 0.3, 0.85):
        counts = [round(1000 * share), round(1000 * (1 - share))]
        proba = np.repeat([[0.9, 0.1], [0.1, 0.9]], counts, axis=0)
        assert maximum_likelihood_prior(proba, [0.5, 0.5])[0] == pytest.approx((share - 0.1) / 0.8, abs=1e-4)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_the_maximum_meets_its_conditions(seed, n_classes):
    """Concave on the simplex: at the maximum the slope is 1 for classes that are there and at most 1 for the others."""
    rng = np.random.default_rng(seed)
    proba, prior = rng.dirichlet(np.ones(n_classes), size=200), rng.dirichlet(np.full(n_classes, 5.0))
    found = maximum_likelihood_prior(proba, prior, tolerance=1e-10)
    ratio = proba / prior
    slope = (ratio / (ratio @ found)[:, None]).mean(axis=0)
    assert found.sum() == pytest.approx(1)
    assert np.all(slope < 1 + 1e-3)
    np.testing.assert_allclose(slope[found > 1e-3], 1, atol=1e-3)


def test_probabilities_that_are_too_sure_mislead_it():
    exact = Exact(4)
    rows = exact.rows(4000)
    right = exact.posterior(exact.source_prior)[rows]
    too_sure = right**4 / (right**4).sum(axis=1, keepdims=True)
    errors = [
        abs(maximum_likelihood_prior(p, exact.source_prior) - exact.target_prior).max() for p in (right, too_sure)
    ]
    assert errors[0] < 0.01 < errors[1]


def test_the_same_as_quapy():
    aggregative = pytest.importorskip("quapy.method.aggregative")
    exact = Exact(5)
    proba = exact.posterior(exact.source_prior)[exact.rows(2000)]
    theirs, _ = aggregative.EMQ.EM(exact.source_prior, proba, epsilon=1e-9)
    np.testing.assert_allclose(maximum_likelihood_prior(proba, exact.source_prior), theirs, atol=1e-4)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_black_box_inverts_the_confusion_matrix(seed, n_classes):
    rng = np.random.default_rng(seed)
    given_label = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), size=n_classes).T
    source, target = rng.dirichlet(np.full(n_classes, 5.0), size=2)
    found = black_box_prior(given_label * source, given_label @ target)
    np.testing.assert_allclose(found, target, atol=1e-4)
    # the equation itself, with w = target / source
    np.testing.assert_allclose((given_label * source) @ (found / source), given_label @ target, atol=1e-4)


def test_black_box_at_the_edge_against_a_grid():
    """Where no frequencies explain the predictions, the nearest ones by trying all."""
    given_label = np.array([[0.8, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.1, 0.7]])
    observed = np.array([0.85, 0.1, 0.05])
    assert np.any(np.linalg.solve(given_label, observed) < 0)
    found = black_box_prior(given_label * [0.2, 0.3, 0.5], observed)
    first, second = (part.ravel() for part in np.meshgrid(*[np.linspace(0, 1, 401)] * 2))
    grid = np.column_stack([first, second, 1 - first - second])[first + second <= 1 + 1e-12]
    errors = ((grid @ given_label.T - observed) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, grid[errors.argmin()], atol=0.004)
    assert np.sum((given_label @ found - observed) ** 2) <= errors.min() + 1e-9


def test_confusion_and_frequencies_by_hand():
    joint = confusion([0, 1, 1, 2], [0, 1, 2, 2], 3)
    assert joint[1, 2] == 0.25
    np.testing.assert_array_equal(joint.sum(axis=0), class_frequencies([0, 1, 2, 2], 3))
    np.testing.assert_array_equal(joint.sum(axis=1), class_frequencies([0, 1, 1, 2], 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_proportions("prior", [0.5, 0.6]), r"prior sums to 1\.1: expected proportions that sum to 1"),
        (
            lambda: check_proportions("prior", [1.2, -0.2]),
            r"prior is \[1\.2, -0\.2\]: expected proportions of 0 or more",
        ),
        (lambda: check_proportions("prior", [np.nan, 1.0]), "expected proportions of 0 or more"),
        (lambda: check_proportions("prior", [0.5, 0.5], 3), r"prior has shape \(2,\): expected \(3,\)"),
        (lambda: maximum_likelihood_prior([[0.5, 0.5]], [1.0, 0.0]), "source_prior has no rows of class 1"),
        (lambda: maximum_likelihood_prior([[0.5, 0.5]], [0.4, 0.4]), r"source_prior sums to 0\.8"),
        (lambda: maximum_likelihood_prior([[0.5, 0.6]], [0.5, 0.5]), "1 rows that do not sum to 1"),
        (lambda: maximum_likelihood_prior(np.empty((0, 2)), [0.5, 0.5]), r"shape \(0, 2\).*at least one row"),
        (lambda: maximum_likelihood_prior([[0.5, 0.5]], [0.2, 0.3, 0.5]), r"expected \(n, 3\)"),
        (lambda: black_box_prior(np.eye(2) / 2, [0.2, 0.3, 0.5]), r"source_confusion has shape \(2, 2\)"),
        (lambda: black_box_prior(np.eye(2), [0.5, 0.5]), "source_confusion sums to 2"),
        (lambda: black_box_prior([[0.5, 0.0], [0.5, 0.0]], [0.5, 0.5]), "has no rows of class 1"),
        (lambda: confusion([0, 1], [0], 2), "predicted has 2 rows, labels have 1"),
        (lambda: class_frequencies([0, 3], 3), r"labels has values from 0 to 3: expected classes from 0 to 2"),
        (lambda: class_frequencies([0.5], 3), "expected integers"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def drawn(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=1.5, size=(n, 3))
    proba = softmax(logits, axis=1)
    labels = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    return logits, labels


def test_it_undoes_a_temperature_and_a_bias():
    logits, labels = drawn()
    spoiled = 4 * (logits - [0.5, 0.0, -0.5])
    found = calibrator(spoiled, labels)
    assert found.scale == pytest.approx(0.25, rel=0.05)
    np.testing.assert_allclose(found.bias, [0.5, 0.0, -0.5], atol=0.05)
    np.testing.assert_allclose(found.proba(spoiled), softmax(logits, axis=1), atol=0.03)
    assert abs(softmax(spoiled, axis=1) - softmax(logits, axis=1)).max() > 0.3


def test_mean_probabilities_become_the_frequencies():
    logits, labels = drawn(seed=1)
    logits[:, 0] += 2.0
    proba = calibrator(logits, labels).proba(logits)
    np.testing.assert_allclose(proba.mean(axis=0), np.bincount(labels) / len(labels), atol=0.002)


def test_it_lowers_the_loss():
    logits, labels = drawn(500, seed=2)
    before = -log_softmax(3 * logits, axis=1)[np.arange(500), labels].mean()
    after = -np.log(calibrator(3 * logits, labels).proba(3 * logits)[np.arange(500), labels]).mean()
    assert after < before


def test_rows_that_are_all_right_do_not_make_it_sure():
    labels = np.arange(20) % 2
    found = calibrator(np.eye(2)[labels], labels)
    assert 1 < found.scale < 20
    assert found.proba(np.eye(2)[labels]).max() < 1 - 1e-6


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"logits have shape \(4, 2\), labels \(3,\)"):
        calibrator(np.zeros((4, 2)), [0, 1, 0])
