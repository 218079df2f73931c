from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from setminus import GroupPrincipal, OrthogonalClassifier, TunedOrthogonalClassifier, orthogonalize, save
from setminus.errors import UserError
from setminus.scale.scorers import ModelScorer, ProbabilityScorer, score_rows
from setminus.scale.scoring import score_file
from setminus.tables.encoding import TableEncoder, learned_columns
from setminus.tables.numerals import DecimalSign
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
        ({"full": ["f0", "f1"]}, "full names 2 classes and principal 3: give both a column"),
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


def test_a_model_that_needs_the_groups_apart_is_refused(table, tmp_path):
    sex = np.array(table["sex"])
    model = fitted(OrthogonalClassifier(LogisticRegression(), GroupPrincipal()), table, sensitive_features=sex)
    pq.write_table(table, tmp_path / "in.parquet")
    save(model, tmp_path / "m.skops")
    with pytest.raises(UserError, match=r"in rows 1 to 3,000 of in\.parquet, .*sensitive_features"):
        score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", ModelScorer(tmp_path / "m.skops"))


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


@pytest.fixture(scope="module")
def people(rows):
    """Text that training may lack, and a principal with an encoder of its own that sees fewer columns."""
    job = np.array(["=cook", "clerk", "judge"])[np.arange(len(rows.y)) % 3]
    return pa.table({"age": rows.X[:, 0], "job": job, "sex": rows.sex, "y": rows.y})


def pipeline(**kinds):
    return make_pipeline(TableEncoder("onehot", kinds=kinds), LogisticRegression())


@pytest.fixture(scope="module")
def known(people, tmp_path_factory):
    """The file of a model that holds its training rows' values, a fit of `--positive high`, and its decimal sign."""
    model = OrthogonalClassifier(
        pipeline(age="number", job="category"), pipeline(age="number", sex="category"), prior=[0.4, 0.6]
    )
    model.fit(people.select(["age", "job", "sex"]).to_pandas(), np.array(people["y"]))
    model.about_ = {
        "task": {"labels": {"0": "not =high", "1": "=high"}, "decimal": {"sign": ",", "assumed": True}},
    }
    return save(model, tmp_path_factory.mktemp("known") / "m.skops")


def test_classes_are_named_by_the_values_of_the_label(known, people):
    scores = ModelScorer(known).score(people.slice(0, 40))
    assert scores.column_names == ["proba_not =high", "proba_=high", "prediction"]
    likely = np.array(scores["proba_=high"]) > 0.5
    assert scores["prediction"].to_pylist() == np.where(likely, "=high", "not =high").tolist()
    assert 0 < likely.sum() < 40


def test_drift_is_known_of_the_columns_of_every_encoder(known, people, table, tmp_path):
    new = people.slice(0, 6).set_column(1, "job", pa.array(["pilot", "clerk"] * 3))
    new = new.set_column(0, "age", pa.array([0.0, 0.0, 0.0, 0.0, 900.0, 0.0]))
    drift = ModelScorer(known).drift(new.set_column(2, "sex", pa.array(["m", "f", "x"] * 2)))
    assert {name: (column.unseen, column.rows) for name, column in drift.items()} == {
        "age": (1, 6), "job": (3, 6), "sex": (2, 6)
    }  # fmt: skip
    assert drift["job"].example == "pilot"
    # no encoder: nothing is known
    save(fitted(MODELS["plain"], table), tmp_path / "m.skops")
    assert ModelScorer(tmp_path / "m.skops").drift(table) == {}


