"""The comparison's page, from records made by hand."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from setminus_paper.report.adaptation_rows import PAPER_SHIFT, PAPERS, difference, pairs_of
from setminus_paper.report.adaptation_standing import Gain, gains_by_shift, trend
from setminus_paper.report.fairness_rows import rows_of
from setminus_paper.report.style_transfer_rows import rows_of as transfer_rows

from benchmarks import tables
from benchmarks.peers import key
from benchmarks.points import OURS, lead, points_of
from benchmarks.resuming import existing_keys
from setminus.records import append_record, read_records

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
def test_lead_is_read_off_the_line_between_our_points(accuracy, ahead):
    points = points_of(with_peer(accuracy, 0.04))
    found = lead(points["Fairlearn ExponentiatedGradient"][0], points)
    # ours at 0.04 is half way between 0.86 and 0.87
    assert found.accuracy == pytest.approx(ahead - 0.00004, abs=1e-9)
    assert found.smallest_gap == pytest.approx(0.02)


def test_a_point_of_ours_that_another_beats_does_not_bend_the_line():
    plain = with_peer(0.865, 0.04)
    beaten = [record(OURS[False], s, 0.80, 0.03, 0.03) for s in range(5)]
    first, second = (
        lead(points_of(r)["Fairlearn ExponentiatedGradient"][0], points_of(r)) for r in (plain, plain + beaten)
    )
    assert first.accuracy == pytest.approx(second.accuracy)


@pytest.mark.parametrize(
    ("accuracy", "gap", "words"),
    [(0.85, 0.04, "we win"), (0.88, 0.04, "we lose"), (0.8652, 0.04, "level"), (0.85, 0.01, "beyond our reach")],
)
def test_the_page_says_who_is_ahead(accuracy, gap, words):
    records = with_peer(accuracy, gap)
    page = tables.write(records, points_of(records))
    line = next(line for line in page.splitlines() if line.startswith("- **Fairlearn ExponentiatedGradient**"))
    found = {word for word in ("we win", "we lose", "level", "beyond our reach") if word in line}
    assert found == {words}
    assert "AUC of its probabilities 0.800" in line


def test_a_method_that_lacks_a_seed_is_left_out():
    records = with_peer(0.865, 0.04)
    assert "Fairlearn ExponentiatedGradient" in points_of(records)
    records = [r for r in records if (r["name"], r["seed"]) != ("Fairlearn ExponentiatedGradient", 3)]
    assert "Fairlearn ExponentiatedGradient" not in points_of(records)


def test_the_page_and_the_picture_are_made_from_records_alone(tmp_path):
    for r in with_peer(0.865, 0.04):
        append_record(tmp_path / "records.jsonl", r)
    tables.run(tmp_path / "records.jsonl", tmp_path / "docs")
    assert "by 5 seeds" in (tmp_path / "docs" / "peers.md").read_text(encoding="utf-8")
    assert 5_000 < (tmp_path / "docs" / "peers.png").stat().st_size < 150_000


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
    error = [lead(points_of(r)["peer"][0], points_of(r)).error for r in (calm, noisy)]
    assert error[1] > 3 * error[0]


def test_the_committed_tables_are_what_the_records_say():
    """Whoever changes a number by hand, or forgets to make the tables again, is told."""
    found, adapted = (read_records(ROOT / "results" / name / "records.jsonl") for name in ("peers", "adapters"))
    points = points_of(found)
    assert (ROOT / "docs" / "peers.md").read_text() == tables.write(found, points, adapted)
    readme = (ROOT / "README.md").read_text()
    assert tables.with_numbers(readme, tables.brief(found, points)) == readme
    assert tables.with_numbers(readme, "other\n") != readme


def test_the_bar_on_adult_is_met_by_the_records():
    found = points_of(read_records(ROOT / "results" / "peers" / "records.jsonl"))
    ours = next(point for point in found[OURS[False]] if point.tolerance == 0.05)
    assert len(ours.seconds) >= 5
    assert ours.accuracy >= 0.868
    assert ours.gap <= 0.075 < found["base"][0].gap
    assert not ours.needs_attribute


def test_the_bars_on_table_4_are_met_by_the_records():
    rows = {row.method: row for row in rows_of(read_records(ROOT / "results" / "table4" / "records.jsonl"))}
    assert all(len(row.seeds) >= 10 for row in rows.values())

    def near(method, rule, expected, within):
        found = [rows[method].mean(metric, rule) for metric in ("accuracy", "dp_gap", "eo_gap")]
        return all(abs(a - b) <= c for a, b, c in zip(found, expected, within, strict=True))

    assert near("vanilla", "validation", (0.845, 0.19, 0.20), (0.007, 0.03, 0.03))
    assert near("orthogonal_uniform", "test_oracle", (0.816, 0.12, 0.12), (0.012, 0.03, 0.03))
    assert not near("orthogonal", "test_oracle", (0.816, 0.12, 0.12), (0.012, 0.03, 0.03))

    def fair(method, accuracy):
        return rows[method].mean("accuracy") >= accuracy and rows[method].mean("eo_gap") <= 0.075

    assert fair("tuned_folds_proxy", 0.838)
    assert fair("boosting_tuned_proxy", 0.868)
    assert not fair("vanilla", 0.838)


def scores(name):
    """Of each method of a table of style transfer its accuracies and its row, at the quick scale."""
    path = ROOT / "results" / name / "records.jsonl"
    if not path.exists():
        pytest.skip(f"{name} is not recorded: setminus reproduce {name} --out results measures it, in hours")
    rows = transfer_rows([one for one in read_records(path) if one["config"]["scale"] == "quick"])
    return {row.method: (row.cells["z1"].value, row.cells["z2"].value, row) for row in rows}


def test_the_bars_on_table_1_are_met_by_the_records():
    found = scores("table1")
    assert len(found) == 6
    assert all({one["seed"] for one in row.records} >= {0, 1, 2} for *_, row in found.values())

    def changes_and_keeps(method, at_least_z1, at_least_z2):
        z1, z2, _ = found[method]
        return z1 >= at_least_z1 and z2 >= at_least_z2

    assert changes_and_keeps("orthogonal_oracle", 0.92, 0.98)
    assert all(changes_and_keeps(f"orthogonal_{one}", 0.85, 0.85) for one in ("mldg", "trm", "fish"))
    assert not changes_and_keeps("vanilla", 0.85, 0.85)
    assert found["vanilla"][1] <= found["orthogonal_oracle"][1] - 0.25


def test_what_the_oracles_say_of_table_1_is_what_the_pixels_show():
    for *_, row in scores("table1").values():
        for metric in ("z1", "z2"):
            told, seen = row.cells[metric].value, row.cells[f"{metric}_measured"].value
            assert told == pytest.approx(seen, abs=0.03), row.method


def test_the_bars_on_table_2_are_met_by_the_records():
    found = scores("table2")
    (plain_z1, plain_z2, plain), (z1, z2, orthogonal) = found["vanilla"], found["orthogonal_oracle"]
    assert min(*plain.steps, *orthogonal.steps) >= 2_000
    assert plain.steps == orthogonal.steps
    assert z2 > plain_z2
    assert abs(z1 - plain_z1) <= 0.10, f"Z1 accuracy {z1:.3f} beside {plain_z1:.3f} is not comparable"
    assert all(row.cells["fid"].value is not None for *_, row in found.values())


def adaptation_pairs():
    records = read_records(ROOT / "results" / "table3" / "records.jsonl")
    return pairs_of([one for one in records if one["config"]["scale"] == "quick"])


def test_table_3_is_recorded_whole():
    pytest.importorskip("torch")
    from setminus_paper.adaptation.table3 import CURVE_METHODS, METHODS, plan

    usps, rivals = ("mnist-usps",), [method for method in METHODS if method not in CURVE_METHODS]
    shifts = (0.5, 0.7, 0.85, 0.95)
    runs = [
        *(run for run in plan("quick", (0, 1, 2)) if run.config["pair"] not in usps),
        *plan("quick", tuple(range(6)), rivals, usps),
        *plan("quick", tuple(range(7)), ("source_only",), usps, shifts),
        *plan("quick", tuple(range(10)), [name for name in CURVE_METHODS if name != "source_only"], usps, shifts),
    ]
    recorded = read_records(ROOT / "results" / "table3" / "records.jsonl")
    found = sorted((json.dumps(one["config"], sort_keys=True), one["seed"]) for one in recorded)
    assert found == sorted((json.dumps(run.config, sort_keys=True), seed) for run in runs for seed in run.seeds)


def test_a_single_pair_and_method_of_table_3_was_done_within_ten_minutes():
    """Of three seeds, two processes have two and one, one after the other."""
    pytest.importorskip("torch")
    from setminus_paper.adaptation.table3 import METHODS, PAIRS, plan

    seconds = {
        (json.dumps(one["config"], sort_keys=True), one["seed"]): one["seconds"]
        for one in read_records(ROOT / "results" / "table3" / "records.jsonl")
    }
    for method, pair in product(METHODS, PAIRS):
        try:
            (run,) = plan("quick", (0, 1, 2), (method,), (pair,))
        except ValueError as error:
            assert "nothing to measure" in str(error)
            continue
        config = json.dumps(run.config, sort_keys=True)
        assert sum(seconds[config, seed] for seed in run.seeds[:2]) < 600, (method, pair)


def ahead_of(rival):
    """The pairs with several seeds at the paper's shift, and whether ours is above a rival by the mean over seeds."""
    pairs = [pair for pair in adaptation_pairs() if pair.shift == PAPER_SHIFT and pair.repeated]
    return {pair.name: difference(pair.ours, pair.rows[rival]).mean > 0 for pair in pairs}


