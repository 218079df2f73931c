"""The tables that people have: rare and missing groups, legal cut-offs, several attributes, leaked outcomes."""

import inspect
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import setminus
from setminus.commands.fit import FitConfig, fit
from setminus.commands.table_roles import Roles, Rows, read_rows, split_names, split_rows, without_rare_labels
from setminus.errors import UserError
from setminus.estimators.groupings import Groupings
from setminus.tables.reading import open_table

SHARED = (
    *("constraint", "agg", "tolerance", "constraint_over", "small_groups", "confidence", "uncertified", "scoring"),
    *("min_lead", "min_rate_ratio", "min_selection_rate", "max_selection_rate", "min_recall"),
)


@pytest.mark.parametrize("name", SHARED)
def test_the_command_and_the_estimator_have_the_same_defaults(name):
    option = inspect.signature(fit).parameters[name].default
    estimator = inspect.signature(setminus.TunedOrthogonalClassifier).parameters[name].default
    assert getattr(FitConfig("t.csv", "y", ("g",)), name) == estimator
    assert getattr(option, "value", option) == estimator


@pytest.fixture(scope="module")
def applicants():
    """Two sexes and some rows without one, a rare race and a rarer one, ages, and an outcome known afterwards."""
    rng = np.random.default_rng(0)
    n = 1500
    sex, age = rng.choice(["f", "m"], n).astype(object), rng.integers(18, 80, n)
    race = rng.choice(["a", "b"], n).astype(object)
    race[:14], race[14:16] = "c", "d"
    skill = rng.normal(size=n)
    good = skill + 0.5 * (sex == "m") + rng.normal(size=n) > 0.3
    sex[rng.random(n) < 0.05] = None
    repaid = np.where(good, "paid", "open")
    columns = {"customer_id": rng.permutation(n) * 7, "age": age, "sex": sex, "race": race, "skill": skill.round(3)}
    return pd.DataFrame({**columns, "repaid": repaid, "loan": np.where(good, "good", "bad")})


@pytest.fixture
def table(applicants, tmp_path):
    applicants.to_csv(tmp_path / "applicants.csv", index=False)
    return tmp_path / "applicants.csv"


COMMON = ("--label", "loan", "--full", "logistic", "--drop", "repaid", "--tolerance", "0.2")


def rows_of(table, **roles):
    roles = Roles("loan", ("sex",), **roles)
    rows = read_rows(open_table(table), roles)
    return {column.name: column for column in rows.features(roles)}


def test_a_leaked_outcome_is_warned_about_and_an_identifier_is_left_out(table):
    columns = rows_of(table)
    assert columns["repaid"].warning.startswith("predicts the label nearly alone, with an AUC of 1.000")
    assert "--drop repaid" in columns["repaid"].warning
    assert [name for name, column in columns.items() if column.warning] == ["repaid"]
    assert columns["customer_id"].kind == "identifier" and not columns["customer_id"].kept


def test_columns_are_left_out_or_chosen(table):
    assert {*rows_of(table, drop=["repaid", "customer_id"])} == {"age", "race", "skill"}
    assert {*rows_of(table, drop=["repaid,customer_id"])} == {"age", "race", "skill"}
    assert {*rows_of(table, features=["skill, age"])} == {"age", "skill"}
    # a name with a comma in it is still one column
    assert split_names(["a,b"], ["a,b", "a"]) == ("a,b",)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"drop": ["repayed"]}, "has no column 'repayed': did you mean 'repaid'"),
        ({"features": ["skil"]}, "did you mean 'skill'"),
        ({"features": ["loan"]}, "the label 'loan' is also in --features"),
        ({"drop": ["loan"]}, "the label 'loan' is also in --drop"),
        ({"favorable": "goood"}, "the label 'loan' has no value 'goood': did you mean 'good'"),
        ({"favorable": "maybe", "positive": "good"}, "the label 'loan' has no value 'maybe'"),
        ({"features": ["skill"], "drop": ["skill"]}, "'skill' is in --features, and in --drop or --ignore"),
        ({"features": ["sex"]}, "'sex' is in --features, and in --drop or --ignore"),
    ],
)
def test_columns_that_cannot_be_left_out_or_chosen(table, roles, message):
    with pytest.raises(UserError, match=message):
        rows_of(table, **roles)


@pytest.mark.parametrize("text", ["age", "age=", "age=old", "agee=40", "sex", "=40"])
def test_bins_that_cannot_be_read(text):
    with pytest.raises(UserError, match=r"--bins is .*: expected a column of --ignore and numbers in rising order"):
        _ = FitConfig("t.csv", "loan", ("age",), bins=(text,)).edges
    assert FitConfig("t.csv", "loan", ("age",), bins=("age=40,62",)).edges == {"age": [40.0, 62.0]}


def test_one_cost_alone_says_nothing():
    with pytest.raises(UserError, match="one of --cost-fp and --cost-fn is missing"):
        _ = FitConfig("t.csv", "loan", ("age",), cost_fn=5.0).costs
    assert FitConfig("t.csv", "loan", ("age",), cost_fp=1.0, cost_fn=5.0).costs == {"fp": 1.0, "fn": 5.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--positive", "good", "--favorable", "maybe"), "the label 'loan' has no value 'maybe'"),
        (("--bins", "age=400"), "--bins age=400 puts all rows into one group"),
        (("--bins", "age=40", "--bins", "age=62"), "--bins has two entries for 'age'"),
        (("--tolerance", "5"), "--tolerance is 5"),
        (("--scoring", "acuracy"), "Did you mean 'accuracy'"),
        (("--scoring", "f1", "--cost-fp", "1", "--cost-fn", "2"), "both costs and --scoring f1"),
        (("--min-selection-rate", "0.9", "--max-selection-rate", "0.1"), "is above --max-selection-rate"),
        (("--confidence", "0", "--uncertified", "raise"), "--uncertified raise needs a --confidence"),
        (("--test-size", "0.999"), "leaves no rows to learn from"),
        (("--test", "TABLE"), "the table that the model learns from"),
    ],
)
def test_wrong_options_are_refused_before_any_work(command, table, tmp_path, monkeypatch, options, message):
    monkeypatch.setattr("setminus.commands.fitting._model", None)
    options = [str(table) if option == "TABLE" else option for option in options]
    out = tmp_path / "m.skops"
    done = command("fit", table, "--label", "loan", "--ignore", "age", "--out", out, *options)
    assert done.code == 2 and message in " ".join(done.err.split()) and not out.exists()


