"""Two methods at the same gap: read off the line between points, paired by split, and never by a constant model."""

import numpy as np
import pytest

from benchmarks.frontiers import compare, comparisons, points_of, pooled
from benchmarks.peers_page import OURS
from tests.benchmarks.peer_records import PEER, record, with_peer


def only(records):
    (found,) = comparisons(points_of(records)["adult"], OURS)
    return found


@pytest.mark.parametrize(("accuracy", "ahead"), [(0.850, 0.0152), (0.865, 0.0002), (0.880, -0.0148)])
def test_the_comparison_is_read_off_the_line_between_our_points(accuracy, ahead):
    found = only(with_peer(accuracy, 0.04))
    # ours at 0.04 is half way between 0.86 and 0.87
    assert found.mean == pytest.approx(ahead - 0.00004, abs=1e-9)
    assert found.smallest_gap == pytest.approx(0.02)


def test_a_point_of_ours_that_another_beats_does_not_bend_the_line():
    plain = with_peer(0.865, 0.04)
    beaten = [record(OURS[False], s, 0.80, 0.03, 0.03) for s in range(5)]
    assert only(plain).mean == pytest.approx(only(plain + beaten).mean)


def test_a_point_of_the_peer_that_another_beats_is_no_easy_win():
    records = with_peer(0.865, 0.04) + [record(PEER, s, 0.80, 0.05, 0.05) for s in range(5)]
    assert only(records).peer.tolerance == 0.01


@pytest.mark.parametrize(
    ("accuracy", "gap", "outcome"),
    [(0.85, 0.04, "above"), (0.88, 0.04, "below"), (0.8652, 0.04, "level"), (0.85, 0.01, "not reached")],
)
def test_who_is_ahead(accuracy, gap, outcome):
    assert only(with_peer(accuracy, gap)).outcome == outcome


def test_a_gap_that_is_smaller_by_chance_counts_as_reached():
    rng = np.random.default_rng(0)
    noisy = [
        {**found, "metrics": {**found["metrics"], "equalized_odds_max": abs(0.018 + 0.01 * rng.normal())}}
        if found["name"] == PEER
        else found
        for found in with_peer(0.85, 0.018)
    ]
    assert only(with_peer(0.85, 0.018)).outcome == "not reached"
    assert only(noisy).outcome == "above"


def test_a_nearly_constant_point_is_no_rival():
    assert not [*comparisons(points_of(with_peer(0.76, 0.001, balanced=0.51))["adult"], OURS)]
    assert only(with_peer(0.76, 0.001, balanced=0.53)).outcome == "not reached"


def test_two_splits_decide_nothing():
    assert only(with_peer(0.80, 0.04, seeds=2)).outcome == "level"
    assert only(with_peer(0.80, 0.04, seeds=3)).outcome == "above"


def test_only_splits_that_both_have_are_compared():
    records = [r for r in with_peer(0.85, 0.04) if (r["name"], r["seed"]) != (PEER, 3)]
    assert [*only(records).difference.index] == [0, 1, 2, 4]


def test_error_counts_the_noise_of_the_gaps():
    rng = np.random.default_rng(0)
    calm = with_peer(0.865, 0.04)
    noisy = [{**r, "metrics": dict(r["metrics"])} for r in calm]
    for found in noisy:
        if found["name"] == PEER:
            found["metrics"]["equalized_odds_max"] += 0.02 * rng.normal()
    assert only(noisy).error > 3 * only(calm).error


def test_pooled_is_the_mean_over_the_gaps_that_are_reached():
    records = with_peer(0.850, 0.04) + [record(PEER, s, 0.869, 0.06, 0.05) for s in range(5)]
    found = [*comparisons(points_of(records)["adult"], OURS)]
    assert len(found) == 2
    assert pooled(found).mean() == pytest.approx((found[0].mean + found[1].mean) / 2)
    far = [
        *found,
        compare(points_of(with_peer(0.5, 0.001))["adult"][PEER][0], points_of(records)["adult"][OURS[False]]),
    ]
    assert not far[-1].reached
    assert pooled(far).mean() == pytest.approx(pooled(found).mean())
