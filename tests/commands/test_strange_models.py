"""A model file from a stranger, or a damaged one, ends each command that opens it in two lines and exit code 2."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from setminus import save
from tests.made_models import attributes, edited, plain, set_attribute


@pytest.fixture
def table(people, tmp_path):
    file = tmp_path / "people.csv"
    people.to_csv(file, index=False)
    return file


@pytest.fixture
def opened(command, table, tmp_path):
    """Run each command that opens a model, and give what each says."""

    def run(model, *, info=True):
        out = tmp_path / "out"
        commands = [
            ("apply", model, table, "--out", out / "scored.csv", "--quiet"),
            (
                "fit",
                table,
                "--label",
                "income",
                "--ignore",
                "sex",
                "--full",
                model,
                "--out",
                out / "m.skops",
                "--quiet",
            ),
        ]
        done = [command(*one) for one in [("info", model), ("info", model, "--json")] * info + commands]
        for one in done:
            assert one.code == 2, (one.out, one.err)
            assert one.out == ""
            lines = one.err.strip().splitlines()
            assert len(lines) == 2, one.err
            assert lines[0].startswith("Error: ")
            assert "\x1b" not in one.err
        assert not list(out.glob("*"))
        # a table's error ends its first line with a full stop, a model's does not
        return [one.err.replace(".\n", "\n") for one in done]

    return run


@pytest.fixture
def boosting(people, tmp_path):
    X = people[["age", "skill"]]
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, people["income"])
    return save(model, tmp_path / "boosting.skops")


def test_the_model_is_taken_as_long_as_it_is_whole(command, boosting, table, tmp_path):
    assert command("info", boosting).code == 0
    assert command("apply", boosting, table, "--out", tmp_path / "scored.csv", "--quiet").code == 0
    fit = ("fit", table, "--label", "income", "--ignore", "sex", "--full", boosting, "--out", tmp_path / "m.skops")
    assert command(*fit, "--quiet").code == 0


def test_damage(opened, boosting):
    boosting.write_bytes(boosting.read_bytes()[:-1000])
    assert all("boosting.skops is not a model file of setminus, or is damaged" in said for said in opened(boosting))


def test_a_tree_that_leads_out_of_memory(opened, boosting):
    def lead_out(schema, arrays):
        for array in arrays.values():
            if array.dtype.names:
                array["left"][0] = 1 << 30

    edited(boosting, lead_out)
    assert all("HistGradientBoostingClassifier with values out of range" in said for said in opened(boosting))


def test_a_bomb(opened, boosting, monkeypatch):
    monkeypatch.setenv("SETMINUS_MODEL_BYTES", "10000")
    said = opened(boosting)
    assert all(
        "more than the 10,000 that are allowed\nIf you know who made it, set SETMINUS_MODEL_BYTES" in s for s in said
    )


def test_a_model_that_reads_files(opened, people, table, tmp_path):
    names = people.assign(job=str(table))[["job"]]
    model = make_pipeline(make_column_transformer((CountVectorizer(input="filename"), "job")), LogisticRegression())
    path = save(model.fit(names, people["income"]), tmp_path / "curious.skops")
    setting = "sklearn.feature_extraction.text.CountVectorizer(input='filename')"
    assert all(f"curious.skops holds what is not trusted, {setting}\nIf you know" in said for said in opened(path))


def test_a_type_that_is_not_reviewed_and_the_option_that_allows_it(command, opened, people, table, tmp_path):
    model = KNeighborsClassifier(algorithm="brute").fit(people[["age", "skill"]], people["income"])
    path = save(model, tmp_path / "near.skops")
    name = "sklearn.neighbors._classification.KNeighborsClassifier"
    assert all(f"not trusted, {name}\n" in said and "--trust" in said for said in opened(path))
    assert command("info", path, "--trust", name).code == 0
    scored = tmp_path / "scored.csv"
    assert command("apply", path, table, "--trust", name, "--out", scored, "--quiet").code == 0
    assert len(pd.read_csv(scored)) == len(people)


def test_a_name_that_would_steer_the_terminal(opened, boosting):
    edited(boosting, lambda schema, arrays: schema.update(__class__="\x1b[2J\nall is well"))
    assert all(r"\x1b[2J\nall is well" in said for said in opened(boosting))


@pytest.mark.parametrize(
    "change",
    [
        lambda schema, arrays: set_attribute(schema, schema["__class__"], "_loss", plain(None)),
        lambda schema, arrays: set_attribute(schema, schema["__class__"], "_baseline_prediction", plain({})),
        lambda schema, arrays: attributes(schema, schema["__class__"])["feature_names_in_"].update(
            content=[plain(7)] * 2
        ),
        lambda schema, arrays: set_attribute(schema, schema["__class__"], "feature_names_in_", plain(7)),
    ],
    ids=["no loss", "a dictionary for a number", "columns without names", "a number for names"],
)
def test_a_model_that_loads_and_fails_later(opened, boosting, change):
    edited(boosting, change)
    assert all("boosting.skops fails (" in said and "Fit it again" in said for said in opened(boosting, info=False))


def test_what_is_no_model(opened, tmp_path):
    said = opened(save([1, 2, 3], tmp_path / "list.skops"), info=False)
    assert "list.skops fails (AttributeError" in said[0]
    assert "does not hold the names of its columns" in said[1]


@pytest.mark.parametrize(
    "about", [7, {"task": 7}, {"test": {"before": 7}}, {"config": {"constraint": 1}}, {"command": []}]
)
def test_a_description_that_cannot_be_read(command, boosting, about):
    edited(boosting, lambda schema, arrays: set_attribute(schema, schema["__class__"], "about_", plain(about)))
    for option in ([], ["--json"]):
        done = command("info", boosting, *option)
        assert (done.code, done.out) == (2, "")
        assert "its description cannot be read" in done.err


def test_numbers_of_numpy_are_described(command, people, tmp_path):
    model = LogisticRegression().fit(people[["age"]], people["income"])
    model.strength = np.float32(0.5)
    assert "0.5" in command("info", save(model, tmp_path / "m.skops")).out
