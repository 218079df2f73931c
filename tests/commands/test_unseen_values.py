"""`apply` counts the values that training did not have, refuses what it cannot read, and trims text as `fit` does."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import setminus
from setminus.scale.scorers import ModelScorer
from setminus.scale.scoring import score_file

OLD_MODEL = Path(__file__).parent.parent / "data" / "models_0_1_0"


@pytest.fixture(scope="module")
def table(people):
    rng = np.random.default_rng(2)
    since = np.datetime64("1960-01-01") + (people["skill"] * 1000 + 9000).astype(int).to_numpy()
    return people.assign(
        since=since.astype("datetime64[D]").astype(str), member=np.where(rng.random(len(people)) < 0.5, "yes", "no")
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("unseen")


@pytest.fixture
def model(command, table, folder):
    path = folder / "m.skops"
    if not path.exists():
        table.to_csv(folder / "people.csv", index=False)
        common = ["--label", "income", "--ignore", "sex", "--full", "logistic", "--quiet"]
        assert command("fit", folder / "people.csv", *common, "--out", path, "--force").code == 0
    return path


@pytest.fixture
def apply(command, model, tmp_path):
    """Score a frame in a format; gives what the command did and the probabilities, None where it wrote nothing."""

    def run(frame, ending="csv", *options):
        given, out = tmp_path / f"new.{ending}", tmp_path / f"out.{ending}"
        out.unlink(missing_ok=True)
        frame.to_csv(given, index=False) if ending == "csv" else frame.to_parquet(given, index=False)
        done = command("apply", model, given, "--out", out, "--force", "--quiet", *options)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        if not out.exists():
            return done, None
        read = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
        return done, read["proba_high"].to_numpy()

    return run


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_like_those_of_training_are_scored_without_a_word(apply, table, ending):
    frame = table if ending == "csv" else table.assign(since=pd.to_datetime(table["since"]))
    done, proba = apply(frame, ending)
    assert (done.code, done.out, done.err) == (0, "", "")
    strict, again = apply(frame, ending, "--strict")
    assert (strict.code, strict.err) == (0, "")
    np.testing.assert_array_equal(proba, again)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_spaces_around_text_change_no_probability(apply, table, ending):
    dates = {} if ending == "csv" else {"since": pd.to_datetime(table["since"])}
    _, proba = apply(table.assign(**dates), ending)
    spaced = table.assign(job=table["job"] + " ", member=" " + table["member"], **dates)
    done, same = apply(spaced, ending, "--strict")
    assert (done.code, done.err) == (0, "")
    np.testing.assert_array_equal(same, proba)
    # the control: a word that is another one
    done, other = apply(table.assign(job=table["job"] + "s", **dates), ending)
    assert "job in 600 of 600 rows (such as " in done.err
    assert np.abs(other - proba).max() > 0.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"job": lambda t: t["job"].where(t.index >= 7, "astronaut")}, "job in 7 of 600 rows (such as 'astronaut')"),
        ({"member": lambda t: t["member"].map({"yes": "ja", "no": "nein"})}, "member in 600 of 600 rows (such as "),
        ({"skill": lambda t: t["skill"].where(t.index >= 9)}, "skill in 9 of 600 rows (no value)"),
        ({"age": lambda t: t["age"] * 1000}, "age in 600 of 600 rows (such as '"),
        ({"age": lambda t: t["age"] > 40}, "age in 600 of 600 rows (such as 'bool')"),
        ({"since": lambda t: "2" + t["since"].str[1:]}, "since in 600 of 600 rows"),
    ],
)
def test_unseen_values_are_counted_and_refused_when_strict(apply, table, change, words):
    frame = table.assign(**change)
    done, proba = apply(frame)
    assert done.code == 0 and len(proba) == len(table)
    assert done.err.startswith("Warning: values that were not seen in training: ") and words in done.err
    assert len(done.err.splitlines()) == 1
    refused, nothing = apply(frame, "csv", "--strict")
    assert refused.code == 2 and nothing is None
    assert words in refused.err and "--strict" in refused.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"since": lambda t: pd.to_datetime(t["since"]).astype("int64") // 86_400_000_000_000}, "int64, not dates"),
        ({"since": lambda t: pd.to_datetime(t["since"]).dt.strftime("%d/%m/%Y")}, "not a date"),
        ({"age": lambda t: t["age"].astype(str) + " years"}, "column 'age' holds something that is not a number"),
        ({"skill": lambda t: pd.to_datetime(t["since"])}, "column 'skill' holds something that is not a number"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_another_kind_is_refused(apply, table, change, words, ending):
    done, nothing = apply(table.assign(**change), ending)
    assert done.code == 2 and nothing is None
    assert words in done.err and "Traceback" not in done.err


def test_a_few_columns_are_named(command, tmp_path, people):
    more = {f"c{k}": np.where(np.arange(len(people)) % 3 == k % 3, "a", "b") for k in range(7)}
    people.assign(**more).to_csv(tmp_path / "people.csv", index=False)
    people.assign(**dict.fromkeys(more, "x")).to_csv(tmp_path / "new.csv", index=False)
    common = ["--label", "income", "--ignore", "sex", "--full", "logistic", "--out", tmp_path / "m.skops", "--quiet"]
    assert command("fit", tmp_path / "people.csv", *common).code == 0
    done = command(
        "apply", tmp_path / "m.skops", tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--force", "--quiet"
    )
    assert done.code == 0
    assert done.err.count("in 600 of 600 rows") == 4 and "and 3 more" in done.err


def drifted(table, path):
    """Many parts, each with other unseen values."""
    changed = table.assign(
        job=table["job"].where(table.index % 50 != 0, "astronaut"), age=table["age"].where(table.index % 7 != 0, 999)
    )
    pq.write_table(pa.Table.from_pandas(changed, preserve_index=False), path, row_group_size=64)
    return {"job": int((changed["job"] == "astronaut").sum()), "age": int((changed["age"] == 999).sum())}


def test_counts_are_those_of_the_whole_file(model, table, tmp_path):
    expected = drifted(table, tmp_path / "new.parquet")
    done = score_file(tmp_path / "new.parquet", tmp_path / "out.parquet", ModelScorer(model))
    assert {name: part.unseen for name, part in done.drift.items() if part.unseen} == expected
    assert {column.rows for column in done.drift.values()} == {600}
    assert done.drift["job"].example == "astronaut"


@pytest.mark.parametrize("principal", ["group", "proxy"])
def test_spaces_in_training_and_in_the_groups(command, tmp_path, people, principal):
    """As with the official Adult file, whose values all begin with a space."""
    spaced = people.assign(job=" " + people["job"], sex=people["sex"] + np.where(people.index % 2, " ", ""))
    common = ["--label", "income", "--ignore", "sex", "--full", "logistic", "--principal", principal, "--quiet"]
    scores = []
    for name, train, new in (("a", people, spaced), ("b", spaced, people), ("c", people, people)):
        train.to_parquet(tmp_path / "train.parquet")
        new.to_parquet(tmp_path / "new.parquet")
        model = tmp_path / f"{name}.skops"
        assert command("fit", tmp_path / "train.parquet", *common, "--out", model, "--force").code == 0
        done = command(
            "apply", model, tmp_path / "new.parquet", "--out", tmp_path / "out.parquet", "--force", "--quiet"
        )
        assert (done.code, done.err) == (0, "")
        scores.append(pd.read_parquet(tmp_path / "out.parquet")["proba_high"].to_numpy())
        # what was there is written as it was
        assert pd.read_parquet(tmp_path / "out.parquet")["job"].tolist() == new["job"].tolist()
    np.testing.assert_allclose(scores[0], scores[2], rtol=1e-12)
    np.testing.assert_allclose(scores[1], scores[2], rtol=1e-12)


def test_a_model_saved_without_ranges_says_what_it_cannot_check(command, tmp_path):
    out = tmp_path / "scored.csv"
    arguments = ["apply", OLD_MODEL / "command_fit.skops", OLD_MODEL / "target.csv", "--out", out, "--quiet"]
    done = command(*arguments)
    assert done.code == 0 and out.exists()
    assert done.err == "Warning: not compared with training, as the model does not hold their range: age, skill.\n"
    out.unlink()
    refused = command(*arguments, "--strict")
    assert refused.code == 2 and not out.exists()
    assert "the model does not hold the range of age, skill" in refused.err


def test_a_model_that_does_not_know_its_training_rows_is_refused_when_strict(command, tmp_path, people):
    setminus.save(LogisticRegression().fit(people[["age", "skill"]], people["income"]), tmp_path / "m.skops")
    people.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["apply", tmp_path / "m.skops", tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--quiet"]
    refused = command(*arguments, "--strict")
    assert refused.code == 2 and not (tmp_path / "out.csv").exists()
    assert "the model does not hold their values" in refused.err
    assert command(*arguments).code == 0
    ready = ["apply", tmp_path / "new.csv", "--full", "age", "--principal", "age", "--prior", "uniform", "--strict"]
    assert "--strict was given without a model" in command(*ready, "--out", tmp_path / "no.csv").err
