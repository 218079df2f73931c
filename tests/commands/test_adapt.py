"""``setminus adapt``: from a labelled table and another one to a model, a record and a page."""

import json

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import setminus

pytest.importorskip("torch")

OLD = ("--method", "vada_orthogonal")


def patients(n, ill, moved, seed):
    """A marker and a pressure that tell who is ill; in the other hospital both are measured otherwise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < ill
    return pd.DataFrame(
        {
            "patient": [f"{seed}-{k}" for k in range(n)],
            "marker": rng.normal(3.0 * y + moved, 0.7).round(3),
            "pressure": rng.normal(120 + 10 * y - 8 * moved, 8).round(),
            "ward": np.where(rng.random(n) < 0.5, "east", "west"),
            "outcome": np.where(y, "ill", "well"),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospitals")
    patients(600, 0.2, 0.0, 0).to_csv(folder / "a.csv", index=False)
    b = patients(400, 0.7, 0.5, 1)
    b.drop(columns="outcome").to_csv(folder / "b.csv", index=False)
    b.assign(outcome=b["outcome"].where(b.index < 60)).to_csv(folder / "b_labelled.csv", index=False)
    return folder


def adapt(command, files, out, target="b.csv", *options):
    return command(
        "adapt", files / "a.csv", files / target, "--label", "outcome", "--out", out, "--steps", 80, *options
    )


def test_it_writes_the_model_the_record_and_the_page(command, files, tmp_path):
    done = adapt(command, files, tmp_path / "m.skops", "b_labelled.csv")
    assert done.code in (0, 1), done.err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.adaptation.json", "m.report.html", "m.skops"]
    assert "left out: its 600 values name rows" in done.out
    assert "accuracy on labelled target rows" in done.out
    record = json.loads((tmp_path / "m.adaptation.json").read_text())
    metrics = record["metrics"]
    assert record["task"]["rows"] == {"source": 600, "target": 400, "labelled": 60}
    ill = {name: mix[record["task"]["classes"].index("ill")] for name, mix in metrics["mixes"].items()}
    assert ill["source"] < 0.3 < 0.5 < ill["target, estimated"]
    assert all(sum(mix) == pytest.approx(1) for mix in metrics["mixes"].values())
    assert 0 <= metrics["accuracy"]["adapted"]["low"] <= metrics["accuracy"]["adapted"]["value"] <= 1
    # whether predictions follow the estimate is asked where the model trusts it
    assert len(metrics["findings"]) == 12 + (metrics["measures"]["trust"] >= 0.5)
    assert list(metrics["accuracy"])[:3] == ["source only", "corrected", "adapted"]
    assert f"Recommended model: {metrics['recommended']}." in done.out
    page = (tmp_path / "m.report.html").read_text()
    assert str(escape(metrics["verdict"])) in page
    # and again from the record alone
    assert command("report", tmp_path).code == 0
    assert (tmp_path / "report.html").read_text() == page


def test_the_model_scores_files_and_tells_of_itself(command, files, tmp_path):
    adapt(command, files, tmp_path / "m.skops", "b.csv", "--quiet")
    done = command("apply", tmp_path / "m.skops", files / "b.csv", "--out", tmp_path / "scored.csv")
    assert done.code == 0, done.err
    scored = pd.read_csv(tmp_path / "scored.csv")
    model = setminus.load(tmp_path / "m.skops")
    frame = pd.read_csv(files / "b.csv")
    assert scored["prediction"].tolist() == model.predict(frame).tolist()
    assert scored["proba_ill"].to_numpy() == pytest.approx(model.predict_proba(frame)[:, 0])
    described = command("info", tmp_path / "m.skops").out
    assert "auto" in described and "marker, pressure, ward" in described


@pytest.mark.parametrize(("codes", "positive"), [({"ill": "0", "well": "1"}, "0"), ({"ill": "1", "well": "2"}, "2")])
def test_from_adapt_to_apply_to_audit_with_labels_that_look_like_codes(command, tmp_path, codes, positive):
    for name, rows in (("a", patients(600, 0.2, 0.0, 0)), ("b", patients(400, 0.7, 0.5, 1))):
        rows.assign(outcome=rows["outcome"].map(codes)).to_csv(tmp_path / f"{name}.csv", index=False)
    done = adapt(command, tmp_path, tmp_path / "m.skops", "b.csv", "--positive", positive, "--quiet")
    assert done.code == 0, done.err
    done = command("apply", tmp_path / "m.skops", tmp_path / "b.csv", "--out", tmp_path / "scored.csv", "--quiet")
    assert (done.code, done.err) == (0, "")
    common = ["audit", tmp_path / "scored.csv", "--label", "outcome", "--ignore", "ward", "--json"]
    record = json.loads(command(*common, "--positive", positive).out)
    frame = pd.read_csv(tmp_path / "b.csv", dtype={"outcome": str})
    right = (setminus.load(tmp_path / "m.skops").predict(frame) == positive) == (frame["outcome"] == positive)
    assert record["metrics"]["models"][0]["audit"]["accuracy"]["value"] == pytest.approx(right.mean())
    refused = command(*common)
    assert refused.code == 2 and f"--positive {positive}" in refused.err


def test_values_that_the_source_did_not_have_are_counted(command, files, tmp_path):
    adapt(command, files, tmp_path / "m.skops", "b.csv", "--quiet")
    new = pd.read_csv(files / "b.csv")
    new.assign(ward=new["ward"].where(new.index % 4 != 0, "north")).to_csv(tmp_path / "new.csv", index=False)
    arguments = ["apply", tmp_path / "m.skops", tmp_path / "new.csv", "--out", tmp_path / "scored.csv", "--quiet"]
    done = command(*arguments, "--strict")
    assert done.code == 2 and not (tmp_path / "scored.csv").exists()
    done = command(*arguments)
    assert done.code == 0 and "ward in 100 of 400 rows (such as 'north')" in done.err


def test_labels_of_the_target_change_nothing_but_the_score(command, files, tmp_path):
    """Bit for bit: as they are, shuffled, and not there at all."""
    frame = pd.read_csv(files / "b_labelled.csv")
    frame["outcome"] = frame["outcome"].sample(frac=1, random_state=0).to_numpy()
    (tmp_path / "files").mkdir()
    frame.to_csv(tmp_path / "files" / "shuffled.csv", index=False)
    layers, scores = [], []
    for target in (files / "b_labelled.csv", tmp_path / "files" / "shuffled.csv", files / "b.csv"):
        out = tmp_path / target.stem / "m.skops"
        adapt(command, files, out, target, "--quiet")
        layers.append([part for layer in setminus.load(out)[-1].layers_ for part in layer])
        scores.append(json.loads((out.parent / "m.adaptation.json").read_text())["metrics"]["accuracy"])
    for others in layers[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(layers[0], others, strict=True))
    assert scores[0] != scores[1] and scores[2] == {}


def test_json_and_quiet(command, files, tmp_path):
    done = adapt(command, files, tmp_path / "m.skops", "b.csv", "--method", "dann", "--json")
    assert done.err == ""
    record = json.loads(done.out)
    assert record == json.loads((tmp_path / "m.adaptation.json").read_text())
    metrics = record["metrics"]
    assert record["config"]["method"] == "dann" and metrics["accuracy"] == {}
    # another method is judged beside the default one
    assert set(metrics["predicted"]) == {"source only", "corrected", "adapted", "auto"}
    assert abs(metrics["measures"]["expected_gain"]) <= 1
    assert (metrics["recommended"] == "auto") == (metrics["measures"]["expected_gain"] < -0.05)
    assert done.code == (metrics["recommended"] != "adapted")
    assert (tmp_path / "m.report.html").is_file()
    done = adapt(command, files, tmp_path / "m.skops", "b.csv", "--quiet", "--force")
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("installed", [True, False])
def test_the_corrected_model_is_judged_by_auto_where_torch_is_there(command, files, tmp_path, monkeypatch, installed):
    monkeypatch.setattr("setminus.commands.adapt.find_spec", lambda name: object() if installed else None)
    done = adapt(command, files, tmp_path / "m.skops", "b.csv", "--method", "corrected", "--json")
    metrics = json.loads(done.out)["metrics"]
    assert ("auto" in metrics["predicted"]) == ("expected_gain" in metrics["measures"]) == installed
    assert done.code == (metrics["recommended"] != "adapted") == metrics["verdict"].startswith("Do not use it")


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (lambda a, b: (a, b.drop(columns="marker")), [], ("'marker'",)),
        (lambda a, b: (a, b.head(3)), [], ("b.csv has 3 rows", "At least 10")),
        (lambda a, b: (a.assign(outcome="ill"), b), [], ("one value only",)),
        (lambda a, b: (a.assign(outcome=["rare"] * 4 + ["ill", "well"] * 298), b), [], ("4 rows", "'rare'")),
        (lambda a, b: (a[["patient", "outcome"]], b), [], ("no column is left to learn from",)),
        (lambda a, b: (a.drop(columns="outcome"), b), [], ("'outcome'",)),
        (lambda a, b: (a, b.assign(marker="much")), [], ("marker",)),
        (lambda a, b: (a, b.assign(outcome="Ill ")), [], ("no label 'Ill'", "Did you mean 'ill'")),
        (lambda a, b: (a, b), ["--predict-prior", "target", "--method", "vada"], ("predict_prior",)),
    ],
)
def test_what_cannot_be_used_is_refused_in_two_lines_and_nothing_is_written(
    command, files, tmp_path, change, options, said
):
    a, b = change(pd.read_csv(files / "a.csv"), pd.read_csv(files / "b.csv"))
    a.to_csv(tmp_path / "a.csv", index=False)
    b.to_csv(tmp_path / "b.csv", index=False)
    out = tmp_path / "out" / "m.skops"
    done = adapt(command, tmp_path, out, "b.csv", *options)
    assert (done.code, done.out) == (2, "")
    lines = [line for line in done.err.strip().splitlines() if not line.lstrip()[:1].isdigit()]
    assert len(lines) == 2 and lines[0].startswith("Error: ")
    assert all(word in done.err for word in said)
    assert not list(out.parent.glob("*"))


def test_labels_that_the_source_lacks_are_noted_and_count_as_wrong(command, files, tmp_path):
    frame = pd.read_csv(files / "b_labelled.csv")
    frame.loc[:9, "outcome"] = "unheard of"
    frame.to_csv(tmp_path / "b.csv", index=False)
    done = adapt(command, files, tmp_path / "m.skops", tmp_path / "b.csv")
    assert done.code == 0, done.err
    assert "Note: 10 rows of b.csv are labelled 'unheard of', which the source lacks" in " ".join(done.out.split())
    record = json.loads((tmp_path / "m.adaptation.json").read_text())
    assert record["task"]["rows"]["labelled"] == 60
    assert record["metrics"]["accuracy"]["adapted"]["value"] <= 50 / 60
    assert statuses(record)["the source has the classes of the target"] == "fail"


def statuses(record):
    return {one["name"]: one["status"] for one in record["metrics"]["findings"]}


def test_a_column_that_means_nothing_in_the_target_is_told(command, files, tmp_path):
    """An empty column is the median to a model, which then agrees with itself."""
    pd.read_csv(files / "b.csv").assign(marker=np.nan).to_csv(tmp_path / "b.csv", index=False)
    for target, status in ((files / "b.csv", "ok"), (tmp_path / "b.csv", "fail")):
        record = json.loads(adapt(command, files, tmp_path / "m.skops", target, "--json", "--force").out)
        assert statuses(record)["target values were seen in the source"] == status
    assert record["metrics"]["verdict"].startswith(("The evidence is weak.", "Do not use it."))


def test_a_shrunk_estimate_is_judged_and_shown_as_it_was_before(command, files, tmp_path):
    plain, shrunk = (
        json.loads(adapt(command, files, tmp_path / name, "b.csv", "--json", *OLD, *more).out)["metrics"]["mixes"]
        for name, more in (("plain.skops", []), ("shrunk.skops", ["--shrinkage", 0.5]))
    )
    assert shrunk["target, estimated"] == pytest.approx(plain["target, estimated"])
    assert shrunk["target, assumed"] == pytest.approx([(0.5 + share) / 2 for share in plain["target, estimated"]])
    assert "target, assumed" not in plain


def test_one_value_may_count_against_all_others(command, files, tmp_path):
    done = adapt(command, files, tmp_path / "m.skops", "b_labelled.csv", "--positive", "ill", "--json")
    assert json.loads(done.out)["task"]["classes"] == ["ill", "not ill"]


@pytest.mark.parametrize("name", ["a.csv", "b.csv"])
def test_a_file_that_is_read_is_not_overwritten(command, files, tmp_path, name):
    for file in ("a.csv", "b.csv"):
        (tmp_path / file).write_bytes((files / file).read_bytes())
    done = adapt(command, tmp_path, tmp_path / name, "b.csv")
    assert done.code == 2 and "is an input, and would be overwritten" in done.err
    assert (tmp_path / name).read_bytes() == (files / name).read_bytes()


def test_help_teaches(command):
    text = " ".join(command("adapt", "--help").out.split())
    for word in ("Example: setminus adapt", "--label-shift", "for evaluation only", "em|bbse|pseudo"):
        assert word in text
