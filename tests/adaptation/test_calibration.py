"""The calibrator finds a temperature and a bias that are known, and stays finite where there is nothing to learn."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from setminus.adaptation.calibration import calibrator


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
