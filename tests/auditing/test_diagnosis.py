"""Each condition of the method can hold, nearly hold, and fail; the advice names what to call."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest

from setminus.auditing.diagnosis import (
    Calibration,
    CalibrationError,
    Cell,
    Finding,
    Overlap,
    calibration,
    calibration_error,
    diagnose,
    grade,
    overlap,
    reliability_curve,
    score_histograms,
    small_cells,
    verdict,
)
from setminus.auditing.leakage import Leakage
from setminus.auditing.rates import Scored, read_scored


def test_exact_probabilities_are_refused_at_rate_alpha():
    p_values = []
    for seed in range(300):
        rng = np.random.default_rng([seed, 5])
        p = rng.uniform(size=200)
        y = (rng.uniform(size=200) < p).astype(int)
        proba = np.column_stack([1 - p, p])
        p_values.append(calibration_error(y, proba, n_simulations=49, random_state=seed).p_value)
    for alpha in (0.1, 0.5):
        assert binomtest(int((np.array(p_values) <= alpha).sum()), 300, alpha).pvalue > 0.001


def test_exact_full_and_principal_pass_and_sharpened_ones_fail(exact):
    rows = exact(4000, 0)
    for proba in (rows.full, rows.principal, rows.orthogonal):
        good = calibration(read_scored(rows.y, proba, rows.group)).overall
        sharpened = calibration(read_scored(rows.y, expit(2 * logit(proba)), rows.group)).overall
        assert good.p_value > 0.01 and good.excess < 0.01
        assert sharpened.p_value < 0.01 and sharpened.excess > 0.05


def test_a_group_can_be_miscalibrated_where_the_whole_is_not(exact):
    rows = exact(4000, 0)
    result = calibration(read_scored(rows.y, rows.orthogonal, rows.group))
    assert result.overall.p_value > 0.05
    assert [error.group for error in result.groups] == [0, 1]
    assert all(error.p_value < 0.01 and error.excess > 0.05 for error in result.groups)


def test_calibration_of_more_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=3000)
    y = (rng.uniform(size=(3000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    group = rng.integers(2, size=3000)
    good = calibration(read_scored(y, proba, group))
    sharpened = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    assert good.overall.p_value > 0.05 > calibration(read_scored(y, sharpened, group)).overall.p_value
    assert [(curve.group, curve.label) for curve in good.curves] == [
        (group, label) for group in (None, 0, 1) for label in (0, 1, 2)
    ]


def test_curve_by_hand_and_equal_mass():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=1000)
    predicted, observed, count = reliability_curve(score > 0.5, score, n_bins=4)
    # bins end where fine bins of 1/2500 end
    assert count.sum() == 1000 and np.abs(count - 250).max() <= 1
    parts = np.split(np.sort(score), count.cumsum()[:-1])
    np.testing.assert_allclose(predicted, [part.mean() for part in parts])
    np.testing.assert_allclose(observed, [(part > 0.5).mean() for part in parts])


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    score, weight = rng.uniform(size=60), rng.integers(1, 4, size=60)
    y = (rng.uniform(size=60) < score).astype(int)
    proba = np.column_stack([1 - score, score])
    # one bin: equal-mass edges would move with the repetitions
    weighted = calibration_error(y, proba, weight=weight.astype(float), n_bins=1).ece
    repeated = calibration_error(np.repeat(y, weight), np.repeat(proba, weight, axis=0), n_bins=1).ece
    assert weighted == pytest.approx(repeated)
    assert weighted != pytest.approx(calibration_error(y, proba, n_bins=1).ece)
    left_out = reliability_curve(y == 1, score, np.where(score < 0.5, 0.0, 1.0), n_bins=10)
    assert len(left_out[0]) < 10 and np.isfinite(left_out[1]).all()


def test_the_error_by_hand():
    """One bin: the distance of the means; of more classes the mean of theirs."""
    proba = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]])
    y, weight = np.array([0, 1, 1, 2]), np.array([1.0, 2.0, 3.0, 4.0])
    for w in (None, weight):
        shares = np.ones(4) / 4 if w is None else weight / 10
        expected = np.mean([abs(shares @ ((y == c) - proba[:, c])) for c in range(3)])
        assert calibration_error(y, proba, weight=w, n_bins=1).ece == pytest.approx(expected)
        two = np.column_stack([1 - proba[:, 0], proba[:, 0]])
        expected = abs(shares @ ((y == 0) - proba[:, 0]))
        assert calibration_error((y == 0).astype(int), two, weight=w, n_bins=1).ece == pytest.approx(expected)
    # two bins: the distances of both add up
    score, hit = np.array([0.1, 0.2, 0.8, 0.9]), np.array([1, 0, 1, 0])
    found = calibration_error(hit, np.column_stack([1 - score, score]), n_bins=2)
    assert found.ece == pytest.approx(abs(1 - 0.3) / 4 + abs(1 - 1.7) / 4)
    # no weight anywhere is no reason not to judge
    assert calibration_error(y, proba, weight=np.zeros(4), n_bins=1).ece == pytest.approx(
        calibration_error(y, proba, n_bins=1).ece
    )


def test_the_reference_is_the_error_of_labels_drawn_from_the_probabilities():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=300)
    y = (rng.uniform(size=(300, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    found = calibration_error(y, proba, n_bins=5, n_simulations=400)
    drawn = []
    for _ in range(200):
        other = rng.multinomial(1, proba).argmax(axis=1)
        drawn.append(calibration_error(other, proba, n_bins=5, n_simulations=1).ece)
    assert found.expected == pytest.approx(np.mean(drawn), rel=0.05)
    assert found.p_value == pytest.approx(np.mean(np.array(drawn) >= found.ece), abs=0.12)
    assert found.n == 300 and found.group is None


def test_p_values_reach_from_one_in_the_draws_to_one():
    proba = np.tile([0.9, 0.1], (200, 1))
    wrong = calibration_error(np.ones(200, dtype=int), proba, n_bins=1, n_simulations=49)
    assert wrong.p_value == 1 / 50 and wrong.excess == pytest.approx(wrong.ece - wrong.expected)
    # certain probabilities that are right: each draw gives the same labels, and ties count
    certain = np.tile([0.0, 1.0], (50, 1))
    right = calibration_error(np.ones(50, dtype=int), certain, n_simulations=49)
    assert (right.ece, right.expected, right.p_value, right.excess) == (0, 0, 1, 0)


def test_small_groups_have_fewer_bins():
    rng = np.random.default_rng(0)
    sizes = {"a": 15, "b": 39, "c": 40, "d": 199, "e": 1000}
    group = np.repeat(list(sizes), list(sizes.values()))
    score = rng.uniform(size=len(group))
    y = (rng.uniform(size=len(group)) < score).astype(int)
    found = calibration(read_scored(y, score, group), n_simulations=5)
    points = {curve.group: len(curve.predicted) for curve in found.curves}
    assert points == {None: 10, "a": 1, "b": 1, "c": 2, "d": 9, "e": 10}
    assert {error.group: error.n for error in found.groups} == sizes and found.overall.n == len(group)
    assert [curve.count.sum() for curve in found.curves] == [len(group), *sizes.values()]
    few = calibration(read_scored(y, score, group), n_bins=3, n_simulations=5)
    assert {curve.group: len(curve.predicted) for curve in few.curves}["e"] == 3
    # each group by itself
    own = calibration_error(y[group == "d"], np.column_stack([1 - score, score])[group == "d"], n_bins=9)
    assert {error.group: error.ece for error in found.groups}["d"] == pytest.approx(own.ece)
    again, other = (calibration(read_scored(y, score, group), n_simulations=50, random_state=s) for s in (0, 1))
    assert again.overall == calibration(read_scored(y, score, group), n_simulations=50).overall != other.overall


def test_weights_are_those_of_the_group():
    rng = np.random.default_rng(0)
    score, group, weight = rng.uniform(size=300), rng.integers(2, size=300), rng.uniform(size=300)
    y = (rng.uniform(size=300) < score).astype(int)
    found = calibration(read_scored(y, score, group, sample_weight=weight), n_simulations=5)
    both = np.column_stack([1 - score, score])
    for g in range(2):
        held = group == g
        own = calibration_error(y[held], both[held], weight=weight[held], n_bins=held.sum() // 20)
        assert found.groups[g].ece == pytest.approx(own.ece)
        curve = reliability_curve(y[held] == 1, score[held], weight[held], n_bins=held.sum() // 20)
        np.testing.assert_allclose(found.curves[1 + g].observed, curve[1])
        np.testing.assert_allclose(found.curves[1 + g].predicted, curve[0])


def test_equal_scores_share_a_bin():
    score = np.repeat([0.2, 0.4, 0.9], [70, 20, 10])
    predicted, observed, count = reliability_curve(score > 0.3, score)
    np.testing.assert_allclose(predicted, [0.2, 0.4, 0.9])
    assert observed.tolist() == [0, 1, 1] and count.tolist() == [70, 20, 10]
    weight = np.where(score == 0.4, 0.0, 2.0)
    predicted, _, count = reliability_curve(score > 0.3, score, weight)
    np.testing.assert_allclose(predicted, [0.2, 0.9])
    assert count.tolist() == [70, 10]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_those_of_the_rows(n_classes, weighted):
    rng = np.random.default_rng(0)
    y, group = rng.integers(n_classes, size=300), rng.integers(2, size=300)
    proba = rng.dirichlet(np.ones(n_classes), size=300)
    weight = rng.uniform(size=300) if weighted else np.ones(300)
    rows = read_scored(y, proba, np.array(["a", "b"])[group], sample_weight=weight if weighted else None)
    found = score_histograms(rows, n_bins=7)
    assert [(one.group, one.label) for one in found] == [(g, c) for c in range(n_classes) for g in "ab"]
    for one in found:
        held = (y == one.label) & (group == "ab".index(one.group))
        # two classes: of the second, whatever the row's label is
        score = proba[:, 1 if n_classes == 2 else one.label]
        np.testing.assert_allclose(one.edges, np.arange(8) / 7)
        for k in range(7):
            inside = held & (score >= k / 7) & (score < (k + 1) / 7)
            assert one.share[k] == pytest.approx(weight[inside].sum() / weight[held].sum())


def test_fifty_bins_and_the_ends_belong_to_them():
    y, group = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    rounded = np.array([[1.0, 0.0], [1 + 1e-12, -1e-12], [0.0, 1.0], [-1e-12, 1 + 1e-12]])
    found = score_histograms(Scored(y, group, rounded, None, ["n", "y"], ["a", "b"]))
    assert len(found) == 4
    for one in found:
        assert len(one.share) == 50 and one.share.sum() == 1
        assert one.share[-1 if one.label == "y" else 0] == 1


def test_a_cell_without_rows_or_weight_has_none():
    y, group = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])
    proba = np.full((4, 2), 0.5)
    cells = [(one.label, one.group) for one in score_histograms(Scored(y, group, proba, None, [0, 1], [0, 1]))]
    assert cells == [(0, 0), (0, 1), (1, 0)]
    weight = np.array([0.0, 1, 1, 1])
    cells = [(one.label, one.group) for one in score_histograms(Scored(y, group, proba, weight, [0, 1], [0, 1]))]
    assert cells == [(0, 1), (1, 0)]


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
