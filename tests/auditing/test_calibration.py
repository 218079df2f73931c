import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest

from setminus.auditing.calibration import (
    N_BINS,
    BinnedScores,
    calibration,
    calibration_error,
    reliability_curve,
    score_bins,
    score_histograms,
)
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
    found = score_histograms(rows)
    assert [(one.group, one.label) for one in found] == [(g, c) for c in range(n_classes) for g in "ab"]
    for one in found:
        held = (y == one.label) & (group == "ab".index(one.group))
        # two classes: of the second, whatever the row's label is
        score = proba[:, 1 if n_classes == 2 else one.label]
        np.testing.assert_allclose(one.edges, np.arange(51) / 50)
        for k in range(50):
            inside = held & (score >= k / 50) & (score < (k + 1) / 50)
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
