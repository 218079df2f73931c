"""The default classifier takes the columns that people have, in every kind of frame."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import setminus
from setminus import OrthogonalClassifier, ProxyPrincipal
from setminus.estimators.default_models import default_classifier


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
