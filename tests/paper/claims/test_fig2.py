"""Importance sampling beside the formula, on Gaussians: it climbs, the other does not, unless z1 says nothing."""

import numpy as np
import pytest

pytest.importorskip("torch")

from setminus_paper.claims import fig2a, fig2b
from setminus_paper.claims.importance_against_formula import (
    Schedule,
    digit_figures,
    gaussian_figures,
    gaussian_model,
    measure_gaussians,
)

from setminus.core.importance import importance_variance
from setminus.datasets.colored_digits import ColoredDigits

SHORT = Schedule(rows=2000, steps=400, batch=32, rate=0.05)
SEEDS = (0, 1, 2, 3, 4)


def excess(divergence, schedule=SHORT, seeds=SEEDS):
    found = list(measure_gaussians(seeds, divergence=divergence, schedule=schedule))
    return {name: np.array([one[f"{name}_excess"] for one in found]) for name in ("importance", "orthogonal")}


@pytest.fixture(scope="module")
def measured():
    return {divergence: excess(divergence) for divergence in (0.0, 0.1, 50.0)}


def test_importance_sampling_climbs_with_the_divergence_more_than_the_formula(measured):
    climb = {name: np.median(measured[50.0][name]) - np.median(measured[0.1][name]) for name in measured[0.1]}
    assert climb["importance"] > 0.03
    assert climb["importance"] > 3 * climb["orthogonal"]


def test_both_are_the_same_where_z1_says_nothing(measured):
    # all weights are 1 and the principal is the prior: the same training, up to rounding
    np.testing.assert_allclose(measured[0.0]["importance"], measured[0.0]["orthogonal"], atol=1e-4)


def test_importance_sampling_climbs_with_the_rate(measured):
    gentle = excess(50.0, Schedule(rows=2000, steps=400, batch=32, rate=0.01))
    climb = {name: np.median(measured[50.0][name]) - np.median(gentle[name]) for name in gentle}
    assert climb["importance"] > 0.02 > climb["orthogonal"]


def test_a_seed_does_not_depend_on_the_others(measured):
    alone = excess(50.0, seeds=(3,))
    np.testing.assert_allclose(alone["orthogonal"][0], measured[50.0]["orthogonal"][3], rtol=1e-3)


@pytest.mark.parametrize("divergence", [0.1, 3.0])
def test_the_variance_of_gaussians_is_that_of_fine_bins(divergence):
    model = gaussian_model(divergence)
    grid = np.linspace(-9, 9, 4001)

    def binned(means):
        density = np.exp(-0.5 * (grid - np.array(means)[:, None]) ** 2)
        return density / density.sum(axis=1, keepdims=True)

    exact = importance_variance([0.5, 0.5], binned(model.means[:, 0]), binned(model.means[:, 1]))
    assert gaussian_figures(model)["variance_exact"] == pytest.approx(exact, rel=1e-6)
    assert gaussian_figures(model)["divergence"] == pytest.approx(divergence)


def test_the_measured_variance_is_the_formula():
    (found,) = measure_gaussians((0,), divergence=0.3, schedule=Schedule(200, 1, 32, 0.01))
    assert found["variance"] == pytest.approx(found["variance_exact"], rel=0.1)
    assert found["variance"] > 1.2 * gaussian_figures(gaussian_model(0.0))["variance_exact"]


def test_the_divergence_of_digits_has_a_closed_form():
    for strength in (0.0, 0.5, 0.9):
        found = digit_figures(ColoredDigits(lambda_digit=strength))
        assert found["divergence"] == pytest.approx(1 / (1 - strength**2) - 1)


def test_plans_sweep_one_thing_each():
    divergences = fig2a.plan("quick", SEEDS)
    assert len({run.config["rate"] for run in divergences if run.config["data"] == "gaussians"}) == 1
    rates = fig2b.plan("paper", SEEDS)
    assert len({run.config.get("divergence") for run in rates if run.config["data"] == "gaussians"}) == 1
    assert len({str(run.config) for run in (*divergences, *rates)}) == len(divergences) + len(rates)
