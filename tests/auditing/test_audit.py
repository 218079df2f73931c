"""The whole audit: its verdict on exact classifiers, its numbers against peers, and its ways out."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from setminus.auditing.audit import audit
from setminus.auditing.calibration import calibration
from setminus.auditing.diagnosis import overlap
from setminus.auditing.leakage import leakage
from setminus.auditing.rates import rate_interval, read_scored
from setminus.core.certificate import certify
from setminus.core.gaps import count_table, demographic_parity_gap, equal_opportunity_gap, equalized_odds_gap


def test_the_exact_orthogonal_classifier_is_passed_and_the_full_one_is_not(exact):
    rows = exact(6000, 1)
    behind = {"full_proba": rows.full, "principal_proba": rows.principal, "sensitive_features": rows.group}
    orthogonal, full = audit(rows.y, rows.orthogonal, **behind), audit(rows.y, rows.full, **behind)
    assert {finding.status for finding in orthogonal.findings} == {"ok"}, str(orthogonal)
    assert full.findings[0].status == "fail" and "guarantee does not hold" in full.verdict
    assert orthogonal.equalized_odds_max.low == 0 < full.equalized_odds_max.low
    assert orthogonal.leakage.bits < 0.02 < orthogonal.full_leakage.bits == full.leakage.bits


def test_an_uncalibrated_full_classifier_is_found(exact):
    rows = exact(6000, 1)
    sharpened = expit(2 * logit(rows.full))
    wrong = expit(logit(sharpened) - logit(rows.principal))
    result = audit(rows.y, wrong, sensitive_features=rows.group, full_proba=sharpened, principal_proba=rows.principal)
    status = {finding.name: finding.status for finding in result.findings}
    assert status["full classifier calibrated"] == "fail"
    assert status["principal classifier calibrated"] == "ok"
    assert "First calibrate" in result.findings[0].advice


def test_numbers_are_those_of_the_metrics(exact):
    rows = exact(800, 0)
    names = np.array(["denied", "granted"])
    weight = np.random.default_rng(0).uniform(size=800)
    y, prediction = names[rows.y], names[(rows.full >= 0.4).astype(int)]
    options = {"sensitive_features": rows.group, "sample_weight": weight}
    result = audit(y, rows.full, threshold=0.4, n_bootstrap=50, n_permutations=20, **options)
    assert result.accuracy.value == pytest.approx(accuracy_score(y, prediction, sample_weight=weight))
    assert result.demographic_parity.value == pytest.approx(demographic_parity_gap(y, prediction, **options))
    assert result.equalized_odds_max.value == pytest.approx(equalized_odds_gap(y, prediction, **options))
    assert result.equalized_odds_sum.value == pytest.approx(equalized_odds_gap(y, prediction, agg="sum", **options))
    assert result.equal_opportunity.value == pytest.approx(equal_opportunity_gap(y, prediction, **options))
    assert result.log_loss == pytest.approx(log_loss(rows.y, rows.full, sample_weight=weight))
    assert result.roc_auc == pytest.approx(roc_auc_score(rows.y, rows.full, sample_weight=weight))
    by_labels = audit(y, rows.full, y_pred=prediction, n_bootstrap=50, n_permutations=20, **options)
    assert by_labels.to_dict() == result.to_dict()
    assert audit(y, rows.full, n_bootstrap=50, n_permutations=20, **options).accuracy != result.accuracy


def test_more_classes_crossed_groups_and_an_empty_cell():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=400)]
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], size=400), "old": rng.integers(2, size=400)})
    held = ~((y == "c") & (frame["sex"] == "f") & (frame["old"] == 1)).to_numpy()
    result = audit(
        y[held], rng.dirichlet(np.ones(3), size=held.sum()), sensitive_features=frame[held], n_permutations=20
    )
    assert result.groups == (("f", 0), ("f", 1), ("m", 0), ("m", 1))
    assert len(result.group_rates) == 12
    assert result.findings[-1].status == "fail" and "f, 1 with c: 0" in result.findings[-1].evidence
    assert "undefined" in str(result)
    record = result.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    undefined = [row for row in record["group_rates"] if row["group"] == ["f", 1] and row["label"] == "c"]
    assert undefined[0]["true_positive_rate"] == {"value": None, "low": None, "high": None}


def test_record_holds_the_verdict_and_plain_types(exact):
    rows = exact(500, 0)
    result = audit(rows.y == 1, rows.full, sensitive_features=rows.group, principal_proba=rows.principal)
    record = result.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["verdict"] == result.verdict and record["full_calibration"] is None
    assert record["classes"] == [False, True] and record["groups"] == [0, 1]
    assert repr(result).startswith("Audit(n=500, groups=2, verdict=")


class Tags(HTMLParser):
    """Collects tags and text, and fails on a closing tag that opens nothing."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_page_and_text_escape_and_agree(exact):
    rows = exact(500, 0)
    group = np.array(["<script>alert(1)</script>", "a & 'b'"])[rows.group]
    result = audit(rows.y, rows.full, sensitive_features=group, n_permutations=20)
    page = result._repr_html_()
    parser = Tags()
    parser.feed(page)
    assert not parser.open and "script" not in parser.seen
    assert "<script>alert(1)</script>" in parser.text
    assert "http" not in page and "src=" not in page
    for name, value in result.headline():
        assert name in parser.text and value in parser.text and value in str(result)
    assert result.verdict in parser.text and str(result).endswith(result.verdict)


