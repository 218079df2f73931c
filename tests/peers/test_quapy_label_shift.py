"""Where QuaPy estimates the same class frequencies, ours are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from setminus.adaptation.label_shift import (
    black_box_prior,
    class_frequencies,
    confusion,
    maximum_likelihood_prior,
)

matplotlib = pytest.importorskip("matplotlib")
# importing it changes how every figure of the process is drawn
with matplotlib.rc_context():
    aggregative = pytest.importorskip("quapy.method.aggregative")

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])
SOURCE, TARGET = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.7])


def draw(prior, n, seed):
    """Rows that are the same in both domains but for how often each class comes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(prior), size=n, p=prior)
    return MEANS[y] + rng.normal(size=(n, 2)), y


@pytest.fixture(scope="module")
def world():
    x, y = draw(SOURCE, 2000, seed=0)
    model = LogisticRegression(C=1e6).fit(x, y)
    # many rows: the rarest class decides how well its rates are known
    return model, draw(SOURCE, 20_000, seed=1), draw(TARGET, 3000, seed=2)


@pytest.fixture(scope="module")
def black_box(world):
    model, (x, y), (target, _) = world
    return confusion(model.predict(x), y, 3), class_frequencies(model.predict(target), 3)


def test_maximum_likelihood_of_a_fitted_classifier(world):
    model, (x, y), (target, truth) = world
    quantifier = aggregative.EMQ(model, fit_classifier=False, exact_train_prev=True, val_split=None).fit(x, y)
    # at its own tolerance theirs ends far from the maximum
    theirs, _ = quantifier.EM(class_frequencies(y, 3), quantifier.classify(target), epsilon=1e-9)
    ours = maximum_likelihood_prior(model.predict_proba(target), class_frequencies(y, 3))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(ours, class_frequencies(truth, 3), atol=0.04)
    # the negative control: what the classifier says is not corrected by saying it
    assert np.abs(model.predict_proba(target).mean(axis=0) - theirs).max() > 0.04


def test_black_box_of_a_fitted_classifier(world, black_box):
    model, (x, y), (target, truth) = world
    theirs = aggregative.ACC(model, fit_classifier=False, val_split=None).fit(x, y).predict(target)
    ours = black_box_prior(*black_box)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    np.testing.assert_allclose(ours, class_frequencies(truth, 3), atol=0.04)
    assert np.abs(black_box[1] - theirs).max() > 0.04


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 10))
def test_black_box_equals_adjusted_counts(seed, n_classes):
    """Also where no frequencies explain the predictions and both stop at the edge."""
    rng = np.random.default_rng(seed)
    rates = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), size=n_classes).T
    source, predicted = rng.dirichlet(np.full(n_classes, 5.0)), rng.dirichlet(np.ones(n_classes))
    theirs = aggregative.ACC.solve_adjustment(rates, predicted, method="inversion", solver="minimize")
    np.testing.assert_allclose(black_box_prior(rates * source, predicted), theirs, atol=2e-3)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 6))
def test_confusion_equals_their_rates(seed, n_classes):
    rng = np.random.default_rng(seed)
    # every class is there
    labels = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=100)])
    predicted = rng.integers(n_classes, size=len(labels))
    theirs = aggregative.ACC.getPteCondEstim(np.arange(n_classes), labels, predicted)
    ours = confusion(predicted, labels, n_classes)
    np.testing.assert_allclose(ours / ours.sum(axis=0), theirs, atol=1e-12)
