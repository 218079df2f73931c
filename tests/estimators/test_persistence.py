import functools
import os
import warnings

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from setminus import (
    GroupPrincipal,
    ImportanceWeightedClassifier,
    OrthogonalClassifier,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
    load,
    save,
)
from tests.made_models import edited, plain, set_attribute

BOOSTING = HistGradientBoostingClassifier(max_iter=5)
LOGISTIC = LogisticRegression()


@pytest.mark.parametrize(
    "model",
    [
        OrthogonalClassifier(BOOSTING),
        OrthogonalClassifier(make_pipeline(StandardScaler(), LOGISTIC), calibration="sigmoid"),
        OrthogonalClassifier(BOOSTING, ProxyPrincipal(BOOSTING), calibration="isotonic"),
        OrthogonalClassifier(LOGISTIC, ProxyPrincipal(LOGISTIC, method="score"), calibration="temperature"),
        OrthogonalClassifier(LOGISTIC, [GroupPrincipal(), LOGISTIC]),
        TunedOrthogonalClassifier(BOOSTING, ProxyPrincipal(BOOSTING), cv=2, strengths=[0, 1]),
        ImportanceWeightedClassifier(BOOSTING),
        ImportanceWeightedClassifier(HistGradientBoostingClassifier(max_iter=5, categorical_features=[1])),
    ],
    ids=lambda model: f"{type(model).__name__}-{type(model.principal).__name__}-{getattr(model, 'calibration', None)}",
)
@pytest.mark.parametrize("kind", ["binary", "three"])
def test_our_models_load_as_they_are(model, kind, rows, many, tmp_path):
    data = rows if kind == "binary" else many
    keep = slice(0, 600)
    X, y, sex = data.X[keep], np.array(["a", "b", "c"])[data.y[keep]], data.sex[keep]
    model.fit(X, y, sensitive_features=sex)
    again = load(save(model, tmp_path / "model.skops"))
    needs = {"sensitive_features": sex} if "Group" in str(getattr(model, "principals_", "")) else {}
    if isinstance(model, ImportanceWeightedClassifier):
        needs = {}
    np.testing.assert_array_equal(again.predict_proba(X, **needs), model.predict_proba(X, **needs))
    np.testing.assert_array_equal(again.predict(X, **needs), model.predict(X, **needs))


def test_a_frozen_model_and_binned_crossed_groups(rows, tmp_path):
    groups = np.column_stack([rows.male, rows.X[:, 2]])
    model = OrthogonalClassifier(FrozenEstimator(LogisticRegression().fit(rows.X, rows.y)))
    model.fit(rows.X, rows.y, sensitive_features=groups)
    again = load(save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(
        again.predict(rows.X, sensitive_features=groups), model.predict(rows.X, sensitive_features=groups)
    )


def test_strangers_are_refused_by_name_until_they_are_trusted(rows, tmp_path):
    model = KernelRidge().fit(rows.X[:50], rows.y[:50])
    stranger = "sklearn.kernel_ridge.KernelRidge"
    path = save(model, tmp_path / "stranger.skops")
    with pytest.raises(ValueError, match=rf"not trusted, {stranger}: .*load\(path, trusted=\['{stranger}'\]\)"):
        load(path)
    assert load(path, trusted=[stranger]).alpha == 1
    with pytest.raises(TypeError, match="expected a list of type names"):
        load(path, trusted=stranger)


def test_a_partial_of_a_stranger_is_refused_until_it_is_trusted(tmp_path):
    path = save(FunctionTransformer(functools.partial(os.system, "true")), tmp_path / "hostile.skops")
    with pytest.raises(ValueError, match=r"not trusted, posix\.system: if you know who made the file"):
        load(path)
    assert load(path, trusted=["posix.system"]).func.args == ("true",)


def test_another_version_of_scikit_learn_is_told_once_and_in_our_words(rows, tmp_path):
    path = save(make_pipeline(StandardScaler(), LOGISTIC).fit(rows.X, rows.y), tmp_path / "m.skops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path)

    def older(schema, arrays):
        for name in ("StandardScaler", "LogisticRegression", "Pipeline"):
            set_attribute(schema, name, "_sklearn_version", plain("0.1\x1b[2J"))

    edited(path, older)
    with pytest.warns(UserWarning, match=r"m\.skops was saved with another version of scikit-learn than") as told:
        load(path)
    assert len(told) == 1
    assert str(told[0].message).isprintable()


def test_what_is_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / "absent.skops")
    wrong = tmp_path / "wrong.skops"
    wrong.write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"wrong.skops is no model file"):
        load(wrong)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(rows, tmp_path, monkeypatch):
    path = save(OrthogonalClassifier(LOGISTIC).fit(rows.X, rows.y, sensitive_features=rows.sex), tmp_path / "m.skops")
    before = path.read_bytes()

    def interrupted(model):
        raise KeyboardInterrupt

    monkeypatch.setattr(skops.io, "dumps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(OrthogonalClassifier(LOGISTIC), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.skops"]


def test_an_adapter_comes_back_with_the_same_answers(tmp_path):
    pytest.importorskip("torch")
    from setminus import OrthogonalAdapter

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.tile([0, 1], 30)
    adapter = OrthogonalAdapter(steps=20).fit(X, y, sample_domain=np.repeat([1, -1], 30))
    back = load(save(adapter, tmp_path / "adapter.skops"))
    assert np.array_equal(back.predict_proba(X), adapter.predict_proba(X))
