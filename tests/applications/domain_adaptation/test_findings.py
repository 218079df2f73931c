"""Each condition of adaptation is told apart: it holds where it should, and fails where it should not."""

import pytest

from setminus.applications.domain_adaptation.findings import Judged, adaptation_findings, adaptation_verdict

GOOD = {
    "recall": 0.9,
    "n_classes": 2,
    "source_mix": [0.8, 0.2],
    "estimates": {"EM": [0.3, 0.7], "BBSE": [0.35, 0.65]},
    "target_mix": [0.3, 0.7],
    "decided": [0.32, 0.68],
    "alike": 0.97,
}


def statuses(**changes):
    return {one.name: one.status for one in adaptation_findings(**{**GOOD, **changes}) if one.status != "ok"}


@pytest.mark.parametrize(
    ("changes", "name", "status"),
    [
        ({"recall": 0.7}, "the columns tell the classes apart", "warn"),
        ({"recall": 0.52}, "the columns tell the classes apart", "fail"),
        ({"source_mix": [0.32, 0.68]}, "the class mix changed", "warn"),
        ({"estimates": {"EM": [0.3, 0.7], "BBSE": [0.5, 0.5]}}, "two estimates of the new mix agree", "warn"),
        ({"estimates": {"EM": [0.3, 0.7], "BBSE": [0.9, 0.1]}}, "two estimates of the new mix agree", "fail"),
        ({"decided": [0.5, 0.5]}, "decisions come in the estimated mix", "warn"),
        ({"decided": [0.9, 0.1]}, "decisions come in the estimated mix", "fail"),
        ({"alike": 0.9}, "another seed decides alike", "warn"),
        ({"alike": 0.6}, "another seed decides alike", "fail"),
        ({"judged": Judged(100, 50, 50, 2, 2, mix=(0.3, 0.7))}, "it helps on labelled target rows", "warn"),
        ({"judged": Judged(100, 50, 50, 0, 0, mix=(0.3, 0.7))}, "it helps on labelled target rows", "warn"),
        ({"judged": Judged(100, 50, 80, 35, 5, mix=(0.6, 0.4))}, "the estimate fits the labelled rows", "warn"),
        ({"judged": Judged(100, 50, 80, 35, 5, mix=(0.9, 0.1))}, "the estimate fits the labelled rows", "fail"),
        ({"judged": Judged(100, 80, 50, 5, 35, mix=(0.3, 0.7))}, "it helps on labelled target rows", "fail"),
    ],
)
def test_one_condition_at_a_time(changes, name, status):
    assert statuses(**changes) == {name: status}


def test_all_hold_and_nobody_is_advised():
    assert statuses() == statuses(judged=Judged(100, 50, 80, 35, 5, mix=(0.3, 0.7))) == {}
    assert {one.advice for one in adaptation_findings(**GOOD)} == {""}
    assert all(one.advice for one in adaptation_findings(**{**GOOD, "alike": 0.1}) if one.status != "ok")


def test_few_labelled_rows_may_be_far_from_the_estimate_by_chance():
    assert statuses(judged=Judged(16, 8, 16, 8, 0, mix=(0.6, 0.4))) == {}
    assert "the estimate fits the labelled rows" in statuses(judged=Judged(1600, 800, 1600, 800, 0, mix=(0.6, 0.4)))


def test_guessing_among_many_classes_is_no_telling_apart():
    assert statuses(recall=0.12, n_classes=10)["the columns tell the classes apart"] == "fail"
    assert "the columns tell the classes apart" not in statuses(recall=0.6, n_classes=10)


def test_the_verdict_names_the_worst():
    def said(**changes):
        return adaptation_verdict(adaptation_findings(**{**GOOD, **changes}))

    assert said().startswith("Nothing that was measured speaks against it. Labelled target rows")
    assert said(judged=Judged(100, 50, 80, 35, 5, mix=(0.3, 0.7))).startswith("It helps on labelled target rows")
    assert said(alike=0.9) == "Usable with care. Doubtful that another seed decides alike."
    both = said(alike=0.9, recall=0.5, decided=[0.9, 0.1])
    assert both == (
        "Do not rely on it yet: not true that the columns tell the classes apart; that decisions come in the estimated "
        "mix."
    )
