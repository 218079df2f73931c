import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from setminus import GroupPrincipal, OrthogonalClassifier, ProxyPrincipal, leakage, orthogonalize
from setminus.datasets.synthetic import DiscreteModel
from setminus.estimators.orthogonal import out_of_fold_parts, stratified_folds


def test_learns_the_exact_orthogonal_posterior():
    model = DiscreteModel.random(n_classes=3, n_z1=2, n_z2=4, seed=3)
    split = model.sample(200_000, seed=0)
    z1, z2 = split.z1, split.z2
    cell = np.eye(8)[z1 * 4 + z2]  # one column per value of x, so that logistic regression can be exact
    full = LogisticRegression(C=1e6, max_iter=500)
    fitted = OrthogonalClassifier(full).fit(cell, split.y, sensitive_features=z1)
    exact = model.orthogonal(z2)
    found = fitted.predict_proba(cell, sensitive_features=z1)
    assert abs(found - exact).max() < 0.03 < abs(fitted.full_.predict_proba(cell) - exact).max()


def test_the_group_no_longer_leaks(rows):
    model = OrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
    orthogonal = model.predict_proba(rows.X, sensitive_features=rows.sex)
    full = model.full_.predict_proba(rows.X)
    ours, theirs = (leakage(rows.y, proba, sensitive_features=rows.sex).bits for proba in (orthogonal, full))
    assert ours < 0.02 < theirs


def test_predict_proba_is_the_formula(rows):
    model = OrthogonalClassifier(LogisticRegression(), GroupPrincipal(), strength=0.6)
    model.fit(rows.X, rows.y, sensitive_features=rows.sex)
    principal = GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex)
    expected = orthogonalize(
        LogisticRegression().fit(rows.X, rows.y).predict_proba(rows.X),
        principal.predict_proba(None, sensitive_features=rows.sex),
        np.bincount(rows.y) / len(rows.y),
        strength=0.6,
    )
    np.testing.assert_allclose(model.predict_proba(rows.X, sensitive_features=rows.sex), expected, atol=1e-12)


def test_strength_zero_is_the_full_classifier(rows):
    model = OrthogonalClassifier(LogisticRegression(), strength=0).fit(rows.X, rows.y, sensitive_features=rows.sex)
    np.testing.assert_allclose(
        model.predict_proba(rows.X, sensitive_features=rows.sex), model.full_.predict_proba(rows.X), atol=1e-12
    )


def test_a_fitted_model_is_taken_as_it_is(rows):
    full, principal = LogisticRegression().fit(rows.X, rows.y), LogisticRegression().fit(rows.X[:, :1], rows.y)
    model = OrthogonalClassifier(FrozenEstimator(full), FrozenEstimator(principal), principal_columns=[0])
    model.fit(rows.X[:100], rows.y[:100])
    assert model.full_.estimator is full
    prior = np.bincount(rows.y[:100]) / 100
    expected = orthogonalize(full.predict_proba(rows.X), principal.predict_proba(rows.X[:, :1]), prior)
    np.testing.assert_allclose(model.predict_proba(rows.X), expected, atol=1e-12)


def test_several_principals_are_subtracted_one_by_one(rows):
    principals = [GroupPrincipal(), LogisticRegression(C=0.01)]
    both = OrthogonalClassifier(LogisticRegression(), principals).fit(rows.X, rows.y, sensitive_features=rows.sex)
    proba = both.full_.predict_proba(rows.X)
    for part in (
        both.principals_[0].predict_proba(rows.X, sensitive_features=rows.sex),
        both.principals_[1].predict_proba(rows.X),
    ):
        proba = orthogonalize(proba, part, both.class_prior_)
    np.testing.assert_allclose(both.predict_proba(rows.X, sensitive_features=rows.sex), proba, atol=1e-12)
    assert isinstance(clone(both).principal[0], GroupPrincipal)