def test_same_seed_same_audit(exact):
    rows = exact(300, 0)
    first, again, other = (
        audit(rows.y, rows.full, sensitive_features=rows.group, random_state=seed).to_dict() for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": 0.5, "y_pred": [0] * 50}, "both given"),
        ({"threshold": 1.5}, "threshold is 1.5 with 2 classes"),
        ({"y_pred": [0] * 20}, "y_pred has 20 rows"),
        ({"y_pred": [7] * 50}, r"with labels \[7\]"),
        ({"confidence": 95}, "confidence is 95"),
        ({"n_bootstrap": 0}, "n_bootstrap 0"),
        ({"full_proba": [0.5] * 20}, r"full_proba has shape \(20,\)"),
        ({"principal_proba": [1.5] * 50}, "principal_proba is not a probability"),
        ({"sensitive_features": [0] * 50}, "one group only"),
    ],
)
def test_refusals(exact, change, message):
    rows = exact(50, 0)
    with pytest.raises(ValueError, match=message):
        audit(rows.y, rows.full, **({"sensitive_features": rows.group} | change))


def test_parts_are_those_of_their_own_functions_with_the_same_seed(exact):
    rows = exact(400, 0)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=400)
    result = audit(
        rows.y,
        rows.orthogonal,
        sensitive_features=rows.group,
        full_proba=rows.full,
        principal_proba=rows.principal,
        sample_weight=weight,
        n_permutations=30,
        random_state=3,
    )
    options = {"n_permutations": 30, "random_state": 3}
    assert result.leakage == leakage(rows.y, rows.orthogonal, sensitive_features=rows.group, **options)
    assert result.full_leakage == leakage(rows.y, rows.full, sensitive_features=rows.group, **options)
    for name, proba in [("", rows.orthogonal), ("full_", rows.full), ("principal_", rows.principal)]:
        scored = read_scored(rows.y, proba, rows.group, sample_weight=weight)
        expected = calibration(scored, random_state=3)
        found = getattr(result, f"{name}calibration")
        assert found.overall == expected.overall and found.groups == expected.groups
    both = np.column_stack([1 - rows.principal, rows.principal])
    assert result.overlap == overlap(rows.y, both)
    assert len(result.histograms) == 4
    assert len(result.findings) == 5


