"""Each condition of the method can hold, nearly hold, and fail; the advice names what to call."""

import dataclasses
import re

import numpy as np
import pytest

from setminus.auditing.calibration import Calibration, CalibrationError
from setminus.auditing.diagnosis import (
    Cell,
    Finding,
    Overlap,
    diagnose,
    grade,
    overlap,
    small_cells,
    verdict,
)
from setminus.auditing.leakage import Leakage


def test_a_principal_that_says_nothing_costs_nothing():
    result = overlap(np.array([0, 1, 1, 0]), np.full((4, 2), 0.5))
    assert (result.smallest, result.share_beyond, result.effective_share) == (0.5, 0, 1)


def test_a_principal_that_knows_costs_rows():
    y = np.array([0, 1] * 50)
    principal = np.tile([[0.98, 0.02], [0.02, 0.98]], (50, 1))
    principal[0] = [0.02, 0.98]
    result = overlap(y, principal)
    assert result.smallest == pytest.approx(0.02)
    assert result.share_beyond == 1
    weights = 0.5 / np.where(np.arange(100) == 0, 0.02, 0.98)
    assert result.effective_share == pytest.approx(weights.sum() ** 2 / (weights**2).sum() / 100)
    assert overlap(y, principal, factor=30).share_beyond == 0


def test_a_zero_at_the_own_label_leaves_nothing():
    result = overlap(np.array([0, 1]), np.array([[0.0, 1.0], [0.5, 0.5]]))
    assert result.smallest == 0 and np.isnan(result.effective_share)


def test_small_cells_come_smallest_first():
    counts = np.array([[5, 40], [2, 0]])
    cells = small_cells(counts, ["a", "b"], ["n", "y"], below=10)
    assert cells == (Cell("b", "y", 0), Cell("b", "n", 2), Cell("a", "n", 5))
    assert small_cells(counts, ["a", "b"], ["n", "y"], below=0) == ()


def test_a_correction_counts_from_beyond_the_factor():
    y = np.array([0, 1, 0, 1])
    at = np.array([[0.95, 0.05], [0.5, 0.5], [0.04, 0.96], [0.5, 0.5]])
    # 0.5 / 0.05 is ten, which is not beyond ten
    assert overlap(y, at).share_beyond == 0.25 and overlap(y, at).factor == 10
    assert overlap(y, at, factor=9.9).share_beyond == 0.5
    # the labels' frequencies are the prior
    uneven = overlap(np.array([0, 0, 0, 1]), np.full((4, 2), [0.92, 0.08]), factor=3)
    assert uneven.share_beyond == 1 and overlap(y, np.full((4, 2), [0.92, 0.08]), factor=7).share_beyond == 0


def test_more_classes():
    rng = np.random.default_rng(0)
    y, principal = rng.integers(3, size=60), rng.dirichlet(np.full(3, 4.0), size=60)
    result = overlap(y, principal)
    prior = np.bincount(y) / 60
    weights = prior[y] / principal[np.arange(60), y]
    assert result.effective_share == pytest.approx(weights.sum() ** 2 / (weights**2).sum() / 60)
    assert result.smallest == principal.min()
    assert result.share_beyond == np.mean([(prior / row > 10).any() for row in principal])


def test_a_cell_is_small_below_the_limit():
    cells = small_cells(np.array([[30, 29], [31, 28]]), ["a", "b"], ["n", "y"], below=30)
    assert cells == (Cell("b", "y", 28), Cell("a", "y", 29))


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
    assert verdict(findings).startswith("All measured conditions of the method hold")


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
    assert "First calibrate" in diagnose(**uncalibrated)[0].advice
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
    assert verdict((ok, warn)) == "Usable with care. Doubtful conditions: b."
    assert verdict((ok, warn, fail)).startswith("The guarantee does not hold here. Failed conditions: c. ")
    assert verdict((fail, fail)).startswith("The guarantee does not hold here. Failed conditions: c and c. ")


