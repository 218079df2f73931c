"""The whole audit: its verdict on exact classifiers, its numbers against peers, and its ways out."""

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from setminus.auditing.audit import audit
from setminus.core.gaps import demographic_parity_gap, equal_opportunity_gap, equalized_odds_gap


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
    assert "not calibrated below" in result.findings[0].advice


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
