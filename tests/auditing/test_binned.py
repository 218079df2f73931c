import numpy as np
import pytest

from setminus.auditing.binned import BinnedScores
from setminus.auditing.diagnosis import calibration, score_histograms
from setminus.auditing.fine_bins import N_BINS, score_bins
from setminus.auditing.rates import read_scored

EDGES = np.linspace(0, 1, 51)


def rows(n=20_000, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    odds = rng.normal(size=n) * 2 - 1 + 0.5 * group
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    return read_scored(y.astype(int), 1 / (1 + np.exp(-odds - shift)), np.array(["a", "b", "c"])[group])


def binned(scored):
    """The scores by group and label."""
    counts, sums = np.zeros((2 * len(scored.groups), N_BINS), np.int64), np.zeros((2 * len(scored.groups), N_BINS))
    at = scored.group * 2 + scored.y, score_bins(scored.proba[:, 1])
    np.add.at(counts, at, 1)
    np.add.at(sums, at, scored.proba[:, 1])
    return BinnedScores(counts, sums)


def test_entries_are_added_by_group_and_label():
    rng = np.random.default_rng(0)
    group, y = rng.integers(2, size=(2, 9))
    counts = rng.integers(5, size=(9, N_BINS))
    found = BinnedScores(counts, counts / 2).by_cell(group, y, (2, 2))
    for g in (0, 1):
        for label in (0, 1):
            assert (found.counts[2 * g + label] == counts[(group == g) & (y == label)].sum(axis=0)).all()
    assert (found.sums == found.counts / 2).all()


@pytest.mark.parametrize(
    "score",
    [
        np.linspace(0, 1, 10_001),
        EDGES,
        np.nextafter(EDGES[1:], 0),
        np.exp(-np.linspace(0, 40, 10_001))[::-1],
        1 - np.exp(-np.linspace(0, 40, 10_001)),
        np.array([0.0, 5e-324, 1e-300, 2.0**-25, 0.5, np.nextafter(1, 0), 1.0]),
    ],
)
def test_bins_rise_with_the_score_and_end_where_those_of_the_histograms_do(score):
    bins = score_bins(score)
    assert bins.min() >= 0 and bins.max() < N_BINS
    assert (np.diff(bins) >= 0).all()
    for edge in EDGES[1:-1]:
        assert not np.intersect1d(bins[score < edge], bins[score >= edge]).size


def test_a_bin_is_narrow_everywhere():
    score = np.sort(np.concatenate([np.exp(-np.linspace(0, 16, 200_001)), 1 - np.exp(-np.linspace(0, 16, 200_001))]))
    bins = score_bins(score)
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    widths = np.array([part[-1] - part[0] for part in np.split(score, first[1:])])
    least = np.minimum(score[first], 1 - np.append(score[first[1:]], 1.0))
    assert (widths <= 4.1e-4).all()
    tails = np.minimum(score[first], 1 - score[first]) < 0.015
    assert (widths[tails] <= 0.01 * np.maximum(least[tails], 2.0**-24) + 1e-12).all()


def test_histograms_are_those_of_the_rows():
    scored = rows()
    assert str(binned(scored).histograms(scored.groups, scored.classes)) == str(score_histograms(scored))


def test_calibration_is_that_of_the_rows_in_bins_of_nearly_equal_mass():
    scored = rows(4000, shift=0.3)
    found = binned(scored).calibration(scored.groups, scored.classes)
    score, bins = scored.proba[:, 1], score_bins(scored.proba[:, 1])
    for curve, error in zip(found.curves, (found.overall, *found.groups), strict=True):
        held = slice(None) if curve.group is None else scored.group == scored.groups.index(curve.group)
        n = len(score[held])
        assert curve.count.sum() == n == error.n
        assert len(curve.count) == 10 and abs(curve.count - n / 10).max() < 0.02 * n
        # each bin of the curve holds the next rows in the order of the fine bins
        order = np.argsort(bins[held], kind="stable")
        parts = np.split(order, np.cumsum(curve.count)[:-1])
        means = [(score[held][part].mean(), (scored.y[held][part] == 1).mean()) for part in parts]
        assert np.allclose(means, np.column_stack([curve.predicted, curve.observed]), rtol=0, atol=1e-12)
        expected = sum(abs(p - y) * len(part) for (p, y), part in zip(means, parts, strict=True)) / n
        assert error.ece == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [30, 400, 20_000])
def test_errors_and_curves_equal_those_of_the_rows_in_memory(n):
    scored = rows(n, shift=0.3)
    counted, whole = binned(scored).calibration(scored.groups, scored.classes), calibration(scored)
    for found, expected in zip((counted.overall, *counted.groups), (whole.overall, *whole.groups), strict=True):
        assert (found.group, found.n) == (expected.group, expected.n)
        assert found.ece == pytest.approx(expected.ece, abs=1e-12)
    for found, expected in zip(counted.curves, whole.curves, strict=True):
        assert (found.count == expected.count).all()
        assert found.predicted == pytest.approx(expected.predicted, abs=1e-12)
        assert found.observed == pytest.approx(expected.observed, abs=1e-12)


def test_the_error_of_exact_probabilities_is_that_of_drawn_labels():
    honest, shifted = rows(20_000), rows(20_000, shift=0.3)
    for scored, significant in ((honest, False), (shifted, True)):
        found = binned(scored).calibration(scored.groups, scored.classes).overall
        drawn = calibration(scored).overall
        assert found.expected == pytest.approx(drawn.expected, rel=0.1)
        assert (found.p_value < 0.05) == (drawn.p_value < 0.05) == significant
