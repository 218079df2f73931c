import datetime

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from setminus import OrthogonalClassifier, TunedOrthogonalClassifier, load, save
from setminus.errors import UserError
from setminus.tables.columns import describe
from setminus.tables.encoding import LEAK, TableEncoder, single_column_auc

# the encoder itself is its only type of ours; the rest is how scikit-learn's boosting keeps its categories
DAY = datetime.date(1970, 1, 11)


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    sex = np.where(rng.random(n) < 0.2 + 0.6 * y, "m", "f")
    age = np.where(rng.random(n) < 0.1, np.nan, 30 + 10 * y + rng.normal(size=n))
    job = np.array(["clerk", "cook", None], dtype=object)[rng.integers(0, 3, n)]
    table = pa.table(
        {
            "age": pa.array(age, from_pandas=True),
            "sex": sex,
            "job": pa.array(job),
            "member": np.where(y == rng.integers(0, 2, n), "yes", "no"),
            "since": [DAY + datetime.timedelta(days=int(k)) for k in rng.integers(0, 100, n)],
            "id": [f"person {i}" for i in range(n)],
            "planet": ["earth"] * n,
        }
    )
    return table, y


FRAMES = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "polars": polars.from_arrow,
}


@pytest.mark.parametrize("form", ["ordinal", "onehot"])
def test_every_frame_gives_the_same_array(form):
    table, _ = people()
    encoder = TableEncoder(form).fit(table)
    expected = encoder.transform(table)
    assert expected.dtype == np.float64
    assert expected.shape == (400, len(encoder.get_feature_names_out()))
    for frame in map(FRAMES.get, FRAMES):
        np.testing.assert_array_equal(TableEncoder(form).fit_transform(frame(table)), expected)
        np.testing.assert_array_equal(encoder.transform(frame(table)), expected)
    rows = table.to_pandas().sample(50, random_state=0)
    np.testing.assert_array_equal(encoder.transform(rows), expected[rows.index])


def test_ordinal_values():
    table, _ = people()
    encoder = TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["age", "sex", "job", "member", "since"]
    assert encoder.feature_names_in_.tolist() == table.column_names
    assert encoder.categorical_mask_.tolist() == [False, True, True, False, False]
    array = encoder.transform(table)
    np.testing.assert_array_equal(array[:, 0], table["age"].to_numpy())
    np.testing.assert_array_equal(array[:, 1], np.array(table["sex"]) == "m")
    np.testing.assert_array_equal(np.isnan(array[:, 2]), table["job"].is_null())
    np.testing.assert_array_equal(array[:, 3], np.array(table["member"]) == "yes")
    assert array[0, 4] == (table["since"][0].as_py() - datetime.date(1970, 1, 1)).days


