"""The rules that pick a point, against a search through all of them, and the picture of them."""

import sys

import numpy as np
import pytest

from setminus.core.certificate import certify
from setminus.core.gaps import (
    demographic_parity_from_table,
    equal_opportunity_from_table,
    equalized_odds_from_table,
)
from setminus.estimators.frontier import Candidates, Frontier, gap_of


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
        with pytest.raises(
            ValueError, match=f"index is {index}, the frontier has 60 points: expected one of them, from 0"
        ):
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
    with pytest.raises(
        ValueError, match=r"agg is 'mean': expected 'max' \(Fairlearn's way\) or 'sum' \(the paper's\)\.$"
    ):
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
    layers = frontier.plot().spec["hconcat"][0]["layer"]

    def points(layer):
        return [(row["x"], row["y"]) for row in layer["data"]["values"]]

    searched, line, _, chosen = layers[:4]
    assert points(searched) == list(zip(frontier.gap, frontier.score, strict=True))
    assert points(line) == [(0.0, 0.7), (0.1, 0.8), (0.5, 0.9)]
    assert points(chosen) == [(0.1, 0.8)]
    # what was searched is fainter than what was chosen
    assert searched["mark"]["opacity"] < chosen["mark"]["opacity"] and searched["mark"]["size"] < chosen["mark"]["size"]
    x, y = (line["encoding"][axis] for axis in "xy")
    assert "balanced accuracy" in y["title"] and x["title"] == "equalized odds (max)"
    # the best points are in view, and not lost in it
    (left, right), (bottom, top) = x["scale"]["domain"], y["scale"]["domain"]
    assert left == 0 and 0.5 < right < 0.8 and 0.6 < bottom < 0.7 and 0.9 < top < 1.0
    svg = frontier.plot().svg()
    assert all(f">{name}<" in svg for name in ("offsets 0", "best trades", "chosen"))
    # one point, with no gap: there is still something to see
    alone = Frontier(np.zeros(1), np.zeros((1, 2)), np.array([0.8]), np.array([0.0])).plot()
    encoding = alone.spec["hconcat"][0]["layer"][0]["encoding"]
    (_, right), (bottom, top) = (encoding[axis]["scale"]["domain"] for axis in "xy")
    assert right > 0 and bottom < 0.8 < top


def test_without_vl_convert_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r'pip install "setminus\[cli\]"'):
        drawn(0).plot().save(tmp_path / "frontier.png")


def counts(rates, n=2000):
    """A table of two groups with these rates of the second class, the same for both labels."""
    return np.array([[[n - round(rate * n), round(rate * n)]] * 2 for rate in rates], dtype=float)


def candidates(gaps, fresh=True, searched=None):
    tables = np.array([counts([0.5, 0.5 + gap]) for gap in gaps])
    return Candidates(np.arange(len(gaps)), np.array(gaps if searched is None else searched), tables, fresh=fresh)


ODDS = ("equalized_odds", "max")


def test_the_last_candidate_before_the_first_that_fails():
    found = candidates([0.0, 0.01, 0.02, 0.09, 0.0], searched=[0.0, 0.02, 0.06, 0.09, 0.2])
    assert found.certified(0.1, 0.95, *ODDS) == 2
    # nothing is certified where the smallest gap is too large
    assert candidates([0.09, 0.1]).certified(0.1, 0.95, *ODDS) is None


def test_tests_that_begin_at_several_places_survive_one_failure_and_pay_for_it():
    # the first candidate has a smaller gap in the search and a large one on fresh rows
    found = candidates([0.12, 0.01, 0.02], searched=[0.05, 0.07, 0.09])
    assert found.certified(0.1, 0.95, *ODDS) == 2
    certificate = found.certificate(2, 0.1, 0.95, *ODDS, certified=True)
    single = certify(found.tables[2], tolerance=0.1, confidence=0.95)
    assert certificate.certified and single.bound < certificate.bound <= 0.1
    # what it promises is the confidence that was asked for
    assert certificate.confidence == 0.95 == single.confidence


def test_rows_of_the_search_must_be_clearer_and_the_certificate_says_so():
    tables = [0.0, 0.057]
    assert candidates(tables).certified(0.1, 0.9, *ODDS) == 1
    assert candidates(tables, fresh=False).certified(0.1, 0.9, *ODDS) in (0, 1)
    fresh, used = (candidates([0.02], fresh=fresh).certificate(0, 0.1, 0.95, *ODDS, certified=True) for fresh in (1, 0))
    assert used.bound > fresh.bound
    assert used.method == "approximate, rows of the search" != fresh.method


def test_the_candidates_have_rising_gaps_from_a_percent_to_any():
    # a certificate goes from one to the next, so that one out of order would end it
    gap = np.arange(2001) / 2000
    ladder = gap[Frontier(np.zeros(2001), np.zeros((2001, 2)), gap, gap).ladder()]
    assert (np.diff(ladder) > 0).all()
    assert ladder[0] == pytest.approx(0.01, abs=0.001) and ladder[-1] == 1.0
    # up to a tenth, where most tolerances lie, they are half a percent apart
    assert np.diff(ladder[ladder < 0.1]).max() == pytest.approx(0.005, abs=0.001)


def test_of_several_groupings_the_certificate_is_that_of_the_largest_bound():
    cells = np.concatenate([counts([0.5, 0.5]), counts([0.58])])
    sex, age = np.array([[1, 0, 1], [0, 1, 0]], dtype=bool), np.array([[1, 1, 0], [0, 0, 1]], dtype=bool)
    each = [
        certify(np.array([cells[one].sum(axis=0) for one in members]), tolerance=0.2, confidence=0.95)
        for members in (sex, age)
    ]
    assert each[0].bound < each[1].bound
    for members in ([sex, age], [age, sex]):
        found = Candidates(np.arange(1), np.zeros(1), cells[None], members=members)
        certificate = found.certificate(0, 0.2, 0.95, *ODDS, certified=True)
        assert certificate.bound == each[1].bound and certificate.certified
        # what the tests refused stays refused, whatever its bound
        assert not found.certificate(0, 0.2, 0.95, *ODDS, certified=False).certified


def test_points_that_are_not_useful_are_not_chosen():
    score, gap = np.array([0.9, 0.8, 0.7]), np.array([0.01, 0.02, 0.3])
    useful = np.array([False, True, True])
    frontier = Frontier(np.arange(3.0), np.zeros((3, 2)), score, gap, useful=useful)
    assert frontier.best(0.05) == 1
    assert frontier.pareto().tolist() == [1]
    # a user's floors may be beyond all points
    assert Frontier(np.arange(3.0), np.zeros((3, 2)), score, gap, useful=useful & False).best(0.05) == 0
