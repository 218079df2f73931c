import matplotlib as mpl
import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, make_scorer, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, cross_validate

from setminus import (
    GroupPrincipal,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
    demographic_parity_gap,
    equal_opportunity_gap,
    equalized_odds_gap,
)
from setminus.estimators.folds import stratified_folds
from setminus.estimators.frontier import Frontier
from setminus.estimators.search import decide

mpl.use("Agg")
GAPS = {
    "equalized_odds": equalized_odds_gap,
    "demographic_parity": demographic_parity_gap,
    "equal_opportunity": equal_opportunity_gap,
}


def tuned(rows, **change):
    model = TunedOrthogonalClassifier(LogisticRegression(), GroupPrincipal(), **change)
    return model.fit(rows.X, rows.y, sensitive_features=rows.sex)


@pytest.fixture(scope="module")
def fitted(rows):
    return tuned(rows)


@pytest.mark.parametrize("constraint", GAPS)
def test_keeps_the_constraint_that_the_full_classifier_breaks(rows, constraint):
    model = tuned(rows, constraint=constraint, tolerance=0.05)

    def gap(prediction):
        return GAPS[constraint](rows.y, prediction, sensitive_features=rows.sex)

    assert gap(model.predict(rows.X, sensitive_features=rows.sex)) < 0.09 < gap(model.model_.full_.predict(rows.X))
    assert model.frontier_.gap[model.frontier_.chosen] <= 0.05
    assert model.score(rows.X, rows.y, sensitive_features=rows.sex) > max(np.bincount(rows.y)) / len(rows.y)