def test_onehot_values():
    table, _ = people()
    encoder = TableEncoder("onehot").fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names[:4] == ["age", "age missing", "sex=f", "sex=m"]
    assert names[4:7] == ["job=clerk", "job=cook", "job missing"]
    array = encoder.transform(table)
    assert np.isfinite(array).all()
    np.testing.assert_allclose(array[:, names.index("age")].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(array[:, names.index("since")].std(), 1)
    np.testing.assert_array_equal(array[:, names.index("age missing")], table["age"].is_null())
    np.testing.assert_array_equal(array[:, 4:7].sum(axis=1), 1)
    assert not encoder.categorical_mask_.any()
    assert encoder.categorical_mask_.dtype == bool
    assert len(encoder.categorical_mask_) == array.shape[1]


def test_what_was_not_there_at_fit_time():
    table, _ = people()
    new = pa.table({"since": [DAY], "member": ["perhaps"], "job": ["astronaut"], "sex": ["x"], "age": [None]})
    assert np.isnan(TableEncoder().fit(table).transform(new)).tolist() == [[True, True, True, True, False]]
    onehot = TableEncoder("onehot").fit(table)
    row = dict(zip(onehot.get_feature_names_out(), onehot.transform(new)[0], strict=True))
    assert (row["job=clerk"], row["job=cook"], row["job missing"], row["sex=f"], row["sex=m"]) == (0, 0, 0, 0, 0)
    assert row["age missing"] == 1


def test_types_that_another_file_gives():
    table = pa.table(
        {"x": [1.5, 2.5] * 20, "code": ["1", "2"] * 20, "flag": [True, False] * 20, "day": [DAY, None] * 20}
    )
    encoder = TableEncoder().fit(table)
    same = pa.table({"x": ["1.5", "?"], "code": [1.0, None], "flag": ["TRUE", "0"], "day": ["1970-01-11", ""]})
    np.testing.assert_array_equal(encoder.transform(same), [[1.5, 0, 1, 10], [np.nan, np.nan, 0, np.nan]])
    empty = pa.table({name: pa.nulls(2) for name in table.column_names})
    assert np.isnan(encoder.transform(empty)).all()
    with pytest.raises(UserError, match=r"column 'x' holds something that is not a number: .*'many'"):
        encoder.transform(pa.table({**{name: pa.nulls(1) for name in table.column_names}, "x": ["many"]}))
    with pytest.raises(UserError, match="column 'day' holds something that is not a date"):
        encoder.transform(pa.table({**{name: pa.nulls(1) for name in table.column_names}, "day": ["soon"]}))


def test_kinds_that_are_given_hold_in_every_fold():
    table, _ = people()
    kinds = {summary.name: summary.kind for summary in describe(table)}
    fold = table.filter(np.array(table["sex"]) == "m")
    assert "sex" not in TableEncoder().fit(fold).get_feature_names_out()
    assert TableEncoder(kinds=kinds).fit(fold).get_feature_names_out().tolist() == [
        "age",
        "sex",
        "job",
        "member",
        "since",
    ]
    assert TableEncoder(kinds={"id": "category"}).fit(table).get_feature_names_out().tolist() == ["id"]
    with pytest.raises(UserError, match=r"X has no column 'sx': did you mean 'sex'"):
        TableEncoder(kinds={"sx": "category"}).fit(table)


def test_errors():
    table, _ = people()
    with pytest.raises(TypeError, match="expected a frame"):
        TableEncoder().fit(np.ones((2, 2)))
    with pytest.raises(ValueError, match="form is 'binary'"):
        TableEncoder("binary").fit(table)
    with pytest.raises(UserError, match="no column is left"):
        TableEncoder().fit(table.select(["id", "planet"]))
    with pytest.raises(UserError, match="X has no column 'age'"):
        TableEncoder().fit(table).transform(table.drop_columns(["age"]))
    # what was left out may be missing
    assert TableEncoder().fit(table).transform(table.drop_columns(["id", "planet"])).shape == (400, 5)
    for twice in (pandas.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])):
        with pytest.raises(UserError, match=r"X has (two|2) columns"):
            TableEncoder().fit(twice)
    with pytest.raises(UserError, match="column 'c' mixes values"):
        TableEncoder().fit(pandas.DataFrame({"c": [1, "a", b"b"]}))


@pytest.mark.parametrize("frame", FRAMES)
def test_models_fit_and_save_with_it(frame, tmp_path):
    table, y = people()
    kinds = {summary.name: summary.kind for summary in describe(table)}
    encoder = TableEncoder(kinds=kinds)
    mask = clone(encoder).fit(table).categorical_mask_
    boosting = make_pipeline(encoder, HistGradientBoostingClassifier(categorical_features=mask, max_iter=60))
    logistic = make_pipeline(TableEncoder("onehot", kinds=kinds), LogisticRegression())
    X = FRAMES[frame](table)
    for model in (
        OrthogonalClassifier(boosting, sensitive_columns=["sex"]),
        TunedOrthogonalClassifier(logistic, sensitive_columns=["sex"], cv=2, strengths=[0, 1], tolerance=1),
    ):
        model.fit(X, y)
        assert model.score(X, y) > 0.6
        again = load(save(model, tmp_path / "model.skops"))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        # one kind of frame to fit, another to predict
        np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(X))


def test_hostile_column_names():
    table = pa.table({'a "b", c': [1.5, 2.5], "<script>\n": ["x", "y"], "d.e": ["p", "q"]})
    assert TableEncoder("onehot").fit(table).get_feature_names_out().tolist() == [
        'a "b", c',
        "<script>\n=x",
        "<script>\n=y",
        "d.e=p",
        "d.e=q",
    ]
    assert TableEncoder().fit_transform(table).shape == (2, 3)


def test_a_number_that_training_never_had_stays_as_it_is():
    table = pa.table({"x": pa.array([None, None], pa.float64()), "y": [1.0, 3.0]})
    encoder = TableEncoder("onehot", kinds={"x": "number", "y": "number"}).fit(table)
    assert encoder.n_features_in_ == 2
    new = pa.table({"x": [5.0, None], "y": [2.0, 3.0]})
    # x as it is, whether it is missing, and y by its mean and its deviation
    np.testing.assert_array_equal(encoder.transform(new), [[5, 0, 0], [0, 1, 1]])


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
