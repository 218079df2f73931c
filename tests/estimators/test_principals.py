import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import setminus
from setminus import GroupPrincipal, OrthogonalClassifier, ProxyPrincipal
from setminus.estimators.principals import (
    calibrated,
    check_classes,
    default_classifier,
    fit_part,
    needs_groups,
    takes_groups,
)

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


class TestGroupPrincipal:
    def test_counts(self, rows):
        principal = GroupPrincipal(smoothing=0).fit(None, rows.y, sensitive_features=rows.sex)
        expected = [rows.y[rows.sex == sex].mean() for sex in ("f", "m")]
        np.testing.assert_allclose(principal.group_proba_[:, 1], expected)
        assert principal.groups_.labels == ["f", "m"]

    def test_smoothing_draws_small_groups_to_the_whole(self):
        group, y = np.repeat(["a", "b"], [2, 1000]), np.r_[0, 1, np.arange(1000) % 10 == 0]
        proba = GroupPrincipal(smoothing=98).fit(None, y, sensitive_features=group).group_proba_[:, 1]
        assert proba[0] == pytest.approx((1 + 98 * y.mean()) / 100)
        assert proba[1] == pytest.approx(0.1, abs=0.001)

    def test_columns_are_crossed(self, rows):
        frame = pd.DataFrame({"sex": rows.sex, "old": rows.X[:, 2] > 0})
        principal = GroupPrincipal().fit(None, rows.y, sensitive_features=frame)
        assert len(principal.groups_.labels) == 4
        one = frame.iloc[[0]]
        mask = (frame == one.iloc[0]).all(axis=1)
        found = principal.predict_proba(None, sensitive_features=one)[0, 1]
        assert found == pytest.approx(rows.y[mask].mean(), abs=0.01)

    def test_numbers_are_cut_at_quantiles(self, rows):
        principal = GroupPrincipal(n_bins=4).fit(None, rows.y, sensitive_features=rows.X[:, 0])
        assert len(principal.groups_.labels) == 4
        assert principal.groups_.labels[0].startswith("below")
        proba = principal.predict_proba(None, sensitive_features=[-100.0, 100.0])
        assert proba[0, 1] < 0.45 < 0.8 < proba[1, 1]

    def test_a_bin_without_a_class_is_no_bin(self):
        y = (np.arange(100) >= 50).astype(int)
        principal = GroupPrincipal().fit(None, y, sensitive_features=np.arange(100.0))
        assert principal.groups_.labels == ["all"]

    def test_unseen_group_is_named_never_guessed(self, rows):
        principal = GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match=r"unseen group 'x' in 2 rows: at fit time there were 'f', 'm'"):
            principal.predict_proba(None, sensitive_features=["f", "x", "x"])
        lenient = GroupPrincipal(unseen="prior").fit(None, rows.y, sensitive_features=rows.sex)
        np.testing.assert_allclose(
            lenient.predict_proba(None, sensitive_features=["x"]), [np.bincount(rows.y) / len(rows.y)]
        )

    def test_unseen_combination_is_named(self):
        sex, old = np.tile(["f", "m"], 50), np.repeat(["old", "young"], 50)
        frame = pd.DataFrame({"sex": sex, "old": old})[~((sex == "f") & (old == "old"))]
        principal = GroupPrincipal().fit(None, np.arange(len(frame)) // 2 % 2, sensitive_features=frame)
        with pytest.raises(ValueError, match="unseen group 'f, old'"):
            principal.predict_proba(None, sensitive_features=pd.DataFrame({"sex": ["f"], "old": ["old"]}))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"smoothing": -1}, "smoothing is -1"),
            ({"smoothing": np.inf}, "smoothing is inf: expected a finite number"),
            ({"n_bins": 1}, "n_bins is 1: expected at least 2"),
            ({"unseen": "skip"}, r"^unseen is 'skip': expected 'raise' or 'prior'\.$"),
        ],
    )
    def test_parameters(self, rows, change, message):
        with pytest.raises(ValueError, match=message):
            GroupPrincipal(**change).fit(None, rows.y, sensitive_features=rows.sex)

    def test_no_rows_at_all(self):
        with pytest.raises(ValueError, match="y has no rows"):
            GroupPrincipal().fit(None, [], sensitive_features=[])

    def test_rows_of_x_and_groups_must_agree(self, rows):
        with pytest.raises(ValueError, match=r"X has 10 rows, sensitive_features 3000: expected the same number"):
            GroupPrincipal().fit(rows.X[:10], rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match=r"columns, it had 1 at fit time: pass the same\.$"):
            GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex).predict_proba(
                None, sensitive_features=rows.X[:, :2]
            )


