"""Each condition of the method can hold, nearly hold, and fail; the advice names what to call."""

import dataclasses

import pytest

from setminus.auditing.calibration import Calibration, CalibrationError
from setminus.auditing.diagnosis import Finding, diagnose, verdict
from setminus.auditing.leakage import Leakage
from setminus.auditing.overlap import Cell, Overlap

SILENT = Leakage(bits=-0.002, share=-0.002, auc=0.5, p_value=0.7, n_cells=20, n_permutations=200)
GOOD = CalibrationError(None, ece=0.01, expected=0.01, p_value=0.5, n=1000)
CALIBRATED = Calibration(GOOD, (dataclasses.replace(GOOD, group="a"), dataclasses.replace(GOOD, group="b")), ())
OVERLAPPING = Overlap(smallest=0.2, factor=10, share_beyond=0.0, effective_share=0.9)
HOLDS = {
    "leakage": SILENT,
    "cells": (),
    "full_leakage": dataclasses.replace(SILENT, bits=0.1),
    "full_calibration": CALIBRATED,
    "principal_calibration": CALIBRATED,
    "overlap": OVERLAPPING,
}


def statuses(**change):
    return {finding.name: finding.status for finding in diagnose(**(HOLDS | change))}


def off(**change):
    return dataclasses.replace(CALIBRATED, overall=dataclasses.replace(GOOD, **change))


def test_all_is_well():
    findings = diagnose(**HOLDS)
    assert {finding.status for finding in findings} == {"ok"}
    assert not any(finding.advice for finding in findings)
    assert verdict(findings).startswith("Every condition of the method that was measured holds")


def test_what_was_not_measured_is_not_judged():
    assert len(diagnose(leakage=SILENT, cells=())) == 2 < len(diagnose(**HOLDS)) == 5


@pytest.mark.parametrize(
    ("bits", "p_value", "status"),
    [(0.1, 0.005, "fail"), (0.1, 0.4, "ok"), (0.01, 0.005, "warn"), (0.001, 0.005, "ok")],
)
def test_leakage_must_be_significant_and_not_tiny(bits, p_value, status):
    leaky = dataclasses.replace(SILENT, bits=bits, p_value=p_value)
    assert statuses(leakage=leaky)["score independent of the groups given the label"] == status


def test_advice_on_leakage_looks_for_the_cause():
    leaky = dataclasses.replace(SILENT, bits=0.1, p_value=0.005)
    assert "TunedOrthogonalClassifier" in diagnose(**(HOLDS | {"leakage": leaky}))[0].advice
    uncalibrated = HOLDS | {"leakage": leaky, "full_calibration": off(ece=0.2, p_value=0.005)}
    assert "not calibrated below" in diagnose(**uncalibrated)[0].advice
    assert "full_proba" in diagnose(leakage=leaky, cells=())[0].advice


@pytest.mark.parametrize("which", ["full", "principal"])
@pytest.mark.parametrize(
    ("ece", "p_value", "status"),
    [(0.2, 0.005, "fail"), (0.04, 0.005, "warn"), (0.2, 0.3, "ok"), (0.012, 0.005, "ok")],
)
def test_calibration(which, ece, p_value, status):
    found = statuses(**{f"{which}_calibration": off(ece=ece, p_value=p_value)})
    assert found.pop(f"{which} classifier calibrated") == status
    assert set(found.values()) == {"ok"}


def test_a_miscalibrated_group_is_named():
    bad = dataclasses.replace(GOOD, group=("f", 30), ece=0.2, p_value=0.005)
    findings = diagnose(**(HOLDS | {"full_calibration": Calibration(GOOD, (bad, GOOD), ())}))
    assert findings[1].status == "fail" and "group f, 30" in findings[1].evidence
    assert "calibration='isotonic'" in findings[1].advice


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"share_beyond": 0.05}, "warn"),
        ({"share_beyond": 0.5}, "fail"),
        ({"effective_share": 0.3}, "warn"),
        ({"effective_share": 0.05}, "fail"),
        ({"effective_share": float("nan")}, "fail"),
        ({"smallest": 0.0}, "fail"),
    ],
)
def test_overlap(change, status):
    assert statuses(overlap=dataclasses.replace(OVERLAPPING, **change))["overlap"] == status


@pytest.mark.parametrize(("count", "status"), [(30, "ok"), (29, "warn"), (4, "fail"), (0, "fail")])
def test_rows(count, status):
    finding = diagnose(leakage=SILENT, cells=(Cell("a", "yes", count),))[-1]
    assert finding.status == status
    assert ("a with yes" in finding.evidence) == (status != "ok")
    assert ("left out of the gaps" in finding.evidence) == (count == 0)


def test_many_small_cells_are_counted_not_listed():
    cells = tuple(Cell(str(k), "yes", 10) for k in range(9))
    assert "and 4 more" in diagnose(leakage=SILENT, cells=cells)[-1].evidence


def test_verdict_names_what_fails_and_what_warns():
    ok, warn, fail = (Finding(name, status, "") for name, status in [("a", "ok"), ("b", "warn"), ("c", "fail")])
    assert verdict((ok, warn)) == "Usable with care: look at b."
    assert verdict((ok, warn, fail)).startswith("The guarantee does not hold here, since c fails:")
    assert verdict((fail, fail)).startswith("The guarantee does not hold here, since c and c fail:")
