"""A column that gives the label away is found, whatever its type, and others are not accused."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from setminus.tables.columns import describe
from setminus.tables.leaks import LEAK, single_column_auc


def aucs(y, **columns):
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    return single_column_auc(table, describe(table), np.asarray(y))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_leaks_of_every_kind_are_found(rng):
    y = rng.integers(0, 2, 2000)
    noise = rng.normal(size=2000)
    found = aucs(
        y,
        number=y + 0.01 * noise,
        reversed=-y + 0.01 * noise,
        # the label is known by being far from 0, which no threshold shows
        either_side=np.where(y == 1, np.sign(noise), 0) + 0.01 * noise,
        word=np.where(y == 1, "paid", "open"),
        only_if_missing=np.where(y == 1, noise, np.nan),
        flag=y == 1,
    )
    assert set(found) == {"number", "reversed", "either_side", "word", "only_if_missing", "flag"}
    assert min(found.values()) > LEAK


def test_good_features_and_names_are_no_leaks(rng):
    y = rng.integers(0, 2, 2000)
    score = y + 0.7 * rng.normal(size=2000)
    names = [f"n{i}" for i in rng.integers(0, 150, 2000)]
    found = aucs(y, score=score, names=names, noise=rng.normal(size=2000))
    assert found["score"] == pytest.approx(roc_auc_score(y, score), abs=0.04)
    assert found["score"] < LEAK and found["names"] < 0.6 and found["noise"] < 0.6


def test_one_of_several_classes_is_enough(rng):
    y = rng.choice(["a", "b", "c"], 3000)
    assert aucs(y, left=(y == "c").astype(float) + 0.1 * rng.random(3000))["left"] > LEAK


def test_a_class_of_few_rows_is_not_judged(rng):
    y = (np.arange(400) < 30).astype(int)
    assert aucs(y, same=y + 0.5 * rng.random(400)) == {}
