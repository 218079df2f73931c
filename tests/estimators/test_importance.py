import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from setminus import GroupPrincipal, ImportanceWeightedClassifier, OrthogonalClassifier


def test_agrees_with_orthogonalizing_where_the_assumption_holds(rows):
    weighted = ImportanceWeightedClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
    orthogonal = OrthogonalClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
    expected = orthogonal.predict_proba(rows.X, sensitive_features=rows.sex)
    difference = abs(weighted.predict_proba(rows.X) - expected).mean()
    assert difference < 0.03 < abs(orthogonal.full_.predict_proba(rows.X) - expected).mean()


def test_effective_sample_size_says_what_the_weights_cost(rows):
    def fit(**change):
        model = ImportanceWeightedClassifier(LogisticRegression(), GroupPrincipal(), **change)
        return model.fit(rows.X, rows.y, sensitive_features=rows.sex)

    free, bounded = fit(), fit(max_weight=1.0)
    assert free.effective_sample_size_ < bounded.effective_sample_size_ <= len(rows.y)


def test_needs_a_classifier_that_takes_weights(rows):
    with pytest.raises(ValueError, match="whose fit takes no sample_weight"):
        ImportanceWeightedClassifier(KNeighborsClassifier()).fit(rows.X, rows.y, sensitive_features=rows.sex)
    with pytest.raises(ValueError, match=r"max_weight is 0: expected a number > 0, or None\.$"):
        ImportanceWeightedClassifier(LogisticRegression(), max_weight=0).fit(
            rows.X, rows.y, sensitive_features=rows.sex
        )


def test_sample_weight_multiplies(rows):
    weight = np.where(rows.X[:, 2] > 0, 1.0, 0.0)
    model = ImportanceWeightedClassifier(LogisticRegression())
    model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
    assert model.effective_sample_size_ <= weight.sum()
    assert set(model.predict(rows.X)) == {0, 1}


@pytest.mark.parametrize("max_weight", [None, 1.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", ["empirical", "uniform"])
def test_is_the_classifier_fitted_with_the_weights_of_the_paper(rows, max_weight, weighted, prior):
    y = np.array(["no", "yes"])[rows.y]
    sample_weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y)) if weighted else None
    parts = [GroupPrincipal(), LogisticRegression(C=0.1)]
    model = ImportanceWeightedClassifier(LogisticRegression(), parts, prior=prior, max_weight=max_weight)
    model.fit(rows.X, y, sensitive_features=rows.sex, sample_weight=sample_weight)
    group = GroupPrincipal().fit(None, y, sensitive_features=rows.sex, sample_weight=sample_weight)
    other = LogisticRegression(C=0.1).fit(rows.X, y, sample_weight=sample_weight)
    own = np.arange(len(y)), rows.y
    p_y = np.bincount(rows.y, sample_weight) if prior == "empirical" else np.ones(2)
    p_y = p_y / p_y.sum()
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    for proba in (group.predict_proba(None, sensitive_features=rows.sex), other.predict_proba(rows.X)):
        weights = weights * p_y[rows.y] / proba[own]
    weights = weights if max_weight is None else np.minimum(weights, max_weight)
    by_hand = LogisticRegression().fit(rows.X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba(rows.X), by_hand.predict_proba(rows.X), atol=1e-6)
    assert model.effective_sample_size_ == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    np.testing.assert_array_equal(model.predict(rows.X), by_hand.predict(rows.X))


def test_refusals(rows):
    for bad in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"max_weight is {bad}: expected a number > 0"):
            ImportanceWeightedClassifier(LogisticRegression(), max_weight=bad).fit(
                rows.X, rows.y, sensitive_features=rows.sex
            )
    with pytest.raises(ValueError, match="needs the groups"):
        ImportanceWeightedClassifier(LogisticRegression()).fit(rows.X, rows.y)
    by_column = ImportanceWeightedClassifier(LogisticRegression(), sensitive_columns=[1]).fit(rows.X, rows.y)
    keyword = ImportanceWeightedClassifier(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.male)
    np.testing.assert_allclose(by_column.predict_proba(rows.X), keyword.predict_proba(rows.X))
    with pytest.raises(ValueError, match="features"):
        by_column.predict(rows.X[:, :2])
