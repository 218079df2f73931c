"""A table with every kind of column, and models fitted on it."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from setminus import GroupPrincipal, ProxyPrincipal, TunedOrthogonalClassifier
from setminus.tables.encoding import TableEncoder

N = 800


def people(n=N, seed=0, n_classes=2):
    """Rows with their labels: numbers, words, flags, dates, missing values."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    sex = np.where(rng.random(n) < 0.2 + 0.5 * (y > 0), "m", "f")

    def with_missing(values, share=0.1):
        return [None if gone else value for value, gone in zip(values, rng.random(n) < share, strict=True)]

    start = datetime.date(2020, 1, 1)
    table = pa.table(
        {
            "age": with_missing((40 + 8 * y + 10 * rng.normal(size=n)).round().tolist()),
            'it\'s "pay"': (y + rng.normal(size=n)).tolist(),
            "job": with_missing(np.array(["cook", "clerk", "é, 'x'"])[(y + rng.integers(0, 3, n)) % 3].tolist()),
            "member": with_missing(np.where(rng.random(n) < 0.3 + 0.2 * (sex == "m"), "Yes", "no").tolist()),
            "born": [start + datetime.timedelta(days=int(day)) for day in rng.integers(0, 900, n) + 300 * (sex == "m")],
            "sex": sex.tolist(),
        }
    )
    return table, np.array(["high", "low", "mid"])[y] if n_classes == 3 else np.where(y == 1, "yes", "no")


def pipeline(form="ordinal"):
    kinds = {"age": "number", 'it\'s "pay"': "number", "job": "category", "member": "yes/no", "born": "date"}
    if form == "onehot":
        return make_pipeline(TableEncoder("onehot", kinds=kinds), LogisticRegression(max_iter=500))
    categories = [kind == "category" for kind in kinds.values()]
    boosting = HistGradientBoostingClassifier(max_iter=12, categorical_features=categories, random_state=0)
    return make_pipeline(TableEncoder(kinds=kinds), boosting)


@pytest.fixture(scope="package")
def tuned():
    """A fitted model by kind of principal, form of the pipeline, and number of classes."""
    made = {}

    def fit(known, form="ordinal", n_classes=2, offsets=True, interpolate=False, **settings):
        key = known, form, n_classes, offsets, interpolate, *settings.items()
        if key not in made:
            table, y = people(n_classes=n_classes)
            model = TunedOrthogonalClassifier(
                pipeline(form),
                GroupPrincipal(interpolate=interpolate) if known else ProxyPrincipal(pipeline(form)),
                sensitive_columns=["sex"],
                tolerance=0.15,
                confidence=None,
                min_lead=0.0,
                group_offsets=offsets,
                cv=2,
                **settings,
            )
            model.fit(table, y)
            if offsets:
                # a point with fitted offsets, whichever the search prefers
                model = model.at(index=int(np.flatnonzero(model.frontier_.direction >= 0)[-1]))
            made[key] = model
        return made[key]

    return fit
