"""What is wrong ends in two lines and exit code 2: what is wrong, what to do; never in a traceback, or a file."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def refused(done):
    assert done.code == 2, (done.out, done.err)
    assert "Traceback" not in done.err
    lines = done.err.strip().splitlines()
    assert len(lines) == 2, done.err
    assert lines[0].startswith("Error: ")
    assert done.out == ""
    return done.err


@pytest.fixture
def fit(command, people, tmp_path):
    """Fit on a changed table; gives what the command says, having seen that nothing was written."""

    def run(change=None, *options, name="people.csv", raw=None, label="income", ignore="sex"):
        file = tmp_path / name
        if raw is not None:
            file.write_bytes(raw)
        else:
            table = people.copy() if change is None else change(people.copy())
            table.to_csv(file, index=False)
        out = tmp_path / "out" / "model.skops"
        done = command(
            "fit", file, "--label", label, "--ignore", ignore, "--full", "logistic", "--out", out, "--quiet", *options
        )
        if done.code == 2:
            assert not list(out.parent.glob("*"))
        return done

    return run


def test_a_missing_column_suggests_the_nearest(fit):
    assert "Did you mean 'income'" in refused(fit(label="incom"))
    assert "Did you mean 'sex'" in refused(fit(ignore="Sex"))


def test_a_name_as_long_as_a_file_leaves_room_for_what_is_wrong_with_it(fit):
    message = refused(fit(label="x" * 70_000))
    assert len(message) < 2000
    assert "no column 'xxx" in message


def test_an_audit_by_an_empty_name_is_no_audit_without_labels(command, tmp_path):
    table = tmp_path / "scored.csv"
    table.write_text("sex,p\n" + "f,0.2\nm,0.8\nf,0.4\nm,0.6\n" * 10)
    done = command("audit", table, "--label", "", "--ignore", "sex", "--score", "p")
    assert "has no column ''" in refused(done)


def test_a_label_of_lists(command, people, tmp_path):
    people.assign(income=[[1, 2]] * len(people)).to_parquet(tmp_path / "people.parquet")
    out = tmp_path / "model.skops"
    done = command("fit", tmp_path / "people.parquet", "--label", "income", "--ignore", "sex", "--out", out, "--quiet")
    assert "a column of list" in refused(done)


def test_the_table_is_not_overwritten_by_the_model(command, people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    before = (tmp_path / "people.csv").read_bytes()
    done = command(
        "fit", tmp_path / "people.csv", "--label", "income", "--ignore", "sex", "--out", tmp_path / "people.csv"
    )
    assert "is an input, and would be overwritten" in refused(done)
    assert (tmp_path / "people.csv").read_bytes() == before


def test_a_label_that_is_also_ignored(fit):
    assert "also to be ignored" in refused(fit(ignore="income"))


@pytest.mark.parametrize(
    ("raw", "name", "words"),
    [
        (b"", "people.csv", "empty"),
        (b"age,sex,income\n", "people.csv", "with rows"),
        (b"age,sex\n1,m\n", "people.parquet", "people.parquet"),
        (b"PAR1 but not really", "people.parquet", "people.parquet"),
        (b"age,sex\n1,m\n", "people.csv.gz", "people.csv.gz"),
        (gzip.compress(b"age,sex,income\n1,m,2\n")[:-9], "people.csv.gz", "people.csv.gz"),
        (b"age,sex,income\n1,m,low\n2,f\n3,m,high,9\n", "people.csv", "line"),
        ("age,sex,income\n1,m\xe4nnlich,low\n2,f,high\n".encode("latin-1"), "people.csv", "latin-1"),
        (b"sex,sex,income\n1,2,3\n", "people.csv", "2 columns called 'sex'"),
    ],
    ids=["empty", "header only", "csv as parquet", "no parquet", "no gzip", "cut gzip", "ragged", "latin-1", "twice"],
)
def test_files_that_are_not_what_they_should_be(fit, raw, name, words):
    assert words in refused(fit(raw=raw, name=name))


def test_a_file_that_is_not_there(command, tmp_path):
    done = command("fit", tmp_path / "no.csv", "--label", "y", "--ignore", "x", "--out", tmp_path / "m.skops")
    assert "no.csv" in refused(done)


def test_a_label_with_one_value(fit):
    assert "one value only, 'high'" in refused(fit(lambda t: t.assign(income="high")))


def test_a_label_with_too_many_values(fit):
    assert "--positive" in refused(fit(label="skill"))


def test_a_positive_value_that_does_not_occur(fit):
    assert "Did you mean 'high'" in refused(fit(None, "--positive", "hihg"))


def test_a_group_with_three_rows(fit):
    def change(table):
        table.loc[:2, "sex"] = "x"
        return table

    message = refused(fit(change, "--small-groups", "raise"))
    assert "groups with too few rows: 'x' (3)" in message
    assert "small_groups='merge' or 'drop'" in message
    assert fit(change).code == 0, "the rows train the model, and their group is not compared"


def test_an_ignored_column_with_one_value(fit):
    assert "one value only" in refused(fit(lambda t: t.assign(sex="f")))


def test_nothing_left_to_learn_from(fit):
    assert "no column is left" in refused(fit(lambda t: t[["sex", "income"]].assign(country="x")))


@pytest.mark.parametrize("size", [0, 1, 1.5])
def test_a_test_size_that_is_no_share(fit, size):
    assert "between 0 and 1" in refused(fit(None, "--test-size", size))


def test_an_output_that_cannot_be_written(command, people, tmp_path):
    file = tmp_path / "people.csv"
    people.to_csv(file, index=False)
    common = ["fit", file, "--label", "income", "--ignore", "sex", "--out"]
    assert "is a folder" in refused(command(*common, tmp_path))
    assert "cannot write" in refused(command(*common, file / "model.skops"))


def test_a_full_model_that_is_none(fit):
    assert "hist_gradient_boosting, logistic, or the path" in refused(fit(None, "--full", "forest"))


def test_forty_percent_missing_is_said_and_works(fit, people, tmp_path):
    def change(table):
        table.loc[: int(0.45 * len(table)), "skill"] = np.nan
        return table

    done = fit(change, "--json")
    assert done.code == 0
    assert "45% of its values are missing" in done.out


def test_columns_with_quotes_commas_and_html(fit, tmp_path):
    odd = 'a "quoted", <b>bold</b> name'
    done = fit(
        lambda t: t.rename(columns={"skill": odd, "sex": "<script>alert(1)</script>"}),
        ignore="<script>alert(1)</script>",
    )
    assert done.code == 0
    page = (tmp_path / "out" / "model.report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--full", "p"], "three things"),
        (["--full", "p", "--principal", "nope", "--prior", "uniform"], "no column 'nope'"),
        (["--full", "p", "--principal", "q", "--prior", "0.5,0.6"], "sum to 1"),
        (["--full", "p", "--principal", "q", "--prior", "half"], "the prior is 'half'"),
        ([], "Give a model and a table"),
        (["--full", "p", "--principal", "bad", "--prior", "uniform"], "in rows 1 to 2 of scores.csv"),
    ],
)
def test_apply_on_ready_probabilities(command, tmp_path, arguments, words):
    file = tmp_path / "scores.csv"
    pd.DataFrame({"p": [0.5, 0.6], "q": [0.4, 0.2], "bad": [0.5, 1.5]}).to_csv(file, index=False)
    assert words in refused(command("apply", file, *arguments, "--out", tmp_path / "scored.csv", "--quiet"))
    assert not (tmp_path / "scored.csv").exists()


def test_apply_with_what_is_no_model(command, people, tmp_path):
    file = tmp_path / "people.csv"
    people.to_csv(file, index=False)
    done = command("apply", file, file, "--out", tmp_path / "scored.csv")
    assert "not a model file" in refused(done)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--score", "score"], "no column 'score'"),
        (["--score", "skill"], "not a probability"),
        (["--score", "age", "--score", "skill", "--score", "job"], "3 columns of scores"),
        ([], "--score COLUMN"),
        (["--score", "half", "--prediction", "job"], "the predictions hold"),
    ],
)
def test_audit(command, people, tmp_path, arguments, words):
    file = tmp_path / "people.csv"
    people.assign(half=0.5).to_csv(file, index=False)
    assert words in refused(command("audit", file, "--label", "income", "--ignore", "sex", "--quiet", *arguments))


def test_report_and_info_and_data(command, tmp_path):
    assert "there are no records" in refused(command("report", tmp_path))
    (tmp_path / "audit.json").write_text("{")
    assert "is no record" in refused(command("report", tmp_path))
    assert "is not a model file" in refused(command("info", tmp_path / "audit.json"))
    assert "Did you mean 'adult.data'" in refused(command("data", "fetch", "adult.dat"))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.integers(0, 4000),
    noise=st.binary(max_size=12),
    at=st.integers(0, 4000),
    ending=st.sampled_from(["people.csv", "people.parquet", "people.csv.gz", "people.arrow", "people"]),
)
def test_damaged_tables_never_show_a_traceback(command, people, tmp_path, cut, noise, at, ending):
    text = people.head(120).to_csv(index=False).encode()
    file = tmp_path / ending
    file.write_bytes(text[:at] + noise + text[at : max(at, cut)])
    done = command(
        "audit",
        file,
        "--label",
        "income",
        "--ignore",
        "sex",
        "--score",
        "skill",
        "--quiet",
        "--out",
        tmp_path / "a.json",
    )
    assert "Traceback" not in done.err
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 2
