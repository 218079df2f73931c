"""The bar on real data: accuracy kept, the gap halved, the attribute unknown at predict time."""

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from setminus import ProxyPrincipal, TunedOrthogonalClassifier, equalized_odds_gap
from setminus.datasets.sources import DataUnavailableError
from setminus.datasets.tabular import load_adult


@pytest.mark.data
def test_tuned_proxy_on_adult():
    try:
        train, test = load_adult(encoding="raw")
    except DataUnavailableError as error:
        pytest.skip(str(error))
    categorical = [train.feature_names.index(name) for name in train.categorical]
    boosting = HistGradientBoostingClassifier(categorical_features=categorical, random_state=0)
    model = TunedOrthogonalClassifier(boosting, ProxyPrincipal(boosting), agg="sum", tolerance=0.05, confidence=None)
    model.fit(train.x, train.y, sensitive_features=train.z1)

    def accuracy_and_gap(prediction):
        gap = equalized_odds_gap(test.y, prediction, sensitive_features=test.z1, agg="sum")
        return (prediction == test.y).mean(), gap

    accuracy, gap = accuracy_and_gap(model.predict(test.x))
    base_accuracy, base_gap = accuracy_and_gap(model.model_.full_.predict(test.x))
    assert accuracy >= 0.868
    assert gap <= 0.075 < 0.1 < base_gap
    assert base_accuracy - accuracy < 0.005