def test_without_the_classifiers_behind_it_a_score_is_audited_alone(exact):
    rows = exact(400, 0)
    alone = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5)
    assert alone.full_leakage is alone.full_calibration is alone.principal_calibration is alone.overlap is None
    some = audit(rows.y, rows.full, sensitive_features=rows.group, full_proba=rows.full, n_permutations=5)
    assert some.principal_calibration is some.overlap is None and some.full_calibration is not None
    assert (alone.n, alone.confidence, alone.classes, alone.groups) == (400, 0.95, (0, 1), (0, 1))
    assert audit(rows.y, rows.full, sensitive_features=rows.group).leakage.n_permutations == 200


def test_intervals_are_as_wide_as_the_weights_are_worth(exact):
    rows = exact(500, 0)
    weight = np.random.default_rng(0).exponential(size=500)
    options = {"sensitive_features": rows.group, "n_permutations": 5, "confidence": 0.8}
    weighted = audit(rows.y, rows.full, sample_weight=weight, **options)
    right = np.average((rows.full >= 0.5) == rows.y, weights=weight)
    expected = rate_interval(right, weight.sum() ** 2 / (weight**2).sum(), 0.8)
    assert (weighted.accuracy.low, weighted.accuracy.high) == pytest.approx((expected.low, expected.high))
    plain = audit(rows.y, rows.full, **options)
    expected = rate_interval(float(np.mean((rows.full >= 0.5) == rows.y)), 500, 0.8)
    assert (plain.accuracy.low, plain.accuracy.high) == pytest.approx((expected.low, expected.high))
    for name in ("demographic_parity", "equalized_odds_max", "equalized_odds_sum", "equal_opportunity"):
        narrow, wide = getattr(plain, name), getattr(weighted, name)
        assert narrow.high - narrow.low < wide.high - wide.low
        sure = getattr(audit(rows.y, rows.full, **(options | {"confidence": 0.99})), name)
        assert sure.low <= narrow.low < narrow.high <= sure.high and sure != narrow
    # rows are counted as rows, however little they weigh
    light = audit(rows.y, rows.full, sample_weight=np.full(500, 1e-3), **options)
    assert light.findings[-1].status == "ok"
    assert [row.n for row in light.group_rates] == np.bincount(rows.group).tolist()


def test_the_sum_of_the_gaps_may_be_two_and_its_interval_too():
    y, group = np.repeat([0, 1], 200), np.tile([0, 1], 200)
    result = audit(y, 0.1 + 0.8 * group, sensitive_features=group, n_permutations=5)
    assert result.equalized_odds_sum.value == result.equalized_odds_sum.high == 2
    assert result.equalized_odds_max.value == result.equalized_odds_max.high == 1
    assert result.equal_opportunity.high == result.demographic_parity.high == 1


def test_more_classes_against_the_metrics():
    rng = np.random.default_rng(0)
    y, group = rng.integers(3, size=500), rng.integers(2, size=500)
    proba = rng.dirichlet(np.ones(3), size=500) * 0.5 + 0.5 * np.eye(3)[y]
    weight = rng.uniform(size=500)
    result = audit(y, proba, sensitive_features=group, sample_weight=weight, n_permutations=5)
    expected = roc_auc_score(y, proba, sample_weight=weight, multi_class="ovr")
    assert result.roc_auc == pytest.approx(expected)
    assert result.log_loss == pytest.approx(log_loss(y, proba, sample_weight=weight))
    with pytest.raises(ValueError, match=r"threshold is 0\.5 with 3 classes"):
        audit(y, proba, sensitive_features=group, threshold=0.5)


