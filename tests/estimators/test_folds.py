import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from setminus import OrthogonalClassifier
from setminus.estimators.folds import out_of_fold_parts, stratified_folds


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
        with pytest.raises(ValueError, match=f"cv is {cv} with 6 rows"):
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
