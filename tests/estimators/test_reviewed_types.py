"""The positive list: every name on it exists, and a fitted model of each type comes back; all else is refused."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.datasets import load_files
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import all_estimators
from sklearn.utils._test_common.instance_generator import _construct_instances

from setminus import load, save
from setminus.estimators.reviewed_types import _reviewed, refused_name
from tests.made_models import edited, nodes

OBJECTS = sorted(_reviewed()["ObjectNode"])
ESTIMATORS = [made for _, made in all_estimators() if f"{made.__module__}.{made.__name__}" in OBJECTS]
RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1, (60, 4)).round(1)
Y = (X[:, 0] + X[:, 1] > 1).astype(int)


def found(name):
    module, _, attribute = name.rpartition(".")
    return hasattr(importlib.import_module(module), attribute)


def test_the_table_for_users_has_every_type():
    text = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    listed = set(re.findall(r"`(\w+)`", text.partition("## What was reviewed")[2].partition("Not on the list")[0]))
    names = {
        name.rpartition(".")[2] for loader in ("ObjectNode", "LossNode", "TreeNode") for name in _reviewed()[loader]
    }
    assert names - listed == set()
    # and no other, but for what is no type of its own
    assert listed - names == {"RandomState", "Generator", "check_array", "kw_args", "token_pattern", "n_jobs"}


@pytest.mark.parametrize("loader", sorted(set(_reviewed()) - {"FunctionNode"}))
def test_every_name_is_there(loader):
    assert [name for name in _reviewed()[loader] if not found(name)] == []
    assert not found("sklearn.svm._classes.Oracle")


def fitted(made):
    model = next(iter(_construct_instances(made)))
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    several = made.__name__.startswith(("MultiOutput", "MultiTask")) or made.__name__.endswith("Chain")
    y = np.column_stack([Y, 1 - Y]) if several else Y + 1
    rows = X
    if made.__name__ in ("LabelBinarizer", "LabelEncoder"):
        return model.fit(y), y
    if made.__name__.endswith("Vectorizer"):
        rows = ["one two", "two three"] * 30
    if made.__name__ == "IsotonicRegression":
        rows = X[:, :1]
    return model.fit(rows, y), rows


@pytest.mark.parametrize("made", ESTIMATORS, ids=lambda made: made.__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_fitted_model_of_each_type_comes_back(made, tmp_path):
    model, rows = fitted(made)
    again = load(save(model, tmp_path / "model.skops"))
    assert type(again) is made
    for method in ("predict_proba", "predict", "transform"):
        if hasattr(model, method):
            before, after = (np.asarray(getattr(one, method)(rows)) for one in (model, again))
            if before.dtype == object:
                before, after = before.item().toarray(), after.item().toarray()
            np.testing.assert_array_equal(after, before)
            return
    pytest.fail("there is nothing to compare")


def test_the_list_has_most_classifiers_and_no_neighbours():
    assert len(ESTIMATORS) > 80
    names = {made.__name__ for made in ESTIMATORS}
    assert {"LogisticRegression", "HistGradientBoostingClassifier", "RandomForestClassifier", "SVC"} <= names
    assert not {"KNeighborsClassifier", "KMeans", "HashingVectorizer", "DictVectorizer"} & names


@pytest.mark.parametrize(
    "function",
    [np.load, np.fromfile, np.genfromtxt, np.savetxt, np.memmap, load_files, eval, open, print, np.frompyfunc],
)
def test_functions_that_touch_the_system_are_refused(function, tmp_path):
    path = save(FunctionTransformer(np.exp), tmp_path / "model.skops")

    def name_it(schema, arrays):
        node = next(nodes(schema, "exp"))
        node.update(__module__=function.__module__, __class__=function.__name__)

    load(path)
    edited(path, name_it)
    with pytest.raises(ValueError, match=rf"not trusted, {function.__module__}\.{function.__name__}: "):
        load(path)


@pytest.mark.parametrize("function", [np.log, np.sqrt, special.expit, special.logit, special.boxcox])
def test_plain_functions_load(function, tmp_path):
    assert load(save(FunctionTransformer(function), tmp_path / "model.skops")).func is function


@pytest.mark.parametrize(
    "loader", ["ConstructorFromReduceNode", "LossNode", "MethodNode", "OperatorFuncNode", "CachedNode"]
)
def test_a_name_counts_for_its_own_loader_only(loader):
    assert refused_name("FunctionNode", "sklearn.utils.validation", "check_array") is None
    assert refused_name(loader, "sklearn.utils.validation", "check_array") == "sklearn.utils.validation.check_array"


class Own(BaseEstimator):
    pass


def test_a_type_of_the_users_own_loads_when_trusted(tmp_path):
    path = save(Own(), tmp_path / "model.skops")
    name = f"{Own.__module__}.Own"
    with pytest.raises(ValueError, match=f"not trusted, {name}: "):
        load(path)
    assert type(load(path, trusted=[name])) is Own
