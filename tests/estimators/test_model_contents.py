"""Files that lead compiled code out of its memory, round in a circle or to the disk: each does so by skops alone."""

import functools
import importlib
import re
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_files
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators
from sklearn.utils._test_common.instance_generator import _construct_instances

from setminus import load, save
from setminus.estimators.model_contents import _reviewed, refused_name
from tests.made_models import (
    attributes,
    edited,
    load_by_skops_alone,
    nodes,
    outcome,
    plain,
    predict_by_skops_alone,
    set_attribute,
)

OBJECTS = sorted(_reviewed()["ObjectNode"])
ESTIMATORS = [made for _, made in all_estimators() if f"{made.__module__}.{made.__name__}" in OBJECTS]
SHARES = np.random.default_rng(0).uniform(0.1, 1, (60, 4)).round(1)
SHARES_Y = (SHARES[:, 0] + SHARES[:, 1] > 1).astype(int)


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
    y = np.column_stack([SHARES_Y, 1 - SHARES_Y]) if several else SHARES_Y + 1
    rows = SHARES
    if made.__name__ in ("LabelBinarizer", "LabelEncoder"):
        return model.fit(y), y
    if made.__name__.endswith("Vectorizer"):
        rows = ["one two", "two three"] * 30
    if made.__name__ == "IsotonicRegression":
        rows = SHARES[:, :1]
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


RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(200, 2)), RNG.integers(0, 4, 200)])
Y = (X[:, 0] + X[:, 2] > 1).astype(int)
N_VECTORS = SVC().fit(X, Y).n_support_.sum()
WORDS = ["one two", "two three", "three four", "four one"]


def boosting():
    return HistGradientBoostingClassifier(max_iter=2, categorical_features=[2], random_state=0).fit(X, Y)


def tree_nodes(**fields):
    """Change fields of the first node of every tree."""

    def change(schema, arrays):
        for array in arrays.values():
            if array.dtype.names:
                for field, value in fields.items():
                    array[field][0] = value

    return change


def set_file(name, attribute, value):
    """Change an array that is an attribute."""

    def change(schema, arrays):
        array = arrays[attributes(schema, name)[attribute]["file"]]
        array[...] = value

    return change


def set_plain(name, attribute, value):
    return lambda schema, arrays: set_attribute(schema, name, attribute, plain(value))


def set_state(name, key, value):
    """Change what a compiled object is made from."""
    return lambda schema, arrays: next(nodes(schema, name))["content"]["content"].update({key: plain(value)})


def set_place(schema, arrays):
    state = next(nodes(schema, "RandomState"))["content"]["content"]["state"]
    state["content"]["pos"] = plain(1 << 30)


def set_word(schema, arrays):
    attributes(schema, "CountVectorizer")["vocabulary_"]["content"]["one"] = plain(1 << 30)


def set_count(schema, arrays):
    # more nodes than there is memory of
    next(nodes(schema, "Tree"))["content"]["content"]["node_count"] = plain(1 << 40)
    tree_nodes(left_child=1 << 39)(schema, arrays)


def rare(schema, arrays):
    mapping = attributes(schema, "OneHotEncoder")["_default_to_infrequent_mappings"]["content"][0]
    arrays[mapping["file"]][...] = 1 << 40


def vectorized():
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(WORDS, [0, 1, 0, 1])


def one_hot():
    return make_pipeline(OneHotEncoder(max_categories=2, sparse_output=False), LogisticRegression()).fit(X[:, 2:], Y)


def guessing():
    return DummyClassifier(strategy="uniform", random_state=np.random.RandomState(0)).fit(X, Y)


def tree():
    return DecisionTreeClassifier(random_state=0).fit(X, Y)


CRASHES = {
    "a child beyond the nodes of gradient boosting": (boosting, tree_nodes(left=1 << 30, right=1 << 30), X),
    "a feature that X has not": (boosting, tree_nodes(feature_idx=1 << 40), X),
    "a set of categories that is not there": (boosting, tree_nodes(is_categorical=1, bitset_idx=1 << 30), X),
    "a child beyond the nodes of a tree": (tree, tree_nodes(left_child=1 << 40, right_child=1 << 40), X),
    "a feature that X has not, in a forest": (
        lambda: RandomForestClassifier(2).fit(X, Y),
        tree_nodes(feature=1 << 40),
        X,
    ),
    "a tree of more nodes than it has": (tree, set_count, X),
    "a column that is not there": (one_hot, rare, X[:, 2:]),
    "more support vectors than there are": (
        lambda: SVC().fit(X, Y),
        set_file("SVC", "_n_support", [N_VECTORS + (1 << 28), -(1 << 28)]),
        X,
    ),
    "a place beyond the table of random numbers": (guessing, set_place, X),
    "a word beyond the columns": (vectorized, set_word, np.array(WORDS)),
}