def test_a_threshold_selects_from_itself_on(exact):
    rows = exact(300, 0)
    score = rows.full.round(1)
    for threshold in (0.0, 0.5, 1.0):
        result = audit(rows.y, score, sensitive_features=rows.group, threshold=threshold, n_permutations=5)
        for row in result.group_rates:
            assert row.selection_rate.value == pytest.approx((score[rows.group == row.group] >= threshold).mean())
    with pytest.raises(ValueError, match=r"threshold is -0\.1"):
        audit(rows.y, score, sensitive_features=rows.group, threshold=-0.1)
    for confidence in (0, 1):
        with pytest.raises(ValueError, match=f"confidence is {confidence} and"):
            audit(rows.y, score, sensitive_features=rows.group, confidence=confidence)
    once = audit(rows.y, score, sensitive_features=rows.group, n_bootstrap=1, n_permutations=1)
    assert once.leakage.n_permutations == 1


def test_the_table_has_a_row_for_each_group_and_its_columns_line_up(exact):
    rows = exact(300, 0)
    result = audit(rows.y, rows.full, sensitive_features=np.array(["f", "a longer name"])[rows.group], n_permutations=5)
    header, *table = result.table()
    for cells, row in zip(table, result.group_rates, strict=True):
        rates = [row.selection_rate, row.true_positive_rate, row.false_positive_rate, row.accuracy]
        assert cells == [row.group, "1", str(row.n), f"{row.base_rate:.3f}", *map(str, rates)]
    assert header == ["group", "class", "rows", "base rate", "selection rate", "TPR", "FPR", "accuracy"]
    lines = str(result).splitlines()
    # an empty line between the parts: the title, numbers, groups, findings and the verdict
    assert [len(part) > 0 for part in str(result).split("\n\n")] == [True] * 5
    (at,) = (i for i, line in enumerate(lines) if "selection rate" in line)
    for cells, line in zip([header, *table], lines[at:], strict=False):
        place = 0
        for cell, name in zip(cells, header, strict=True):
            place = lines[at].index(name, place)
            assert line[place:].startswith(cell) and line[place - 2 : place] == "  "
    named = dict(result.headline())
    assert named["accuracy"] == str(result.accuracy) and named["log loss"] == f"{result.log_loss:.4f}"
    assert named["ROC AUC"] == f"{result.roc_auc:.4f}" and len(named) == 9
    assert f"{max(result.leakage.bits, 0):.4f} (p = {result.leakage.p_value:.3f})" in named.values()
    for finding in result.findings:
        assert f"[{finding.status:^4}] {finding.name}: {finding.evidence}." in str(result)
        assert finding.advice in str(result)
    assert "300 rows, 2 groups, 2 classes (95 % intervals)" in lines[0]


def test_a_page_has_a_row_for_each_number_group_and_finding(exact):
    rows = exact(300, 0)
    result = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=50, confidence=0.9)
    page = result._repr_html_()
    assert page.count("<tr>") == 9 + 1 + 2 + 1 + len(result.findings)
    names, *cells = re.findall(r"<tr>(.*?)</tr>", page)[9:12]
    assert re.findall("<th>(.*?)</th>", names) == result.table()[0]
    assert [re.findall("<td>(.*?)</td>", row) for row in cells] == result.table()[1:]
    parser = Tags()
    parser.feed(page)
    assert "300 rows, 2 groups, 2 classes, 90 % intervals" in parser.text
    for row in result.table():
        assert "".join(row) in parser.text
    colours = dict(re.findall(r"color:(#\w+)'>(\w+)<", page))
    assert {finding.status for finding in result.findings} == set(colours.values()) and len(colours) > 1
    for finding in result.findings:
        assert finding.status + finding.name + finding.evidence + "." + finding.advice in parser.text


def test_labels_of_any_type_are_written_as_json_can_hold_them(exact):
    rows = exact(300, 0)
    day = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    result = audit(rows.y.astype(bool), rows.full, sensitive_features=day[rows.group], n_permutations=5)
    record = result.to_dict()
    assert record["groups"] == ["2020-01-01", "2021-01-01"] and record["classes"] == [False, True]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    public = {field.name for field in dataclasses.fields(result) if not field.name.startswith("_")}
    assert set(record) == {"verdict", *public}
    assert record["histograms"][0]["share"] == result.histograms[0].share.tolist()
    assert record["leakage"]["bits"] == result.leakage.bits


