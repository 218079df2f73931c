"""The simulation of promises: its truths, its negative control, and that a stopped run continues."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import promises, tuned_promises
from setminus.core.certificate import p_value
from setminus.core.gaps import equalized_odds_from_table
from setminus.records import read_records


def test_the_gap_of_the_simulated_distribution_is_the_one_asked_for():
    for shape, of_groups in promises.SHAPES.items():
        cells = promises.probabilities(0.2 * of_groups(4))
        assert cells.sum() == pytest.approx(1)
        assert float(equalized_odds_from_table(cells)) == pytest.approx(0.0 if shape == "none" else 0.2)


def test_the_screen_is_the_approximate_test():
    rng = np.random.default_rng(0)
    tables = promises.drawn(promises.probabilities(np.array([0.0, 0.0, 0.05])), 2000, rng, 20)
    expected = [p_value(table, 0.15, exact=False) <= 0.05 for table in tables]
    assert promises.approximately_certified(tables, 0.15).tolist() == expected and 0 < sum(expected) < 20


def test_certificates_are_rarely_wrong_where_the_measured_gap_often_is(tmp_path, monkeypatch):
    monkeypatch.setattr(promises, "GROUPS", (2,))
    monkeypatch.setattr(promises, "ROWS", (1000,))
    monkeypatch.setattr(promises, "TOLERANCE", {2: (0.2,)})
    records = tmp_path / "records.jsonl"
    promises.run(records, sets=60, only="c")
    found = {record["name"]: record["metrics"] for record in read_records(records)}
    assert found["certificate"]["broken"]["value"] < 0.15 < 0.3 < found["certificate"]["broken_by_point"]["value"]
    assert found["choice"]["broken"]["value"] <= 0.1 and found["choice"]["certified"]["value"] > 0.5
    assert found["choice"]["mean_true_gap"] < found["choice"]["mean_true_gap_by_point"]
    promises.run(records, sets=60, only="c")
    assert len(read_records(records)) == 2


def test_the_page_has_the_table_of_the_records():
    root = Path(__file__).parents[2]
    records = root / "results" / "promises" / "records.jsonl"
    page = (root / "docs" / "benchmarks" / "promises.md").read_text()
    table, coverage = promises.table(records), promises.coverage(records)
    assert len(table.splitlines()) == 11 and table in page
    assert len(coverage.splitlines()) > 2 and coverage in page
    simulated, on_real_sets = tuned_promises.tables(records)
    assert len(simulated.splitlines()) == 20 and simulated in page
    assert len(on_real_sets.splitlines()) == 6 and on_real_sets in page
