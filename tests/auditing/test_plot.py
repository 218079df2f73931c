"""The charts of an audit hold its numbers, show as many groups as an eye can tell apart, and draw whatever names."""

import sys

import numpy as np
import pytest

from setminus.auditing.audit import audit
from setminus.auditing.plot import GAP, OTHERS, choose_shown, coarse, rate_charts, reliability_charts, score_charts
from setminus.charts.chart import Span


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    y, group = rng.integers(2, size=600), rng.choice(["f", "m", "x"], size=600)
    p = rng.uniform(size=600)
    return audit(np.array(["no", "yes"])[y], p, sensitive_features=group, n_permutations=10, confidence=0.9)


def audit_of(sizes, classes=(0, 1), frequencies=(1.0,)):
    judged = classes[1:] if len(classes) == 2 else classes
    rates = [
        {"group": group, "label": label, "n": n, "base_rate": frequency}
        for group, n in sizes.items()
        for label, frequency in zip(judged, frequencies, strict=True)
    ]
    return {"classes": list(classes), "group_rates": rates}


def test_all_that_fits_is_shown():
    shown = choose_shown(audit_of({"b": 1, "a": 2}))
    assert shown.signs == {"a": 0, "b": 1}
    assert (shown.judged, shown.labels, shown.n_judged) == ((1,), (0, 1), 1)


def test_the_largest_groups_have_a_sign():
    shown = choose_shown(audit_of({letter: size for size, letter in enumerate("hgfedcba")}))
    assert list(shown.signs) == ["a", "b", "c", "d", "e", "f"]
    assert shown.groups == tuple("abcdefgh")


def test_the_most_frequent_classes_are_shown_in_their_order():
    shown = choose_shown(audit_of({"a": 100}, tuple("vwxyz"), (0.1, 0.3, 0.05, 0.25, 0.3)), {"v": "five"})
    assert shown.judged == shown.labels == ("v", "w", "y", "z")
    assert (shown.class_name("v"), shown.n_judged) == ("five", 5)


def test_crossed_columns_are_one_group():
    crossed = audit_of({"a": 1})
    crossed["group_rates"][0]["group"] = ["f", 30]
    assert [*choose_shown(crossed).signs] == ["f, 30"]


def test_rates_are_drawn_with_their_intervals_and_the_gap_behind_them(binary):
    record = binary.to_dict()
    shown = choose_shown(record)
    tpr, fpr = rate_charts([("model", record)], shown, "yes", ["true_positive_rate", "false_positive_rate"])
    span, *dots = tpr.marks
    assert isinstance(span, Span) and span.name == GAP
    rates = [row.true_positive_rate for row in binary.group_rates]
    assert (span.low, span.high) == ([min(r.value for r in rates)], [max(r.value for r in rates)])
    assert [(d.name, d.x, d.low, d.high) for d in dots] == [
        (row.group, [rate.value], [rate.low], [rate.high]) for row, rate in zip(binary.group_rates, rates, strict=True)
    ]
    # the same width, so that gaps can be compared
    widths = [chart.x_range[1] - chart.x_range[0] for chart in (tpr, fpr)]
    assert widths[0] == pytest.approx(widths[1])
    assert tpr.x_range[0] < min(r.low for r in rates) and max(r.high for r in rates) < tpr.x_range[1]


def rows(**values):
    def interval(value):
        return {"value": value, "low": value and value - 0.1, "high": value and value + 0.1}

    return {"group_rates": [{"group": g, "label": 1, "accuracy": interval(v)} for g, v in values.items()]}


def test_the_gap_is_of_all_groups_also_of_those_without_a_sign():
    shown = choose_shown(audit_of({"a": 2, "b": 1}))
    models = [("before", rows(a=0.5, b=0.7, c=0.2)), ("after", rows(a=0.5, b=0.5, c=0.5))]
    (chart,) = rate_charts(models, shown, 1, ["accuracy"])
    span, a, b, others = chart.marks
    assert (span.low, span.high) == ([0.2, 0.5], [0.7, 0.5])
    assert (a.x, b.x) == ([0.5, 0.5], [0.7, 0.5])
    assert (others.name, others.rows, others.x, others.notes) == (OTHERS, ["before", "after"], [0.2, 0.5], ["c", "c"])