def test_the_favourable_value_may_be_any_of_those_that_do_not_count():
    roles = Roles("loan", ["sex"], positive="bad", favorable="good")
    assert roles.favorable_name == "not bad"
    assert Roles("loan", ["sex"], positive="bad", favorable="bad").favorable_name == "bad"
    assert Roles("loan", ["sex"], favorable="good").favorable_name == "good"


def made(y, groups):
    return Rows(pa.table({"x": range(len(y))}), np.asarray(y), pa.table({"g": groups}))


def test_rows_are_split_where_groups_and_labels_are_rare():
    y, groups = ["a", "b"] * 100 + ["a"], ["f"] * 90 + ["m"] * 109 + ["x", None]
    known = Groupings(least=10)
    train, test = split_rows(made(y, groups), 0.25, 0, known, [0, 1])
    assert len(train) + len(test) == 201 and len(test) == 51
    for part in (train, test):
        assert {"f", "m"} <= {*part.groups.column("g").to_pylist()}
    assert known.names == ["f", "m"] and known.crossed.dropped == {"x": 1}
    with pytest.raises(UserError, match="one value only"):
        split_rows(made(["a", "b"] * 20, ["f"] * 40), 0.25, 0, Groupings(least=2), [0, 1])


def test_rows_of_rare_labels_are_left_out_and_counted():
    rows = without_rare_labels(made(["a"] * 20 + ["b"] * 20 + ["c"] * 3, ["f"] * 43), Roles("y", ["g"]))
    assert len(rows) == 40 and "left out: y 'c' (3)" in rows.notes[0]
    # the control: two classes must be left
    assert len(without_rare_labels(made(["a"] * 20 + ["b"] * 3, ["f"] * 23), Roles("y", ["g"]))) == 23


def test_rare_and_missing_groups_are_let_through_and_each_attribute_is_reported(command, table, tmp_path):
    options = ["--ignore", "race", "--ignore", "age", "--bins", "age=40,62", "--constraint-over", "each"]
    more = ["--favorable", "bad", "--min-group-size", 20, "--out", tmp_path / "m.skops"]
    done = command("fit", table, *COMMON, *options, *more)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "count in no gap: 'c' (1" in said and "'d' (" in said
    record = json.loads((tmp_path / "m.audit.json").read_text())
    assert record["task"]["groups"] == ["a", "b", "age below 40", "age 40 to 61", "age 62 and above"]
    assert [one["title"] for one in record["metrics"]["groupings"]] == ["race", "age"]
    assert all({"before", "after"} <= {*one} for one in record["metrics"]["groupings"])
    # rates refer to the favourable value, which is the first of the two
    assert record["task"]["favorable"] == "bad"
    assert {row["label"] for row in record["metrics"]["models"][0]["audit"]["group_rates"]} == {"bad"}
    assert record["metrics"]["certificate"]["tolerance"] == 0.2
    bound = record["metrics"]["certificate"]["bound"]
    assert "ertified" in said and f"{bound:.3f}" in said
    model = setminus.load(tmp_path / "m.skops")
    assert {*model.feature_names_in_} == {"sex", "skill"}


def test_a_missing_group_is_no_obstacle_where_the_group_is_read_at_predict_time(command, table, applicants, tmp_path):
    options = ["--ignore", "sex", "--principal", "group", "--constraint", "demographic_parity"]
    done = command("fit", table, *COMMON, *options, "--out", tmp_path / "m.skops")
    assert done.code == 0, done.err
    assert f"{applicants['sex'].isna().sum()} rows have no sex: they count in no gap" in " ".join(done.out.split())
    done = command("apply", tmp_path / "m.skops", table, "--out", tmp_path / "scored.csv")
    assert done.code == 0, done.err
    assert pd.read_csv(tmp_path / "scored.csv")["prediction"].notna().all()


def test_a_group_without_rows_of_a_label_can_keep_demographic_parity(command, applicants, tmp_path):
    frame = applicants[(applicants["race"] != "b") | (applicants["loan"] == "bad")]
    frame.to_csv(tmp_path / "some.csv", index=False)
    fit = ["fit", tmp_path / "some.csv", *COMMON, "--ignore", "race", "--out", tmp_path / "m.skops"]
    done = command(*fit, "--constraint", "demographic_parity")
    assert done.code == 0, done.err
    # the control: equalized odds needs those rows
    refused = command(*fit, "--min-group-size", 10, "--force")
    assert refused.code == 2 and "fewer than two groups have enough rows; too few are in 'b'" in refused.err


def test_bands_around_the_thresholds_need_the_groups(command, table, tmp_path):
    out = tmp_path / "m.skops"
    fit = ("fit", table, *COMMON, "--ignore", "sex", "--interpolate", "--out", out)
    done = command(*fit)
    assert done.code == 2 and "--interpolate without --principal group" in done.err
    assert not out.exists()
    assert command(*fit, "--principal", "group").code == 0
    assert setminus.load(out).model_.principals_[0].interpolate
