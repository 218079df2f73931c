"""The figure draws, whatever groups are called."""

import io
import sys
import warnings

import numpy as np
import pytest

from setminus.auditing.audit import audit

matplotlib = pytest.importorskip("matplotlib")


def drawn(figure):
    """The figure's texts, after a draw in which any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure.findobj(matplotlib.text.Text)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_odd_names_are_shown_as_they_are(n_classes):
    rng = np.random.default_rng(0)
    names = np.array(["$x^{2$", "<b>", "_hidden", "a $ b $ c"])
    y = rng.integers(n_classes, size=400)
    proba = rng.dirichlet(np.ones(n_classes), size=400)
    figure = audit(y, proba, sensitive_features=names[rng.integers(4, size=400)], n_permutations=10).plot()
    texts = drawn(figure)
    shown = {text.get_text().strip().replace(r"\$", "$") for text in texts}
    assert set(names) <= shown
    legends = figure.findobj(matplotlib.legend.Legend)
    assert sorted(text.get_text().strip().replace(r"\$", "$") for text in legends[0].get_texts()) == sorted(names)


FIELDS = {
    "selection rate": "selection_rate",
    "true positive rate": "true_positive_rate",
    "false positive rate": "false_positive_rate",
    "accuracy": "accuracy",
}


def panels(figure):
    """The panels by title; more than one where there are more classes."""
    found = {}
    for axes in figure.findobj(matplotlib.axes.Axes):
        found.setdefault(axes.get_title(), []).append(axes)
    return found


def spans_and_points(axes):
    """What is drawn of intervals: (low, high, height) of each line, and (value, height) of each marker."""
    spans, points = [], []
    for line in axes.lines:
        (x, y) = line.get_data()
        if len(x) == 2:
            assert y[0] == y[1]
            spans.append((x[0], x[1], y[0]))
        else:
            points.append((x[0], y[0]))
    return spans, points


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    y, group = rng.integers(2, size=600), rng.choice(["f", "m", "x"], size=600)
    return y, rng.uniform(size=600), group


@pytest.fixture(scope="module")
def binary(scored):
    y, p, group = scored
    return audit(np.array(["no", "yes"])[y], p, sensitive_features=group, n_permutations=10, confidence=0.9)


def test_rates_are_drawn_with_their_intervals_first_group_on_top(binary):
    by_title = panels(binary.plot())
    assert len(binary.group_rates) == 3
    for title, field in FIELDS.items():
        (axes,) = by_title[title]
        intervals = [getattr(row, field) for row in binary.group_rates]
        spans, points = spans_and_points(axes)
        assert spans == [(interval.low, interval.high, height) for height, interval in enumerate(intervals)]
        assert points == [(interval.value, height) for height, interval in enumerate(intervals)]
        low, high = axes.get_xlim()
        assert low < 0 and high > 1 and high - low < 1.1
        bottom, top = axes.get_ylim()
        assert bottom > 2 and top < 0
    ticks = by_title["selection rate"][0]
    assert ticks.get_yticks().tolist() == [0, 1, 2]
    assert [text.get_text() for text in ticks.get_yticklabels()] == ["f", "m", "x"]


def test_reliability_and_scores_are_those_of_the_rows(binary, scored):
    y, p, group = scored
    by_title = panels(binary.plot())
    (axes,) = by_title["reliability"]
    assert "yes" in axes.get_xlabel()
    diagonal, *lines = axes.lines
    assert np.array_equal(*diagonal.get_data())
    curves = [curve for curve in binary.calibration.curves if curve.group is not None]
    assert len(lines) == len(curves) == 3
    for line, curve in zip(lines, curves, strict=True):
        np.testing.assert_array_equal(line.get_data(), (curve.predicted, curve.observed))
        assert line.get_label() == curve.group
    for label, name in enumerate(["no", "yes"]):
        (axes,) = by_title[f"scores where y is {name}"]
        assert "yes" in axes.get_xlabel()
        for line, one in zip(axes.lines, ["f", "m", "x"], strict=True):
            thresholds, shares = line.get_data()
            held = p[(y == label) & (group == one)]
            np.testing.assert_allclose(shares, [(held >= t).mean() for t in thresholds], atol=1e-12)
            assert thresholds[0] == 0 and thresholds[-1] == 1 and len(thresholds) > 20


def test_a_group_looks_the_same_in_each_panel_and_unlike_the_others(binary):
    figure = binary.plot()
    by_title = panels(figure)
    looks = {}
    for title in ("reliability", "scores where y is no", "scores where y is yes"):
        lines = by_title[title][0].lines[-3:]
        looks[title] = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines]
    first, *others = looks.values()
    assert all(look == first for look in others)
    for of_groups in zip(*first, strict=True):
        assert len(set(of_groups)) == 3
    points = [line for line in by_title["accuracy"][0].lines if len(line.get_xdata()) == 1]
    assert [(line.get_color(), line.get_marker()) for line in points] == [(color, marker) for color, _, marker in first]
    (legend,) = figure.findobj(matplotlib.legend.Legend)
    assert [text.get_text() for text in legend.get_texts()] == ["f", "m", "x"]


def test_more_classes_have_a_panel_and_a_mark_each():
    rng = np.random.default_rng(0)
    y, group = rng.integers(3, size=600), rng.integers(2, size=600)
    proba = rng.dirichlet(np.ones(3), size=600)
    result = audit(y, proba, sensitive_features=group, n_permutations=5)
    by_title = panels(result.plot())
    assert [axes.get_xlabel()[-4:] for axes in by_title["reliability"]] == ["P(0)", "P(1)", "P(2)"]
    for label, axes in enumerate(by_title["reliability"]):
        curves = [curve for curve in result.calibration.curves if curve.group is not None and curve.label == label]
        assert len(curves) == len(axes.lines) - 1 == 2
        for line, curve in zip(axes.lines[1:], curves, strict=True):
            np.testing.assert_array_equal(line.get_data(), (curve.predicted, curve.observed))
    for label in range(3):
        (axes,) = by_title[f"scores where y is {label}"]
        assert f"P({label})" in axes.get_xlabel()
        for line, one in zip(axes.lines, range(2), strict=True):
            thresholds, shares = line.get_data()
            held = proba[(y == label) & (group == one), label]
            np.testing.assert_allclose(shares, [(held >= t).mean() for t in thresholds], atol=1e-12)
    for title, field in FIELDS.items():
        (axes,) = by_title[title]
        spans, points = spans_and_points(axes)
        rows = [row for row in result.group_rates if field != "accuracy" or row.label == 0]
        assert [span[:2] for span in spans] == [(getattr(row, field).low, getattr(row, field).high) for row in rows]
        assert [point[0] for point in points] == [getattr(row, field).value for row in rows]
        heights = [point[1] for point in points]
        assert heights == [span[2] for span in spans] == sorted(set(heights))
        # the marks of a group stay nearer to its name than to another's, and say which class they are
        assert [round(height) for height in heights] == [row.group for row in rows]
        assert [text.get_text() for text in axes.texts] == ([] if field == "accuracy" else ["0", "1", "2"] * 2)
        assert [text.xy for text in axes.texts] == (
            [] if field == "accuracy" else [(span[1], span[2]) for span in spans]
        )


def test_what_the_figure_is_of(binary, scored):
    y, p, group = scored
    parts = binary.plot().get_suptitle().split(", ")
    assert parts == ["600 rows", "90 % intervals", f"leakage {max(binary.leakage.bits, 0):.3f} bits"]
    long = audit(y, p, sensitive_features=np.where(group == "x", "x" * 40, "y" * 32), n_permutations=5)
    ticks = [text.get_text() for text in panels(long.plot())["selection rate"][0].get_yticklabels()]
    assert ticks == ["x" * 31 + "…", "y" * 32]
    # more groups need more height
    few, many = (audit(y, p, sensitive_features=np.arange(600) % n, n_permutations=5).plot() for n in (2, 8))
    assert few.get_figheight() + 1 < many.get_figheight() < few.get_figheight() + 5


def test_the_largest_groups_are_drawn_in_the_order_of_the_audit():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), [10, 60, 60, 60, 12, 60, 60, 60, 60, 60])
    y = rng.integers(2, size=len(group))
    result = audit(y, rng.uniform(size=len(group)), sensitive_features=group, n_permutations=5)
    ticks = panels(result.plot())["selection rate"][0].get_yticklabels()
    assert [text.get_text() for text in ticks] == ["1", "2", "3", "5", "6", "7", "8", "9"]


def test_many_groups_and_classes_are_cut_with_a_word():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2000)
    result = audit(
        y, rng.dirichlet(np.ones(5), size=2000), sensitive_features=rng.integers(12, size=2000), n_permutations=5
    )
    texts = {text.get_text() for text in drawn(result.plot())}
    assert any("the 8 largest of 12 groups, 3 of 5 classes" in text for text in texts)


def test_missing_matplotlib_says_what_to_install(exact, monkeypatch):
    rows = exact(100, 0)
    result = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "setminus\[cli\]"'):
        result.plot()


def test_the_diagonal_is_no_group_and_the_title_is_on_the_left(binary):
    figure = binary.plot()
    diagonal, *lines = panels(figure)["reliability"][0].lines
    colours = [matplotlib.colors.to_rgb(line.get_color()) for line in (diagonal, *lines)]
    assert colours[0] not in colours[1:]
    # grey: as much of each colour
    assert len(set(colours[0])) == 1
    (title,) = (text for text in figure.texts if "600 rows" in text.get_text())
    assert title.get_ha() == "left"
    assert title.get_position()[0] < 0.05


def test_more_classes_take_a_second_line_of_panels(binary):
    rng = np.random.default_rng(0)
    y, group = rng.integers(3, size=600), rng.choice(["f", "m", "x"], size=600)
    three = audit(y, rng.dirichlet(np.ones(3), size=600), sensitive_features=group, n_permutations=5)
    heights = [result.plot().get_figheight() for result in (binary, three)]
    # a line of panels is about as high as one of three panels is wide
    assert 3 < heights[1] - heights[0] < 5
    assert 5 < heights[0] < 7
