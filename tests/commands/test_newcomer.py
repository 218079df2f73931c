"""A newcomer's path in an empty folder; the model of a CSV is read by a process that did not fit it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import setminus
from setminus.datasets.sources import DataUnavailableError
from setminus.datasets.tabular import adult_table


@pytest.fixture(scope="module")
def adult():
    try:
        table = pd.DataFrame(adult_table("train"))
    except DataUnavailableError as error:
        pytest.skip(str(error))
    return table.sample(5_000, random_state=0)


def in_a_process(folder, *arguments):
    command = [str(Path(sys.executable).with_name("setminus")), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.data
def test_labelled_rows_give_away_an_estimate_that_nothing_else_does(tmp_path, command, monkeypatch):
    """The example of docs/adapt-when-the-class-mix-changes.md."""
    pytest.importorskip("torch")
    try:
        table = pd.DataFrame(adult_table("train"))
    except DataUnavailableError as error:
        pytest.skip(str(error))
    for name in ("Private", "Self-emp-inc"):
        rows = table[table["workclass"] == name].drop(columns=["workclass", "fnlwgt"])
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    arguments = ("Private.csv", "Self-emp-inc.csv", "--label", "income", "--out", "adapted.skops", "--json")
    # it advises against its own model
    monkeypatch.chdir(tmp_path)
    done = command("adapt", *arguments)
    assert done.code == 1, done.err
    metrics = json.loads(done.out)["metrics"]
    estimated, true = (metrics["mixes"][f"target, {name}"][1] for name in ("estimated", "labelled rows"))
    assert estimated > 0.8 > 0.6 > true
    status = {one["name"]: one["status"] for one in metrics["findings"]}
    assert status.pop("the estimate fits the labelled target rows") == "fail"
    assert status.pop("adaptation improves the accuracy on labelled target rows") != "ok"


@pytest.mark.data
def test_fit_info_apply_audit(adult, tmp_path, command, monkeypatch):
    people, new = adult.iloc[:4000], adult.iloc[4000:]
    people.to_csv(tmp_path / "people.csv", index=False)
    polars = pytest.importorskip("polars")
    polars.DataFrame(new.drop(columns="sex").to_dict("list")).write_parquet(tmp_path / "new.parquet")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def step(*arguments, code=0):
        done = command(*arguments)
        assert done.code == code, done.err
        return done.out

    said = step("fit", "people.csv", "--label", "income", "--ignore", "sex", "--out", "model.skops")
    assert "native-country" in said
    assert "accuracy" in said
    record = json.loads((tmp_path / "model.audit.json").read_text())
    before, after = (model["audit"] for model in record["metrics"]["models"])
    assert after["accuracy"]["value"] > 0.83
    assert after["equalized_odds_max"]["value"] < before["equalized_odds_max"]["high"]
    assert (tmp_path / "model.report.html").stat().st_size > 100_000

    about = json.loads(in_a_process(tmp_path, "info", "model.skops", "--json"))
    assert about["about"]["task"]["ignored"] == "sex"
    assert "sex" not in about["columns"]
    assert "sex" in step("info", "model.skops")

    # the groups are not even in the file
    step("apply", "model.skops", "new.parquet", "--out", "scored.parquet")
    scored = pd.read_parquet(tmp_path / "scored.parquet")
    assert len(scored) == len(new)
    model = setminus.load(tmp_path / "model.skops")
    frame = new.reset_index(drop=True)[list(model.feature_names_in_)]
    assert (scored["prediction"].to_numpy() == model.predict(frame)).all()

    scored["sex"] = new["sex"].to_numpy()
    scored.to_parquet(tmp_path / "known.parquet")
    arguments = ["audit", "known.parquet", "--label", "income", "--ignore", "sex", "--prediction", "prediction"]
    assert "equalized odds gap" in step(*arguments, "--fail-above", "0.3", "--page", "audit.html")
    step(*arguments, "--fail-above", "0", code=1)
    assert str(tmp_path) in step("report", ".")
