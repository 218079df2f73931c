"""Exact probabilities pass at the stated rate, overconfident ones do not, and each group is judged."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest

from setminus.auditing.calibration import calibration, calibration_error, reliability_curve
from setminus.auditing.inputs import read_scored


def test_exact_probabilities_are_refused_at_rate_alpha():
    p_values = []
    for seed in range(300):
        rng = np.random.default_rng([seed, 5])
        p = rng.uniform(size=200)
        y = (rng.uniform(size=200) < p).astype(int)
        proba = np.column_stack([1 - p, p])
        p_values.append(calibration_error(y, proba, n_simulations=49, random_state=seed).p_value)
    for alpha in (0.1, 0.5):
        assert binomtest(int((np.array(p_values) <= alpha).sum()), 300, alpha).pvalue > 0.001


def test_exact_full_and_principal_pass_and_sharpened_ones_fail(exact):
    rows = exact(4000, 0)
    for proba in (rows.full, rows.principal, rows.orthogonal):
        good = calibration(read_scored(rows.y, proba, rows.group)).overall
        sharpened = calibration(read_scored(rows.y, expit(2 * logit(proba)), rows.group)).overall
        assert good.p_value > 0.01 and good.excess < 0.01
        assert sharpened.p_value < 0.01 and sharpened.excess > 0.05


def test_a_group_can_be_miscalibrated_where_the_whole_is_not(exact):
    rows = exact(4000, 0)
    result = calibration(read_scored(rows.y, rows.orthogonal, rows.group))
    assert result.overall.p_value > 0.05
    assert [error.group for error in result.groups] == [0, 1]
    assert all(error.p_value < 0.01 and error.excess > 0.05 for error in result.groups)


def test_more_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=3000)
    y = (rng.uniform(size=(3000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    group = rng.integers(2, size=3000)
    good = calibration(read_scored(y, proba, group))
    sharpened = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    assert good.overall.p_value > 0.05 > calibration(read_scored(y, sharpened, group)).overall.p_value
    assert [(curve.group, curve.label) for curve in good.curves] == [
        (group, label) for group in (None, 0, 1) for label in (0, 1, 2)
    ]


def test_curve_by_hand_and_equal_mass():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=1000)
    predicted, observed, count = reliability_curve(score > 0.5, score, n_bins=4)
    np.testing.assert_array_equal(count, 250)
    np.testing.assert_allclose(predicted, np.sort(score).reshape(4, 250).mean(axis=1))
    np.testing.assert_allclose(observed, (np.sort(score) > 0.5).reshape(4, 250).mean(axis=1))


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    score, weight = rng.uniform(size=60), rng.integers(1, 4, size=60)
    y = (rng.uniform(size=60) < score).astype(int)
    proba = np.column_stack([1 - score, score])
    # one bin: equal-mass edges would move with the repetitions
    weighted = calibration_error(y, proba, weight=weight.astype(float), n_bins=1).ece
    repeated = calibration_error(np.repeat(y, weight), np.repeat(proba, weight, axis=0), n_bins=1).ece
    assert weighted == pytest.approx(repeated)
    assert weighted != pytest.approx(calibration_error(y, proba, n_bins=1).ece)
    left_out = reliability_curve(y == 1, score, np.where(score < 0.5, 0.0, 1.0), n_bins=10)
    assert len(left_out[0]) < 10 and np.isfinite(left_out[1]).all()
