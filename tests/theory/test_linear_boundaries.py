"""The figure of the introduction: fitted linear classifiers, and boundaries at a right angle."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import linear_gaussian


def degrees_between(a, b):
    """Angle between two lines, from 0 to 90."""
    cosine = abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b))
    return np.degrees(np.arccos(min(cosine, 1.0)))


def fitted_normal(x, proba):
    """Slope of the log-odds by least squares."""
    log_odds = np.log(proba[:, 1]) - np.log(proba[:, 0])
    design = np.column_stack([x, np.ones(len(x))])
    return np.linalg.lstsq(design, log_odds)[0][:-1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boundary_of_full_setminus_principal_is_at_a_right_angle_to_the_principal_one(seed):
    model = linear_gaussian(angle=35)
    # of equal covariances the log-odds grow along the difference of the means
    exact_full, z1_axis, z2_axis = model.means[1] - model.means[0], np.array([1.0, 0.0]), np.array([0.0, 1.0])
    split = model.sample(20_000, seed=seed)
    full = LogisticRegression().fit(split.x, split.y).predict_proba(split.x)
    principal = LogisticRegression().fit(split.z1, split.y).predict_proba(split.z1)
    orthogonal = orthogonalize(full, principal, np.bincount(split.y) / len(split))

    principal_normal = fitted_normal(split.x, principal)
    assert degrees_between(fitted_normal(split.x, orthogonal), principal_normal) > 87
    assert degrees_between(fitted_normal(split.x, orthogonal), z2_axis) < 3
    # the control: before the subtraction the boundary stands where the means put it, far from 90 degrees
    assert degrees_between(fitted_normal(split.x, full), principal_normal) == pytest.approx(
        degrees_between(exact_full, z1_axis), abs=3
    )
    assert degrees_between(exact_full, z1_axis) < 45
