"""Every committed record of a table is found again by a plan: a finished run is not repeated."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from setminus_paper.experiments import plan_runs

from setminus.records import read_records

RESULTS = Path(__file__).parents[2] / "results"
OPTIONS = {"table3": {"shifts": (0.5, 0.7, 0.85, 0.95)}}


def key(name, config, seed):
    return json.dumps([name, config, seed], sort_keys=True)


def planned(name):
    scales, options = ("quick", "paper"), OPTIONS.get(name, {})
    runs = [run for scale in scales for run in plan_runs(name, scale=scale, seeds=10, **options)]
    if name in ("table4", "table5"):
        table_peers = pytest.importorskip("benchmarks.table_peers")
        runs += table_peers.plan(name, tuple(range(10)))
    return {key(run.name, run.config, seed) for run in runs for seed in run.seeds}


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table4", "table5", "table6", "principals"])
def test_each_record_is_planned(name):
    recorded = {key(one["name"], one["config"], one["seed"]) for one in read_records(RESULTS / name / "records.jsonl")}
    assert recorded <= planned(name)
