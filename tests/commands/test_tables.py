"""What a file leaves open is said by every command, and decided alike at fit and at apply."""

import json

import pandas as pd
import pytest


@pytest.fixture
def paid(people):
    """People with pay of some thousands, which a tab-separated file writes as 59,915; no value proves what that is."""
    whole = (1000 * people.skill).astype(int)
    return people.assign(skill=whole, pay=[f"{30 + k % 60},{100 + k % 900}" for k in range(len(people))])


@pytest.fixture
def model(command, tmp_path):
    def fit(frame, *options, name="people.tsv"):
        frame.to_csv(tmp_path / name, sep="\t", index=False)
        out = tmp_path / "model.skops"
        done = command(
            "fit",
            tmp_path / name,
            "--label",
            "income",
            "--ignore",
            "sex",
            "--full",
            "logistic",
            "--out",
            out,
            "--force",
            *options,
        )
        assert done.code == 0, done.err
        return out, done, json.loads((tmp_path / "model.audit.json").read_text())["task"]

    return fit


def scored(command, model, frame, tmp_path, *options):
    frame.to_csv(tmp_path / "new.tsv", sep="\t", index=False)
    return command("apply", model, tmp_path / "new.tsv", "--out", tmp_path / "scored.csv", "--force", *options)


def test_fit_says_what_it_assumed_and_apply_goes_by_it(command, model, paid, tmp_path):
    out, done, task = model(paid)
    assert task["decimal"] == {"sign": ".", "assumed": True}
    assert any("30,100 is read as 30100; no value proves it (--decimal ," in note for note in task["notes"])
    assert "no value proves it" in " ".join(done.out.split())
    done = scored(command, out, paid, tmp_path)
    assert done.code == 0, done.err
    assert "Note: the comma is taken to group thousands in 'pay'" in done.out
    same = pd.read_csv(tmp_path / "scored.csv")["proba_high"]
    # a value that proves the comma to be the decimal sign proves the model wrong
    new = paid.assign(pay=["7,5", *paid.pay[1:]])
    done = scored(command, out, new, tmp_path)
    assert done.code == 2
    assert "was taken to group thousands" in done.err
    assert "Say --decimal , for both" in done.err
    # fitted as the user says, the scores are those of the same numbers
    out, _, task = model(paid, "--decimal", ",")
    assert task["decimal"] == {"sign": ",", "assumed": False}
    assert scored(command, out, paid, tmp_path).code == 0
    # numbers a thousand times as small are rounded otherwise, which the fit of the group offsets amplifies
    pd.testing.assert_series_equal(pd.read_csv(tmp_path / "scored.csv")["proba_high"], same, atol=0.02)
    assert scored(command, out, new, tmp_path).code == 0


def test_a_file_to_judge_by_is_read_like_the_one_to_learn_from(command, model, paid, tmp_path):
    paid.to_csv(tmp_path / "test.tsv", sep="\t", index=False)
    proven = paid.assign(pay=["7,5", *paid.pay[1:]])
    _, _, task = model(proven, "--test", tmp_path / "test.tsv")
    assert task["decimal"] == {"sign": ",", "assumed": False}
    assert any(note.startswith("test.tsv: the comma is taken for the decimal sign") for note in task["notes"])


def test_audit_says_what_it_assumed(command, paid, tmp_path):
    paid.assign(p=0.5).to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    options = ("--label", "income", "--ignore", "sex", "--score", "p")
    done = command("audit", tmp_path / "t.tsv", *options)
    assert done.code == 0, done.err
    assert "Note: the comma is taken to group thousands" in done.out
    done = command("audit", tmp_path / "t.tsv", *options, "--decimal", ";")
    assert done.code == 2


def test_class_words_are_kept_from_spreadsheets_and_audited_all_the_same(command, model, people, tmp_path):
    label = people.income.map({"high": "=HYPERLINK(1)", "low": "-"})
    frame = people.assign(income=label, job="@" + people.job)
    out, _, _ = model(frame)
    safe = {"=HYPERLINK(1)": "'=HYPERLINK(1)", "-": "'-"}

    def predictions(*options):
        done = scored(command, out, frame, tmp_path, *options)
        assert done.code == 0, done.err
        table = pd.read_csv(tmp_path / "scored.csv")
        audited = command("audit", tmp_path / "scored.csv", "--label", "income", "--ignore", "sex", "--json")
        return table, audited

    raw, audited = predictions("--no-neutralize-formulas")
    assert {*raw.prediction} == {*safe}
    expected = json.loads(audited.out)["metrics"]
    table, audited = predictions()
    assert table.prediction.tolist() == [safe[word] for word in raw.prediction]
    # the user's own cells stay as they are
    pd.testing.assert_frame_equal(table.drop(columns="prediction"), raw.drop(columns="prediction"))
    assert json.loads(audited.out)["metrics"] == expected
    table, _ = predictions("--neutralize-formulas")
    assert table.job.tolist() == [f"'{job}" for job in frame.job]
    assert table.income.tolist() == [safe[word] for word in frame.income]