def test_the_seed_draws_the_intervals_and_is_0_by_default(exact):
    rows = exact(300, 0)
    by_seed = [
        audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=20, random_state=seed) for seed in (0, 1)
    ]
    default = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=20)
    assert default.to_dict() == by_seed[0].to_dict()
    first, second = (result.equalized_odds_max for result in by_seed)
    assert first.value == second.value
    assert (first.low, first.high) != (second.low, second.high)
    few = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=20, n_bootstrap=20).equalized_odds_max
    assert few.value == first.value
    assert (few.low, few.high) != (first.low, first.high)


def test_classes_name_the_columns_and_predictions_are_named(exact):
    rows = exact(300, 0)
    words = np.array(["low", "high"])[rows.y]
    proba = np.column_stack([1 - rows.full, rows.full])
    result = audit(words, proba, sensitive_features=rows.group, classes=["low", "high"], n_permutations=5)
    assert result.classes == ("low", "high")
    assert result.accuracy.value == ((rows.full > 0.5) == rows.y).mean()
    with pytest.raises(ValueError, match=r"^y_pred has shape \(300, 1\)"):
        audit(words, rows.full, sensitive_features=rows.group, y_pred=words[:, None])


def test_decisions_without_scores_have_the_same_gaps(exact):
    rows = exact(2000, 0)
    scored = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5)
    decided = audit(rows.y, y_pred=(rows.full > 0.5).astype(int), sensitive_features=rows.group)
    for key in ("accuracy", "demographic_parity", "equalized_odds_max", "equalized_odds_sum", "equal_opportunity"):
        assert getattr(decided, key) == getattr(scored, key)
    assert decided.group_rates == scored.group_rates and decided.noise_floors == scored.noise_floors
    assert decided.leakage is None and decided.calibration is None and decided.histograms == ()
    assert "ROC AUC" not in str(decided) and "Decisions only" in str(decided) and "ROC AUC" in str(scored)
    assert decided.to_dict()["log_loss"] is None


def test_selection_rates_need_no_labels(exact):
    rows = exact(2000, 0)
    labelled = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5, tolerance=0.6)
    for unlabelled in (
        audit(y_pred=(rows.full > 0.5).astype(int), sensitive_features=rows.group, tolerance=0.6),
        audit(proba=rows.full, threshold=0.5, sensitive_features=rows.group, tolerance=0.6),
    ):
        assert unlabelled.demographic_parity.value == labelled.demographic_parity.value
        assert np.isnan(unlabelled.accuracy.value) and np.isnan(unlabelled.equalized_odds_max.value)
        assert unlabelled.certificate.constraint == "demographic_parity"
        assert set(unlabelled.noise_floors) == {"demographic_parity"}
        assert unlabelled.table()[0] == ["group", "class", "rows", "selection rate"]
        assert "undefined" not in str(unlabelled) and "nan" not in str(unlabelled)
    assert labelled.certificate.constraint == "equalized_odds"
    with pytest.raises(ValueError, match="there are no labels"):
        audit(y_pred=rows.y, sensitive_features=rows.group, tolerance=0.1, constraint="equal_opportunity")
    with pytest.raises(ValueError, match="neither proba nor y_pred"):
        audit(rows.y, sensitive_features=rows.group)
    with pytest.raises(ValueError, match="there are no scores"):
        audit(rows.y, y_pred=rows.y, sensitive_features=rows.group, threshold=0.5)


