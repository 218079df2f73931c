"""The evidence that fit and audit leave: who, when, from which files, and the same in every output."""

import hashlib
import json

import pytest

from setminus.commands.filing import Filing

NOTES = "# Why\n\nThe committee chose 0.2. <script>alert(1)</script> ![x](http://example.org/x.png)\n"


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def files(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "why.md").write_text(NOTES)
    return tmp_path


def evidence(files, record, *pages):
    """What every output must hold."""
    assert record["date"].startswith("20") and record["date"].endswith("+00:00")
    found = record["provenance"]
    assert found["approved_by"] == "Ada L." and found["notes"] == NOTES
    for page in pages:
        # without the scripts of the page
        text = page.read_text().partition("</main>")[0]
        assert "Ada L." in text and record["date"] in text and "The committee chose 0.2." in text
        assert "<script>alert(1)" not in text and "<img" not in text and "Local Law 144" in text
        for file in found["files"]:
            assert file["sha256"] in text
    return {file["what"]: file["sha256"] for file in found["files"]}, {
        one["name"]: (one["value"], one["typed"]) for one in found["settings"]
    }


def test_a_fit_can_be_filed_and_its_scores_audited(command, files):
    model, card = files / "m.skops", files / "m.md"
    stand = ["--approved-by", " Ada L. ", "--notes", files / "why.md"]
    common = ["--label", "income", "--ignore", "sex", "--positive", "high"]
    done = command(
        "fit", files / "people.csv", *common, "--full", "logistic", "--tolerance", 0, "--confidence=0.9", *stand,
        "--out", model, "--card", card,
    )  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads((files / "m.audit.json").read_text())
    hashes, settings = evidence(files, record, files / "m.report.html", card)
    assert hashes == {"table": sha(files / "people.csv"), "model": sha(model)}
    assert settings["tolerance"] == (0, True) and settings["confidence"] == (0.9, True)
    assert settings["constraint"] == ("equalized_odds", False) and settings["bins"] == (None, False)
    impact = record["metrics"]["models"][-1]["audit"]["impact"]
    assert [table["attribute"] for table in impact] == ["sex"] and "Not certified" in card.read_text()
    assert command("apply", model, files / "people.csv", "--out", files / "scored.csv").code == 0
    done = command(
        "audit", files / "scored.csv", *common, "--ignore", "job", *stand, "--model", model, "--certify", 0.9,
        "--out", files / "a.json", "--page", files / "a.html", "--card", files / "a.md",
    )  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads((files / "a.json").read_text())
    hashes, settings = evidence(files, record, files / "a.html", files / "a.md")
    assert hashes == {"table": sha(files / "scored.csv"), "model": sha(model)}
    assert settings["certify"] == (0.9, True) and settings["favorable"] == (None, False)
    impact = record["metrics"]["models"][0]["audit"]["impact"]
    assert [table["attribute"] for table in impact] == ["sex", "job", "sex x job"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--approved-by", "  "], "--approved-by is empty"),
        (["--notes", "missing.md"], "missing.md"),
        (["--notes", "latin.md"], "is no text in UTF-8"),
        (["--notes", "long.md"], "has 100,001 characters"),
        (["--card", "card.html"], "has the name of a page, and would hold a card"),
        (["--card", "people.csv"], "is an input"),
        (["--pdf", "m.pdf"], "needs a browser"),
        (["--model", "missing.skops"], "there is no file"),
    ],
)
@pytest.mark.parametrize("job", ["fit", "audit"])
def test_what_cannot_be_filed_is_refused_before_any_work(command, files, monkeypatch, job, options, message):
    monkeypatch.chdir(files)
    monkeypatch.setenv("SETMINUS_BROWSER", "no-such-browser")
    (files / "latin.md").write_bytes("für".encode("latin-1"))
    (files / "long.md").write_text("x" * 100_001)
    if job == "fit" and "--model" in options:
        pytest.skip("fit writes the model")
    more = ["--out", "m.skops"] if job == "fit" else ["--score", "skill"]
    done = command(job, "people.csv", "--label", "income", "--ignore", "sex", *more, *options)
    assert done.code == 2 and message in " ".join(done.err.split()) and len(done.err.splitlines()) == 2
    assert not (files / "m.skops").exists()


def test_a_setting_may_be_typed_in_two_ways():
    found = Filing().provenance(
        "setminus fit t.csv --a=1 --b-c 2 'x --d'", {"a": 1, "b_c": 2, "d": ()}, ["a", "b_c", "d"], {}
    )
    assert [(one["value"], one["typed"]) for one in found["settings"]] == [(1, True), (2, True), (None, False)]
    assert found["files"] == [] and found["approved_by"] is None