class TestProxyPrincipal:
    def test_mixture_is_the_average_over_the_groups(self, rows):
        proxy = ProxyPrincipal(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
        attribute = LogisticRegression().fit(rows.X, rows.sex).predict_proba(rows.X)
        counts = GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex).group_proba_
        np.testing.assert_allclose(proxy.predict_proba(rows.X), attribute @ counts)

    def test_score_is_calibrated_and_no_wider_than_what_the_group_says(self, rows):
        proxy = ProxyPrincipal(LogisticRegression(), method="score").fit(rows.X, rows.y, sensitive_features=rows.sex)
        proba = proxy.predict_proba(rows.X)[:, 1]
        for low, high in ((0, 0.5), (0.5, 1)):
            inside = (proba >= low) & (proba < high)
            assert proba[inside].mean() == pytest.approx(rows.y[inside].mean(), abs=0.03)

    @pytest.mark.parametrize("method", ["mixture", "score"])
    def test_needs_no_group_at_predict_time_and_takes_out_most_of_it(self, rows, method):
        model = OrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression(), method=method))
        model.fit(rows.X, rows.y, sensitive_features=rows.sex)
        male = np.array([[0.5, 1.0, 0.0], [0.5, 0.0, 0.0]])
        full, orthogonal = (np.diff(m.predict_proba(male)[:, 1])[0] for m in (model.full_, model))
        assert abs(orthogonal) < 0.25 < abs(full)

    @pytest.mark.parametrize("method", ["mixture", "score"])
    def test_a_fitted_attribute_model_with_its_own_order(self, rows, method):
        attribute = LogisticRegression().fit(rows.X, rows.sex)
        proxy = ProxyPrincipal(FrozenEstimator(attribute), method=method)
        proxy.fit(rows.X, rows.y, sensitive_features=rows.sex)
        assert proxy.attribute_model_.estimator is attribute
        assert proxy.predict_proba(rows.X).shape == (len(rows.y), 2)

    def test_weights_reach_the_out_of_fold_scores(self, rows):
        """Rows of weight 0 are no rows, also for the models that score the others."""
        keep = np.arange(len(rows.y)) % 5 < 2  # fewer than half: without weights the scores say the opposite
        strange = np.where(keep, rows.sex, np.where(rows.male, "f", "m"))
        options = {"method": "score", "cv": 2}
        weighted, unweighted, fewer = (ProxyPrincipal(LogisticRegression(), **options) for _ in range(3))
        weighted.fit(rows.X, rows.y, sensitive_features=strange, sample_weight=keep.astype(float))
        unweighted.fit(rows.X, rows.y, sensitive_features=strange)
        fewer.fit(rows.X[keep], rows.y[keep], sensitive_features=rows.sex[keep])
        answers = [proxy.predict_proba(rows.X) for proxy in (weighted, unweighted, fewer)]
        assert abs(answers[0] - answers[2]).max() < 0.1 < abs(answers[1] - answers[2]).max()

    def test_several_columns_and_the_default_model(self, rows):
        frame = pd.DataFrame({"sex": rows.sex, "old": rows.X[:, 2] > 0})
        proxy = ProxyPrincipal().fit(rows.X, rows.y, sensitive_features=frame)
        assert isinstance(proxy.attribute_model_, HistGradientBoostingClassifier)
        assert proxy.group_proba_.shape == (4, 2)

    def test_refusals(self, rows):
        with pytest.raises(ValueError, match=r"^method is 'magic': expected 'joint', 'mixture' or 'score'\.$"):
            ProxyPrincipal(method="magic").fit(rows.X, rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match="one group only, 'f'"):
            ProxyPrincipal().fit(rows.X, rows.y, sensitive_features=["f"] * len(rows.y))
        with pytest.raises(ValueError, match="ProxyPrincipal needs the groups"):
            ProxyPrincipal().fit(rows.X, rows.y)
        with pytest.raises(
            ValueError, match=r"^attribute_model is KNeighborsClassifier, whose fit takes no sample_weight"
        ):
            ProxyPrincipal(KNeighborsClassifier()).fit(
                rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.ones(len(rows.y))
            )
        other = FrozenEstimator(LogisticRegression().fit(rows.X, rows.male))
        with pytest.raises(ValueError, match=r"attribute_model has the classes .*: fit it on the same groups"):
            ProxyPrincipal(other).fit(rows.X, rows.y, sensitive_features=rows.sex)