def test_the_first_encoder_that_knows_a_column_counts(people):
    narrow = TableEncoder().fit(people.filter(pc.less(people["age"], 0)).select(["age", "job"]))
    wide = TableEncoder().fit(people.select(["age", "sex"]))
    columns = learned_columns(Pipeline([("first", narrow), ("unfitted", TableEncoder()), ("second", wide)]))
    assert columns == [*narrow.columns_, wide.columns_[1]]
    assert narrow.columns_[0] != wide.columns_[0]


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"task": {"decimal": {"sign": ",", "assumed": True}}}, DecimalSign(",", True)),
        ({"task": {"decimal": {"sign": ".", "assumed": False}}}, DecimalSign(".", False)),
        ({"task": {"decimal": {"sign": "'", "assumed": False}}}, None),
        ({"task": {"decimal": {"sign": ",", "assumed": "no"}}}, None),
        ({"task": {}}, None),
        ({}, None),
        (["task"], None),
        (None, None),
    ],
)
def test_the_decimal_sign_of_training_where_it_is_known(about, expected, table, tmp_path):
    model = fitted(MODELS["plain"], table)
    if about is not None:
        model.about_ = about
    assert ModelScorer(save(model, tmp_path / "m.skops")).decimal() == expected


def test_a_path_is_the_same_in_another_folder(known, people, monkeypatch, tmp_path):
    monkeypatch.chdir(known.parent)
    scorer = ModelScorer(known.name)
    monkeypatch.chdir(tmp_path)
    assert scorer == ModelScorer(known)
    assert scorer.score(people.slice(0, 3)).num_rows == 3


def test_a_model_without_names_is_given_all_columns(rows, tmp_path):
    model = LogisticRegression().fit(rows.X[:, :2], rows.y)
    pq.write_table(pa.table({"a": rows.X[:9, 0], "b": rows.X[:9, 1]}), tmp_path / "in.parquet")
    scorer = ModelScorer(save(model, tmp_path / "m.skops"))
    done = score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", scorer)
    assert done.scores == ("proba_0", "proba_1", "prediction")
    proba = pq.read_table(tmp_path / "out.parquet")["proba_1"]
    np.testing.assert_allclose(proba, model.predict_proba(rows.X[:9, :2])[:, 1], rtol=1e-12)


@dataclass(frozen=True)
class Complains:
    error: Exception

    def drift(self, rows):
        return {}

    def score(self, rows):
        raise self.error


def test_the_error_of_a_value_names_its_rows_and_keeps_its_fields():
    rows = pa.table({"x": [1] * 1500})
    with pytest.raises(UserError) as caught:
        score_rows(Complains(UserError("x is 1", "x above 1", "raise x.")), rows, 2000, "t.csv")
    assert caught.value.args == ("in rows 2,001 to 3,500 of t.csv, x is 1", "x above 1", "raise x.")
    with pytest.raises(UserError) as caught:
        score_rows(Complains(ValueError("Input X contains NaN.")), rows, 0, "t.csv")
    assert caught.value.came == "in rows 1 to 1,500 of t.csv, Input X contains NaN"
    assert caught.value.do
    # what is no fault of a value is not blamed on one
    with pytest.raises(ZeroDivisionError):
        score_rows(Complains(ZeroDivisionError()), rows, 0, "t.csv")


def test_a_scorer_is_given_text_as_codes():
    @dataclass(frozen=True)
    class Kinds:
        def drift(self, rows):
            return {"word": rows.schema.field("word").type}

        def score(self, rows):
            return pa.table({"word": rows["word"].cast(pa.string())})

    scores, drift = score_rows(Kinds(), pa.table({"word": [" a", "b "]}), 0, "t.csv")
    assert pa.types.is_dictionary(drift["word"])
    assert scores["word"].to_pylist() == ["a", "b"]


def test_parts_of_a_model_that_do_not_fit_are_named_by_its_file(people, table, tmp_path):
    model = fitted(MODELS["plain"], table)
    model.encoder = TableEncoder().fit(people.select(["age"]))
    del model.encoder.columns_[0]["kind"]
    scorer = ModelScorer(save(model, tmp_path / "odd.skops"))
    with pytest.raises(UserError, match=r"the model odd\.skops fails \(KeyError"):
        scorer.drift(people)
    model.feature_names_in_ = np.array([1, 2, 3], dtype=object)
    scorer = ModelScorer(save(model, tmp_path / "odder.skops"))
    with pytest.raises(UserError, match=r"the model odder\.skops fails \(TypeError"):
        scorer.score(table)
