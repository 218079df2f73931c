"""The page of the peers, from records made by hand and from the committed ones."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import peers_page
from benchmarks.peers import key
from benchmarks.peers_page import OURS, compare, comparison_rows, points_of
from benchmarks.resuming import existing_keys
from setminus.records import append_record, read_records
from tests.benchmarks.test_adapters import made

ROOT = Path(__file__).parents[2]


def record(name, seed, accuracy, gap, tolerance=None, needs_attribute=False, auc=0.9):
    metrics = {
        "accuracy": accuracy,
        "equalized_odds_sum": gap,
        "equalized_odds_max": gap / 2,
        "demographic_parity": 0.1,
        "auc": auc,
        "log_loss": None,
        "strength": 0.3,
    }
    config = {"tolerance": tolerance, "needs_attribute": needs_attribute, "deterministic": True}
    return {"name": name, "config": config, "seed": seed, "versions": {}, "metrics": metrics, "seconds": 1.0}


def ours(seed):
    noise = 0.0001 * seed
    for tolerance, accuracy, gap in ((0.02, 0.86, 0.02), (0.05, 0.87, 0.06)):
        yield record(OURS[False], seed, accuracy + noise, gap, tolerance)
        yield record(OURS[True], seed, accuracy + noise, gap, tolerance, needs_attribute=True)
    yield record("base", seed, 0.871 + noise, 0.14)


def with_peer(accuracy, gap, name="Fairlearn ExponentiatedGradient"):
    return [r for s in range(5) for r in (*ours(s), record(name, s, accuracy + 0.0001 * (s % 2), gap, 0.01, auc=0.8))]


@pytest.mark.parametrize(("accuracy", "ahead"), [(0.850, 0.0152), (0.865, 0.0002), (0.880, -0.0148)])
def test_the_comparison_is_read_off_the_line_between_our_points(accuracy, ahead):
    points = points_of(with_peer(accuracy, 0.04))
    found = compare(points["Fairlearn ExponentiatedGradient"][0], points)
    # ours at 0.04 is half way between 0.86 and 0.87
    assert found.accuracy == pytest.approx(ahead - 0.00004, abs=1e-9)
    assert found.smallest_gap == pytest.approx(0.02)


def test_a_point_of_ours_that_another_beats_does_not_bend_the_line():
    plain = with_peer(0.865, 0.04)
    beaten = [record(OURS[False], s, 0.80, 0.03, 0.03) for s in range(5)]
    first, second = (
        compare(points_of(r)["Fairlearn ExponentiatedGradient"][0], points_of(r)) for r in (plain, plain + beaten)
    )
    assert first.accuracy == pytest.approx(second.accuracy)


@pytest.mark.parametrize(
    ("accuracy", "gap", "words"),
    [
        (0.85, 0.04, "we win"),
        (0.88, 0.04, "we lose"),
        (0.8652, 0.04, "level"),
        (0.85, 0.01, "beyond our reach (0.020)"),
    ],
)
def test_the_page_shows_who_is_ahead(accuracy, gap, words):
    ((name, _, asked, at, _, outcome, auc, _),) = comparison_rows(points_of(with_peer(accuracy, gap)))
    assert (name, asked, at) == ("Fairlearn ExponentiatedGradient", "0.01", f"{gap:.3f}")
    assert outcome == words and auc == "0.800"


def test_a_method_that_lacks_a_seed_is_left_out():
    records = with_peer(0.865, 0.04)
    assert "Fairlearn ExponentiatedGradient" in points_of(records)
    records = [r for r in records if (r["name"], r["seed"]) != ("Fairlearn ExponentiatedGradient", 3)]
    assert "Fairlearn ExponentiatedGradient" not in points_of(records)


def test_the_page_and_the_picture_are_made_from_records_alone(tmp_path):
    pytest.importorskip("vl_convert")
    for r in with_peer(0.865, 0.04):
        append_record(tmp_path / "peers" / "records.jsonl", r)
    for r in made(0.7, 0.4):
        append_record(tmp_path / "adapters" / "records.jsonl", r)
    page, picture = peers_page.build(tmp_path, tmp_path / "docs")
    assert "by 5 seeds" in page.read_text(encoding="utf-8")
    assert 5_000 < picture.stat().st_size < 250_000


def test_again_removes_only_what_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    for r in with_peer(0.865, 0.04):
        append_record(path, r)
    everything = existing_keys(path, key)
    kept = existing_keys(path, key, again="tuned")
    assert {name for _, name, _ in everything - kept} == set(OURS.values())
    assert len(read_records(path)) == len(kept)


def test_error_counts_the_noise_of_the_gaps():
    rng = np.random.default_rng(0)
    calm, noisy = [], []
    for seed in range(5):
        calm += [*ours(seed), record("peer", seed, 0.865, 0.04)]
        noisy += [*ours(seed), record("peer", seed, 0.865, 0.04 + 0.02 * rng.normal())]
    error = [compare(points_of(r)["peer"][0], points_of(r)).error for r in (calm, noisy)]
    assert error[1] > 3 * error[0]


def test_the_committed_page_is_what_the_records_say():
    found, adapted = (read_records(ROOT / "results" / name / "records.jsonl") for name in ("peers", "adapters"))
    assert (ROOT / "docs" / "peers.md").read_text(encoding="utf-8") == peers_page.write(found, adapted)
    assert peers_page.readme_table(found) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_bar_on_adult_is_met_by_the_records():
    found = points_of(read_records(ROOT / "results" / "peers" / "records.jsonl"))
    ours = next(point for point in found[OURS[False]] if point.tolerance == 0.05)
    assert len(ours.values) >= 5
    assert ours.accuracy >= 0.868
    assert ours.gap <= 0.075 < found["base"][0].gap
    assert not ours.needs_attribute
