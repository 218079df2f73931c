import json

import numpy as np
import pytest
from setminus_paper.claims import prop6
from setminus_paper.data.proposition_models import InputGradientModel, paper_example

from tests.paper.claims.committed import has_the_keys_of

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def angles():
    found = {}
    for run in prop6.plan("quick", (0,)):
        [metrics] = run.measure(run.seeds, n=5000)
        assert json.loads(json.dumps(metrics)) == metrics
        assert has_the_keys_of("prop6", run.config, metrics)
        found[run.config["map"]] = {row["angle"]: row for row in metrics["angles"]}
    return found


@pytest.mark.parametrize("name", ["linear", "curved"])
def test_the_product_is_that_of_the_closed_form_and_zero_at_a_right_angle_only(angles, name):
    for angle, row in angles[name].items():
        assert abs(row["measured"] - row["exact"]) <= 4 * row["standard_error"] + 1e-15
        if angle == 90:
            assert abs(row["measured"]) < 1e-12
        else:
            assert abs(row["measured"]) > 20 * row["standard_error"]
        assert row["trained"] == pytest.approx(row["exact"], abs=0.015)


def test_a_penalty_brings_the_product_down_with_another_classifier(angles):
    for row in angles["linear"].values():
        assert abs(row["penalized"]) < 0.004
        assert row["penalized_distance"] > 0.05
        assert row["penalized_explained_by_z1"] > 0.05


@pytest.mark.parametrize("curved", [False, True])
def test_autograd_through_setminus_equals_the_chain_rule(curved):
    example = paper_example()
    model = InputGradientModel(0.3 * example.mean1, 0.3 * example.mean2, example.inverse, curved)
    x = model.sample(100, seed=0).x
    exact = model.gradients(x)
    found = prop6.gradient_products(model, x)
    np.testing.assert_allclose(found, (exact.principal * exact.orthogonal).sum(axis=1), rtol=1e-8, atol=1e-10)
    # the control: less taken from the full classifier than its principal part
    less = prop6.gradient_products(model, x, full=np.r_[2.2 * model.mean1, 2 * model.mean2, 0.0])
    assert np.abs(less - found).max() > 0.01