def numbers(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def test_evidence_holds_the_numbers_and_nothing_below_zero():
    leaky = dataclasses.replace(SILENT, bits=0.1, share=0.25, auc=0.61, p_value=0.005)
    full = dataclasses.replace(SILENT, bits=0.2, auc=0.75)
    found = diagnose(**(HOLDS | {"leakage": leaky, "full_leakage": full}))
    assert numbers(found[0].evidence) == [0.1, 25, 0.61, 0.005, 0.2, 0.75]
    assert numbers(diagnose(leakage=SILENT, cells=(), full_leakage=SILENT)[0].evidence) == [0, 0, 0.5, 0.7, 0, 0.5]
    assert numbers(diagnose(leakage=SILENT, cells=())[0].evidence) == [0, 0, 0.5, 0.7]
    error = CalibrationError("a", ece=0.25, expected=0.0125, p_value=0.005, n=700)
    for which, group in ("full", "principal"), ("principal", "full"):
        calibrations = {f"{which}_calibration": off(ece=0.25, expected=0.0125, p_value=0.005, n=700)}
        finding = diagnose(**(HOLDS | calibrations))[1 if which == "full" else 2]
        assert numbers(finding.evidence) == [700, 0.25, 0.0125, 0.005] and "all rows" in finding.evidence
        assert which in finding.name and which in finding.advice and group not in finding.name
    by_group = diagnose(**(HOLDS | {"full_calibration": Calibration(GOOD, (error, GOOD), ())}))[1]
    assert numbers(by_group.evidence) == [700, 0.25, 0.0125, 0.005] and "group a" in by_group.evidence
    poor = Overlap(smallest=0.0025, factor=20, share_beyond=0.055, effective_share=0.84)
    assert numbers(diagnose(**(HOLDS | {"overlap": poor}))[3].evidence) == [0.0025, 5.5, 20, 84]


@pytest.mark.parametrize(
    ("size", "status"), [(0.0, "ok"), (0.0049, "ok"), (0.005, "warn"), (0.0199, "warn"), (0.02, "fail"), (9, "fail")]
)
def test_a_limit_belongs_to_what_is_above_it(size, status):
    assert grade(size, (0.005, 0.02)) == status


def test_significant_is_at_most_five_in_a_hundred():
    for p_value, status in (0.05, "fail"), (0.0501, "ok"):
        leaky = dataclasses.replace(SILENT, bits=0.1, p_value=p_value)
        assert statuses(leakage=leaky)["score independent of the groups given the label"] == status
        assert statuses(full_calibration=off(ece=0.2, p_value=p_value))["full classifier calibrated"] == status


@pytest.mark.parametrize(
    ("n_groups", "p_value", "status"),
    # the error of five in a hundred is shared among the groups, down to what 200 simulations can show
    [(2, 0.025, "fail"), (2, 0.026, "ok"), (5, 0.01, "fail"), (5, 0.011, "ok"), (40, 0.005, "fail"), (40, 0.006, "ok")],
)
def test_groups_share_the_chance_of_a_false_alarm(n_groups, p_value, status):
    bad = dataclasses.replace(GOOD, group="bad", ece=0.2, p_value=p_value)
    by_group = Calibration(GOOD, (bad, *[GOOD] * (n_groups - 1)), ())
    assert statuses(full_calibration=by_group)["full classifier calibrated"] == status
    # a principal classifier owes nothing to a single group
    assert statuses(principal_calibration=by_group)["principal classifier calibrated"] == "ok"


def test_the_worst_calibrated_is_shown_and_judged():
    bad, worse = (dataclasses.replace(GOOD, group=f"group-{ece}", ece=ece, p_value=0.001) for ece in (0.03, 0.3))
    for groups in (bad, worse), (worse, bad):
        finding = diagnose(**(HOLDS | {"full_calibration": Calibration(GOOD, groups, ())}))[1]
        assert finding.status == "fail" and "group-0.3" in finding.evidence
    # a large error that chance explains is not judged
    chance = dataclasses.replace(GOOD, group="chance", ece=0.3, p_value=0.9)
    finding = diagnose(**(HOLDS | {"full_calibration": Calibration(GOOD, (bad, chance), ())}))[1]
    assert finding.status == "warn" and "group-0.03" in finding.evidence


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"share_beyond": 0.01}, "ok"),
        ({"share_beyond": 0.011}, "warn"),
        ({"share_beyond": 0.1}, "warn"),
        ({"share_beyond": 0.11}, "fail"),
        ({"effective_share": 0.5}, "ok"),
        ({"effective_share": 0.49}, "warn"),
        ({"effective_share": 0.11}, "warn"),
        ({"effective_share": 0.1}, "fail"),
        ({"smallest": 1e-9}, "ok"),
        ({"smallest": -1e-9}, "fail"),
    ],
)
def test_overlap_at_its_limits(change, status):
    finding = diagnose(**(HOLDS | {"overlap": dataclasses.replace(OVERLAPPING, **change)}))[3]
    assert finding.status == status
    assert bool(finding.advice) == (status != "ok")


def test_rows_at_their_limits():
    for count, status in (5, "warn"), (4, "fail"), (1, "fail"):
        finding = diagnose(leakage=SILENT, cells=(Cell("x", "yes", 12), Cell("a", "yes", count)))[-1]
        assert finding.status == status and bool(finding.advice)
        assert numbers(finding.evidence) == [2, 30, 12, count] and "left out" not in finding.evidence
    listed = [Cell(f"g{k}", "yes", 10) for k in range(6)]
    assert "g4 with yes: 10" in diagnose(leakage=SILENT, cells=tuple(listed[:5]))[-1].evidence
    assert "more" not in diagnose(leakage=SILENT, cells=tuple(listed[:5]))[-1].evidence
    six = diagnose(leakage=SILENT, cells=tuple(listed))[-1].evidence
    assert "1 more" in six and "g4 with" in six and "g5 with" not in six
    assert "30 rows" in diagnose(leakage=SILENT, cells=())[-1].evidence


def test_a_verdict_joins_names_and_quotes_those_of_several_words():
    findings = [Finding(name, "warn", "") for name in ("overlap", "enough rows", "third")]
    assert verdict(tuple(findings[:1])) == "Usable with care. Doubtful conditions: overlap."
    assert "conditions: overlap and 'enough rows'." in verdict(tuple(findings[:2]))
    assert "conditions: overlap, 'enough rows' and third." in verdict(tuple(findings))


def test_the_cause_is_looked_for_in_either_classifier():
    leaky = dataclasses.replace(SILENT, bits=0.1, p_value=0.005)
    first = {
        name: diagnose(**(HOLDS | {"leakage": leaky} | change))[0].advice
        for name, change in {
            "calibration": {"principal_calibration": off(ece=0.2, p_value=0.005)},
            "tune": {},
            "unknown": {"full_leakage": None},
        }.items()
    }
    assert "calibrate" in first["calibration"] and "calibrate" not in first["tune"]
    assert "ProxyPrincipal" in first["tune"] and "OrthogonalClassifier" in first["unknown"]
    assert "full_proba" in first["unknown"] and "full_proba" not in first["tune"]
