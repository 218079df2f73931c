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
    with pytest.raises(ValueError, match="max_weight is 0"):
        ImportanceWeightedClassifier(LogisticRegression(), max_weight=0).fit(
            rows.X, rows.y, sensitive_features=rows.sex
        )


def test_sample_weight_multiplies(rows):
    weight = np.where(rows.X[:, 2] > 0, 1.0, 0.0)
    model = ImportanceWeightedClassifier(LogisticRegression())
    model.fit(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
    assert model.effective_sample_size_ <= weight.sum()
    assert set(model.predict(rows.X)) == {0, 1}
