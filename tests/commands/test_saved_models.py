"""A model that is already there: labels of any type, models of other libraries, and the option that trusts them."""

import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import setminus
from setminus.commands.table_roles import Roles, Rows
from setminus.errors import UserError

WORDS = {"high": "yes", "low": "no"}


def as_labels(income, kind):
    high = income == "high"
    return income.map(WORDS) if kind == "text" else high.astype(kind)


def pipeline(classifier):
    encode = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["age", "skill"]))
    return make_pipeline(encode, classifier)


@pytest.fixture
def saved(people, tmp_path):
    def save(classifier, kind):
        columns = people[["age", "skill", "job"]]
        return setminus.save(
            pipeline(classifier).fit(columns, as_labels(people["income"], kind)), tmp_path / "mine.skops"
        )

    return save


@pytest.fixture
def fitted(command, people, tmp_path):
    def fit(model, kind, *options):
        people.assign(income=as_labels(people["income"], kind)).to_csv(tmp_path / "people.csv", index=False)
        arguments = ["--label", "income", "--ignore", "sex", "--full", model, *options]
        return command("fit", tmp_path / "people.csv", *arguments, "--out", tmp_path / "fair.skops", "--force")

    return fit


@pytest.mark.parametrize(("model", "table"), [("bool", "bool"), ("text", "text"), (float, int)])
def test_the_labels_of_a_saved_model_may_have_any_type(command, saved, fitted, people, tmp_path, model, table):
    done = fitted(saved(LogisticRegression(), model), table)
    assert done.code == 0, done.err
    scored = tmp_path / "scored.csv"
    done = command("apply", tmp_path / "fair.skops", tmp_path / "people.csv", "--out", scored)
    assert done.code == 0, done.err
    read = pd.read_csv(scored)
    assert np.mean(read["income"] == read["prediction"]) > 0.65
    # the audit understands what apply wrote, whatever the type of the label
    done = command("audit", scored, "--label", "income", "--ignore", "sex")
    assert done.code == 0, done.err


def rows(labels):
    return Rows(pa.table({"x": range(len(labels))}), np.array(labels), pa.table({}))


@pytest.mark.parametrize(
    ("labels", "positive", "classes", "expected", "names"),
    [
        (["0", "1"], None, np.array([0, 1]), [0, 1], {}),
        (["false", "true"], None, np.array([False, True]), [False, True], {"False": "false", "True": "true"}),
        (["true", "false"], None, np.array([0, 1]), [1, 0], {"0": "false", "1": "true"}),
        (["1", "0"], None, np.array([False, True]), [True, False], {"False": "0", "True": "1"}),
        (["yes", "no"], None, np.array([0, 1]), [1, 0], {"0": "no", "1": "yes"}),
        (["Yes", "No"], None, np.array(["no", "yes"]), ["yes", "no"], {"no": "No", "yes": "Yes"}),
        (["1", "2", "3"], None, np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0], {"1.0": "1", "2.0": "2", "3.0": "3"}),
        ([0, 1], "good", np.array([0, 1]), [0, 1], {"0": "not good", "1": "good"}),
        ([0, 1], "bad", np.array(["bad", "good"]), ["good", "bad"], {"good": "not bad"}),
        # some rows may lack a class
        (["1", "1"], None, np.array([0, 1]), [1, 1], {}),
    ],
)
def test_the_words_of_a_file_are_matched_with_the_classes_of_a_model(labels, positive, classes, expected, names):
    found, words = rows(labels).labelled_by(classes, Roles("y", ["g"], positive), "m.skops")
    assert found.y.tolist() == expected and found.y.dtype == classes.dtype
    assert words == names


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (
            ["bad", "good"],
            np.array([0, 1]),
            "m.skops predicts '0', '1', the label 'y' holds 'bad', 'good': .*--pos",
        ),
        (["0", "1"], np.array(["bad", "good"]), "holds '0', '1': give the label in the words"),
        (["0", "1", "2"], np.array([0, 1]), "holds '0', '1', '2': name"),
        # both words would be yes
        (["1", "yes"], np.array([0, 1]), "holds '1', 'yes'"),
    ],
)
def test_words_that_no_class_matches_are_refused(labels, classes, message):
    with pytest.raises(UserError, match=message):
        rows(labels).labelled_by(classes, Roles("y", ["g"]), "m.skops")


def trust_options(done):
    """The options that the second line of an error asks for, as a shell reads them."""
    first, second = done.err.strip().splitlines()[-2:]
    assert "holds what is not trusted" in first
    assert second.startswith("If you know who made the file, add this to the command: --trust ")
    return shlex.split(second.partition(": ")[2])


def test_one_line_trusts_all_that_a_model_of_another_library_holds(saved, fitted, command, tmp_path):
    model = saved(KNeighborsClassifier(algorithm="kd_tree"), int)
    refused = fitted(model, int)
    assert refused.code == 2
    options = trust_options(refused)
    assert len(options) >= 4, "a stand-in with two types or more"
    done = fitted(model, int, *options)
    assert done.code == 0, done.err
    # the fair model holds the same types, and the line that shows its use says so
    assert shlex.join(options) in (tmp_path / "fair.audit.json").read_text()
    scored = ["apply", tmp_path / "fair.skops", tmp_path / "people.csv", "--out", tmp_path / "scored.csv"]
    assert trust_options(command(*scored)) == options
    assert command(*scored, *options).code == 0


def test_in_python_the_error_names_the_parameter(saved):
    path = saved(KNeighborsClassifier(algorithm="kd_tree"), int)
    with pytest.raises(UserError, match=r"allow it by load\(path, trusted=\['sklearn") as caught:
        setminus.load(path)
    assert "--trust" not in str(caught.value)


@pytest.mark.parametrize(("package", "name"), [("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier")])
def test_pipelines_of_boosting_libraries_work_after_one_instruction(saved, fitted, package, name):
    library = pytest.importorskip(package)
    model = saved(getattr(library, name)(n_estimators=10, n_jobs=1), int)
    refused = fitted(model, int)
    done = fitted(model, int, *trust_options(refused))
    assert done.code == 0, done.err