@pytest.mark.parametrize("method", ["joint", "score"])
def test_of_many_rows_others_than_those_of_the_attribute_model_are_scored(method, rows):
    every, part = (
        ProxyPrincipal(LogisticRegression(), method=method, max_rows=most).fit(
            rows.X, rows.y, sensitive_features=rows.sex
        )
        for most in (None, 1500)
    )
    # half of the rows give the same up to noise
    np.testing.assert_allclose(part.predict_proba(rows.X), every.predict_proba(rows.X), atol=0.1)
    full = LogisticRegression().fit(rows.X, rows.y).predict_proba(rows.X)
    if method == "joint":
        ratios = [proxy.group_features(full, rows.X) for proxy in (part, every)]
        np.testing.assert_allclose(ratios[0], ratios[1], atol=0.05)


def test_a_continuous_column_is_cut_into_5_groups(rows):
    for principal in (ProxyPrincipal(LogisticRegression(), method="mixture"), GroupPrincipal()):
        principal.fit(rows.X, rows.y, sensitive_features=rows.X[:, 2])
        assert len(principal.groups_.labels) == 5


def test_float32_columns_fall_into_the_bins_they_made():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40).astype(np.float32)
    for seed in range(20):
        y = np.random.default_rng(seed).integers(0, 2, 40)
        principal = GroupPrincipal().fit(None, y, sensitive_features=values)
        counts = np.bincount(principal.groups_.codes(values), minlength=len(principal.groups_.labels))
        assert (counts > 0).all()


def test_a_proxy_does_not_see_the_columns_it_stands_for(rows):
    frame = pd.DataFrame({"score": rows.X[:, 0], "sex": rows.male.astype(int), "noise": rows.X[:, 2]})
    model = OrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression()), sensitive_columns=["sex"])
    model.fit(frame, rows.y)
    assert model.principals_[0].attribute_model_.feature_names_in_.tolist() == ["score", "noise"]
    flipped = frame.assign(sex=1 - frame["sex"])
    principal = model._parts(frame, None)[1][0]
    np.testing.assert_array_equal(principal, model._parts(flipped, None)[1][0])


@pytest.mark.parametrize(
    ("change", "y", "message"),
    [
        ({}, [1, 1], r"^y has one class only, 1: expected two or more\.$"),
        ({}, [], r"^y has no rows: expected at least one of each class in each group\.$"),
        ({"smoothing": -1}, [0, 1], r"^smoothing is -1: expected a finite number of rows >= 0\.$"),
        ({"smoothing": np.inf}, [0, 1], "^smoothing is inf: expected a finite number"),
        ({"n_bins": 1}, [0, 1], r"^n_bins is 1: expected at least 2, or there is one group and no principal\.$"),
    ],
)
def test_what_a_group_principal_refuses_and_expects(change, y, message):
    with pytest.raises(ValueError, match=message):
        GroupPrincipal(**change).fit(None, y, sensitive_features=["a", "b"][: len(y)])


def test_the_ratios_of_groups_and_labels_are_1_on_average():
    rng = np.random.default_rng(0)
    group, y = rng.random(4000) < 0.3, rng.random(4000) < 0.2
    rows = np.column_stack([group, y, group & y]) + rng.normal(size=(4000, 3))
    full = LogisticRegression().fit(rows, y).predict_proba(rows)
    proxy = ProxyPrincipal(LogisticRegression()).fit(rows, y, sensitive_features=group)
    ratios = proxy.group_features(full, rows)
    assert ratios.shape == (4000, 4)
    np.testing.assert_allclose(ratios.mean(axis=0), 1, atol=0.05)
    # of rows in the pair itself: y = 0, then y = 1, each with the groups in order
    pairs = [(y == label) & (group == member) for label in (False, True) for member in (False, True)]
    assert all(ratios[inside, k].mean() > 1.1 for k, inside in enumerate(pairs))
    # both at once, with one prediction of the attribute model
    asked, predict = [], proxy.attribute_model_.predict_proba
    proxy.attribute_model_.predict_proba = lambda X: asked.append(len(X)) or predict(X)
    proba, again = proxy.predict_with_features(full, rows)
    assert asked == [4000]
    np.testing.assert_array_equal(again, ratios)
    np.testing.assert_array_equal(proba, proxy.predict_proba(rows))