class ColumnsByGroup(ClassifierMixin, BaseEstimator):
    """A model for each group, which needs the groups and the columns to predict."""

    def fit(self, X, y, sensitive_features):
        self.classes_ = np.unique(y)
        self.models_ = {
            group: LogisticRegression().fit(X[sensitive_features == group], y[sensitive_features == group])
            for group in np.unique(sensitive_features)
        }
        return self

    def predict_proba(self, X, sensitive_features):
        proba = np.empty((len(X), len(self.classes_)))
        for group, model in self.models_.items():
            proba[sensitive_features == group] = model.predict_proba(X[sensitive_features == group])
        return proba


def test_a_principal_may_need_both_columns_and_groups(rows):
    model = OrthogonalClassifier(LogisticRegression(), ColumnsByGroup(), principal_columns=[0, 2])
    model.fit(rows.X, rows.y, sensitive_features=rows.sex)
    principal = ColumnsByGroup().fit(rows.X[:, [0, 2]], rows.y, rows.sex).predict_proba(rows.X[:, [0, 2]], rows.sex)
    expected = orthogonalize(model.full_.predict_proba(rows.X), principal, model.class_prior_)
    np.testing.assert_allclose(model.predict_proba(rows.X, sensitive_features=rows.sex), expected, atol=1e-12)


def test_principal_columns_default_to_a_clone_of_full(rows):
    model = OrthogonalClassifier(LogisticRegression(C=0.5), principal_columns=[1]).fit(rows.X, rows.y)
    assert model.principals_[0].C == 0.5
    assert model.principals_[0].n_features_in_ == 1
    with pytest.raises(ValueError, match="full is frozen: pass principal="):
        OrthogonalClassifier(FrozenEstimator(model.full_), principal_columns=[1]).fit(rows.X, rows.y)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3.0, 7.0], [-1, 1]])
def test_classes_of_any_dtype(rows, labels):
    y = np.array(labels)[rows.y]
    model = OrthogonalClassifier(LogisticRegression()).fit(rows.X, y, sensitive_features=rows.sex)
    assert model.classes_.dtype == y.dtype
    assert set(model.predict(rows.X, sensitive_features=rows.sex)) <= set(labels)
    assert model.score(rows.X, y, sensitive_features=rows.sex) > 0.6


def test_many_classes(many):
    model = OrthogonalClassifier(LogisticRegression()).fit(many.X, many.y, sensitive_features=many.sex)
    proba = model.predict_proba(many.X, sensitive_features=many.sex)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert proba.shape[1] == 3
    log_proba = model.predict_log_proba(many.X, sensitive_features=many.sex)
    np.testing.assert_allclose(np.exp(log_proba), proba)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", "temperature"])
def test_calibration_wraps_full_and_fitted_principals_but_not_counts(rows, calibration):
    principals = [GroupPrincipal(), LogisticRegression()]
    model = OrthogonalClassifier(LogisticRegression(), principals, calibration=calibration, on_violation="clip")
    model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.ones(len(rows.y)))
    assert isinstance(model.full_, CalibratedClassifierCV)
    assert isinstance(model.principals_[0], GroupPrincipal)
    assert isinstance(model.principals_[1], CalibratedClassifierCV)
    with sklearn.config_context(enable_metadata_routing=True):
        clone(model).fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.ones(len(rows.y)))


@pytest.mark.parametrize("prior", [[0.3, 0.7], np.array([0.9, 0.1], dtype=np.float32), "uniform"])
def test_an_explicit_prior_is_the_one_of_the_formula(rows, prior):
    model = OrthogonalClassifier(LogisticRegression(), prior=prior).fit(rows.X, rows.y, sensitive_features=rows.sex)
    frequencies = np.array([0.5, 0.5] if isinstance(prior, str) else prior, dtype=np.float64)
    assert model.class_prior_.dtype == np.float64
    np.testing.assert_array_equal(model.class_prior_, frequencies)
    full = model.full_.predict_proba(rows.X)
    principal = model.principals_[0].predict_proba(None, sensitive_features=rows.sex)
    found = model.predict_proba(rows.X, sensitive_features=rows.sex)
    np.testing.assert_allclose(found, orthogonalize(full, principal, frequencies), atol=1e-12)
    counted = orthogonalize(full, principal, np.bincount(rows.y) / len(rows.y))
    assert abs(found - counted).max() > 0.03