def test_an_undefined_rate_is_left_out():
    shown = choose_shown(audit_of({"a": 2, "b": 1}))
    (chart,) = rate_charts([("before", rows(a=0.5, b=None)), ("after", rows(a=None, b=None))], shown, 1, ["accuracy"])
    span, a, b = chart.marks
    assert (span.low, a.x, b.x) == ([0.5, None], [0.5, None], [None, None])


def test_reliability_and_scores_are_those_of_the_audit(binary):
    record = binary.to_dict()
    shown = choose_shown(record)
    (chart,) = reliability_charts([("model", record)], shown, "yes")
    diagonal, *lines = chart.marks
    assert diagonal.role == "reference" and diagonal.x == diagonal.y
    curves = [curve for curve in binary.calibration.curves if curve.group is not None]
    assert [line.name for line in lines] == [curve.group for curve in curves] == ["f", "m", "x"]
    for line, curve in zip(lines, curves, strict=True):
        np.testing.assert_array_equal((line.x, line.y), (curve.predicted, curve.observed))
        assert line.notes == [f"{count:,} rows" for count in curve.count]
    for label in ("no", "yes"):
        (chart,) = score_charts([("model", record)], shown, label)
        histograms = [one for one in record["histograms"] if one["label"] == label and one["group"] is not None]
        assert [line.name for line in chart.marks] == ["f", "m", "x"]
        for line, histogram in zip(chart.marks, histograms, strict=True):
            assert line.y == coarse(histogram)[1] and sum(line.y) == pytest.approx(1)
            assert line.steps and min(line.x) > 0 and max(line.x) < 1
        assert chart.y_range[0] <= min(share for line in chart.marks for share in line.y if share > 0)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_odd_names_are_shown_as_they_are(n_classes):
    rng = np.random.default_rng(0)
    names = np.array(["$x^{2$", "<b>", "_hidden", "a $ b $ c"])
    y = rng.integers(n_classes, size=400)
    proba = rng.dirichlet(np.ones(n_classes), size=400)
    svg = audit(y, proba, sensitive_features=names[rng.integers(4, size=400)], n_permutations=10).plot().svg()
    for name in names:
        assert name.replace("<", "&lt;").replace(">", "&gt;") in svg
    assert "<b>" not in svg


def test_the_plot_has_a_chart_for_each_rate_and_class(binary):
    titles = [view["layer"][-1] for row in binary.plot().spec["vconcat"] for view in row["hconcat"]]
    assert len(titles) == 4 + 1 + 2
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    more = audit(y, rng.dirichlet(np.ones(3), size=600), sensitive_features=y % 2, n_permutations=5)
    rows = [len(row["hconcat"]) for row in more.plot().spec["vconcat"]]
    # selection, true and false positive rate, reliability and scores of each class; one accuracy
    assert rows == [3, 3, 3, 3, 3, 1]


def test_the_plot_is_titled_with_its_size_and_cuts():
    rng = np.random.default_rng(0)
    y, group = rng.integers(5, size=2000), rng.integers(12, size=2000)
    many = audit(y, rng.dirichlet(np.ones(5), size=2000), sensitive_features=group, n_permutations=5)
    parts = many.plot().spec["title"]["text"].split(", ")
    assert parts[:4] == [
        "2,000 rows",
        "the 6 largest of 12 groups",
        "the 4 most frequent of 5 classes",
        "95 % intervals",
    ]
    assert parts[4] == f"leakage {max(many.leakage.bits, 0):.3f} bits"


def test_a_plot_needs_vl_convert_only_where_it_is_drawn(binary, monkeypatch, tmp_path):
    plot = binary.plot()
    plot.save(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 10_000
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r'pip install "setminus\[cli\]"'):
        plot.save(tmp_path / "audit.png")


def test_a_plot_shows_what_is_known_of_decisions():
    group, y = np.repeat(["f", "m"], 50), np.tile([0, 1], 50)
    decided = audit(y, y_pred=1 - y, sensitive_features=group).plot()
    selected = audit(y_pred=y, sensitive_features=group).plot()
    assert decided.png().startswith(b"\x89PNG") and "Reliability" not in str(decided.spec)
    assert "Selection rate" in str(selected.spec) and "True positive" not in str(selected.spec)
