from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from setminus import GroupPrincipal, OrthogonalClassifier, TunedOrthogonalClassifier, orthogonalize, save
from setminus.errors import UserError
from setminus.scale.scorers import ModelScorer, ProbabilityScorer
from setminus.scale.scoring import score_file
from setminus.tables.reading import open_table

THREE = ProbabilityScorer(["f0", "f1", "f2"], ["p0", "p1", "p2"], [0.2, 0.3, 0.5])


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    full, principal = rng.dirichlet([1, 2, 3], (2, 50))
    return pa.table({f"{name}{k}": p[:, k] for name, p in (("f", full), ("p", principal)) for k in range(3)})


def stacked(classes, letter):
    return np.column_stack([classes[f"{letter}{k}"].to_numpy() for k in range(3)])


@pytest.mark.parametrize("strength", [0, 0.5, 1])
def test_it_is_the_formula(classes, strength):
    scores = replace(THREE, strength=strength, name="fair").score(classes)
    assert scores.column_names == ["fair_0", "fair_1", "fair_2"]
    expected = orthogonalize(stacked(classes, "f"), stacked(classes, "p"), THREE.prior, strength=strength)
    np.testing.assert_array_equal(np.column_stack([column.to_numpy() for column in scores.columns]), expected)


def test_one_column_is_the_second_class():
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, 20))
    classes = pa.table({"p": p, "p0": 1 - p, "q": q, "q0": 1 - q})
    both = ProbabilityScorer(["p0", "p"], ["q0", "q"], [0.4, 0.6]).score(classes)
    for principal in (["q"], ["q0", "q"]):
        one = ProbabilityScorer(["p"], principal, [0.4, 0.6]).score(classes)
        assert one.column_names == ["orthogonal"]
        np.testing.assert_array_equal(one["orthogonal"], both["orthogonal_1"])


def test_any_kind_of_number(classes):
    narrow = classes.cast(pa.schema([(name, pa.float32()) for name in classes.column_names]))
    assert THREE.score(narrow).schema.types == [pa.float64()] * 3
    sure = pa.table({"p": [1, 0], "q": pa.chunked_array([[0.5], [0.25]])})
    assert ProbabilityScorer(["p"], ["q"], "uniform").score(sure)["orthogonal"].to_pylist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"full": ["f0", "f1", "f3"]}, r"no column 'f3': it has 'f0', 'f1'"),
        ({"full": "f0"}, "full is 'f0'"),
        ({"principal": []}, r"principal is \[\]"),
        ({"full": ["f0", "f1"]}, "full names 2 classes and principal 3"),
        ({"full": ["f0", "f1", "word"]}, "column 'word' holds string, not probabilities"),
        ({"prior": [0.5, 0.5]}, r"prior has shape \(2,\)"),
        ({"prior": [0.5, 0.5, 0.5]}, "prior has 1 rows that do not sum to 1"),
        ({"prior": "even"}, "prior is 'even'"),
        ({"strength": -1}, "strength is -1"),
        ({"on_violation": "ignore"}, "on_violation is 'ignore'"),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(classes, change, match, tmp_path):
    pq.write_table(classes.append_column("word", pa.array(["x"] * 50)), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    assert THREE.columns(table) == ["f0", "f1", "f2", "p0", "p1", "p2"]
    with pytest.raises(UserError, match=match):
        replace(THREE, **change).columns(table)


@pytest.fixture(scope="module")
def table(rows):
    columns = {"a": rows.X[:, 0], "male": rows.X[:, 1], "b": rows.X[:, 2]}
    return pa.table({**columns, "y": np.array(["no", "yes"])[rows.y], "sex": rows.sex})


def fitted(model, table, **options):
    X = table.select(["a", "male", "b"]).to_pandas()
    return model.fit(X, np.array(table["y"]), **options)


MODELS = {
    "orthogonal": OrthogonalClassifier(LogisticRegression(), sensitive_columns=["male"]),
    "tuned": TunedOrthogonalClassifier(LogisticRegression(), sensitive_columns=["male"], cv=2, tolerance=0.02),
    "plain": HistGradientBoostingClassifier(max_iter=5),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_file_holds_what_the_model_says(name, table, tmp_path):
    model = fitted(MODELS[name], table)
    # in another order, and with more columns than the model knows
    pq.write_table(table.select(["sex", "b", "a", "y", "male"]), tmp_path / "in.parquet", row_group_size=700)
    save(model, tmp_path / "m.skops")
    done = score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", ModelScorer(tmp_path / "m.skops"))
    assert (done.n_rows, done.scores) == (3000, ("proba_no", "proba_yes", "prediction"))
    scored = pq.read_table(tmp_path / "out.parquet")
    assert scored.column_names == ["sex", "b", "a", "y", "male", "proba_no", "proba_yes", "prediction"]
    X = table.select(["a", "male", "b"]).to_pandas()
    proba = np.column_stack([scored["proba_no"], scored["proba_yes"]])
    # linear algebra in pieces rounds in other places
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=1e-12)
    assert scored["prediction"].to_pylist() == model.predict(X).tolist()
    if name == "tuned":
        assert (np.argmax(proba, axis=1) != (np.array(scored["prediction"]) == "yes")).any()


def test_groups_come_from_columns_where_the_model_asks_for_them(table, tmp_path):
    sex = np.array(table["sex"])
    model = fitted(OrthogonalClassifier(LogisticRegression(), GroupPrincipal()), table, sensitive_features=sex)
    pq.write_table(table, tmp_path / "in.parquet")
    save(model, tmp_path / "m.skops")
    with pytest.raises(UserError, match=r"in rows 1 to 3,000 of in\.parquet, .*sensitive_features"):
        score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", ModelScorer(tmp_path / "m.skops"))
    scorer = ModelScorer(tmp_path / "m.skops", sensitive=["sex"])
    score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", scorer, keep=False)
    X = table.select(["a", "male", "b"]).to_pandas()
    expected = model.predict_proba(X, sensitive_features=sex)
    np.testing.assert_allclose(pq.read_table(tmp_path / "out.parquet")["proba_yes"], expected[:, 1], rtol=1e-12)


def test_a_missing_column_is_refused_before_the_work(table, tmp_path):
    save(fitted(MODELS["plain"], table), tmp_path / "m.skops")
    pq.write_table(table.rename_columns(["a", "Male", "b", "y", "sex"]), tmp_path / "in.parquet")
    with pytest.raises(UserError, match=r"in\.parquet has no column 'male': did you mean 'Male'"):
        ModelScorer(tmp_path / "m.skops").columns(open_table(tmp_path / "in.parquet"))


def test_a_model_is_loaded_once_until_its_file_changes(table, tmp_path):
    path = save(fitted(MODELS["plain"], table), tmp_path / "m.skops")
    scorer = ModelScorer(path)
    assert scorer._model() is scorer._model()
    before = scorer._model()
    save(fitted(MODELS["orthogonal"], table), path)
    assert scorer._model() is not before
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ModelScorer(tmp_path / "no.skops").columns(None)