def test_certificates_are_those_of_the_counts(exact):
    rows = exact(4000, 0)
    fair = audit(rows.y, rows.orthogonal, sensitive_features=rows.group, n_permutations=5, tolerance=0.1)
    unfair = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5, tolerance=0.1)
    strict = audit(rows.y, rows.orthogonal, sensitive_features=rows.group, n_permutations=5, tolerance=0.01)
    assert fair.certificate.certified and fair.rows_needed is None
    assert not unfair.certificate.certified and unfair.rows_needed is None
    assert not strict.certificate.certified and min(strict.rows_needed) > 0
    assert strict.certificate.bound == pytest.approx(fair.certificate.bound, abs=0.001)
    table = count_table(rows.group, rows.y, (rows.orthogonal > 0.5).astype(np.intp), (2, 2, 2))
    assert fair.certificate == certify(table, tolerance=0.1)
    assert "Certified: equalized odds gap (max) <= 0.1" in str(fair) and "Certified" in fair._repr_html_()
    assert "Not certified" in str(unfair) and "More rows needed" in str(strict)
    assert fair.to_dict()["certificate"]["rows"] == [[*rows] for rows in fair.certificate.rows]
    assert audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5).certificate is None
    weighted = audit(
        rows.y,
        rows.orthogonal,
        sensitive_features=rows.group,
        n_permutations=5,
        n_bootstrap=20,
        tolerance=0.1,
        sample_weight=np.linspace(0.5, 3, 4000),
    )
    assert weighted.certificate.method == "approximate, weighted rows"
    assert weighted.certificate.bound > fair.certificate.bound


@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_without_a_group_are_counted_and_left_out(exact, missing):
    rows = exact(600, 0)
    group = np.where(rows.group == 1, "m", "f").astype(object)
    group[::10] = missing
    kept = np.arange(600) % 10 > 0
    found = audit(rows.y, rows.full, sensitive_features=group, n_permutations=5)
    without = audit(rows.y[kept], rows.full[kept], sensitive_features=group[kept], n_permutations=5)
    assert (found.n, found.n_unknown_group) == (540, 60) and without.n_unknown_group == 0
    assert found.equalized_odds_max == without.equalized_odds_max and found.leakage == without.leakage
    assert "60 rows have no group" in str(found) and "no group" not in str(without)


def test_any_metric_by_group_with_intervals(exact):
    rows = exact(1500, 0)
    result = audit(rows.y, rows.full, sensitive_features=np.where(rows.group, "m", "f"), n_permutations=5)
    frame = result.by_group({"accuracy": accuracy_score, "f1": f1_score}, n_bootstrap=50)
    assert frame["group"].to_list() == ["f", "m", "all rows"] and frame["n"].to_list()[-1] == 1500
    decided = rows.full > 0.5
    for name, metric in (("accuracy", accuracy_score), ("f1", f1_score)):
        expected = [metric(rows.y[rows.group == g], decided[rows.group == g]) for g in (0, 1)]
        assert frame[name].to_list() == pytest.approx([*expected, metric(rows.y, decided)])
        assert (frame[f"{name}_low"] < frame[name]).all() and (frame[name] < frame[f"{name}_high"]).all()
    width = frame["accuracy_high"] - frame["accuracy_low"]
    rate = result.group_rates[0].accuracy
    assert width[0] == pytest.approx(rate.high - rate.low, rel=0.4)
    ranked = result.by_group(roc_auc_score, of="proba", n_bootstrap=5)
    assert ranked["roc_auc_score"].to_list()[-1] == pytest.approx(result.roc_auc)
    # undefined in a group of one class
    lone = audit([0, 1, 1, 1], y_pred=[0, 1, 0, 1], sensitive_features=["a", "a", "b", "b"])
    assert lone.by_group({"zeros": lambda y, p: 1 / int((y == 0).sum())})["zeros"].isna().to_list() == [
        False,
        True,
        False,
    ]
    with pytest.raises(ValueError, match="no scores"):
        lone.by_group(roc_auc_score, of="proba")
    with pytest.raises(ValueError, match="no labels"):
        audit(y_pred=[0, 1], sensitive_features=["a", "b"]).by_group(accuracy_score)