class TestWeights:
    def test_reach_both_fits(self, rows):
        weight = np.where(rows.y == 1, 5.0, 1.0)
        pipe = make_pipeline(StandardScaler(), LogisticRegression())
        model = OrthogonalClassifier(pipe).fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
        plain = OrthogonalClassifier(pipe).fit(rows.X, rows.y, sensitive_features=rows.sex)
        assert model.class_prior_[1] > plain.class_prior_[1] + 0.1
        assert (model.principals_[0].group_proba_[:, 1] > plain.principals_[0].group_proba_[:, 1]).all()
        assert model.full_[-1].intercept_ > plain.full_[-1].intercept_ + 0.5

    def test_of_zero_are_rows_that_are_not_there(self, rows):
        keep = np.arange(len(rows.y)) % 2 == 0
        weighted = OrthogonalClassifier(LogisticRegression(tol=1e-10)).fit(
            rows.X, rows.y, sensitive_features=rows.sex, sample_weight=keep.astype(float)
        )
        fewer = clone(weighted).fit(rows.X[keep], rows.y[keep], sensitive_features=rows.sex[keep])
        np.testing.assert_allclose(
            weighted.predict_proba(rows.X, sensitive_features=rows.sex),
            fewer.predict_proba(rows.X, sensitive_features=rows.sex),
            atol=1e-5,
        )

    def test_are_refused_where_they_would_be_ignored(self, rows):
        with pytest.raises(
            ValueError, match="full is KNeighborsClassifier, whose fit takes no sample_weight: leave the weights away"
        ):
            OrthogonalClassifier(KNeighborsClassifier()).fit(
                rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.ones(len(rows.y))
            )

    @pytest.mark.parametrize("routing", [False, True])
    @pytest.mark.parametrize("calibration", [None, "sigmoid"])
    @pytest.mark.parametrize("pipe", [False, True])
    def test_reach_the_model_through_calibration_and_routing(self, rows, routing, calibration, pipe):
        def intercept(model):
            part = model.full_.calibrated_classifiers_[0].estimator if calibration else model.full_
            return float((part[-1] if pipe else part).intercept_[0])

        weight = np.where(rows.y == 1, 5.0, 1.0)
        logistic = LogisticRegression()
        full = make_pipeline(StandardScaler(), logistic) if pipe else logistic
        model = OrthogonalClassifier(full, calibration=calibration)
        with sklearn.config_context(enable_metadata_routing=routing):
            plain = clone(model).fit(rows.X, rows.y, sensitive_features=rows.sex)
            if pipe and calibration and not routing:
                with pytest.raises(
                    ValueError,
                    match=r"full is a calibrated Pipeline, .* get no weights .*: calibrate its last step .* or leave",
                ):
                    model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
                return
            model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
        assert intercept(model) > intercept(plain) + 1

    def test_of_a_calibrated_frozen_model_reach_the_calibration(self, rows):
        weight = np.where(rows.y == 1, 5.0, 1.0)
        frozen = FrozenEstimator(LogisticRegression().fit(rows.X, rows.y))
        with sklearn.config_context(enable_metadata_routing=True):
            model = OrthogonalClassifier(frozen, calibration="sigmoid").fit(
                rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight
            )
        proba = model.full_.predict_proba(rows.X)[:, 1]
        assert proba.mean() == pytest.approx(np.average(rows.y, weights=weight), abs=0.1)
        assert proba.mean() > rows.y.mean() + 0.1

    def test_that_a_calibrated_model_cannot_take_are_refused(self, rows):
        with pytest.raises(ValueError, match="full is KNeighborsClassifier, whose fit takes no sample_weight"):
            OrthogonalClassifier(KNeighborsClassifier(), calibration="sigmoid").fit(
                rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.ones(len(rows.y))
            )

    @pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
    def test_that_are_no_weights(self, rows, wrong):
        weight = np.where(np.arange(len(rows.y)) < 50, wrong, 1.0)
        for model in (OrthogonalClassifier(LogisticRegression()), GroupPrincipal()):
            with pytest.raises(ValueError, match="sample_weight has negative, infinite or missing values"):
                model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)

    def test_of_zero_for_a_whole_group_or_class(self, rows):
        for gone in (rows.male, rows.male & (rows.y == 1)):
            with pytest.raises(ValueError, match="group 'm' has 0 rows of weight above 0 of class"):
                OrthogonalClassifier(LogisticRegression(), GroupPrincipal(smoothing=0)).fit(
                    rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.where(gone, 0.0, 1.0)
                )


