"""A file beyond the limit is audited in one pass: the same counts, rates, gaps and intervals as in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus.commands import audit as command
from setminus.commands import streamed_audit
from setminus.commands.audit import AuditConfig, audit_table

EXACT = ("n", "groups", "classes", "accuracy", "demographic_parity", "equalized_odds_max", "equalized_odds_sum")
EXACT += ("equal_opportunity", "group_rates", "noise_floors", "certificate", "n_unknown_group")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    n = 6000
    sex, age = rng.integers(2, size=n), rng.integers(20, 70, size=n)
    y = (rng.uniform(size=n) < 0.3 + 0.2 * sex).astype(int)
    p = np.clip(0.3 + 0.3 * y + 0.1 * sex + rng.normal(0, 0.15, n), 0, 1)
    words = np.array(["low", "high"])
    label = [None if i % 997 == 0 else word for i, word in enumerate(words[y])]
    group = [None if i % 501 == 0 else "fm"[one] for i, one in enumerate(sex)]
    rows = pa.table({"income": label, "sex": group, "age": age, "p": p, "prediction": words[(p > 0.6).astype(int)]})
    path = tmp_path / "scored.parquet"
    # parts whose words come in another order
    pq.write_table(rows, path, row_group_size=700)
    return path


@pytest.mark.parametrize(
    "asked",
    [
        {"score": ("p",), "positive": "high"},
        {"score": ("p",), "positive": "high", "threshold": 0.55, "certify": 0.2},
        {"prediction": "prediction"},
        {"score": ("p",), "positive": "high", "ignore": ("sex", "age"), "bins": ("age=40",)},
        {"label": None, "prediction": "prediction", "favorable": "high"},
        {"prediction": "prediction", "ignore": ("sex", "age"), "bins": ("age=22,40",), "min_group_size": 70},
    ],
)
def test_same_numbers_as_in_memory(table, monkeypatch, asked):
    config = AuditConfig(**{"table": str(table), "label": "income", "ignore": ("sex",), **asked})
    whole, record = audit_table(config)
    monkeypatch.setattr(command, "MAX_ROWS", 1000)
    monkeypatch.setattr(streamed_audit, "SAMPLE_ROWS", 1000)
    streamed, streamed_record = audit_table(config)
    for name in EXACT:
        assert str(getattr(streamed, name)) == str(getattr(whole, name)), name
    assert streamed.n > 5000
    said = streamed_record["task"]["notes"]
    assert any("are of all 6,000 rows" in note for note in said)
    assert any("random ones" in note for note in said) == (whole.leakage is not None)
    assert not any("of all 6,000 rows" in note for note in record["task"]["notes"])
    if config.label:
        assert "7 of 6,000 rows have no income and were left out" in said
    if whole.leakage is not None:
        # of a sample: close, and not the same
        assert streamed.roc_auc == pytest.approx(whole.roc_auc, abs=0.05)
        assert streamed.roc_auc != whole.roc_auc
        # of all rows
        assert str(streamed.histograms) == str(whole.histograms)
        assert len(streamed.histograms) == 2 * len(whole.groups)
        errors = [(streamed.calibration.overall, whole.calibration.overall)]
        errors += zip(streamed.calibration.groups, whole.calibration.groups, strict=True)
        for one, other in errors:
            assert (one.group, one.n) == (other.group, other.n)
            assert one.ece == pytest.approx(other.ece, abs=1e-12)
            assert one.expected == pytest.approx(other.expected, rel=0.2)


@pytest.mark.parametrize("favorable", ["high", "low"])
@pytest.mark.parametrize("both", [False, True])
def test_the_scores_in_bins_are_those_of_the_last_class(table, monkeypatch, favorable, both):
    rows = pq.read_table(table)
    p = rows.column("p").to_numpy().round(2)  # on the edges of bins
    # sums that are not 1 to the last bit
    columns = {"proba_high": p * (1 - 1e-6), "proba_low": (1 - p) * (1 - 1e-6)} if both else {"proba_low": 1 - p}
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    # all rows of one label come first
    pq.write_table(rows.sort_by("income"), table, row_group_size=700)
    asked = {"positive": "low"} if not both else {}
    config = AuditConfig(table=str(table), label="income", ignore=("sex",), favorable=favorable, **asked)
    whole, _ = audit_table(config)
    monkeypatch.setattr(command, "MAX_ROWS", 1000)
    streamed, _ = audit_table(config)
    for name in (*EXACT, "histograms"):
        assert str(getattr(streamed, name)) == str(getattr(whole, name)), name


def test_values_that_are_no_probabilities_are_found_anywhere(table, monkeypatch):
    monkeypatch.setattr(command, "MAX_ROWS", 100)
    rows = pq.read_table(table)
    p = rows.column("p").to_numpy().copy()
    p[4321] = 1.5
    pq.write_table(rows.set_column(3, "p", pa.array(p)), table)
    config = AuditConfig(table=str(table), label="income", ignore=("sex",), score=("p",), positive="high")
    with pytest.raises(ValueError, match="not a probability"):
        audit_table(config)


def test_small_groups_are_merged_for_the_gaps_and_shown_in_the_impact_ratios(table):
    config = AuditConfig(str(table), "income", ("sex", "age"), prediction="prediction", bins=("age=22,40",))
    every, _ = audit_table(config)
    merged, record = audit_table(replace(config, min_group_size=70))
    assert len(every.groups) == 6 and len(merged.groups) == 5
    assert any("fewer than 70 rows" in note for note in record["task"]["notes"])
    assert every.impact == merged.impact and every.n == merged.n


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_workers_count_the_same(table, monkeypatch, engine):
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}[engine])
    monkeypatch.setattr(command, "MAX_ROWS", 1000)
    config = AuditConfig(table=str(table), label="income", ignore=("sex",), score=("p",), positive="high", certify=0.2)
    here, record = audit_table(config)
    there, other = audit_table(replace(config, engine=engine))
    assert here.to_dict() == there.to_dict()
    assert record["task"]["notes"] == other["task"]["notes"]


def test_workers_need_a_file_of_parts(tmp_path):
    (tmp_path / "rows.csv").write_text("income,sex,p\nlow,f,0.1\nhigh,m,0.9\n")
    config = AuditConfig(str(tmp_path / "rows.csv"), "income", ("sex",), score=("p",), engine="dask")
    with pytest.raises(ValueError, match="--engine dask needs parts that workers can find: give Parquet or Arrow"):
        audit_table(config)
