import copy
from importlib import import_module

import pytest

from setminus.report.charts.chart import Bars, Line, Points, Rule, Surface

ROWS = {"prop5": 2000, "prop6": 500, "prop7": 1000}


def made(name):
    if name != "prop5":
        pytest.importorskip("torch")
    experiment = import_module(f"setminus_paper.claims.{name}")
    measured = [(run.config, *run.measure(run.seeds, n=ROWS[name])) for run in experiment.plan("quick", (0,))]
    # training takes its time: the second seed repeats the first
    return [
        {"name": name, "config": config, "seed": seed, "metrics": metrics}
        for config, metrics in measured
        for seed in (0, 1)
    ]


@pytest.fixture(scope="module", params=[*ROWS])
def drawn(request):
    records = made(request.param)
    return records, import_module(f"setminus_paper.claims.{request.param}")


MARKS = {
    "prop5": [[Surface], [Surface, Points, Points], [Bars, Bars, Rule], [Bars, Bars, Rule], [Points, Points]],
    "prop6": [[*[Line] * 4, Rule], [*[Line] * 3, Rule], [Line, Line, Rule]],
    "prop7": [*[[Line] * 3] * 6, [Bars, Bars, Rule]],
}


def test_marks_titles_and_claims(drawn):
    records, report = drawn
    charts = report.charts(records)
    assert [[type(mark) for mark in chart.marks] for chart in charts] == MARKS[records[0]["name"]]
    assert len({chart.title for chart in charts}) == len(charts)
    assert sum("laim" in chart.caption for chart in charts) >= len(charts) - 1
    for mark in (mark for chart in charts for mark in chart.marks if isinstance(mark, Line | Bars)):
        assert all(low <= y <= high for low, y, high in zip(mark.low, mark.y, mark.high, strict=True))


def test_a_part_of_the_records_is_enough(drawn):
    records, report = drawn
    for first in (record for record in records if record["seed"] == 0):
        same = [record for record in records if record["config"] == first["config"]]
        assert 0 < len(report.charts(same)) <= len(report.charts(records))
        assert 0 < len(report.summary(same)) < len(report.summary(records))


def changed(records, change):
    wrong = copy.deepcopy(records)
    for record in wrong:
        change(record["metrics"])
    return wrong


def differing(report, records, change):
    """What the summary says of the records, and of changed ones, where it differs."""
    pairs = zip(report.summary(records), report.summary(changed(records, change)), strict=True)
    return [(right, wrong) for right, wrong in pairs if right != wrong]


def test_summaries_repeat_what_was_measured(drawn):
    records, report = drawn

    def worse(metrics):
        if "random" in metrics:
            metrics["random"][0]["from_exact"] = 0.25
        for row in metrics.get("angles", []):
            row["measured"] = 0.25
        if "condition" in metrics:
            metrics["condition"] = 0.25

    found = differing(report, records, worse)
    assert found
    assert all("0.25" in wrong[2] and "0.25" not in right[2] for right, wrong in found)
    assert all(right[:2] == wrong[:2] for right, wrong in found)


def test_both_readings_of_the_matrix_are_shown(drawn):
    records, report = drawn
    readings = [row[1:] for row in report.summary(records) if row[0].endswith("value of the condition")]
    assert readings == (
        [("-2", "-2"), ("-2", "104"), ("not in the paper", "-10")] if "prop7" in report.__name__ else []
    )
