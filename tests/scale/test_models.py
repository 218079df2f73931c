import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from setminus import GroupPrincipal, OrthogonalClassifier, TunedOrthogonalClassifier, save
from setminus.scale.models import ModelScorer
from setminus.scale.scoring import score_file
from setminus.tables.errors import TableError
from setminus.tables.reading import open_table


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
    with pytest.raises(TableError, match=r"in rows 1 to 3,000 of in\.parquet, .*sensitive_features"):
        score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", ModelScorer(tmp_path / "m.skops"))
    scorer = ModelScorer(tmp_path / "m.skops", sensitive=["sex"])
    score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", scorer, keep=False)
    X = table.select(["a", "male", "b"]).to_pandas()
    expected = model.predict_proba(X, sensitive_features=sex)
    np.testing.assert_allclose(pq.read_table(tmp_path / "out.parquet")["proba_yes"], expected[:, 1], rtol=1e-12)


def test_a_missing_column_is_refused_before_the_work(table, tmp_path):
    save(fitted(MODELS["plain"], table), tmp_path / "m.skops")
    pq.write_table(table.rename_columns(["a", "Male", "b", "y", "sex"]), tmp_path / "in.parquet")
    with pytest.raises(TableError, match=r"in\.parquet has no column 'male'\. Did you mean 'Male'"):
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