def test_of_many_rows_a_part_trains_with_enough_of_a_rare_group():
    rng = np.random.default_rng(0)
    group = np.arange(2000) < 30
    rows = np.column_stack([np.arange(2000), rng.normal(size=2000)])
    y = rng.integers(0, 2, 2000)
    proxy = ProxyPrincipal(KNeighborsClassifier(), max_rows=200).fit(rows, y, sensitive_features=group)
    seen = proxy.attribute_model_._fit_X[:, 0]
    assert len(np.unique(seen)) == len(seen) == 197 + 15, "a tenth of the others, and half of the rare ones"
    assert (seen < 30).sum() == 15
    for most in ({}, {"max_rows": 2000}, {"max_rows": None}):
        every = ProxyPrincipal(KNeighborsClassifier(), **most).fit(rows, y, sensitive_features=group)
        assert len(every.attribute_model_._fit_X) == 2000


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 600)
    jobs = np.where(rng.random(600) < 0.9, np.where(sex == "m", "miner", "nurse"), "clerk").astype(object)
    jobs[rng.random(600) < 0.05] = None
    columns = {"age": rng.integers(18, 70, 600), "job": jobs, "member": rng.random(600) < 0.5}
    return columns, sex, (rng.random(600) < 0.3 + 0.4 * (sex == "m")).astype(int)


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table({k: [*v] for k, v in columns.items()})]
)
def test_text_with_missing_and_unseen_values(people, kind):
    columns, sex, _ = people
    model = default_classifier(kind(columns)).fit(kind(columns), sex)
    new = {"age": np.array([30, 30, 30, 30]), "job": np.array(["miner", "nurse", "pilot", None], dtype=object)}
    proba = model.predict_proba(kind({**new, "member": np.array([True] * 4)}))[:, 1]
    assert proba[0] > 0.9 and proba[1] < 0.1
    assert np.isfinite(proba).all(), "also for an unseen word and a missing one"
    assert model[-1].is_categorical_[0]


def test_many_levels_are_no_obstacle():
    names = pd.DataFrame({"name": [f"name {i}" for i in range(700)] * 2})
    assert default_classifier(names).fit(names, np.arange(1400) % 2).predict(names).shape == (1400,)


@pytest.mark.parametrize("categorical", [False, True])
def test_the_default_proxy_handles_the_text_columns_of_a_frame_and_can_be_saved(people, tmp_path, categorical):
    columns, sex, y = people
    frame = pd.DataFrame(columns).astype({"job": "category"} if categorical else {})
    proxy = ProxyPrincipal().fit(frame, y, sensitive_features=sex)
    # the job tells the sex, and so the rate of y
    assert np.ptp(proxy.predict_proba(frame)[:, 1]) > 0.2
    again = setminus.load(setminus.save(proxy, tmp_path / "proxy.skops"))
    np.testing.assert_array_equal(again.predict_proba(frame), proxy.predict_proba(frame))
    numbers = frame[["age"]]
    model = OrthogonalClassifier(LogisticRegression(), ProxyPrincipal()).fit(numbers, y, sensitive_features=sex)
    assert model.predict(numbers).shape == (600,)


def test_a_principal_predicts_the_most_probable_class_and_needs_a_group_for_each_row():
    group, y = np.repeat(["f", "m"], 50), np.repeat(["no", "yes", "no", "yes"], [40, 10, 5, 45])
    principal = GroupPrincipal().fit(np.zeros((100, 1)), y, sensitive_features=group)
    assert principal.predict(np.zeros((3, 1)), sensitive_features=["m", "f", "m"]).tolist() == ["yes", "no", "yes"]
    with pytest.raises(ValueError, match="sensitive_features has 99 rows, y has 100: expected one group for each row"):
        GroupPrincipal().fit(np.zeros((100, 1)), y, sensitive_features=group[:99])


def test_weights_reach_what_a_proxy_learns_of_group_and_label():
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    rows = rng.normal(size=(600, 2)) + group[:, None]
    times = np.where((group == 1) & (y == 1), 5, 1)
    known = FrozenEstimator(LogisticRegression().fit(rows, group))
    full = LogisticRegression().fit(rows, y).predict_proba(rows)
    weighted, repeated, plain = (
        ProxyPrincipal(known)
        .fit(rows[which], y[which], sensitive_features=group[which], sample_weight=weights)
        .group_features(full, rows)
        for which, weights in (
            (np.arange(600), times.astype(float)),
            (np.repeat(np.arange(600), times), None),
            (np.arange(600), None),
        )
    )
    # the smoothed p(y | u) counts rows
    np.testing.assert_allclose(weighted, repeated, rtol=0.02)
    assert abs(weighted / plain - 1).max() > 0.1