class TestSelection:
    def test_sensitive_columns_work_in_any_cross_validation(self, rows):
        model = OrthogonalClassifier(LogisticRegression(), sensitive_columns=[1])
        assert cross_val_score(model, rows.X, rows.y, scoring="roc_auc").min() > 0.6
        grid = {"strength": [0.5, 1.0], "full__C": [0.1, 1.0], "calibration": [None, "sigmoid"]}
        search = GridSearchCV(model, grid, cv=2).fit(rows.X, rows.y)
        assert set(search.best_params_) == set(grid)

    def test_keyword_is_routed_to_fit_and_score(self, rows):
        with sklearn.config_context(enable_metadata_routing=True):
            model = OrthogonalClassifier(LogisticRegression())
            model.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=True)
            scores = cross_validate(model, rows.X, rows.y, params={"sensitive_features": rows.sex}, cv=3)
        direct = cross_val_score(
            OrthogonalClassifier(LogisticRegression(), sensitive_columns=[1]), rows.X, rows.y, cv=3
        )
        np.testing.assert_allclose(scores["test_score"], direct)

    def test_elsewhere_the_error_names_sensitive_columns(self, rows):
        with pytest.raises(ValueError, match="sensitive_columns"):
            OrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y)
        fitted = OrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match=r"needs the groups at predict time.*sensitive_columns.*ProxyPrincipal"):
            fitted.predict(rows.X)


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"strength": -1}, "strength is -1"),
            ({"prior": "bayes"}, "prior is 'bayes': expected 'empirical', 'uniform', or 2 positive"),
            ({"prior": [0.5, 0.6]}, "that sum to 1"),
            ({"prior": [np.nan, np.nan]}, "2 positive class frequencies"),
            ({"prior": [1.5, -0.5]}, "2 positive class frequencies"),
            ({"prior": [0.2, 0.3, 0.5]}, "2 positive class frequencies"),
            ({"prior": ["a", "b"]}, "2 positive class frequencies"),
            ({"principal": []}, r"principal is an empty list: expected a classifier, or several, to take out\.$"),
            ({"calibration": "platt"}, "calibration is 'platt'"),
            ({"on_violation": "ignore"}, "on_violation is 'ignore'"),
            ({"sensitive_columns": [1]}, r"the groups came twice, .*: use one of them\.$"),
            ({"principal_columns": ["age"]}, "names the column 'age', but X has no column names"),
            ({"principal_columns": [7]}, "names column 7, but X has 3 columns"),
            ({"principal_columns": []}, "expected a list of column names"),
        ],
    )
    def test_parameters(self, rows, change, message):
        with pytest.raises(ValueError, match=message):
            OrthogonalClassifier(LogisticRegression(), **change).fit(rows.X, rows.y, sensitive_features=rows.sex)

    def test_rows(self, rows):
        model = OrthogonalClassifier(LogisticRegression())
        with pytest.raises(ValueError, match=r"one class only, 1: a classifier needs two or more classes\.$"):
            model.fit(rows.X, np.ones_like(rows.y), sensitive_features=rows.sex)
        with pytest.raises(ValueError, match="sensitive_features has 5 rows, y has 3000"):
            model.fit(rows.X, rows.y, sensitive_features=rows.sex[:5])
        with pytest.raises(ValueError, match="X has 3000 rows, y has 5"):
            model.fit(rows.X, rows.y[:5], sensitive_features=rows.sex)
        only = np.where(rows.y == 0, rows.sex, "m")
        with pytest.raises(ValueError, match="group 'f' has 0 rows of class 1 among its"):
            model.set_params(principal=GroupPrincipal(smoothing=0)).fit(rows.X, rows.y, sensitive_features=only)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (lambda y: [1 if one else "a" for one in y], "y mixes int, str: use one type of label"),
            (lambda y: np.array([1 if one else "a" for one in y], dtype=object), "y mixes int, str"),
            (lambda y: ["b" if one else float("nan") for one in y], "y has missing values"),
            (lambda y: ["b" if one else None for one in y], "y mixes NoneType, str"),
            (lambda y: [2**64 + int(one) for one in y], "Unknown label type int in y.*numbers of at most 64 bits"),
            (lambda y: np.ma.masked_array(y, mask=y == 1), "y is a masked array with .* hidden values"),
            (lambda y: y + 0.5, "Unknown label type: continuous"),
        ],
    )
    def test_labels(self, rows, labels, message):
        with pytest.raises(ValueError, match=message):
            OrthogonalClassifier(LogisticRegression()).fit(rows.X, labels(rows.y), sensitive_features=rows.sex)

    def test_large_labels_stay_apart(self, rows):
        model = OrthogonalClassifier(LogisticRegression())
        model.fit(rows.X, [2**53 + int(one) for one in rows.y], sensitive_features=rows.sex)
        assert model.classes_.tolist() == [2**53, 2**53 + 1]

    def test_masked_rows(self, rows):
        model = OrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
        hidden = np.ma.masked_array(rows.X, mask=rows.X > 1)
        for call in (
            lambda: clone(model).fit(hidden, rows.y, sensitive_features=rows.sex),
            lambda: model._parts(hidden, rows.sex),
        ):
            with pytest.raises(ValueError, match="X is a masked array with"):
                call()
        group = np.ma.masked_array(rows.sex, mask=np.arange(len(rows.y)) < 5)
        with pytest.raises(ValueError, match="sensitive_features is a masked array with 5 hidden values"):
            model.predict(rows.X, sensitive_features=group)
        # nothing hidden, nothing refused
        model.predict(np.ma.masked_array(rows.X), sensitive_features=np.ma.masked_array(rows.sex))

    def test_a_frozen_model_of_other_classes(self, rows):
        frozen = FrozenEstimator(LogisticRegression().fit(rows.X, rows.y))
        for labels in (rows.y * 2, rows.y * 5, np.where(rows.y == 1, "b", "a")):
            with pytest.raises(
                ValueError,
                match=r"the frozen full classifier has the classes \[0, 1\]: pass labels of these classes, and",
            ):
                OrthogonalClassifier(frozen, frozen, prior="uniform").fit(rows.X, labels)

    def test_a_class_that_the_frozen_model_has_and_y_lacks(self, many):
        frozen = FrozenEstimator(LogisticRegression().fit(many.X, many.y))
        some = many.y != 1
        with pytest.raises(ValueError, match=r"counts y, where class \[1\] does not occur: pass rows of every class"):
            OrthogonalClassifier(frozen, frozen).fit(many.X[some], many.y[some])

    def test_weights_reach_the_last_step_of_a_long_pipeline(self, rows):
        weight = np.random.default_rng(0).uniform(0.1, 3, size=len(rows.y))
        long = make_pipeline(StandardScaler(), StandardScaler(), LogisticRegression())
        model = OrthogonalClassifier(long, GroupPrincipal())
        model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
        by_hand = clone(long).fit(rows.X, rows.y, logisticregression__sample_weight=weight)
        np.testing.assert_allclose(model.full_.predict_proba(rows.X), by_hand.predict_proba(rows.X), atol=1e-9)

    def test_a_proxy_needs_other_columns_than_those_of_the_groups(self, rows):
        model = OrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression()), sensitive_columns=[0])
        with pytest.raises(ValueError, match=r"^sensitive_columns is "):
            model.fit(rows.X[:, 1:2], rows.y)

    def test_parts(self, rows):
        with pytest.raises(
            ValueError, match=r"principal has 3 classes \[0 1 2\], full has 2 \[0 1\]: fit both on the same y\.$"
        ):
            other = LogisticRegression().fit(rows.X, np.arange(len(rows.y)) % 3)
            OrthogonalClassifier(LogisticRegression(), FrozenEstimator(other)).fit(rows.X, rows.y)
        with pytest.raises(TypeError, match="has no predict_proba"):
            OrthogonalClassifier(SGDClassifier(), DummyClassifier()).fit(rows.X, rows.y)
        with pytest.raises(TypeError, match="expected a scikit-learn classifier"):
            OrthogonalClassifier("logistic", DummyClassifier()).fit(rows.X, rows.y)
        with pytest.raises(ValueError, match="does not occur"):
            full = LogisticRegression().fit(rows.X, np.arange(len(rows.y)) % 3)
            OrthogonalClassifier(FrozenEstimator(full), DummyClassifier()).fit(rows.X, rows.y)

    def test_a_principal_that_says_zero(self, rows):
        tree = DecisionTreeClassifier(random_state=0)
        with pytest.raises(ValueError, match="no overlap"):
            OrthogonalClassifier(LogisticRegression(), tree).fit(rows.X, rows.y).predict(rows.X)
        clipped = OrthogonalClassifier(LogisticRegression(), tree, on_violation="clip").fit(rows.X, rows.y)
        assert np.isfinite(clipped.predict_proba(rows.X)).all()


