"""A classifier corrected for other class frequencies: exact posteriors, intervals, scikit-learn, skada."""

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import setminus
from setminus import PriorCorrectedClassifier, orthogonalize, prior_correction
from setminus.errors import UserError

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])
SOURCE, TARGET = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.7])
N_SOURCE, N_TARGET = 1500, 1000


def drawn(seed, target=TARGET, drift=0.0):
    """Gaussian classes whose frequencies change; where drift is not 0, so do their means."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([rng.choice(3, N_SOURCE, p=SOURCE), rng.choice(3, N_TARGET, p=target)])
    X = MEANS[y] + rng.normal(size=(len(y), 2))
    X[N_SOURCE:, 0] += drift
    return X, y, np.repeat([1, -1], [N_SOURCE, N_TARGET])


def posterior(X, prior):
    log_joint = np.log(prior) - ((X[:, None] - MEANS) ** 2).sum(axis=2) / 2
    joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return joint / joint.sum(axis=1, keepdims=True)


def masked(y, domain):
    return np.where(domain > 0, y, -1)


def quick(**options):
    return PriorCorrectedClassifier(LogisticRegression(), n_bootstrap=20, **options)


def test_exact_posteriors_become_those_of_the_target():
    X, y, domain = drawn(0)
    source, target = posterior(X, SOURCE)[domain > 0], posterior(X, SOURCE)[domain < 0]
    found = prior_correction(source, y[domain > 0], target, TARGET)
    exact = posterior(X, TARGET)[domain < 0]
    # the calibration is estimated, the formula is exact
    assert np.abs(found.correct(target) - exact).mean() < 0.02 < np.abs(target - exact).mean()
    calibrated = found.calibrator.proba(np.log(target))
    principal = np.tile(found.source_prior, (len(target), 1))
    np.testing.assert_allclose(found.correct(target), orthogonalize(calibrated, principal, TARGET), atol=1e-12)


@pytest.mark.parametrize("prior", ["em", "bbse"])
def test_the_estimate_is_near_the_truth_and_helps(prior):
    X, y, domain = drawn(1)
    new, truth = X[domain < 0], y[domain < 0]
    model = PriorCorrectedClassifier(LogisticRegression(), prior).fit(X, masked(y, domain), domain)
    plain = LogisticRegression().fit(X[domain > 0], y[domain > 0])
    # the confusion matrix of a class of 150 rows is less certain than the likelihood
    assert np.abs(model.target_prior_ - TARGET).sum() / 2 < {"em": 0.08, "bbse": 0.15}[prior]
    assert np.abs(plain.predict_proba(new).mean(axis=0) - TARGET).sum() / 2 > 0.15
    assert model.score(new, truth) > plain.score(new, truth) + 0.05


@pytest.mark.parametrize("prior", ["em", "bbse"])
def test_intervals_cover_the_truth_about_as_often_as_they_say(prior):
    covered = []
    for seed in range(25):
        X, y, domain = drawn(100 + seed)
        # the frequencies of the population: sampling them is part of the interval
        model = PriorCorrectedClassifier(LogisticRegression(), prior, n_bootstrap=60, confidence=0.8)
        low, high = model.fit(X, y, domain).target_prior_interval_
        covered += [(low <= TARGET) & (high >= TARGET)]
    # 75 of them, dependent in threes; a bootstrap of the target rows alone covers 40 % with bbse
    assert 0.65 < np.mean(covered) < 0.95


def test_diagnostics_see_features_that_shifted_within_a_class():
    fine, bad = (quick().fit(*drawn(2, drift=drift)).diagnostics_["disagreement"] for drift in (0.0, 2.0))
    assert fine < 0.06 < bad


def test_without_a_shift_the_estimate_gives_way_to_the_source():
    model = quick().fit(*drawn(3, target=SOURCE))
    assert model.shrinkage_ == 1
    np.testing.assert_allclose(model.assumed_prior_, model.source_prior_)
    assert np.abs(model.target_prior_ - model.source_prior_).max() > 1e-3
    # a large change is trusted
    assert quick().fit(*drawn(3)).shrinkage_ < 0.2


def test_shrinkage_is_a_weight():
    X, y, domain = drawn(4)
    whole, half, none = (quick(shrinkage=share).fit(X, y, domain) for share in (1, 0.5, 0))
    np.testing.assert_allclose(half.assumed_prior_, (whole.assumed_prior_ + none.assumed_prior_) / 2)
    np.testing.assert_allclose(whole.assumed_prior_, whole.source_prior_)
    for model in (whole, half, none):
        np.testing.assert_allclose(model.target_prior_, none.assumed_prior_)


def test_labels_of_the_target_change_nothing():
    X, y, domain = drawn(5)
    one, other = (quick().fit(X, labels, domain).predict_proba(X) for labels in (y, masked(y, domain)))
    np.testing.assert_array_equal(one, other)
    # the labels of the source do
    assert np.abs(one - quick().fit(X, np.where(domain > 0, 2 - y, y), domain).predict_proba(X)).max() > 0.1


@pytest.mark.parametrize(
    "classifier",
    [
        LinearSVC(),
        RandomForestClassifier(20, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")),
    ],
    ids=["scores", "trees", "balanced"],
)
def test_any_classifier(classifier):
    X, y, domain = drawn(6)
    model = PriorCorrectedClassifier(classifier, n_bootstrap=20).fit(X, y, domain)
    alone = clone(classifier).fit(X[domain > 0], y[domain > 0])
    new, truth = X[domain < 0], y[domain < 0]
    assert np.abs(model.target_prior_ - TARGET).sum() / 2 < 0.15
    assert model.score(new, truth) > alone.score(new, truth)


def test_two_classes_by_scores_alone():
    X, y, domain = drawn(7)
    model = PriorCorrectedClassifier(LinearSVC(), n_bootstrap=20).fit(X, y == 2, domain)
    assert model.target_prior_[1] == pytest.approx(0.7, abs=0.08)


def test_a_fitted_classifier_is_taken_as_it_is():
    X, y, domain = drawn(8)
    learned = domain > 0
    learned[: N_SOURCE // 2] = False
    fitted = LogisticRegression().fit(X[learned], y[learned])
    rows = ~learned
    model = PriorCorrectedClassifier(FrozenEstimator(fitted), n_bootstrap=20).fit(X[rows], y[rows], domain[rows])
    assert model.classifier_.estimator is fitted
    by_hand = prior_correction(
        fitted.predict_proba(X[rows & (domain > 0)]),
        y[rows & (domain > 0)],
        fitted.predict_proba(X[domain < 0]),
        n_bootstrap=20,
    )
    np.testing.assert_allclose(model.estimates_["em"], by_hand.estimates["em"], atol=1e-6)
    with pytest.raises(UserError, match=r"no row of class \[2\]"):
        model.fit(X[rows], np.where(y[rows] == 2, 0, y[rows]), domain[rows])


def test_sparse_single_precision_names_and_frames():
    pd = pytest.importorskip("pandas")
    X, y, domain = drawn(9)
    words = np.array(["cat", "dog", "frog"])[y]
    expected = quick().fit(X, y, domain).predict_proba(X)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for rows, atol in ((csr_array(X), 1e-2), (X.astype(np.float32), 1e-2), (frame, 1e-12)):
        model = quick().fit(rows, words, domain)
        np.testing.assert_allclose(model.predict_proba(rows), expected, atol=atol)
    assert set(model.predict(frame)) <= set(words)
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_saved_cloned_and_in_a_pipeline(tmp_path):
    X, y, domain = drawn(10)
    model = quick().fit(X, y, domain)
    loaded = setminus.load(setminus.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.diagnostics_ == model.diagnostics_
    np.testing.assert_array_equal(clone(model).fit(X, y, domain).predict_proba(X), model.predict_proba(X))
    piped = make_pipeline(StandardScaler(), quick()).fit(X, y, priorcorrectedclassifier__sample_domain=domain)
    assert piped.score(X[domain < 0], y[domain < 0]) > 0.7


def test_domains_by_position_as_a_number_and_masked_labels():
    X, y, domain = drawn(11)
    model = quick().fit(X, masked(y, domain), domain)
    new, truth = X[domain < 0], y[domain < 0]
    for given in (domain[domain < 0], -1, -2.0):
        np.testing.assert_array_equal(model.predict(new, given), model.predict(new))
        assert model.score(new, truth, given) == model.score(new, truth)
    # the rows with labels: target labels of -1 are not known, and not wrong
    of_source = domain > 0
    assert model.score(X, masked(y, domain), domain) == pytest.approx(model.score(X[of_source], y[of_source]))
    with pytest.raises(UserError, match=r"classes that the source lacks, \[-2\]"):
        model.score(X, np.where(domain > 0, y, -2))
    with pytest.raises(UserError, match="sample_domain has shape"):
        model.predict(new, domain)


def test_grid_search_with_target_labels_of_minus_one():
    X, y, domain = drawn(12)
    search = GridSearchCV(quick(), {"shrinkage": [0.0, 1.0]}, cv=3, scoring=target_entropy, error_score="raise")
    search.fit(X, masked(y, domain), sample_domain=domain)
    assert search.best_estimator_.target_prior_interval_.shape == (2, 3)


def target_entropy(model, X, y):
    """A criterion without labels: the log-likelihood of the predictions."""
    return float(np.log(model.predict_proba(X).max(axis=1)).mean())


@pytest.mark.parametrize("scorer", ["PredictionEntropyScorer", "SoftNeighborhoodDensity", "ImportanceWeightedScorer"])
def test_scorers_of_skada(scorer):
    X, y, domain = drawn(13)
    # skada enables routing for the whole process when it is imported
    with sklearn.config_context(enable_metadata_routing=True):
        metrics = pytest.importorskip("skada.metrics")
        from skada.model_selection import SourceTargetShuffleSplit

        splits = SourceTargetShuffleSplit(n_splits=2, test_size=0.3, random_state=0)
        search = GridSearchCV(
            quick(), {"prior": ["em", "bbse"]}, cv=splits, scoring=getattr(metrics, scorer)(), error_score="raise"
        )
        search.fit(X, masked(y, domain), sample_domain=domain)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_without_a_target_only_known_frequencies_correct():
    X, y, domain = drawn(14)
    rows = domain > 0
    with pytest.warns(UserWarning, match="no target rows"):
        plain = quick().fit(X[rows], y[rows])
    np.testing.assert_array_equal(plain.target_prior_, plain.source_prior_)
    known = quick(prior=TARGET).fit(X[rows], y[rows])
    assert known.score(X[~rows], y[~rows]) > plain.score(X[~rows], y[~rows]) + 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "EM"}, "prior is 'EM'"),
        ({"prior": [0.5, 0.5]}, "prior has shape"),
        ({"prior": [0.5, 0.5, 0.5]}, "prior sums to 1.5"),
        ({"shrinkage": 1.5}, "shrinkage is 1.5"),
        ({"shrinkage": "none"}, "shrinkage is 'none'"),
        ({"n_bootstrap": 1}, "n_bootstrap is 1"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"cv": 1}, "cv is 1"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UserError, match=message):
        PriorCorrectedClassifier(LogisticRegression(), **options).fit(*drawn(15))


def test_probabilities_that_are_none_are_refused():
    X, y, domain = drawn(16)
    proba = posterior(X, SOURCE)
    source, target, labels = proba[domain > 0], proba[domain < 0], y[domain > 0]
    for bad, message in (
        (np.log(source), "no probabilities"),
        (source[:, :2], "has shape"),
        (source[:5], "y has 1500"),
    ):
        with pytest.raises(UserError, match=message):
            prior_correction(bad, labels, target)
    with pytest.raises(UserError, match="one row of class"):
        quick(prior=[0.5, 0.5]).fit(X[:10], [0] * 9 + [1])


@pytest.mark.filterwarnings("ignore:no target rows")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks([PriorCorrectedClassifier(LogisticRegression(), n_bootstrap=5)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
