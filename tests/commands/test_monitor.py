"""``setminus monitor``: it stays silent where nothing changed, and says what did."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from setminus.commands import build_app


def rows(n=6000, seed=0, positive=0.5, men=0.5, gap=0.0, shift=0.0, job=("cook", "clerk")):
    """Scored rows; `gap` is how much larger the log-odds of men are."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < positive).astype(int)
    man = rng.random(n) < men
    logit = 3 * (2 * y - 1) + rng.normal(size=n) + shift + np.where(man, gap, 0)
    proba = 1 / (1 + np.exp(-logit))
    return pa.table(
        {
            "income": np.where(y == 1, "high", "low").tolist(),
            "sex": np.where(man, "m", "f").tolist(),
            "job": rng.choice(job, n).tolist(),
            "proba_low": 1 - proba,
            "proba_high": proba,
        }
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("monitor") / "reference.parquet"
    pq.write_table(rows(), path)
    return path


def run(reference, new, tmp_path, *options):
    path = tmp_path / "new.parquet"
    pq.write_table(new, path)
    words = ["monitor", str(reference), str(path), "--ignore", "sex", *map(str, options)]
    done = CliRunner().invoke(build_app(), [*words, "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    record = json.loads(done.stdout)
    above = {one["what"] for one in record["metrics"]["drift"] if one["above"]}
    return done.exit_code, record["metrics"]["verdict"]["status"], above, record


def test_rows_of_the_same_kind_confirm_the_certificate(reference, tmp_path):
    code, status, above, record = run(reference, rows(seed=1), tmp_path, "--label", "income")
    assert (code, status, above) == (0, "confirmed", set())
    assert record["task"]["rows"] == {"reference": 6000, "new": 6000, "new_labelled": 6000}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"men": 0.8}, "group shares"),
        ({"positive": 0.8}, "estimated class mix"),
        ({"shift": 2.0}, "scores"),
        ({"job": ("cook", "robot")}, "unseen values"),
    ],
)
def test_what_changed_is_named_without_labels(reference, tmp_path, change, what):
    new = rows(seed=1, **change).drop_columns(["income"])
    code, status, above, record = run(reference, new, tmp_path, "--label", "income")
    assert (code, status) == (1, "drifted") and what in above
    assert what in record["metrics"]["verdict"]["text"]
    # the limits are the user's
    assert run(reference, new, tmp_path, "--label", "income", "--max-drift", 1)[:2] == (0, "no sign")


def test_a_gap_above_the_tolerance_breaks_the_certificate(reference, tmp_path):
    code, status, _, record = run(reference, rows(seed=1, gap=2.5), tmp_path, "--label", "income")
    assert (code, status) == (1, "broken")
    gap = record["metrics"]["gaps"]["new"]
    assert gap["low"] > 0.05 and gap["value"] > 5 * record["metrics"]["gaps"]["reference"]["value"]


def test_a_few_labels_measure_the_gap_and_all_rows_the_drift(reference, tmp_path):
    new = rows(seed=1)
    words = [word if at < 300 else None for at, word in enumerate(new.column("income").to_pylist())]
    code, status, _, record = run(
        reference, new.set_column(0, "income", pa.array(words)), tmp_path, "--label", "income"
    )
    assert (code, status) == (0, "not confirmed")
    assert record["task"]["rows"]["new_labelled"] == 300 and record["metrics"]["gaps"]["new"]["rows"] == 300


def test_the_class_mix_is_estimated_as_it_is(reference, tmp_path):
    new = rows(seed=1, positive=0.8)
    drift = run(reference, new, tmp_path, "--label", "income")[3]["metrics"]["drift"]
    found = {one["what"]: one["distance"] for one in drift}
    assert abs(found["estimated class mix"] - found["class mix"]) < 0.03 < 0.25 < found["class mix"]


def test_the_record_of_fit_brings_its_certificate_and_its_settings(reference, tmp_path):
    settings = {"tolerance": 0.5, "constraint": "equalized_odds", "agg": "max", "confidence": 0.9}
    for certified, expected in ((True, "confirmed"), (False, "none")):
        (tmp_path / "m.audit.json").write_text(
            json.dumps({"metrics": {"certificate": {"certified": certified}}, "config": settings})
        )
        found = run(reference, rows(seed=1), tmp_path, "--label", "income", "--certificate", tmp_path / "m.audit.json")
        assert found[1] == expected and found[3]["config"]["tolerance"] == 0.5
    (tmp_path / "m.audit.json").write_text("{}")
    with pytest.raises(ValueError, match="is no record of setminus fit"):
        run(reference, rows(seed=1), tmp_path, "--label", "income", "--certificate", tmp_path / "m.audit.json")


def test_without_any_label_decisions_are_compared(tmp_path):
    def decided(**change):
        table = rows(**change).drop_columns(["income"])
        return table.append_column(
            "prediction", pa.array(np.where(table["proba_high"].to_numpy() > 0.5, "high", "low"))
        )

    pq.write_table(decided(), tmp_path / "reference.parquet")
    same = run(tmp_path / "reference.parquet", decided(seed=1), tmp_path, "--constraint", "demographic_parity")
    assert same[:3] == (0, "confirmed", set())
    apart = run(
        tmp_path / "reference.parquet", decided(seed=1, gap=4.0), tmp_path, "--constraint", "demographic_parity"
    )
    assert apart[:2] == (1, "broken")
    # equalized odds cannot be judged so
    assert run(tmp_path / "reference.parquet", decided(seed=1), tmp_path)[1] == "none"


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--label", "incom"], "did you mean 'income'"),
        (["--label", "income", "--positive", "rich"], "has no value 'rich'"),
        ([], "the decisions are needed"),
    ],
)
def test_errors_say_what_is_wrong(reference, tmp_path, options, wrong):
    with pytest.raises(ValueError, match=wrong):
        run(reference, rows(seed=1), tmp_path, *options)
