import json

import numpy as np
import pytest
from setminus_paper.claims import fig1

from tests.paper.claims.committed import has_the_keys_of


def measured(n_seeds=1):
    runs = fig1.plan("quick", tuple(range(n_seeds)))
    return {run.config["variances"]: list(run.measure(run.seeds)) for run in runs}


@pytest.fixture(scope="module")
def metrics():
    return measured(2)


@pytest.mark.parametrize("variances", ["equal", "unequal"])
def test_the_boundaries_stand_at_a_right_angle(metrics, variances):
    for one in metrics[variances]:
        assert one["exact"]["principal_orthogonal"] == pytest.approx(90, abs=1e-6)
        assert one["trained"]["principal_orthogonal"] == pytest.approx(90, abs=3)
        assert one["largest_error"] < 1e-12
        assert one["mean_error_trained"] < 0.02
        # the control: the full classifier's boundary does not
        assert one["exact"]["principal_full"] < 60
        assert one["trained"]["principal_full"] < 60


def test_only_the_full_boundary_turns_where_variances_differ(metrics):
    equal, unequal = (metrics[name][0]["exact"]["turn"] for name in ("equal", "unequal"))
    assert max(equal.values()) < 1e-3
    assert unequal["full"] > 10
    assert max(unequal["principal"], unequal["orthogonal"]) < 1e-3


def test_the_angle_of_the_full_classifier_is_that_of_the_closed_form(metrics):
    # the normal of the full classifier is along the line of the means, that of the principal one along the axis of z1
    assert metrics["equal"][0]["exact"]["principal_full"] == pytest.approx(35, abs=1e-6)


def test_records_are_plain_and_repeat(metrics):
    again = measured()
    assert json.loads(json.dumps(again["equal"][0])) == metrics["equal"][0] == again["equal"][0]
    assert has_the_keys_of("fig1", {"variances": "equal"}, again["equal"][0])
    assert metrics["equal"][0]["points"] != metrics["equal"][1]["points"]


def test_axis_of_a_slanted_boundary():
    slope = np.array([3.0, 4.0])
    points = np.random.default_rng(0).normal(size=(500, 2))

    def classifier(x):
        positive = 1 / (1 + np.exp(-x @ slope))
        return np.column_stack([1 - positive, positive])

    axis, turn = fig1.boundary_axis(classifier, points)
    np.testing.assert_allclose(np.abs(axis), [0.6, 0.8], atol=1e-8)
    assert turn < 1e-4
    with pytest.raises(ValueError, match="none of the 1 points is near the boundary"):
        fig1.boundary_axis(classifier, np.array([[9.0, 9.0]]))
