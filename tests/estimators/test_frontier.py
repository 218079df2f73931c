"""The rules that pick a point, against a search through all of them, and the picture of them."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

from setminus.core.gaps import (
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
)
from setminus.estimators.frontier import Frontier, gap_of

mpl.use("Agg")


def drawn(seed, n=60):
    """Points with many ties."""
    rng = np.random.default_rng(seed)
    offsets = np.column_stack([np.zeros(n), rng.integers(-3, 4, size=n) / 2])
    score, gap = rng.integers(0, 6, size=n) / 10, rng.integers(0, 6, size=n) / 10
    return Frontier(rng.integers(0, 4, size=n) / 2, offsets, score, gap)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tolerance", [0.0, 0.25, 0.3, 1.0])
def test_best_by_looking_at_each_point(seed, tolerance):
    frontier = drawn(seed)
    chosen = frontier.best(tolerance)
    allowed = [i for i in range(60) if frontier.gap[i] <= max(tolerance, frontier.gap.min())]

    def rank(i):
        return (-frontier.score[i], frontier.gap[i], frontier.strength[i], abs(frontier.offsets[i]).sum())

    assert chosen in allowed
    assert rank(chosen) == min(map(rank, allowed))


def test_without_a_point_in_the_tolerance_the_smallest_gap_is_taken():
    frontier = Frontier(
        np.zeros(4), np.zeros((4, 2)), np.array([0.9, 0.5, 0.6, 0.9]), np.array([0.4, 0.2, 0.2, np.nan])
    )
    assert frontier.best(0.1) == 2
    assert frontier.best(0.2) == 2 and frontier.best(0.4) == 0


@pytest.mark.parametrize("seed", range(20))
def test_pareto_by_looking_at_each_pair(seed):
    frontier = drawn(seed)
    found = frontier.pareto().tolist()
    points = list(zip(frontier.score, frontier.gap, strict=True))

    def beaten(one):
        return any(s >= one[0] and g <= one[1] and (s, g) != one for s, g in points)

    assert {points[i] for i in found} == {one for one in points if not beaten(one)}
    # each once, by rising gap
    assert (np.diff(frontier.gap[found]) > 0).all()


def test_pareto_leaves_out_what_is_not_known():
    frontier = Frontier(
        np.zeros(4), np.zeros((4, 2)), np.array([0.5, np.nan, 0.9, 0.7]), np.array([0.1, 0.0, np.nan, 0.3])
    )
    assert frontier.pareto().tolist() == [0, 3]


def test_another_point_is_chosen_by_index_from_either_end():
    frontier = drawn(0)
    assert len(frontier) == 60 and frontier.chosen == -1
    assert frontier.at(3).chosen == 3 and frontier.at(-1).chosen == 59 and frontier.at(-60).chosen == 0
    assert frontier.at(3).score is frontier.score
    for index in (60, -61):
        with pytest.raises(ValueError, match=f"index is {index}, the frontier has 60 points"):
            frontier.at(index)


def test_a_threshold_is_where_both_classes_are_as_likely():
    offsets = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, -2.0]])
    frontier = Frontier(np.zeros(3), offsets, np.zeros(3), np.zeros(3))
    for (first, second), threshold in zip(offsets, frontier.threshold, strict=True):
        assert np.log(1 - threshold) + first == pytest.approx(np.log(threshold) + second)
    with pytest.raises(AttributeError, match="2 classes, here are 3"):
        _ = Frontier(np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3)).threshold


def test_the_gap_is_the_one_that_is_named():
    table = np.random.default_rng(0).integers(1, 20, size=(5, 3, 2, 2)).astype(float)
    for agg in ("max", "sum"):
        expected = equalized_odds_from_table(table, agg)
        np.testing.assert_array_equal(gap_of("equalized_odds", agg)(table), expected)
        np.testing.assert_array_equal(gap_of("demographic_parity", agg)(table), demographic_parity_from_table(table))
        np.testing.assert_array_equal(gap_of("equal_opportunity", agg)(table), equal_opportunity_from_table(table))
    with pytest.raises(ValueError, match="agg is 'mean'"):
        gap_of("equalized_odds", "mean")
    with pytest.raises(ValueError, match="'parity': expected one of equalized_odds, demographic_parity, equal_opp"):
        gap_of("parity", "max")


def test_the_picture_shows_all_points_the_best_ones_and_the_chosen():
    frontier = Frontier(
        np.array([0.0, 1.0, 1.0, 2.0]),
        np.zeros((4, 2)),
        np.array([0.9, 0.8, 0.6, 0.7]),
        np.array([0.5, 0.1, 0.2, 0.0]),
        score_name="balanced_accuracy",
        gap_name="equalized_odds (max)",
    ).at(1)
    axes = frontier.plot()
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), [[0.0, 0.7], [0.1, 0.8], [0.5, 0.9]])
    searched, chosen = axes.collections
    np.testing.assert_array_equal(searched.get_offsets(), np.column_stack([frontier.gap, frontier.score]))
    np.testing.assert_array_equal(chosen.get_offsets(), [[0.1, 0.8]])
    assert "balanced accuracy" in axes.get_ylabel() and "equalized odds (max)" in axes.get_xlabel()
    # the best points are in view, and not lost in it
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert left == 0 and 0.5 < right < 0.8 and 0.6 < bottom < 0.7 and 0.9 < top < 1.0
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["offsets 0", "best at its gap", "chosen"]
    ours = mpl.figure.Figure().subplots()
    assert frontier.plot(ours) is ours
    # one point, with no gap: there is still something to see
    alone = Frontier(np.zeros(1), np.zeros((1, 2)), np.array([0.8]), np.array([0.0])).plot()
    assert alone.get_xlim()[1] > 0 and alone.get_ylim()[0] < 0.8 < alone.get_ylim()[1]


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "setminus\[cli\]"'):
        drawn(0).plot()
