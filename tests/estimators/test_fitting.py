"""A part is cloned, fitted with what it can take, and refused where it cannot serve."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from setminus import GroupPrincipal, OrthogonalClassifier, ProxyPrincipal
from setminus.estimators.fitting import calibrated, check_classes, fit_part, needs_groups, takes_groups

X = np.array([[0.0], [1.0], [2.0], [3.0]])
Y = np.array([0, 1, 0, 1])
HEAVY = np.array([1.0, 50.0, 1.0, 50.0])


def slope_free(model):
    """P(1) in the middle, which weights move."""
    return model.predict_proba([[1.5]])[0, 1]


def test_the_part_that_was_given_stays_unfitted():
    given = LogisticRegression()
    fitted = fit_part("full", given, X, Y)
    assert fitted is not given and not hasattr(given, "classes_")


@pytest.mark.parametrize("part", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_weights_reach_the_last_step(part):
    plain, weighted = fit_part("full", part, X, Y), fit_part("full", part, X, Y, sample_weight=HEAVY)
    repeated = fit_part("full", part, np.repeat(X, HEAVY.astype(int), axis=0), np.repeat(Y, HEAVY.astype(int)))
    assert slope_free(plain) < 0.6 < 0.9 < slope_free(weighted)
    if isinstance(part, LogisticRegression):
        assert slope_free(weighted) == pytest.approx(slope_free(repeated), abs=1e-3)


def test_weights_reach_a_calibrated_part_with_and_without_routing():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(200, 1)), rng.integers(2, size=200)
    weight = np.where(y == 1, 50.0, 1.0)
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            part = calibrated(LogisticRegression(), "sigmoid")
            model = fit_part("full", part, rows, y, sample_weight=weight)
        assert model.predict_proba(rows)[:, 1].min() > 0.8


def test_a_frozen_part_stays_as_it_is_whatever_the_weights():
    model = LogisticRegression().fit(X, Y)
    frozen = fit_part("full", FrozenEstimator(model), X, 1 - Y, sample_weight=HEAVY)
    np.testing.assert_array_equal(frozen.predict_proba(X), model.predict_proba(X))


def test_groups_go_to_those_that_take_them():
    group = np.array(["f", "f", "m", "m"])
    principal = fit_part("principal", GroupPrincipal(), X, Y, groups=group)
    assert principal.groups_.labels == ["f", "m"]
    fit_part("principal", LogisticRegression(), X, Y, groups=group)
    assert takes_groups(GroupPrincipal().fit) and not takes_groups(LogisticRegression().fit)
    assert needs_groups(GroupPrincipal()) and not needs_groups(ProxyPrincipal()) and not needs_groups(LinearSVC())
    assert needs_groups(OrthogonalClassifier(LogisticRegression()))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
def test_calibration_is_put_around(method):
    inner = LogisticRegression()
    outer = calibrated(inner, method)
    assert isinstance(outer, CalibratedClassifierCV) and outer.method == method and outer.estimator is inner
    assert calibrated(inner, None) is inner


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (None, TypeError, "principal is None: expected a scikit-learn classifier"),
        (LogisticRegression, TypeError, "principal is <class .*expected a scikit-learn classifier"),
        (object(), TypeError, "expected a scikit-learn classifier"),
        (LinearSVC(), TypeError, "principal is LinearSVC, which has no predict_proba"),
        (KNeighborsClassifier(1), ValueError, "principal is KNeighborsClassifier, whose fit takes no sample_weight"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
            ValueError,
            "principal is KNeighborsClassifier, whose fit takes no sample_weight",
        ),
    ],
)
def test_parts_that_cannot_serve_are_named(part, error, message):
    with pytest.raises(error, match=message):
        fit_part("principal", part, X, Y, sample_weight=HEAVY)


def test_a_thing_with_fit_alone_is_no_estimator():
    class Fits:
        def fit(self, X, y):
            return self

    with pytest.raises(TypeError, match=r"full is .*expected a scikit-learn classifier"):
        fit_part("full", Fits(), X, Y)
    with pytest.raises(ValueError, match="calibration is 'platt': expected None, 'sigmoid', 'isotonic' or 'temper"):
        calibrated(LogisticRegression(), "platt")


def test_classes_must_be_the_same_and_in_the_same_order():
    check_classes("principal", np.array(["a", "b"]), np.array(["a", "b"]))
    for found in (["b", "a"], ["a", "c"], ["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=f"principal has {len(found)} classes .*, full has 2 "):
            check_classes("principal", np.array(found), np.array(["a", "b"]))