def test_table_3_is_above_vada_on_three_of_four_pairs():
    found = ahead_of("vada")
    assert len(found) == 4
    assert sum(found.values()) >= 3


def test_table_3_is_above_no_adaptation_on_every_pair():
    found = ahead_of("source_only")
    assert len(found) == 4
    assert all(found.values())


def gains_of_table_3():
    (gains,) = gains_by_shift(adaptation_pairs()).values()
    assert [gain.shift for gain in gains] == [0.5, 0.7, 0.85, 0.95]
    return gains


def test_without_a_shift_table_3_gains_nothing_beyond_the_noise_and_with_any_it_does():
    none, *shifted = gains_of_table_3()
    assert not none.found.clear
    assert all(gain.found.low > 0 for gain in shifted)
    weak, strong, strongest = (gain.found.mean for gain in shifted)
    assert none.found.mean < weak < min(strong, strongest)


def test_the_gain_of_table_3_grows_with_the_shift_beyond_the_noise():
    """By a line through all four shifts for each seed.

    It is looked at for the third time, after three seeds and six with 95 % each: with 97.5 % the chance that any of the
    three says so of a gain that does not grow is about 5 %.
    """
    assert trend(gains_of_table_3(), confidence=0.975).low > 0
    # the negative control: with the paper's own estimate it does not
    pairs = sorted((pair for pair in adaptation_pairs() if pair.name == "mnist-usps"), key=lambda pair: pair.shift)
    papers = [
        Gain(pair.shift, pair.rows[PAPERS], pair.rows["vada"], difference(pair.rows[PAPERS], pair.rows["vada"]))
        for pair in pairs
    ]
    assert trend(papers, confidence=0.975).low < 0


@pytest.mark.xfail(reason="+0.3, +1.3, +5.2, +4.9 points on ten seeds: level from 85/15 on", strict=True)
def test_the_gain_of_table_3_grows_with_each_step_of_the_shift():
    means = [gain.found.mean for gain in gains_of_table_3()]
    assert means == sorted(means)


def test_table_3_has_every_row_of_its_records_and_says_what_follows():
    from benchmarks import adaptation_tables
    from tests.made_adaptation import made_records

    records = made_records()
    text = adaptation_tables.table(records)
    for record in records:
        if record["config"]["shift"] == 0.7:
            assert record["metrics"]["row"]["label"] in text
            assert f"#### {record['config']['pair']}" in text
    assert "w_x \\ w_1 is" in text
