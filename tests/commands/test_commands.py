"""What the commands write and print."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import setminus


@pytest.fixture(scope="module")
def files(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    people.to_csv(folder / "people.csv", index=False)
    return folder


COMMON = ["--label", "income", "--ignore", "sex", "--full", "logistic"]


@pytest.fixture
def model(command, files):
    """Fitted once for the module."""
    path = files / "m.skops"
    if not path.exists():
        quiet = command("fit", files / "people.csv", *COMMON, "--out", path, "--quiet")
        assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    return path


@pytest.mark.parametrize("principal", ["proxy", "group"])
def test_fit_writes_the_model_the_audit_and_the_page(command, files, tmp_path, people, principal):
    out = tmp_path / "model.skops"
    done = command("fit", files / "people.csv", *COMMON, "--principal", principal, "--out", out)
    assert done.code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.audit.json", "model.report.html", "model.skops"]
    assert "one of 3 levels" in done.out
    model = setminus.load(out)
    wanted = {"age", "skill", "job"} | ({"sex"} if principal == "group" else set())
    assert set(model.feature_names_in_) == wanted
    assert model.predict(people[list(model.feature_names_in_)]).shape == (600,)


def test_an_adapter_saved_from_python_tells_its_class_mixes_and_scores_a_file(command, tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(120, 2)), columns=["age", "skill"])
    adapter = setminus.OrthogonalAdapter("vada_orthogonal", steps=5)
    adapter.fit(rows, np.where(rows["age"] > 0, "high", "low"), sample_domain=np.repeat([1, -1], 60))
    setminus.save(adapter, tmp_path / "adapter.skops")
    described = json.loads(command("info", tmp_path / "adapter.skops", "--json").out)
    assert described["adapted"]["target"] == pytest.approx(adapter.target_prior_.tolist())
    shown = command("info", tmp_path / "adapter.skops").out
    assert "vada_orthogonal" in shown and "NoneType" not in shown
    assert f"{adapter.source_prior_[0]:.3f}, {adapter.source_prior_[1]:.3f}" in shown
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = command("apply", tmp_path / "adapter.skops", tmp_path / "rows.csv", "--out", tmp_path / "scored.csv")
    assert done.code == 0, done.err
    scored = pd.read_csv(tmp_path / "scored.csv")
    assert scored.iloc[:, -1].tolist() == adapter.predict(rows).tolist()


def test_json_and_the_same_model_from_the_same_command(command, files, model, tmp_path):
    first = json.loads(model.with_name("m.audit.json").read_text())
    done = command("fit", files / "people.csv", *COMMON, "--out", tmp_path / "m.skops", "--json")
    assert json.loads(done.out) == json.loads((tmp_path / "m.audit.json").read_text())
    assert done.err == ""
    assert json.loads(done.out)["metrics"] == first["metrics"]


def test_positive_and_several_ignored_columns(command, files, tmp_path, people):
    table = people.assign(old=np.where(people["age"] > 40, "old", "young"))
    table.to_csv(tmp_path / "more.csv", index=False)
    arguments = [*COMMON, "--ignore", "old", "--positive", "low", "--out", tmp_path / "m.skops", "--json"]
    record = json.loads(command("fit", tmp_path / "more.csv", *arguments).out)
    groups = {str(row["group"]) for row in record["metrics"]["models"][0]["audit"]["group_rates"]}
    assert groups == {"f, old", "f, young", "m, old", "m, young"}
    assert record["task"]["labels"]["1"] == "low"


def test_columns_that_name_rows_or_say_nothing_are_left_out_and_the_index_is_no_column(command, tmp_path, people):
    more = people.assign(id=range(len(people)), country="here")
    more.sample(frac=1, random_state=0).to_parquet(tmp_path / "more.parquet")
    done = command("fit", tmp_path / "more.parquet", *COMMON, "--out", tmp_path / "m.skops")
    assert done.code == 0, done.err
    assert "left out: it has one value only" in done.out
    assert "__index_level_0__ is the index of a data frame and was left out" in done.out.replace("\n", " ")
    assert {*setminus.load(tmp_path / "m.skops").feature_names_in_} == {"age", "skill", "job"}


def test_a_file_without_a_header(command, tmp_path, people):
    people.to_csv(tmp_path / "bare.csv", index=False, header=False)
    arguments = ["--no-header", "--label", "column_5", "--ignore", "column_4", "--full", "logistic"]
    done = command("fit", tmp_path / "bare.csv", *arguments, "--out", tmp_path / "m.skops")
    assert done.code == 0, done.err


@pytest.mark.parametrize("principal", ["proxy", "group"])
@pytest.mark.parametrize("columns", [["age", "skill"], ["skill", "woman"]])
def test_a_model_that_is_already_there_with_or_without_the_ignored_column(
    command, tmp_path, people, principal, columns
):
    frame = people.assign(woman=(people["sex"] == "f").astype(int)).drop(columns="sex")
    frame.to_csv(tmp_path / "people.csv", index=False)
    model = LogisticRegression().fit(frame[columns], frame["income"])
    setminus.save(model, tmp_path / "mine.skops")
    arguments = ["--label", "income", "--ignore", "woman", "--full", tmp_path / "mine.skops", "--principal", principal]
    done = command("fit", tmp_path / "people.csv", *arguments, "--out", tmp_path / "fair.skops")
    assert done.code == 0, done.err
    fair = setminus.load(tmp_path / "fair.skops")
    np.testing.assert_array_equal(fair.model_.full_.estimator.coef_, model.coef_)
    reads_groups = principal == "group" or "woman" in columns
    assert {*fair.feature_names_in_} == {*columns, *(["woman"] if reads_groups else [])}
    if principal == "proxy":
        # a proxy that sees the group is none
        assert "woman" not in fair.model_.principals_[0].attribute_model_.feature_names_in_
    done = command("apply", tmp_path / "fair.skops", tmp_path / "people.csv", "--out", tmp_path / "scored.csv")
    assert done.code == 0, done.err
    scored = pd.read_csv(tmp_path / "scored.csv")
    assert (scored["prediction"] == fair.predict(frame[[*fair.feature_names_in_]])).all()


def test_a_model_that_is_already_there_is_not_overwritten(command, files, tmp_path, people):
    mine = tmp_path / "mine.skops"
    setminus.save(LogisticRegression().fit(people[["age", "skill"]], people["income"]), mine)
    before = mine.read_bytes()
    done = command("fit", files / "people.csv", "--label", "income", "--ignore", "sex", "--full", mine, "--out", mine)
    assert done.code == 2 and "is an input, and would be overwritten" in done.err
    assert mine.read_bytes() == before


def test_a_separate_test_file_and_a_group_it_alone_has(command, files, tmp_path, people):
    extra = people.tail(60).assign(sex=lambda t: np.where(np.arange(60) < 5, "x", t["sex"]))
    extra.to_csv(tmp_path / "test.csv", index=False)
    arguments = [*COMMON, "--test", tmp_path / "test.csv", "--out", tmp_path / "m.skops"]
    done = command("fit", files / "people.csv", *arguments)
    assert done.code == 0, done.err
    assert "5 test rows are in groups that training did not have" in done.out


def test_apply_without_a_model(command, tmp_path):
    pd.DataFrame({"p": [0.8, 0.5], "q": [0.6, 0.5]}).to_csv(tmp_path / "scores.csv", index=False)
    arguments = ["--full", "p", "--principal", "q", "--prior", "0.5,0.5", "--out", tmp_path / "scored.csv"]
    assert command("apply", tmp_path / "scores.csv", *arguments).code == 0
    scored = pd.read_csv(tmp_path / "scored.csv")["orthogonal"]
    np.testing.assert_allclose(
        scored, setminus.orthogonalize([[0.2, 0.8], [0.5, 0.5]], [[0.4, 0.6], [0.5, 0.5]], "uniform")[:, 1]
    )


def test_audit_fails_a_pipeline_above_the_limit(command, tmp_path, people):
    people.assign(p=np.where(people["sex"] == "m", 0.2, 0.8)).to_csv(tmp_path / "scored.csv", index=False)
    common = ["audit", tmp_path / "scored.csv", "--label", "income", "--ignore", "sex", "--score", "p"]
    assert command(*common).code == 0
    failed = command(*common, "--fail-above", 0.1)
    assert failed.code == 1
    assert "equalized_odds_max gap 1.000 is above 0.1" in failed.err
    record = json.loads(command(*common, "--json", "--agg", "sum", "--fail-above", 2).out)
    assert record["limit"] == {
        "name": "equalized_odds_sum",
        "limit": 2.0,
        "value": 2.0,
        "by": "point",
        "passed": True,
        "undefined": False,
    }


def test_audit_judges_the_decisions_that_apply_wrote(command, files, model, tmp_path):
    command("apply", model, files / "people.csv", "--out", tmp_path / "scored.parquet", "--quiet")
    common = ["audit", tmp_path / "scored.parquet", "--label", "income", "--ignore", "sex", "--json"]
    said, named, other = (
        json.loads(command(*common, *more).out) for more in ([], ["--prediction", "prediction"], ["--threshold", 0.9])
    )
    assert "the decisions are those of the column prediction" in said["task"]["notes"]
    assert said["metrics"]["models"][0]["audit"] == named["metrics"]["models"][0]["audit"]
    assert said["metrics"]["models"][0]["audit"] != other["metrics"]["models"][0]["audit"]


def test_decisions_are_words_of_the_label_and_nothing_is_guessed(command, tmp_path, people):
    unfair = people.assign(
        p=np.where(people["sex"] == "m", 0.8, 0.2), said=people["sex"].map({"m": "high", "f": "low"})
    )
    unfair.assign(yes=people["sex"].map({"m": "yes", "f": "no"})).to_csv(tmp_path / "scored.csv", index=False)
    common = ["audit", tmp_path / "scored.csv", "--label", "income", "--ignore", "sex", "--positive", "high"]
    common += ["--score", "p", "--fail-above", 0.1]
    assert command(*common, "--prediction", "said").code == 1
    refused = command(*common, "--prediction", "yes")
    assert refused.code == 2 and "the predictions hold 'no', the label high, low" in refused.err
    unfair.assign(said=unfair["said"].where(unfair.index > 2)).to_csv(tmp_path / "scored.csv", index=False)
    refused = command(*common, "--prediction", "said")
    assert refused.code == 2 and "3 rows have no decision in said" in refused.err


def test_a_gap_that_is_undefined_is_neither_below_nor_above_the_limit(command, tmp_path, people):
    some = people[(people["sex"] == "f") | (people["income"] == "low")]
    some.assign(p=0.5).to_csv(tmp_path / "scored.csv", index=False)
    common = ["audit", tmp_path / "scored.csv", "--label", "income", "--ignore", "sex", "--score", "p"]
    more = ["--positive", "high", "--constraint", "equal_opportunity", "--fail-above", 0.1]
    done = command(*common, *more)
    assert done.code == 3
    assert "equal_opportunity gap is undefined: some group has no rows of a label" in done.err
    # of equalized odds one rate can be compared: it may say that the gap is too large, and never that it is not
    odds = [*common, "--positive", "high", "--constraint", "equalized_odds", "--fail-above"]
    assert command(*odds, 0.1).code == 3
    unfair = some.assign(p=0.5 + 0.4 * (some["sex"] == "f") * (some["income"] == "low"))
    unfair.assign(p=unfair["p"] - 0.1).to_csv(tmp_path / "scored.csv", index=False)
    assert command(*odds, 0.1).code == 1


def test_apply_leaves_the_values_of_a_csv_as_they_stand(command, model, tmp_path, people):
    ids = ["007", "0123", "12345678901234567890123", "NA", "", " x"]
    some = people.head(6).assign(id=ids)
    some.to_csv(tmp_path / "some.csv", index=False)
    done = command("apply", model, tmp_path / "some.csv", "--out", tmp_path / "scored.csv")
    assert done.code == 0, done.err
    read = pd.read_csv(tmp_path / "scored.csv", dtype=str, keep_default_na=False)
    assert read["id"].tolist() == ids
    assert read["skill"].tolist() == pd.read_csv(tmp_path / "some.csv", dtype=str)["skill"].tolist()
    # other formats have types, and get those of the columns
    command("apply", model, tmp_path / "some.csv", "--out", tmp_path / "some.parquet", "--quiet")
    assert pd.read_parquet(tmp_path / "some.parquet")["age"].dtype == np.int64


def test_the_terminal_says_whether_the_gap_was_kept_and_a_column_may_be_ignored_twice(command, files, tmp_path):
    twice = [*COMMON, "--ignore", "sex", "--tolerance", 0.0001]
    done = command("fit", files / "people.csv", *twice, "--out", tmp_path / "m.skops")
    assert "the tolerance is 0.0001" in done.out.replace("\n", " ")
    # no other column goes with it
    assert {*setminus.load(tmp_path / "m.skops").feature_names_in_} == {"age", "skill", "job"}


def test_data_list(command):
    done = command("data", "list")
    assert done.code == 0
    assert "adult.data" in done.out


def test_completion_is_offered(command):
    assert "--install-completion" in command("--help").out


def pressed_until_it_ends(process):
    """Interrupt as a person would, again where nothing happens: a callback of a library may swallow the first."""
    for _ in range(30):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=2)[1]
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    pytest.fail("30 interrupts did not end the command")


@pytest.mark.skipif(os.name != "posix", reason="interrupts of POSIX")
def test_an_interrupted_fit_leaves_nothing_half_written(tmp_path, people):
    pd.concat([people] * 40).to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "out"
    command = [str(Path(sys.executable).with_name("setminus")), "fit", "people.csv", "--label", "income"]
    process = subprocess.Popen(
        [*command, "--ignore", "sex", "--out", "out/model.skops"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
        # whoever starts the tests in the background ignores interrupts, and so would the command
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert "read people.csv" in process.stderr.readline()
    said = pressed_until_it_ends(process)
    assert process.returncode != 0
    assert "write the model" not in said
    assert "Traceback" not in said
    assert not out.exists() or not list(out.iterdir())
