import json

import numpy as np
import pytest
from scipy.stats import norm
from setminus_paper.claims import prop5

from tests.paper.claims.committed import has_the_keys_of


@pytest.fixture(scope="module")
def metrics():
    runs = prop5.plan("quick", (0,))
    found = {}
    for run in runs:
        [one] = run.measure(run.seeds, n=6000)
        assert json.loads(json.dumps(one)) == one
        assert has_the_keys_of("prop5", run.config, one)
        found[run.config["part"], run.config.get("mismatch")] = one
    return found


def test_no_map_changes_the_classifier(metrics):
    for one in metrics["invariance", None]["random"]:
        assert one["from_exact"] < 1e-11
        assert one["between_maps"] < 1e-11
        assert one["from_exact_if_dependent"] > 0.1


def test_the_picture_is_level_in_latent_space_and_not_in_the_other(metrics):
    picture = metrics["invariance", None]["picture"]
    latent, seen = (np.array(picture[space]["values"]) for space in ("latent", "seen"))
    assert np.ptp(latent, axis=1).max() < 0.002
    assert np.ptp(latent, axis=0).min() > 0.9
    assert np.ptp(seen, axis=1).max() > 0.5


def test_the_constructed_variable_is_independent_of_z1_where_the_condition_holds(metrics):
    holds, fails = (metrics["existence", mismatch] for mismatch in (0.0, 0.8))
    for label in (0, 1):
        for name in ("exact_cdf", "estimated_cdf"):
            assert holds["dependence"][name][label] < 1.5 * holds["dependence_by_chance"][label]
        assert holds["dependence"]["rest"][label] > 5 * holds["dependence_by_chance"][label]
    # class 1's own function always fits class 1
    assert fails["dependence"]["exact_cdf"][1] < 1.5 * fails["dependence_by_chance"][1]
    assert fails["dependence"]["exact_cdf"][0] > 5 * fails["dependence_by_chance"][0]


def test_full_minus_principal_is_the_posterior_of_the_constructed_variable(metrics):
    posterior = metrics["existence", 0.0]["posterior"]
    assert posterior["from_exact"] < 1e-12
    assert posterior["mean_from_rest"] > 0.05
    order = np.argsort(posterior["cdf"])
    # a function of it, here a growing one; dropping a column gives none
    assert np.diff(np.array(posterior["found"])[order]).min() > -0.005
    assert np.diff(np.array(posterior["dropped_column"])[order]).min() < -0.2


def test_estimated_cdf_tends_to_the_exact_one():
    rng = np.random.default_rng(0)
    z1 = rng.normal(size=50_000)
    rest = np.sin(3 * z1) + rng.normal(size=z1.size)
    at_z1 = np.linspace(-1.5, 1.5, 30)
    at_rest = np.sin(3 * at_z1) + np.linspace(-2, 2, 30)
    found = prop5.estimated_cdf(z1, rest, at_z1, at_rest, n_neighbors=500)
    np.testing.assert_allclose(found, norm.cdf(np.linspace(-2, 2, 30)), atol=0.07)
    # the control: without z1 it is another function
    without = (rest <= at_rest[:, None]).mean(axis=1)
    assert np.abs(without - norm.cdf(np.linspace(-2, 2, 30))).max() > 0.15


def test_dependence_sees_spread_and_bends():
    rng = np.random.default_rng(0)
    z1, noise = rng.normal(size=(2, 20_000))
    assert prop5.dependence_on_z1(z1, noise) < 0.04
    assert prop5.dependence_on_z1(z1, noise * np.exp(z1)) > 0.15
    assert prop5.dependence_on_z1(z1, noise + z1**2) > 0.15
