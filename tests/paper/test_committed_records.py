"""Every committed record of a table is found again by a plan, and the records meet the bars that were set."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from setminus_paper.report.domain_adaptation import (
    CHOSEN,
    PAPERS,
    difference,
    frame_of,
    gains_by_shift,
    trend,
)
from setminus_paper.report.fairness_tables import rows_of
from setminus_paper.report.style_transfer import rows_of as transfer_rows
from setminus_paper.reproduce import plan_runs
from setminus_paper.tables import by_scale

from setminus.records import read_records

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
# the benchmarks are run from the project's root, not installed
sys.path.insert(0, str(ROOT))
OPTIONS = {"table3": {"shifts": (0.5, 0.7, 0.85, 0.95)}}


def key(name, config, seed):
    return json.dumps([name, config, seed], sort_keys=True)


def planned(name):
    scales, options = ("quick", "large", "paper") if name == "table3" else ("quick", "paper"), OPTIONS.get(name, {})
    runs = [run for scale in scales for run in plan_runs(name, scale=scale, seeds=10, **options)]
    if name in ("table4", "table5"):
        from benchmarks import table_peers

        runs += table_peers.plan(name, tuple(range(10)))
    return {key(run.name, run.config, seed) for run in runs for seed in run.seeds}


@pytest.mark.parametrize("name", [*(f"table{number}" for number in range(1, 7)), "table5_split", "principals"])
def test_each_record_is_planned(name):
    recorded = {key(one["name"], one["config"], one["seed"]) for one in read_records(RESULTS / name / "records.jsonl")}
    assert recorded <= planned(name)


def records_of(name):
    return read_records(RESULTS / name / "records.jsonl")


def test_the_bars_on_table_4_are_met_by_the_records():
    rows = {rule: rows_of(records_of("table4"), rule) for rule in ("validation", "test_oracle")}
    assert (rows["validation"].seeds >= 10).all()

    def near(method, rule, expected, within):
        found = rows[rule].loc[method, ["accuracy", "dp_gap", "eo_gap"]]
        return all(abs(a - b) <= c for a, b, c in zip(found, expected, within, strict=True))

    assert near("vanilla", "validation", (0.845, 0.19, 0.20), (0.007, 0.03, 0.03))
    assert near("orthogonal_uniform", "test_oracle", (0.816, 0.12, 0.12), (0.012, 0.03, 0.03))
    assert not near("orthogonal", "test_oracle", (0.816, 0.12, 0.12), (0.012, 0.03, 0.03))

    def fair(method, accuracy):
        row = rows["validation"].loc[method]
        return row.accuracy >= accuracy and row.eo_gap <= 0.075

    assert fair("tuned_folds_proxy", 0.838)
    assert fair("boosting_tuned_proxy", 0.868)
    assert not fair("vanilla", 0.838)


def test_the_bars_on_table_1_are_met_by_the_records():
    rows = transfer_rows(records_of("table1"))
    assert len(rows) == 6 and (rows.seeds >= 3).all()

    def changes_and_keeps(method, min_z1, min_z2):
        return rows.z1[method] >= min_z1 and rows.z2[method] >= min_z2

    assert changes_and_keeps("orthogonal_oracle", 0.92, 0.98)
    assert all(changes_and_keeps(f"orthogonal_{one}", 0.85, 0.85) for one in ("mldg", "trm", "fish"))
    assert not changes_and_keeps("vanilla", 0.85, 0.85)
    assert rows.z2["vanilla"] <= rows.z2["orthogonal_oracle"] - 0.25
    # the oracles agree with the pixels
    for score in ("z1", "z2"):
        assert (rows[score] - rows[f"{score}_measured"]).abs().max() < 0.03


def test_the_bars_on_table_2_are_met_by_the_records():
    rows = transfer_rows(records_of("table2"))
    plain, orthogonal = rows.loc["vanilla"], rows.loc["orthogonal_oracle"]
    assert min(plain.steps) >= 2_000 and plain.steps == orthogonal.steps
    assert orthogonal.z2 > plain.z2
    assert abs(orthogonal.z1 - plain.z1) <= 0.10
    assert rows.fid.notna().all()


def quick():
    return by_scale(records_of("table3"))["quick"]


@pytest.fixture(scope="module")
def table3():
    return frame_of(quick())


def test_table_3_is_recorded_whole():
    from setminus_paper.adaptation.table3 import CURVE_METHODS, LARGE_ONLY, METHODS, plan

    usps, rivals = ("mnist-usps",), [name for name in METHODS if name not in (*CURVE_METHODS, *LARGE_ONLY)]
    shifts = (0.5, 0.7, 0.85, 0.95)
    runs = [
        *(run for run in plan("quick", (0, 1, 2)) if run.config["pair"] not in usps),
        *plan("quick", tuple(range(6)), rivals, usps),
        *plan("quick", tuple(range(7)), ("source_only",), usps, shifts),
        *plan("quick", tuple(range(10)), [name for name in CURVE_METHODS if name != "source_only"], usps, shifts),
    ]
    recorded = sorted(key(one["name"], one["config"], one["seed"]) for one in quick())
    assert recorded == sorted(key(run.name, run.config, seed) for run in runs for seed in run.seeds)


def test_two_runs_of_any_pair_and_method_of_table_3_took_less_than_ten_minutes():
    seconds = {}
    for one in quick():
        seconds.setdefault(json.dumps(one["config"], sort_keys=True), {})[one["seed"]] = one["seconds"]
    assert all(sum(by_seed[seed] for seed in sorted(by_seed)[:2]) < 600 for by_seed in seconds.values())


@pytest.mark.parametrize(("rival", "at_least"), [("vada", 3), ("source_only", 4)])
def test_table_3_is_above_its_rivals_on_the_pairs_with_several_seeds(table3, rival, at_least):
    gains = difference(table3, CHOSEN, rival).xs(0.7, level="shift")
    several = gains[gains.seeds > 1]
    assert len(several) == 4
    assert (several.difference > 0).sum() >= at_least


def test_without_a_shift_table_3_gains_nothing_beyond_the_noise_and_with_any_it_does(table3):
    gains = gains_by_shift(table3)["mnist-usps"][CHOSEN]
    assert gains.index.tolist() == [0.5, 0.7, 0.85, 0.95]
    assert gains.low.iloc[0] <= 0 <= gains.high.iloc[0] and (gains.low.iloc[1:] > 0).all()
    none, weak, strong, strongest = gains.difference
    assert none < weak < min(strong, strongest)


def test_the_gain_of_table_3_grows_with_the_shift_beyond_the_noise(table3):
    """By a line through all four shifts for each seed.

    This is the third look, after three seeds and six with 95 % each: with 97.5 % the chance that any of the three finds
    a growth that is not there is about 5 %.
    """
    assert trend(table3, "mnist-usps", CHOSEN, level=0.975)[1] > 0
    # the negative control: with the paper's own estimate it does not grow
    assert trend(table3, "mnist-usps", PAPERS, level=0.975)[1] < 0


@pytest.mark.xfail(reason="+0.3, +1.3, +5.2, +4.9 points on ten seeds: level from 85/15 on", strict=True)
def test_the_gain_of_table_3_grows_with_each_step_of_the_shift(table3):
    assert gains_by_shift(table3)["mnist-usps"][CHOSEN].difference.is_monotonic_increasing