def test_every_point_of_the_frontier_is_what_it_says(rows, fitted):
    """Counted in one pass, checked against the metrics on the predictions themselves."""
    strata = np.unique(rows.sex, return_inverse=True)[1], rows.y
    folds = stratified_folds(5, rows.X, rows.y, strata, seed=0)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(rows.y)))
    proba = {}
    for point in [0, 17, len(fitted.frontier_) // 2, fitted.frontier_.chosen, len(fitted.frontier_) - 1]:
        strength = fitted.frontier_.strength[point]
        prediction = np.empty_like(rows.y)
        for k, (train, test) in enumerate(folds):
            part = proba.setdefault(
                (strength, k),
                sklearn.clone(fitted.model_)
                .set_params(strength=strength)
                .fit(rows.X[train], rows.y[train], sensitive_features=rows.sex[train]),
            )
            log_proba = part.predict_log_proba(rows.X[test], sensitive_features=rows.sex[test])
            prediction[test] = decide(log_proba, fitted.frontier_.offsets[point])
        assert fitted.frontier_.score[point] == pytest.approx(np.mean(prediction == rows.y))
        assert fitted.frontier_.gap[point] == pytest.approx(
            equalized_odds_gap(rows.y, prediction, sensitive_features=rows.sex)
        )


def test_deterministic_and_a_function_of_the_row(rows, fitted):
    again = tuned(rows)
    np.testing.assert_array_equal(again.frontier_.score, fitted.frontier_.score)
    assert (again.strength_, again.threshold_) == (fitted.strength_, fitted.threshold_)
    backwards = fitted.predict(rows.X[::-1], sensitive_features=rows.sex[::-1])[::-1]
    np.testing.assert_array_equal(backwards, fitted.predict(rows.X, sensitive_features=rows.sex))
    parallel = tuned(rows, n_jobs=2)
    np.testing.assert_array_equal(parallel.frontier_.score, fitted.frontier_.score)


def test_threshold_and_offsets_say_the_same(rows, fitted):
    proba = fitted.predict_proba(rows.X, sensitive_features=rows.sex)[:, 1]
    np.testing.assert_array_equal(
        fitted.predict(rows.X, sensitive_features=rows.sex), (proba >= fitted.threshold_).astype(int)
    )


def test_another_point_without_refitting(rows, fitted):
    tight, loose = fitted.at(tolerance=0.02), fitted.at(tolerance=1.0)
    assert tight.model_.full_ is fitted.model_.full_
    assert tight.frontier_.gap[tight.frontier_.chosen] <= 0.02
    assert loose.frontier_.score[loose.frontier_.chosen] == fitted.frontier_.score.max()
    assert fitted.at(index=3).frontier_.chosen == 3
    assert fitted.strength_ == fitted.model_.strength != loose.model_.strength
    with pytest.raises(ValueError, match="either tolerance= or index="):
        fitted.at()
    with pytest.raises(ValueError, match="index is 99999999"):
        fitted.at(index=99999999)


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
@pytest.mark.parametrize("data", ["rows", "many"])
def test_a_score_of_probabilities_chooses_the_strength_and_leaves_the_threshold(request, scoring, data):
    found = request.getfixturevalue(data)
    scoring = "roc_auc_ovr" if (scoring, data) == ("roc_auc", "many") else scoring
    model = tuned(found, scoring=scoring, strengths=[0, 0.5, 1], tolerance=1)
    assert len(model.frontier_) == 3
    assert (model.offsets_ == 0).all()
    assert len(np.unique(model.predict(found.X, sensitive_features=found.sex))) == len(model.classes_)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", make_scorer(f1_score)])
def test_any_scorer(rows, scoring):
    model = tuned(rows, scoring=scoring, strengths=[0, 0.8], tolerance=0.1)
    frontier = model.frontier_
    feasible = frontier.gap <= 0.1
    assert frontier.score[frontier.chosen] == frontier.score[feasible].max()
    assert frontier.score.max() > frontier.score.min()


def test_a_metric_of_ones_own_that_takes_no_weights(rows):
    def profit(y_true, y_pred):
        return float(np.mean(3 * (y_true & y_pred) - y_pred))

    def weighted(y_true, y_pred, sample_weight=None):
        return float(np.average(3 * (y_true & y_pred) - y_pred, weights=sample_weight))

    own, known = (
        tuned(rows, scoring=make_scorer(metric), strengths=[0, 0.8], tolerance=0.1).frontier_
        for metric in (profit, weighted)
    )
    np.testing.assert_allclose(own.score, known.score)


@pytest.mark.parametrize(("name", "metric"), [("f1", f1_score), ("balanced_accuracy", balanced_accuracy_score)])
def test_a_score_is_the_same_counted_and_asked_row_by_row(rows, monkeypatch, name, metric):
    def by_hand(estimator, X, y):
        return metric(y, estimator.predict(X))

    monkeypatch.setattr("setminus.estimators.search.THRESHOLDS", 20)
    monkeypatch.setattr("setminus.estimators.search.ASKED", 20)
    counted = tuned(rows, scoring=name, strengths=[0, 1]).frontier_
    asked = tuned(rows, scoring=by_hand, strengths=[0, 1]).frontier_
    np.testing.assert_allclose(counted.score, asked.score)
    assert len(np.unique(counted.score)) > 20


def test_many_classes_by_offsets(many):
    base = LogisticRegression().fit(many.X, many.y).predict(many.X)
    model = tuned(many, tolerance=0.1, strengths=[0, 0.5, 1.0], cv=3)
    gaps = [
        equalized_odds_gap(many.y, p, sensitive_features=many.sex)
        for p in (model.predict(many.X, sensitive_features=many.sex), base)
    ]
    assert gaps[0] < 0.15 < gaps[1]
    assert model.offsets_.shape == (3,)
    assert not hasattr(model, "threshold_")
    with pytest.raises(AttributeError, match="a threshold is for 2 classes"):
        _ = model.frontier_.threshold


def test_probabilities_stay_useful(rows, fitted):
    proba = fitted.predict_proba(rows.X, sensitive_features=rows.sex)[:, 1]
    assert roc_auc_score(rows.y, proba) > 0.7
    assert len(np.unique(proba)) > 1000


def test_groups_unknown_at_predict_time(rows):
    model = TunedOrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression()))
    model.fit(rows.X, rows.y, sensitive_features=rows.sex)
    assert model.predict(rows.X).shape == rows.y.shape


