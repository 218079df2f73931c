"""Tables 4 and 5 as runs: rows by name, the paper's numbers beside them, records that a page can read."""

import json
from functools import partial

import pytest

pytest.importorskip("torch")

from setminus_paper.fairness import table4, table5, table5_split, tables
from setminus_paper.fairness.training import vanilla
from setminus_paper.fairness.trials import Trials
from setminus_paper.run import execute

from tests.paper.fairness.conftest import biased_split

TABLES = {"table4": table4, "table5": table5, "table5_split": table5_split}


@pytest.fixture
def small(monkeypatch):
    """A table of 600 rows in place of the real ones, and two epochs."""
    tables._trials.cache_clear()
    loaders = dict.fromkeys(TABLES, lambda seeds, encoding: Trials.from_split(biased_split(600), seeds))
    monkeypatch.setattr(tables, "TRIALS", loaders)
    yield {"vanilla": tables.Method("Vanilla", partial(vanilla, epochs=2)), "boosting": tables.METHODS["boosting"]}
    tables._trials.cache_clear()


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_paper_has_its_numbers(name):
    rows = {one.replace("_stages", "") for one, row in tables.METHODS.items() if row.kind == "paper"}
    assert tables.PAPER[name].keys() == rows
    for numbers in tables.PAPER[name].values():
        assert numbers.keys() == {"accuracy", "dp_gap", "eo_gap"}
        assert 0.7 < numbers["accuracy"] < 0.85
        assert 0 < min(numbers["dp_gap"], numbers["eo_gap"]) <= max(numbers["dp_gap"], numbers["eo_gap"]) < 0.35


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_is_a_run_for_each_row_in_order(name):
    planned = TABLES[name].plan("quick", (0, 1), methods=("tuned", "vanilla"))
    assert [run.config["method"] for run in planned] == ["vanilla", "tuned"]
    assert {run.name for run in planned} == {name}
    json.dumps([run.config for run in planned])
    assert TABLES[name].JOB == "fairness_tables"


def test_by_default_all_rows_are_planned():
    assert [run.config["method"] for run in table4.plan("paper", (0,))] == [*tables.METHODS]
    kinds = [method.kind for method in tables.METHODS.values()]
    assert (kinds.count("paper"), kinds.count("ours")) == (11, 9)


def test_records_hold_both_rules_for_each_seed(small, tmp_path):
    found = execute(table5.plan("quick", (0, 1), methods=tuple(small), known=small), tmp_path / "records.jsonl")
    assert [(record["config"]["method"], record["seed"]) for record in found] == [
        ("vanilla", 0),
        ("vanilla", 1),
        ("boosting", 0),
        ("boosting", 1),
    ]
    for record in found:
        for rule in ("validation", "test_oracle"):
            assert {"accuracy", "dp_gap", "eo_gap", "auc", "epoch"} <= record["metrics"][rule].keys()
        assert record["metrics"]["seconds_per_seed"] > 0
    assert found[0]["metrics"]["row"]["paper"] == tables.PAPER["table5"]["vanilla"]
    assert found[2]["metrics"]["row"]["paper"] is None


def test_rows_of_the_same_seeds_share_their_trials(small):
    one, again = (tables._trials("table4", (0, 1), "onehot") for _ in range(2))
    assert one is again
    assert tables._trials("table4", (0,), "onehot") is not one