class TestFrames:
    @pytest.fixture
    def table(self, rows):
        return {"score": rows.X[:, 0], "sex": rows.X[:, 1], "noise": rows.X[:, 2]}

    @pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
    def test_columns_by_name_and_the_same_numbers(self, rows, table, kind):
        frames = {"pandas": pd.DataFrame}
        if kind == "polars":
            frames["polars"] = pytest.importorskip("polars").DataFrame
        if kind == "pyarrow":
            frames["pyarrow"] = pytest.importorskip("pyarrow").table
        frame = frames[kind](table)
        model = OrthogonalClassifier(LogisticRegression(), sensitive_columns=["sex"]).fit(frame, rows.y)
        assert model.feature_names_in_.tolist() == list(table)
        plain = OrthogonalClassifier(LogisticRegression(), sensitive_columns=[1]).fit(rows.X, rows.y)
        np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(rows.X))
        by_column = OrthogonalClassifier(LogisticRegression(), principal_columns=["sex", "noise"]).fit(frame, rows.y)
        assert by_column.principals_[0].n_features_in_ == 2

    def test_a_missing_column_suggests_the_nearest(self, rows, table):
        with pytest.raises(ValueError, match=r"'sx', which X does not have: did you mean 'sex'"):
            OrthogonalClassifier(LogisticRegression(), sensitive_columns=["sx"]).fit(pd.DataFrame(table), rows.y)

    def test_missing_values_are_the_full_classifiers_business(self, rows):
        X = rows.X.copy()
        X[::7, 0] = np.nan
        model = OrthogonalClassifier(HistGradientBoostingClassifier(max_iter=5), sensitive_columns=[1]).fit(X, rows.y)
        assert np.isfinite(model.predict_proba(X)).all()

    def test_inside_a_pipeline_with_pandas_output(self, rows, table):
        scaler = StandardScaler().set_output(transform="pandas")
        proxy = ProxyPrincipal(LogisticRegression())
        pipe = make_pipeline(scaler, OrthogonalClassifier(LogisticRegression(), proxy))
        pipe.fit(pd.DataFrame(table), rows.y, orthogonalclassifier__sensitive_features=rows.sex)
        assert pipe[-1].feature_names_in_.tolist() == list(table)
        assert pipe.predict(pd.DataFrame(table)).shape == rows.y.shape