def test_cross_validation_by_columns_and_by_routing(rows):
    model = TunedOrthogonalClassifier(LogisticRegression(), sensitive_columns=[1], strengths=[0, 1])
    assert cross_val_score(model, rows.X, rows.y, cv=StratifiedKFold(3)).min() > 0.55
    with sklearn.config_context(enable_metadata_routing=True):
        routed = TunedOrthogonalClassifier(LogisticRegression(), strengths=[0, 1])
        routed.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=True)
        result = cross_validate(routed, rows.X, rows.y, params={"sensitive_features": rows.sex}, cv=3)
    assert np.isfinite(result["test_score"]).all()


def test_weights_reach_the_search(rows):
    weight = np.where(rows.y == 1, 20.0, 1.0)
    model = TunedOrthogonalClassifier(LogisticRegression(), strengths=[0], tolerance=1)
    model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
    assert model.predict(rows.X, sensitive_features=rows.sex).mean() > 0.95


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"constraint": "parity"}, "constraint is 'parity': expected one of equalized_odds"),
        ({"agg": "mean"}, "agg is 'mean'"),
        ({"tolerance": -0.1}, "tolerance is -0.1"),
        ({"strengths": [-1]}, "strengths is"),
        ({"strengths": []}, "strengths is"),
        ({"cv": 1}, "cv is 1"),
    ],
)
def test_refusals(rows, change, message):
    with pytest.raises(ValueError, match=message):
        tuned(rows, **change)


def test_groups_are_needed_and_must_have_rows(rows):
    with pytest.raises(ValueError, match="compares groups: pass sensitive_features= to fit, or set sensitive_columns="):
        TunedOrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y)
    rare = rows.sex.astype(object)
    rare[np.flatnonzero(rows.y == 0)[0]] = "x"
    with pytest.raises(ValueError, match="group 'x' has 1 rows of class 0 among its 1"):
        TunedOrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rare)
    with pytest.warns(UserWarning, match="all rows are in one group, 'f'"):
        TunedOrthogonalClassifier(LogisticRegression(), strengths=[0]).fit(
            rows.X, rows.y, sensitive_features=["f"] * len(rows.y)
        )


def test_frontier_rules_and_plot():
    frontier = Frontier(
        np.array([0.0, 1.0, 1.0, 2.0]),
        np.zeros((4, 2)),
        np.array([0.9, 0.8, 0.8, 0.7]),
        np.array([0.5, 0.1, 0.1, 0.0]),
    )
    assert frontier.best(1.0) == 0
    assert frontier.best(0.2) == 1
    assert frontier.best(0.05) == 3
    assert frontier.pareto().tolist() == [3, 1, 0]
    axes = frontier.at(1).plot()
    assert axes.get_xlabel().startswith("gap")
    assert "chosen" in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_cut_into_folds_as_they_are(rows, kind):
    module = pytest.importorskip(kind)
    frame = (module.table if kind == "pyarrow" else module.DataFrame)(dict(zip("abc", rows.X.T, strict=True)))
    model = TunedOrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression()), strengths=[0, 0.5])
    model.fit(frame, rows.y, sensitive_features=rows.sex)
    plain = sklearn.clone(model).fit(rows.X, rows.y, sensitive_features=rows.sex)
    np.testing.assert_allclose(model.frontier_.score, plain.frontier_.score)


def test_the_folds_go_to_whatever_backend_joblib_has(rows, fitted):
    distributed = pytest.importorskip("distributed")
    joblib = pytest.importorskip("joblib")
    local = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with local, distributed.Client(local), joblib.parallel_config(backend="dask"):
        model = tuned(rows, n_jobs=2)
    np.testing.assert_array_equal(model.frontier_.score, fitted.frontier_.score)


def test_progress_is_logged(rows, caplog):
    with caplog.at_level("INFO", logger="setminus"):
        tuned(rows, cv=2, strengths=[0])
    assert [record.getMessage() for record in caplog.records] == ["fit 1 of 3", "fit 2 of 3", "fit 3 of 3"]
