"""The exported graph answers as the model does, and an error names the part that cannot be exported."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from setminus import (
    GroupPrincipal,
    OrthogonalAdapter,
    OrthogonalClassifier,
    PriorCorrectedClassifier,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
    export_onnx,
    export_sql,
    onnx_inputs,
)
from setminus.errors import UserError
from setminus.estimators.principals import default_classifier
from setminus.export.onnx import sample_rows
from setminus.tables.encoding import TableEncoder
from tests.export.conftest import people

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def run(path, X, **groups):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, onnx_inputs(session, X, **groups))


def assert_same(model, path, X, **groups):
    label, proba = run(path, X, **groups)
    expected = model.predict_proba(X, **groups)
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-12)
    assert (label == model.predict(X, **groups)).all()
    return proba


@pytest.mark.parametrize("known", [False, True], ids=["proxy", "group"])
@pytest.mark.parametrize("form", ["ordinal", "onehot"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_table_model_is_one_graph_from_the_columns_to_the_decision(tmp_path, tuned, known, form, n_classes):
    model = tuned(known, form, n_classes)
    assert np.abs(model.group_offsets_).max() > 0.01
    table, _ = people(n_classes=n_classes)
    path = tmp_path / "model.onnx"
    assert export_onnx(model, path, table)["rows"] == table.num_rows
    # 2,000 rows with missing and unseen values that the export was not compared on
    proba = assert_same(model, path, sample_rows(model, seed=1))
    assert proba.shape == (2000, n_classes)
    # a negative control: another model has other answers
    assert np.abs(proba - model.model_.full_.predict_proba(sample_rows(model, seed=1))).max() > 1e-4


def test_bands_of_scores_around_the_thresholds_of_known_groups(tmp_path, tuned):
    model = tuned(True, interpolate=True)
    slopes = model.group_offsets_[len(model.group_offsets_) // 2 :]
    assert np.abs(slopes).max() > 0.01
    export_onnx(model, tmp_path / "model.onnx", people()[0])
    assert_same(model, tmp_path / "model.onnx", sample_rows(model, seed=1))
    with pytest.raises(UserError, match="export it as ONNX"):
        export_sql(model, full=["p0", "p1"], groups=["sex"])


@pytest.mark.parametrize("known", [False, True], ids=["proxy", "group"])
def test_the_papers_formula_at_any_strength(tmp_path, tuned, known):
    model = tuned(known, offsets=False).at(index=0)
    model.model_.strength, model.group_offsets_ = 0.7, None
    assert export_onnx(model, tmp_path / "model.onnx", people()[0])["difference"] < 1e-12


def test_an_unseen_group_stops_the_runtime_as_it_stops_python(tmp_path, tuned):
    model, table = tuned(True), people()[0]
    export_onnx(model, tmp_path / "model.onnx", table)
    strange = table.set_column(5, "sex", pa.array(["x"] * table.num_rows))
    with pytest.raises(UserError, match="unseen group 'x'"):
        model.predict_proba(strange)
    with pytest.raises(Exception, match=r"out of (data )?bounds"):
        run(tmp_path / "model.onnx", strange)
    # a missing one is no error in either
    assert_same(
        model, tmp_path / "model.onnx", table.set_column(5, "sex", pa.array(["m", None] * (table.num_rows // 2)))
    )


def test_groups_that_are_merged_binned_and_crossed(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "x": y + rng.normal(size=n),
            "age": rng.integers(20, 80, n) + 5 * y,
            "race": rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.38, 0.01, 0.01]),
        }
    )
    model = TunedOrthogonalClassifier(
        make_pipeline(default_classifier(frame)),
        sensitive_columns=["age", "race"],
        bins={"age": [40, 62]},
        min_group_size=30,
        confidence=None,
        cv=2,
    ).fit(frame, y)
    assert model.groups_.regroups
    export_onnx(model, tmp_path / "model.onnx", frame)
    other = frame.assign(age=rng.permutation(frame["age"]) + 0.5, race=rng.choice(["a", "c", "new", None], n))
    assert_same(model, tmp_path / "model.onnx", other)


def arrays(n=600, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    sex = np.where(rng.random(n) < 0.2 + 0.3 * y, "m", "f")
    X = np.column_stack([y + rng.normal(size=n), rng.normal(size=n), sex == "m"]).astype(float)
    return X, y, sex


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "full",
    [
        HistGradientBoostingClassifier(max_iter=5),
        RandomForestClassifier(5, random_state=0),
        ExtraTreesClassifier(5, random_state=0),
        DecisionTreeClassifier(max_depth=4),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_of_arrays(tmp_path, full, n_classes):
    X, y, sex = arrays(n_classes=n_classes)
    model = OrthogonalClassifier(full, ProxyPrincipal(LogisticRegression(), method="score"), on_violation="clip")
    model.fit(X, y, sensitive_features=sex)
    assert export_onnx(model, tmp_path / "model.onnx", X)["difference"] < 1e-12
    assert_same(model, tmp_path / "model.onnx", np.random.default_rng(1).normal(size=(500, 3)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", "temperature"])
def test_calibrated_classifiers(tmp_path, calibration, n_classes):
    X, y, sex = arrays(n_classes=n_classes)
    for full in (
        HistGradientBoostingClassifier(max_iter=3),
        make_pipeline(StandardScaler(), LogisticRegression()),
        DecisionTreeClassifier(max_depth=3),
    ):
        model = OrthogonalClassifier(full, ProxyPrincipal(LogisticRegression()), calibration=calibration)
        model.fit(X, y, sensitive_features=sex)
        assert export_onnx(model, tmp_path / "model.onnx", X)["difference"] < 1e-9
        assert_same(model, tmp_path / "model.onnx", 3 * np.random.default_rng(1).normal(size=(500, 3)))


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosters_of_other_libraries(tmp_path, package, n_classes):
    library = pytest.importorskip(package)
    X, y, _ = arrays(n_classes=n_classes)
    X[::7, 1] = np.nan
    settings = {"n_estimators": 10, "n_jobs": 1}
    full = library.XGBClassifier(**settings) if package == "xgboost" else library.LGBMClassifier(**settings, verbose=-1)
    model = OrthogonalClassifier(full, GroupPrincipal(), sensitive_columns=[2]).fit(X, y)
    # XGBoost adds its leaves in float32
    assert export_onnx(model, tmp_path / "model.onnx", X)["difference"] < (1e-6 if package == "xgboost" else 1e-12)


def test_groups_by_keyword_are_an_input(tmp_path):
    X, y, sex = arrays()
    model = OrthogonalClassifier(LogisticRegression()).fit(X, y, sensitive_features=sex)
    done = export_onnx(model, tmp_path / "model.onnx", X, sensitive_features=sex)
    assert list(done["inputs"]) == ["X", "sensitive_features"]
    assert_same(model, tmp_path / "model.onnx", X[::-1].copy(), sensitive_features=sex[::-1].copy())
    with pytest.raises(UserError, match="the model needs the groups"):
        export_onnx(model, tmp_path / "model.onnx", X)


def test_adapted_and_corrected_classifiers(tmp_path):
    X, y, _ = arrays()
    domain = np.where(np.arange(len(X)) % 2, 1, -1)
    for model in (
        PriorCorrectedClassifier(LogisticRegression(), n_bootstrap=5),
        OrthogonalAdapter("vada_orthogonal", steps=2, predict_prior="target"),
    ):
        model.fit(X, y, domain)
        assert export_onnx(model, tmp_path / "model.onnx", X)["difference"] < 1e-12


def test_the_default_classifier_of_a_frame_with_words(tmp_path):
    X, y, sex = arrays()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "word": rng.choice(["x", "y", "z", None], len(X)), "sex": sex})
    model = OrthogonalClassifier(default_classifier(frame), ProxyPrincipal(), sensitive_columns=["sex"])
    model.fit(frame, np.array(["a", "b", "c"])[y])
    export_onnx(model, tmp_path / "model.onnx", frame)
    assert_same(model, tmp_path / "model.onnx", frame.assign(word=rng.choice(["x", "new", None], len(X))))


@pytest.mark.parametrize(
    ("full", "named"),
    [
        (GradientBoostingClassifier(n_estimators=2), "GradientBoostingClassifier"),
        (make_pipeline(StandardScaler(), KNeighborsClassifier(metric="haversine")), "KNeighborsClassifier"),
    ],
    ids=["trees in float32", "unknown to skl2onnx"],
)
def test_an_error_names_the_part_that_cannot_be_exported(tmp_path, full, named):
    X, y, sex = arrays(n_classes=2)
    model = OrthogonalClassifier(full, on_violation="clip").fit(X[:, :2], y, sensitive_features=sex)
    with pytest.raises(UserError, match=f"{named} cannot be exported"):
        export_onnx(model, tmp_path / "model.onnx", X[:, :2], sensitive_features=sex)
    assert not (tmp_path / "model.onnx").exists()


def test_a_graph_that_differs_from_the_model_is_not_written(tmp_path, monkeypatch):
    X, y, _ = arrays()
    model = LogisticRegression().fit(X, y)
    # the graph is built before the model is changed
    monkeypatch.setattr(model, "predict_proba", lambda X: np.full((len(X), 3), 1 / 3), raising=False)
    with pytest.raises(UserError, match="differs from the model"):
        export_onnx(model, tmp_path / "model.onnx", X)
    assert not (tmp_path / "model.onnx").exists()


def test_words_with_and_without_missing_ones_and_one_hot_columns(tmp_path):
    # the empty text is a level here, so that another word stands for a missing value
    rng = np.random.default_rng(0)
    table = pa.table({"word": rng.choice(["", "a", "b"], 300).tolist()[:-10] + [None] * 10, "x": rng.normal(size=300)})
    y = rng.integers(0, 2, 300)
    model = make_pipeline(TableEncoder("onehot"), LogisticRegression()).fit(table, y)
    done = export_onnx(model, tmp_path / "model.onnx", table)
    assert done["inputs"]["word"]["missing"] == "<missing>"
    frame = pd.DataFrame({"word": np.where(y + rng.random(300) > 0.6, "u", "v")})
    plain = make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), LogisticRegression()).fit(
        frame, y
    )
    export_onnx(plain, tmp_path / "plain.onnx", frame)
    assert_same(plain, tmp_path / "plain.onnx", pd.DataFrame({"word": ["u", "new", "v"]}))


def test_the_file_says_what_it_holds(tmp_path, tuned):
    export_onnx(tuned(False), tmp_path / "model.onnx", people()[0])
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == ["no", "yes"]
    kinds = {name: described["kind"] for name, described in json.loads(about["inputs"]).items()}
    assert (kinds["age"], kinds["job"], kinds["born"]) == ("number", "text", "days")
    # a proxy does without the group
    assert "sex" not in [value.name for value in session.get_inputs()]
    with pytest.raises(UserError, match="no column 'age'"):
        onnx_inputs(session, people()[0].drop_columns(["age"]))
