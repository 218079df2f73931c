"""From fit to apply to audit by the command: the audit counts what the model decides, whatever labels are called."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import setminus

ALPHABETS = {"1 and 2": ("1", "2"), "0 and 1": ("0", "1"), "yes and no": ("no", "yes"), "three": ("0", "1", "2")}
FITTED = [(name, positive) for name, values in ALPHABETS.items() for positive in (None, *values[:2])]


@pytest.fixture(scope="module")
def table(people):
    """One label for each alphabet; the later its value, the higher the income."""
    rank = people["skill"] + (people["sex"] == "m") + np.random.default_rng(1).normal(0, 0.5, len(people))
    labels = {name: np.array(values)[pd.qcut(rank, len(values), labels=False)] for name, values in ALPHABETS.items()}
    return people.drop(columns="income").assign(**labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def scored(command, table, folder):
    """The model for a label, fitted once, and the path of the rows that it scored."""

    def run(name, positive, ending, *options):
        rows = table.drop(columns=[other for other in ALPHABETS if other != name])
        model = folder / f"{name} {positive}.skops"
        if not model.exists():
            rows.to_csv(folder / "train.csv", index=False)
            chosen = [] if positive is None else ["--positive", positive]
            common = ["--label", name, "--ignore", "sex", "--full", "logistic", "--tolerance", "0.3", "--quiet"]
            done = command("fit", folder / "train.csv", *common, *chosen, "--out", model, "--force")
            assert done.code == 0, done.err
        given, out = folder / f"new.{ending}", folder / f"scored.{ending}"
        rows.to_csv(given, index=False) if ending == "csv" else rows.to_parquet(given)
        done = command("apply", model, given, "--out", out, "--force", "--quiet", *options)
        assert done.code == 0, done.err
        return setminus.load(model), out

    return run


def decided(model, positive, table):
    """The value that the model itself decides for: the class 1 of `predict` is the positive one."""
    predicted = model.predict(table[[*model.feature_names_in_]])
    return predicted if positive is None else np.where(predicted == 1, positive, f"not {positive}")


def by_hand(truth, predicted, classes, sex):
    """Accuracy and the largest difference between the groups of P(predicted | truth), by counting."""
    gaps = [
        np.ptp([np.mean(predicted[(truth == y) & (sex == group)] == other) for group in ("f", "m")])
        for y in classes
        for other in classes
    ]
    return np.mean(predicted == truth), max(gaps)


def auc(truth, score):
    above = score[truth][:, None] - score[~truth]
    return np.mean(above > 0) + np.mean(above == 0) / 2


def audited(command, file, name, positive, *options):
    chosen = [] if positive is None else ["--positive", positive]
    return command("audit", file, "--label", name, "--ignore", "sex", "--json", *chosen, *options)


def numbers(done):
    assert done.code == 0, done.err
    audit = json.loads(done.out)["metrics"]["models"][0]["audit"]
    return audit["accuracy"]["value"], audit["equalized_odds_max"]["value"], audit["roc_auc"]


# what is in a Parquet file is read by the same code from there on: one suffices
@pytest.mark.parametrize(("name", "positive", "ending"), [*((*one, "csv") for one in FITTED), (*FITTED[0], "parquet")])
def test_the_audit_counts_what_the_model_decides(command, table, scored, name, positive, ending):
    values, truth, sex = ALPHABETS[name], table[name].to_numpy(), table["sex"].to_numpy()
    model, file = scored(name, positive, ending)
    predicted = decided(model, positive, table)
    proba = model.predict_proba(table[[*model.feature_names_in_]])
    asked = [positive] if positive else [None, *values]
    for value in asked:
        said = numbers(audited(command, file, name, value))
        if value is None:
            assert said[:2] == pytest.approx(by_hand(truth, predicted, values, sex), abs=1e-12)
            if len(values) == 2:
                assert said[2] == pytest.approx(auc(truth == values[1], proba[:, 1]))
        else:
            of_value = proba[:, 1] if positive else proba[:, values.index(value)]
            right = by_hand(truth == value, predicted == value, (False, True), sex)
            assert said == pytest.approx((*right, auc(truth == value, of_value)), abs=1e-12)
            # the control: what would be read if the classes were taken for each other
            wrong = by_hand(truth == value, predicted != value, (False, True), sex)
            assert said[0] != pytest.approx(wrong[0], abs=0.05)
    if positive:
        others = [None, *(value for value in values if value != positive)]
        for value in others:
            refused = audited(command, file, name, value)
            assert refused.code == 2 and refused.out == ""
            assert f"scored for {name} = {positive} against all other values" in refused.err
            assert f"--positive {positive}" in refused.err


def test_both_engines_write_the_same_and_leave_values_as_they_stand(command, table, scored, folder):
    scored("0 and 1", "0", "csv")
    ids = ["007", "0123", "12345678901234567890123", "NA", "", " x"]
    table.head(6).assign(id=ids).to_csv(folder / "some.csv", index=False)
    files = []
    for engine in ("arrow", "dask"):
        out = folder / f"{engine}.csv"
        done = command("apply", folder / "0 and 1 0.skops", folder / "some.csv", "--out", out, "--engine", engine)
        assert done.code == 0, done.err
        files.append(out.read_bytes())
    assert files[0] == files[1]
    assert b'"proba_not 0","proba_0","prediction"' in files[0]
    assert pd.read_csv(out, dtype=str, keep_default_na=False)["id"].tolist() == ids


def test_a_limit_that_the_decisions_break_ends_with_1(command, scored):
    _, file = scored("1 and 2", "2", "csv")
    gap = numbers(audited(command, file, "1 and 2", "2"))[1]
    assert gap > 0.02
    done = audited(command, file, "1 and 2", "2", "--fail-above", gap - 0.01)
    assert done.code == 1
    assert audited(command, file, "1 and 2", "2", "--fail-above", gap + 0.01).code == 0


@pytest.mark.parametrize("positive", ["0", "1"])
def test_the_audit_names_classes_by_the_values_of_the_label(command, positive, tmp_path):
    # 40 rows of f, of which 10 have the label 1; 100 of m, of which 40 have
    y = np.repeat(["0", "1", "0", "1"], [30, 10, 60, 40])
    table = pd.DataFrame({"y": y, "sex": np.repeat(["f", "m"], [40, 100]), "bet": y})
    table.to_csv(tmp_path / "t.csv", index=False)
    said = command("audit", tmp_path / "t.csv", "--label", "y", "--positive", positive, "--ignore", "sex",
                   "--prediction", "bet", "--certify", "0.5").out  # fmt: skip
    words = [line.split() for line in said.splitlines()]
    share = {"0": {"f": "0.750", "m": "0.600"}, "1": {"f": "0.250", "m": "0.400"}}[positive]
    # group, class, rows, base rate
    assert [line[:4] for line in words if line[:1] in (["f"], ["m"])] == [
        [sex, positive, n, share[sex]] for sex, n in (("f", "40"), ("m", "100"))
    ]
    few = {"0": "not 0", "1": "1"}[positive]
    assert f"fewer than 30 rows (f with {few}: 10)" in said


def as_before(file, positive):
    """The file that the version before wrote: codes 0 and 1 for the columns and for the decisions."""
    frame = pd.read_csv(file, dtype={"prediction": str})
    frame["prediction"] = (frame["prediction"] == positive).astype(int)
    frame = frame.rename(columns={f"proba_not {positive}": "proba_0", f"proba_{positive}": "proba_1"})
    old = Path(file).with_name("old.csv")
    frame.to_csv(old, index=False)
    return old


@pytest.mark.parametrize(("name", "positive"), [(n, p) for n, p in FITTED if p and (n, p) != ("0 and 1", "1")])
def test_codes_of_the_version_before_are_refused(command, scored, name, positive):
    old = as_before(scored(name, positive, "csv")[1], positive)
    for value in (None, *ALPHABETS[name]):
        refused = audited(command, old, name, value, "--fail-above", 0.05)
        assert refused.code == 2
        assert "Apply the model again" in refused.err


def test_codes_of_the_version_before_that_mean_the_same_are_read(command, table, scored):
    _, file = scored("0 and 1", "1", "csv")
    old = as_before(file, "1")
    assert numbers(audited(command, old, "0 and 1", "1")) == numbers(audited(command, file, "0 and 1", "1"))


def test_a_model_that_python_saved_with_its_own_classes(command, table, tmp_path):
    y = table["0 and 1"].astype(int)
    model = LogisticRegression().fit(table[["age", "skill"]], y)
    setminus.save(model, tmp_path / "m.skops")
    table[["age", "skill", "sex"]].assign(y=y).to_parquet(tmp_path / "new.parquet")
    assert command("apply", tmp_path / "m.skops", tmp_path / "new.parquet", "--out", tmp_path / "s.parquet").code == 0
    scored = pd.read_parquet(tmp_path / "s.parquet")
    assert scored["prediction"].tolist() == model.predict(table[["age", "skill"]]).tolist()
    accuracies = [numbers(audited(command, tmp_path / "s.parquet", "y", value))[0] for value in (None, "0", "1")]
    assert accuracies == pytest.approx([np.mean(scored["prediction"] == scored["y"])] * 3)
