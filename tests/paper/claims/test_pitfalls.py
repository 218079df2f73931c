"""Both pitfalls are real where they should be, and absent where probabilities are exact."""

import numpy as np
import pytest

pytest.importorskip("torch")

from setminus_paper.claims import pitfalls


@pytest.fixture(scope="module")
def miscalibrated():
    return next(iter(pitfalls.miscalibration((0,), rows=500)))


def test_a_short_training_misses_z2_and_a_second_network_helps():
    found = [one["classifiers"] for one in pitfalls.simplicity_bias((0, 1), rows=2000, steps=300)]
    loss = {name: np.mean([one[name]["loss"] for one in found]) for name in found[0]}
    assert loss["exact"] < 0.25 < 0.6 < loss["one network"]
    assert loss["cosine"] < loss["one network"] - 0.1


def test_only_a_factor_of_one_leaves_nothing(miscalibrated):
    sharp = dict(zip(miscalibrated["sharpness"], miscalibrated["sharp"]["leakage"], strict=True))
    assert sharp.pop(1.0) < 0.005 < min(sharp.values())


def test_a_temperature_undoes_any_factor(miscalibrated):
    np.testing.assert_allclose(miscalibrated["temperatures"], miscalibrated["sharpness"], rtol=0.1)
    assert max(miscalibrated["cured"]["leakage"]) < 0.005
    assert max(miscalibrated["cured"]["excess"]) < 0.005 < max(miscalibrated["sharp"]["excess"])


def test_a_network_that_is_too_sure_is_nearer_with_a_temperature(miscalibrated):
    trained = miscalibrated["trained"]
    assert trained["temperature"]["excess"][-1] < trained["as trained"]["excess"][-1]


def test_the_exact_odds_of_the_exclusive_or():
    # far from the corners' middle, only the corner counts: log(0.95 / 0.05) and no z1
    odds = pitfalls._exclusive_or_odds(np.array([[0.0, 0.5, 0.5], [0.0, 0.5, -0.5], [1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(odds, [np.log(19), -np.log(19), pitfalls.DISTANCE], atol=1e-6)
