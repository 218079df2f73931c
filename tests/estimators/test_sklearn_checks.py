"""scikit-learn's own suite for estimators."""

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from setminus import ImportanceWeightedClassifier, OrthogonalClassifier, TunedOrthogonalClassifier

PLAIN = OrthogonalClassifier(LogisticRegression(), principal=DummyClassifier())
BY_COLUMN = OrthogonalClassifier(LogisticRegression(), principal_columns=[0])
# the interface does not depend on the size of the search
SMALL = {"strengths": [0, 1], "cv": 2, "group_offsets": False}
TUNED = TunedOrthogonalClassifier(LogisticRegression(), sensitive_columns=[0], **SMALL)
WEIGHTED = ImportanceWeightedClassifier(LogisticRegression(), principal=DummyClassifier())


def expected_failures(estimator):
    if not isinstance(estimator, TunedOrthogonalClassifier):
        return {}
    return {
        "check_classifiers_train": "predict uses the tuned threshold, predict_proba stays the probability",
        "check_dtype_object": "a dict among the groups is refused as a group before it is refused as a number",
    }


@pytest.mark.filterwarnings("ignore:all rows are in one group")
@parametrize_with_checks([PLAIN, BY_COLUMN, TUNED, WEIGHTED], expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