def test_the_numbers_of_classes_of_a_tree_are_whole(tmp_path):
    def change(schema, arrays):
        file = next(nodes(schema, "Tree"))["__reduce__"]["args"]["content"][1]["file"]
        arrays[file] = arrays[file].astype(float)

    edited(path := save(tree(), tmp_path / "hostile.skops"), change)
    with pytest.raises(ValueError, match="a Tree with values out of range"):
        load(path)


@pytest.mark.parametrize(("made", "change", "rows"), CRASHES.values(), ids=CRASHES)
def test_what_kills_the_process_is_refused(made, change, rows, tmp_path):
    path = save(made(), tmp_path / "hostile.skops")
    assert len(load(path).predict(rows)) == len(rows)
    edited(path, change)
    # the control: killed by a signal, after loading
    assert outcome(predict_by_skops_alone, path, rows, tmp_path / "log") < 0
    assert (tmp_path / "log").read_text() == "loaded"
    with pytest.raises(ValueError, match=r"hostile.skops is not a model file .*values out of range\): copy it again"):
        load(path)


@pytest.mark.parametrize(
    ("made", "change"),
    [(boosting, tree_nodes(left=0, right=0)), (tree, tree_nodes(left_child=0, right_child=0))],
    ids=["gradient boosting", "tree"],
)
def test_a_branch_that_leads_back_up_is_refused(made, change, tmp_path):
    path = edited(save(made(), tmp_path / "hostile.skops"), change)
    assert outcome(predict_by_skops_alone, path, X, tmp_path / "log", seconds=2) == -signal.SIGXCPU
    assert (tmp_path / "log").read_text() == "loaded"
    with pytest.raises(ValueError, match="values out of range"):
        load(path)


def drop_numbers(schema, arrays):
    for one in nodes(attributes(schema, "HistGradientBoostingClassifier")["_preprocessor"], "tuple"):
        if one["content"][0].get("content") == '"numerical"':
            one["content"][1] = plain("drop")


def drop_another(schema, arrays):
    for name in ("drop_idx_", "_drop_idx_after_grouping"):
        attributes(schema, "OneHotEncoder")[name]["content"] = [plain(9)]


def turn_round(schema, arrays):
    for array in arrays.values():
        array[...] = array[::-1].copy()