@pytest.mark.parametrize("cv", [2, 5, 7])
def test_strata_are_spread_evenly(cv):
    rng = np.random.default_rng(0)
    group, y = rng.integers(3, size=200), rng.integers(2, size=200)
    folds = stratified_folds(cv, None, y, (group, y), seed=0)
    assert len(folds) == cv
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(200))
    tests = [test for _, test in folds]
    assert sorted(np.concatenate(tests)) == list(range(200))
    assert {len(test) for test in tests} <= {200 // cv, 200 // cv + 1}
    for g in range(3):
        for label in range(2):
            counts = [int(((group[test] == g) & (y[test] == label)).sum()) for test in tests]
            assert max(counts) - min(counts) <= 1


def test_rows_of_a_stratum_are_dealt_at_random():
    y = np.zeros(60, dtype=int)
    first, again, other = (stratified_folds(3, None, y, (y,), seed=seed)[0][1].tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert first != list(range(0, 60, 3))


def test_a_splitter_is_used_as_it_is():
    y = np.arange(10) % 2
    folds = stratified_folds(KFold(5), np.zeros((10, 1)), y, (y,), seed=0)
    assert [test.tolist() for _, test in folds] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    own = [(np.arange(5), np.arange(5, 10))]
    assert [test.tolist() for _, test in stratified_folds(own, np.zeros((10, 1)), y, (y,), seed=0)] == [[5, 6, 7, 8, 9]]


def test_folds_from_two_to_a_row_each():
    y = np.arange(6) % 2
    assert len(stratified_folds(6, None, y, (y,), seed=0)) == 6
    for cv in (1, 7, 0):
        with pytest.raises(ValueError, match=f"cv is {cv} with 6 rows: expected at least 2 folds, and a row for each"):
            stratified_folds(cv, None, y, (y,), seed=0)


def test_parts_are_those_of_models_fitted_by_hand(rows):
    n = 300
    X, y, group = rows.X[:n], rows.y[:n], rows.sex[:n]
    weight = np.random.default_rng(0).uniform(0.5, 2, size=n)
    folds = stratified_folds(3, X, y, (y,), seed=0)
    model = OrthogonalClassifier(LogisticRegression())
    for sample_weight in (None, weight):
        for (train, test), (full, (principal,), prior, features) in zip(
            folds, out_of_fold_parts(model, X, y, group, sample_weight, folds, None), strict=True
        ):
            used = None if sample_weight is None else sample_weight[train]
            by_hand = LogisticRegression().fit(X[train], y[train], sample_weight=used)
            np.testing.assert_allclose(full, by_hand.predict_proba(X[test]), atol=1e-9)
            np.testing.assert_allclose(prior[1], np.average(y[train], weights=used))
            assert principal.shape == (len(test), 2)
            assert features.tolist() == [[sex == "f", sex == "m"] for sex in group[test]]
            # the principal knows the group and nothing else
            assert len(np.unique(principal[group[test] == "f"], axis=0)) == 1


class Certain(ClassifierMixin, BaseEstimator):
    """Decides by the sign of the first column, with probabilities of 0 and 1."""

    def fit(self, X, y):
        self.classes_ = np.arange(2)
        return self

    def predict_proba(self, X):
        return np.eye(2)[(np.asarray(X)[:, 0] > 0).astype(int)]


def test_the_logarithm_of_0_is_minus_infinity_without_a_warning(rows):
    model = OrthogonalClassifier(Certain()).fit(rows.X, rows.y, sensitive_features=rows.sex)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log_proba = model.predict_log_proba(rows.X, sensitive_features=rows.sex)
    np.testing.assert_array_equal(log_proba == 0, Certain().predict_proba(rows.X) == 1)
    np.testing.assert_array_equal(np.isneginf(log_proba), Certain().predict_proba(rows.X) == 0)
