"""The SQL expression gives the numbers of Python, in two engines."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from setminus import OrthogonalClassifier, TunedOrthogonalClassifier, export_sql, orthogonalize
from setminus.errors import UserError
from tests.export.conftest import people

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def in_sqlite(frame, expression):
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql("t", connection, index=False)
        return [row[0] for row in connection.execute(f"SELECT {expression} FROM t ORDER BY rowid")]


def in_duckdb(frame, expression):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("t", frame)
        # in the order of the rows, whatever the engine does
        return [row[0] for row in connection.execute(f'SELECT {expression} FROM t ORDER BY "n"').fetchall()]


engines = pytest.mark.parametrize("run", [in_sqlite, in_duckdb], ids=["sqlite", "duckdb"])


def columns(**blocks):
    """Blocks of probabilities side by side, as p0, p1, q0, ..."""
    named = {f"{name}{k}": block[:, k] for name, block in blocks.items() for k in range(block.shape[1])}
    frame = pd.DataFrame(named)
    return frame.assign(n=np.arange(len(frame)))


def assert_equal(found, expected):
    np.testing.assert_allclose(np.array(found, dtype=float), expected, rtol=0, atol=1e-12)


@engines
@pytest.mark.parametrize("strength", [0.0, 0.37, 1.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_formula(run, n_classes, strength):
    rng = np.random.default_rng(0)
    full, principal = rng.dirichlet(np.full(n_classes, 0.5), (2, 300))
    prior = rng.dirichlet(np.ones(n_classes))
    full[0], full[1] = np.eye(n_classes)[:2]
    frame = columns(p=full, q=principal)
    expected = orthogonalize(full, principal, prior, strength=strength, on_violation="clip")
    names = [[f"{stem}{k}" for k in range(n_classes)] for stem in "pq"]
    settings = {"full": names[0], "principal": names[1], "prior": prior, "strength": strength}
    for k in range(n_classes):
        assert_equal(run(frame, export_sql(**settings, label=k)), expected[:, k])
    assert run(frame, export_sql(**settings, output="decision")) == expected.argmax(axis=1).tolist()


@engines
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offsets", [True, False], ids=["offsets", "formula"])
def test_a_tuned_model_with_known_groups(run, tuned, n_classes, offsets):
    model = tuned(True, n_classes=n_classes, offsets=offsets)
    if not offsets:
        model = model.at(index=int(model.frontier_.strength.argmax()))
        assert model.strength_ > 0.5
    table, _ = people(n_classes=n_classes, seed=1)
    sex = [None if at % 9 == 0 else word for at, word in enumerate(table.column("sex").to_pylist())]
    table = table.set_column(5, "sex", pa.array(sex))
    full = model.model_.full_.predict_proba(table)
    frame = columns(p=full).assign(sex=pd.Series(sex, dtype=object))
    names = [f"p{k}" for k in range(n_classes)]
    assert_equal(run(frame, export_sql(model, full=names)), model.predict_proba(table)[:, -1])
    assert run(frame, export_sql(model, full=names, output="decision")) == model.predict(table).tolist()
    # a group that was not there at fit time is refused by Python
    assert run(frame.assign(sex="x"), export_sql(model, full=names, output="decision")) == [None] * len(frame)


@engines
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tuned_model_with_estimated_groups(run, tuned, n_classes):
    model = tuned(False, n_classes=n_classes)
    table, _ = people(n_classes=n_classes, seed=1)
    proxy = model.model_.principals_[0]
    attribute = proxy.attribute_model_.predict_proba(table)[:, proxy._order]
    frame = columns(p=model.model_.full_.predict_proba(table), u=attribute)
    settings = {"full": [f"p{k}" for k in range(n_classes)], "attribute": ["u0", "u1"]}
    assert_equal(run(frame, export_sql(model, **settings)), model.predict_proba(table)[:, -1])
    assert run(frame, export_sql(model, **settings, output="decision")) == model.predict(table).tolist()


@engines
def test_names_and_values_are_quoted(run):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    group = np.where(rng.random(500) < 0.2 + 0.5 * y, "o'neill", "x'); DROP TABLE t; --")
    number = rng.integers(0, 2, 500)
    X = pd.DataFrame({"x": y + rng.normal(size=500), 'a "group"': group, "number": number})
    labels = np.where(y == 1, "it's", "no")
    model = OrthogonalClassifier(LogisticRegression()).fit(X[["x"]], labels, sensitive_features=X.iloc[:, 1:])
    full = model.full_.predict_proba(X[["x"]])
    frame = pd.DataFrame({'p "second"': full[:, 1], "n": np.arange(500)}).join(X)
    settings = {"full": ['p "second"'], "groups": ['a "group"', "number"]}
    expected = model.predict_proba(X[["x"]], sensitive_features=X.iloc[:, 1:])
    assert_equal(run(frame, export_sql(model, **settings, label="it's")), expected[:, 0])
    decided = run(frame, export_sql(model, **settings, output="decision"))
    assert decided == model.predict(X[["x"]], sensitive_features=X.iloc[:, 1:]).tolist()


@engines
def test_groups_in_bins(run):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    frame = pd.DataFrame({"x": y + rng.normal(size=2000), "age": 20 + 30 * rng.random(2000) + 5 * y})
    model = TunedOrthogonalClassifier(
        LogisticRegression(), sensitive_columns=["age"], bins={"age": [30, 40]}, cv=2, confidence=None
    ).fit(frame, y)
    model = model.at(index=int(np.flatnonzero(model.frontier_.direction >= 0)[-1]))
    new = pd.DataFrame({"x": rng.normal(size=99), "age": np.linspace(0, 98, 99)})
    scored = new.assign(p=model.model_.full_.predict_proba(new)[:, 1], n=np.arange(99))
    assert_equal(run(scored, export_sql(model, full=["p"])), model.predict_proba(new)[:, 1])


def test_errors_say_which_columns_are_needed(tuned):
    with pytest.raises(UserError, match="principal and prior are needed"):
        export_sql(full=["p"])
    with pytest.raises(UserError, match="expected one for each of the 3 classes"):
        export_sql(tuned(True, n_classes=3), full=["p"])
    with pytest.raises(UserError, match=re.escape("p(group | x)")):
        export_sql(tuned(False), full=["p"])
    with pytest.raises(UserError, match="the model is LogisticRegression"):
        export_sql(LogisticRegression().fit([[0], [1]], [0, 1]), full=["p"])
