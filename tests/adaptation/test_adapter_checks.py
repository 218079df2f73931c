"""scikit-learn's own suite, without a target and with one."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("torch")

from setminus.adaptation.adapter import OrthogonalAdapter


class EveryFifthRowIsTarget(OrthogonalAdapter):
    """With domains by position, which the suite cannot give."""

    def fit(self, X, y):
        n = np.size(np.asarray(y))
        sample_domain = np.where(np.arange(n) % 5 == 4, -1, 1)
        return super().fit(X, y, sample_domain=sample_domain if n > 9 else None)


@pytest.mark.filterwarnings("ignore:sample_domain is missing")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks(
    [OrthogonalAdapter(steps=25, learning_rate=0.03), EveryFifthRowIsTarget(steps=25, learning_rate=0.03)]
)
def test_scikit_learn_check(estimator, check):
    if "check_classifiers_train" not in str(check):
        # that one alone looks at the accuracy
        estimator.set_params(steps=3)
    check(estimator)