def unplaced_word(schema, arrays):
    attributes(schema, "TfidfVectorizer")["vocabulary_"]["content"]["one"] = plain(-1)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_support_vectors_of_every_kernel_are_read(kernel, tmp_path):
    model = SVC(kernel=kernel).fit(X, Y)
    loaded = load(save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


# where other memory would be read, which does not always end a process
@pytest.mark.parametrize(
    ("made", "change"),
    [
        (boosting, drop_numbers),
        (boosting, set_plain("HistGradientBoostingClassifier", "_in_fit", True)),
        (boosting, set_plain("HistGradientBoostingClassifier", "n_features_in_", 2)),
        (boosting, set_plain("HistGradientBoostingClassifier", "n_trees_per_iteration_", 1 << 40)),
        (boosting, set_file("_BinMapper", "is_categorical_", 0)),
        (boosting, tree_nodes(left=2)),
        (tree, set_plain("DecisionTreeClassifier", "n_features_in_", 2)),
        (tree, set_plain("DecisionTreeClassifier", "n_features_in_", "3")),
        (tree, tree_nodes(feature=-1)),
        (tree, set_state("Tree", "max_depth", 1)),
        (lambda: PolynomialFeatures().fit(X), set_plain("PolynomialFeatures", "_max_degree", 1 << 40)),
        (one_hot, set_plain("OneHotEncoder", "_n_features_outs", [1])),
        (lambda: OneHotEncoder(drop="first").fit(X[:, 2:]), drop_another),
        (lambda: OneHotEncoder().fit(X[:, 2:]), turn_round),
        (lambda: KBinsDiscretizer(3).fit(X), set_plain("OneHotEncoder", "_n_features_outs", [1, 1, 1])),
        (lambda: SVC().fit(X, Y), set_plain("SVC", "kernel", "precomputed")),
        (lambda: TfidfVectorizer().fit(WORDS), unplaced_word),
    ],
)
def test_what_could_read_other_memory_is_refused(made, change, tmp_path):
    path = save(made(), tmp_path / "hostile.skops")
    load(path)
    edited(path, change)
    with pytest.raises(ValueError, match="values out of range"):
        load(path)


def test_an_attribute_does_not_stand_in_for_a_method(tmp_path):
    path = save(StandardScaler().fit(X), tmp_path / "hostile.skops")
    function = {"__class__": "exp", "__module__": "numpy", "__loader__": "FunctionNode", "__id__": 3_000_000}
    edited(path, lambda schema, arrays: set_attribute(schema, "StandardScaler", "transform", function))
    with pytest.raises(ValueError, match="attribute 'transform' hides one of its class"):
        load(path)


@pytest.mark.parametrize("jobs", [10**6, -(10**6), "all"])
def test_a_million_processes_are_refused(jobs, tmp_path):
    path = save(RandomForestClassifier(2, n_jobs=2).fit(X, Y), tmp_path / "hostile.skops")
    assert load(path).n_jobs == 2
    edited(path, set_plain("RandomForestClassifier", "n_jobs", jobs))
    with pytest.raises(ValueError, match=f"would start {jobs!r} processes"):
        load(path)


@pytest.mark.parametrize("made", [CountVectorizer, TfidfVectorizer])
def test_a_model_that_would_read_files_is_refused_by_that_setting(made, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("password hunter2")
    frame = pd.DataFrame({"name": [str(secret)]})
    model = make_pipeline(make_column_transformer((made(input="filename"), "name"))).fit(frame)
    path = save(model, tmp_path / "curious.skops")
    # the control: the content of a file that the model was never given
    assert (load_by_skops_alone(path).transform(frame) > 0).sum() == 2
    vectorizer = load_by_skops_alone(path)[0].transformers_[0][1]
    assert vectorizer.build_analyzer()(str(secret)) == ["password", "hunter2"]
    setting = rf"sklearn\.feature_extraction\.text\.{made.__name__}\(input='filename'\)"
    with pytest.raises(ValueError, match=f"not trusted, {setting}: if you know who made the file"):
        load(path)
    assert load(path, trusted=[setting.replace("\\", "")]).transform(frame).shape == (1, 2)


def test_a_pipeline_that_would_write_a_cache_is_refused(tmp_path):
    model = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path / "cache")).fit(X, Y)
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    path = save(model, tmp_path / "busy.skops")
    load_by_skops_alone(path).fit(X, Y)
    # the control
    assert (tmp_path / "cache").exists()
    with pytest.raises(ValueError, match=r"not trusted, sklearn\.pipeline\.Pipeline\(memory='.*cache'\)"):
        load(path)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (FunctionTransformer(np.exp, kw_args={"out": np.zeros(3)}), r"FunctionTransformer\(kw_args="),
        (FunctionTransformer(np.exp, inv_kw_args={"out": np.zeros(3)}), r"FunctionTransformer\(inv_kw_args="),
        (FunctionTransformer(functools.partial(np.exp, out=np.zeros(3))), r"numpy\.exp"),
        (CountVectorizer(token_pattern=r"(a+)+b"), r"CountVectorizer\(token_pattern='\(a\+\)\+b'\)"),
    ],
)
def test_other_settings_that_reach_out_are_refused(model, said, tmp_path):
    with pytest.raises(ValueError, match=f"not trusted, .*{said}"):
        load(save(model, tmp_path / "hostile.skops"))


def test_plain_functions_and_vectorizers_load(tmp_path):
    again = load(save(make_pipeline(FunctionTransformer(np.log1p), StandardScaler()).fit(X**2), tmp_path / "m.skops"))
    assert again.transform(X**2).shape == X.shape
    model = vectorized()
    again = load(save(model, tmp_path / "m.skops"))
    assert np.array_equal(again.predict_proba(WORDS), model.predict_proba(WORDS))
