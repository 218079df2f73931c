import pytest
from setminus_paper.claims import fig1
from setminus_paper.claims import fig1 as experiment

from setminus.report.charts.chart import Bars, Points, Surface


@pytest.fixture(scope="module")
def records():
    return [
        {"name": run.name, "config": run.config, "seed": seed, "metrics": metrics}
        for run in experiment.plan("quick", (0, 1))
        for seed, metrics in zip(run.seeds, run.measure(run.seeds, n=3000), strict=True)
    ]


def test_four_panels_for_each_kind_of_variances_then_the_angles(records):
    drawn = fig1.charts(records)
    assert [[type(mark) for mark in chart.marks] for chart in drawn] == [
        *[[Points] * 2, *[[Surface] * 2] * 3] * 2,
        [Bars] * 4,
    ]
    assert all(chart.square for chart in drawn[:-1])
    assert len({chart.title for chart in drawn}) == len(drawn)
    assert all("Claim" in drawn[place].caption for place in (3, 7, 8))


def test_one_kind_of_variances_is_enough(records):
    equal = [record for record in records if record["config"]["variances"] == "equal"]
    assert len(fig1.charts(equal)) == 5
    assert all(what.startswith("equal") for what, _, _ in fig1.summary(equal))


def test_summary_gives_the_measured_angle_and_not_the_claim(records):
    def angle(records):
        return fig1.summary(records)[0]

    what, expected, measured = angle(records)
    assert (what, expected) == ("equal variances: degrees between principal and orthogonal", "90.00")
    found = [record["metrics"]["trained"]["principal_orthogonal"] for record in records[:2]]
    assert measured == f"{sum(found) / 2:.2f} ({min(found):.2f} to {max(found):.2f})"
    wrong = [{**record, "metrics": {**record["metrics"]}} for record in records]
    for record in wrong:
        record["metrics"]["trained"] = {**record["metrics"]["trained"], "principal_orthogonal": 12.0}
    assert angle(wrong)[2] == "12.00"
