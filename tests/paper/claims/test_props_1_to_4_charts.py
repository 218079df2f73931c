"""The charts and tables of propositions 1 to 4 and theorem 1, from records as the experiments write them."""

import json
from functools import partial
from importlib import import_module

import pytest
from setminus_paper.run import Run

from setminus.report.charts.chart import Chart

SMALL = {
    "prop1": {"sizes": {"n_classes": 2, "n_z1": 2, "n_z2": 3, "draws": 5}},
    "prop2": {"shape": (2, 3), "starts": 2},
    "prop3": {"starts": 1},
    "prop4": {"rows": 2000},
    "theorem1": {"draws": 20},
}


@pytest.fixture(scope="module", params=SMALL)
def experiment(request):
    name = request.param
    module = import_module(f"setminus_paper.claims.{name}")
    records = []
    for run in module.plan("quick", (0, 1) if name != "prop3" else (0,)):
        assert isinstance(run, Run) and run.name == name and isinstance(run.measure, partial)
        measure = partial(run.measure, **SMALL[name])
        for seed, metrics in zip(run.seeds, measure(run.seeds), strict=True):
            records.append({"name": name, "config": run.config, "seed": seed, "metrics": metrics})
    # what is read from a file is all that a chart may need, and NaN is not JSON
    return name, json.loads(json.dumps(records, allow_nan=False))


def test_charts_say_what_the_paper_claims_and_what_is_seen(experiment):
    name, records = experiment
    drawn = import_module(f"setminus_paper.claims.{name}").charts(records)
    assert len(drawn) == 2 and all(isinstance(chart, Chart) for chart in drawn)
    assert "Seen" in drawn[0].caption and "The pa" in drawn[0].caption
    for chart in drawn:
        names = [mark.name for mark in chart.marks]
        assert len(set(names)) == len(names) <= 6, "six signs can be told apart in black and white"


def test_the_numbers_of_the_captions_come_from_the_records(experiment):
    name, records = experiment
    module = import_module(f"setminus_paper.claims.{name}")
    changed = json.loads(json.dumps(records), parse_float=lambda text: 3 * float(text))
    for record, original in zip(changed, records, strict=True):
        record["config"] = original["config"]
    assert module.charts(changed)[0].caption != module.charts(records)[0].caption
    assert module.summary(changed) != module.summary(records)


def test_summary_rows_are_three_texts(experiment):
    name, records = experiment
    rows = import_module(f"setminus_paper.claims.{name}").summary(records)
    assert len(rows) >= 6
    assert all(len(row) == 3 and all(isinstance(cell, str) for cell in row) and row[2] for row in rows)
