"""Of a file beyond the limit, a sample trains the classifiers; all other rows choose the decision and certify it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus import load
from setminus.commands import build_app

N = 6_000


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(0)
    sex, age = rng.integers(2, size=N), rng.integers(20, 70, size=N)
    a, b = rng.normal(size=(2, N))
    kind = np.digitize(a + 0.5 * b + 0.4 * sex + rng.logistic(size=N), [0.0, 1.5])
    rows = pa.table({
        "a": a, "b": b + 0.5 * sex, "age": age,
        "sex": pa.array([None if i % 997 == 0 else "fm"[one] for i, one in enumerate(sex)]),
        "income": pa.array([None if i % 499 == 0 else ("low", "mid", "high")[one] for i, one in enumerate(kind)]),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    # sorted, as files often are: some parts have one label only
    pq.write_table(rows.sort_by("income"), path, row_group_size=750)
    return path


def fit(people, folder, *options):
    model = folder / "model.skops"
    words = f"fit {people} --label income --full logistic --quiet --out {model}".split()
    build_app()([*words, *options], standalone_mode=False)
    return load(model), json.loads((folder / "model.audit.json").read_text())


def used(record):
    """The rows of each use, as the note states them."""
    (note,) = [one for one in record["task"]["notes"] if "--max-train-rows" in one]
    numbers = [int(word.replace(",", "").rstrip(";")) for word in note.split() if word.replace(",", "").isdigit()]
    return dict(zip(("all", "learn", "propose", "measure", "test", "evaluate"), numbers, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        ["--positive", "high", "--ignore", "sex"],
        ["--positive", "high", "--ignore", "sex", "--principal", "group"],
        ["--ignore", "sex"],
        ["--positive", "high", "--ignore", "sex", "--ignore", "age", "--bins", "age=40", "--constraint-over", "both"],
        ["--positive", "high", "--ignore", "sex", "--scoring", "roc_auc"],
    ],
    ids=["two classes", "known group", "three classes", "two attributes", "another score"],
)
def test_every_row_has_one_use(people, tmp_path, options):
    model, record = fit(people, tmp_path, *options, "--tolerance", "0.2", "--max-train-rows", "2000")
    rows = used(record)
    n = N - len(range(0, N, 499))
    assert rows["all"] == N and rows["evaluate"] == record["task"]["rows"]["test"]
    assert rows["learn"] == pytest.approx(2000, abs=20) and rows["evaluate"] == pytest.approx(1500, abs=20)
    assert sum(rows[part] for part in ("learn", "propose", "measure", "test", "evaluate")) == n
    assert rows["test"] == pytest.approx(2 * rows["measure"], rel=0.15)
    assert model.frontier_.candidates.fresh
    assert model.frontier_.candidates.tables[0].sum() == rows["test"]


def test_a_sample_gives_nearly_the_model_of_all_rows_and_is_certified_on_the_others(people, tmp_path):
    saved, _ = fit(people, tmp_path, "--positive", "high", "--ignore", "sex", "--max-train-rows", "2000")
    (tmp_path / "whole").mkdir()
    whole, _ = fit(people, tmp_path / "whole", "--positive", "high", "--ignore", "sex")
    table = pq.read_table(people).drop_columns(["income"])
    both = [one.predict_proba(table.select(list(one.feature_names_in_))) for one in (saved, whole)]
    assert np.corrcoef(both[0][:, -1], both[1][:, -1])[0, 1] > 0.9
    again = tmp_path / "again"
    again.mkdir()
    options = ["--positive", "high", "--ignore", "sex", "--max-train-rows", "2000", "--tolerance", "0.3"]
    model, record = fit(people, again, *options, "--full", str(tmp_path / "model.skops"))
    assert used(record)["test"] > 1000 and record["metrics"]["certificate"]["certified"]
    rows = pq.read_table(people).select(list(saved.feature_names_in_))
    assert (model.model_.full_.predict_proba(rows) == saved.predict_proba(rows)).all()
