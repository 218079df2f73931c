"""``setminus audit`` certifies or refuses, also decisions without scores and selections without labels."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml

from setminus.report.fairness import AUDIT_HEADINGS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """4,000 decisions with a gap of about 0.05, and 40 rows without a group."""
    rng = np.random.default_rng(0)
    sex, y = rng.choice(["f", "m"], size=4000).astype(object), rng.integers(2, size=4000)
    score = np.clip(0.25 + 0.5 * y + 0.03 * (sex == "m") + 0.2 * rng.normal(size=4000), 0.01, 0.99)
    sex[:40] = None
    path = tmp_path_factory.mktemp("decided") / "decided.csv"
    decision = np.where(score > 0.5, "yes", "no")
    pd.DataFrame({"sex": sex, "y": np.where(y, "yes", "no"), "p": score, "d": decision}).to_csv(path, index=False)
    return path


def test_a_certificate_is_given_or_refused(command, decided, tmp_path):
    common = ["audit", decided, "--label", "y", "--ignore", "sex", "--prediction", "d"]
    page, out = tmp_path / "page.html", tmp_path / "audit.json"
    given = command(*common, "--certify", 0.15, "--page", page, "--out", out)
    assert given.code == 0 and "Certified: equalized odds gap (max) <= 0.15" in given.out
    found = json.loads(out.read_text())["metrics"]["models"][0]["audit"]
    assert found["certificate"]["certified"] and found["n_unknown_group"] == 40 and found["n"] == 3960
    assert found["certificate"]["bound"] < 0.15 and found["leakage"] is None
    text = page.read_text()
    assert "badge ok" in text
    assert AUDIT_HEADINGS["certificate"][1] in text and AUDIT_HEADINGS["reliability"][1] not in text
    other = tmp_path / "other.html"
    refused = command(*common, "--certify", 0.02, "--page", other)
    assert refused.code == 1 and "Not certified: equalized odds gap (max) <= 0.02" in refused.err
    assert "not certified" in other.read_text() and "more rows needed" in other.read_text()
    # a stricter confidence has a larger bound
    between = found["certificate"]["bound"] + 0.002
    assert command(*common, "--certify", between, "--quiet").code == 0
    assert command(*common, "--certify", between, "--confidence", 0.999, "--quiet").code == 1


def test_a_limit_may_be_that_of_the_bound(command, decided):
    common = ["audit", decided, "--label", "y", "--ignore", "sex", "--score", "p", "--json"]
    by_point = command(*common, "--fail-above", 0.05)
    by_bound = command(*common, "--fail-above", 0.05, "--fail-by", "bound")
    assert (by_point.code, by_bound.code) == (0, 1)
    limit = json.loads(by_bound.out)["limit"]
    assert limit["by"] == "bound" and limit["value"] > 0.05 > json.loads(by_point.out)["limit"]["value"]
    both = command(*common, "--fail-above", 0.1, "--fail-by", "bound", "--certify", 0.1)
    assert both.code == 2 and "ask for the same thing" in both.err


def test_selection_rates_need_no_labels(command, decided, tmp_path):
    page = tmp_path / "page.html"
    named = command(
        "audit", decided, "--ignore", "sex", "--prediction", "d", "--positive", "yes", "--page", page, "--json"
    )
    scored = command("audit", decided, "--ignore", "sex", "--score", "p", "--threshold", 0.5, "--json")
    assert named.code == scored.code == 0
    one, other = (json.loads(found.out)["metrics"]["models"][0]["audit"] for found in (named, scored))
    assert one["demographic_parity"] == other["demographic_parity"] and one["equalized_odds_max"]["value"] is None
    assert "(Selection rate)" in page.read_text() and "(True positive rate)" not in page.read_text()
    assert command("audit", decided, "--ignore", "sex", "--prediction", "d", "--certify", 0.2).code == 0
    assert command("audit", decided, "--ignore", "sex", "--prediction", "d", "--certify", 0.01).code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the decisions are needed"),
        (["--prediction", "d", "--constraint", "equal_opportunity"], "needs labels"),
        (["--prediction", "p"], "values"),
        (["--prediction", "d", "--positive", "maybe"], "maybe"),
        (["--prediction", "d", "--confidence", 0.2], "confidence"),
        (["--prediction", "d", "--threshold", 0.2], "--threshold and --prediction both decide"),
        (["--prediction", "d", "--score", "p"], "only the decisions count"),
        (["--prediction", "sex"], "is both what is audited and a group"),
        (["--prediction", "d", "--fail-by", "bound"], "needs a limit"),
        (["--prediction", "d", "--fail-above", 5], "--fail-above is 5"),
        (["--prediction", "d", "--favorable", "maybe"], "maybe"),
        (["--score", "p", "--favorable", "yes"], "probability of the favourable value"),
        (["--label", "y", "--score", "p", "--score", "p"], "names the column 'p' twice"),
        (["--label", "y", "--score", "p", "--favorable", "maybe"], "the label 'y' has no value 'maybe'"),
    ],
)
def test_what_cannot_be_audited_is_said(command, decided, arguments, words):
    found = command("audit", decided, "--ignore", "sex", *arguments)
    assert found.code == 2 and words in found.err


def test_rates_refer_to_the_favourable_value(command, decided):
    """The favourable value changes what the rates are of, and no gap that compares both labels."""
    common = ["audit", decided, "--label", "y", "--ignore", "sex", "--score", "p", "--threshold", 0.6, "--json"]
    plain, favorable = (
        json.loads(command(*common, *more).out)["metrics"]["models"][0]["audit"] for more in ([], ["--favorable", "no"])
    )
    assert [row["label"] for row in plain["group_rates"]] == ["yes", "yes"]
    assert [row["label"] for row in favorable["group_rates"]] == ["no", "no"]
    assert favorable["equalized_odds_max"]["value"] == pytest.approx(plain["equalized_odds_max"]["value"])
    for one, other in zip(plain["group_rates"], favorable["group_rates"], strict=True):
        assert one["selection_rate"]["value"] + other["selection_rate"]["value"] == pytest.approx(1)
        assert one["true_positive_rate"]["value"] + other["false_positive_rate"]["value"] == pytest.approx(1)


def test_ages_are_cut_where_the_law_cuts_them(command, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 80, 500), "d": rng.integers(2, size=500)})
    rows.to_csv(tmp_path / "d.csv", index=False)
    done = command("audit", tmp_path / "d.csv", "--ignore", "age", "--prediction", "d", "--bins", "age=40", "--json")
    assert json.loads(done.out)["metrics"]["models"][0]["audit"]["groups"] == ["age 40 and above", "age below 40"]


def test_a_group_without_rows_of_a_label_cannot_be_judged(command, tmp_path):
    rows = pd.DataFrame({"g": list("aabb") * 10, "y": list("0101") * 10, "d": list("0101") * 10})
    rows = rows[~((rows.g == "b") & (rows.y == "1"))]
    rows.to_csv(tmp_path / "t.csv", index=False)
    found = command("audit", tmp_path / "t.csv", "--label", "y", "--ignore", "g", "--prediction", "d", "--certify", 0.5)
    assert found.code == 3 and "The group b with label 1 has no rows" in found.err


@pytest.mark.parametrize(("limit", "status"), [("0.2", "passed"), ("0.01", "failure")])
def test_results_are_written_for_other_programs(command, decided, tmp_path, limit, status):
    junit, sarif = tmp_path / "a.xml", tmp_path / "a.sarif"
    common = ["audit", decided, "--ignore", "sex", "--prediction", "d", "--positive", "yes", "--quiet"]
    found = command(*common, "--certify", limit, "--fail-above", 0.3, "--junit", junit, "--sarif", sarif)
    assert found.code == (status == "failure")
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", str(int(status == "failure")))
    assert [case.find("failure") is not None for case in suite] == [False, status == "failure"]
    (run,) = json.loads(sarif.read_text())["runs"]
    assert [one["kind"] for one in run["results"]] == ["pass", "pass" if status == "passed" else "fail"]
    refused = command(*common, "--junit", tmp_path / "b.xml")
    assert refused.code == 2 and "nothing to report" in refused.err


def test_the_action_runs_as_its_steps_say(decided, tmp_path):
    """The script of the composite action, with inputs that a shell would run if they were part of it."""
    audit = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][1]
    assert "${{" not in audit["run"]
    inputs = {"JUNIT": "a.xml", "SARIF": "a.sarif", "TABLE": str(decided)}
    options = "--ignore=sex\n--prediction=d\n\n--positive=$(touch hacked)yes\n--certify=0.01\n"
    for arguments, code in ((options, 2), (options.replace("$(touch hacked)", ""), 1)):
        environment = {**os.environ, **inputs, "ARGUMENTS": arguments, "PATH": f"{BIN}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-e", "-c", audit["run"]], cwd=tmp_path, env=environment, capture_output=True)
        assert done.returncode == code, done.stderr
    assert (tmp_path / "a.xml").exists() and not (tmp_path / "hacked").exists()
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "setminus audit" and not hook["pass_filenames"]
