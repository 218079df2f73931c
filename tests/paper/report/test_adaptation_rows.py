"""Rows of table 3: means and deviations over seeds, differences seed by seed, and a choice without target labels."""

import numpy as np
import pytest
from scipy.stats import ttest_rel
from setminus_paper.report.adaptation_rows import CHOSEN, Row, difference, pairs_of, spread

from tests.made_adaptation import made_record, made_records


def row(*values, first=0):
    return Row("m", "M", None, {first + seed: {"accuracy": value} for seed, value in enumerate(values)})


def test_a_pair_and_shift_has_its_rows_in_the_papers_order_however_they_came():
    records = [*made_records(), made_record("vada", 0.5, shift=0.95), made_record("dann", 0.5)]
    (pair, other) = pairs_of(records[::-1])
    assert [*pair.rows][:4] == ["source_only", "dann", "adda", "vada"] and [*pair.rows][-1] == CHOSEN
    assert (pair.shift, other.shift, [*other.rows]) == (0.7, 0.95, ["vada"])
    assert pair.repeated and not other.repeated


def test_means_and_deviations_are_those_over_seeds_by_either_rule():
    (pair,) = pairs_of([made_record("vada", value, seed=seed, oracle=0.9) for seed, value in enumerate((0.5, 0.7))])
    vada = pair.rows["vada"]
    assert vada.mean() == pytest.approx(0.6) and vada.deviation() == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert vada.mean("test_oracle") == pytest.approx(0.9)
    assert spread(vada) == "60.0 ± 14.1" and spread(row(0.5)) == "50.0"


def test_a_seed_that_was_measured_again_counts_once_and_the_papers_number_is_of_its_own_shift():
    records = [made_record("vada", 0.1, paper=0.8), made_record("vada", 0.6, paper=0.8)]
    (pair,) = pairs_of(records)
    assert pair.rows["vada"].accuracies() == {0: 0.6} and pair.rows["vada"].paper == 0.8
    (other,) = pairs_of([made_record("vada", 0.6, paper=0.8, shift=0.5)])
    assert other.rows["vada"].paper is None


def test_differences_are_paired_with_the_interval_of_students_test():
    ours, vada = (0.62, 0.71, 0.66, 0.80), (0.60, 0.66, 0.65, 0.74)
    found = difference(row(*ours), row(*vada))
    low, high = ttest_rel(ours, vada).confidence_interval(0.95)
    assert (found.mean, found.low, found.high) == pytest.approx((0.035, low, high))
    # the negative control: seeds that do not belong together give a wider one
    apart = difference(row(*ours), row(*vada[::-1]))
    assert apart.high - apart.low > found.high - found.low


def test_only_shared_seeds_are_compared_and_one_has_no_interval():
    found = difference(row(0.5, 0.9), row(0.4, first=1))
    assert found.mean == pytest.approx(0.5) and found.low is None and not found.clear
    assert difference(row(0.5), row(0.4, first=1)) is None


def test_the_estimate_is_chosen_for_all_seeds_by_information_and_not_by_accuracy():
    told = {"vada_orthogonal_em": ((0.9, 1.0), (0.9, 1.5)), "vada_orthogonal_bbse": ((0.5, 2.0), (0.6, 1.0))}
    records = [
        made_record(method, accuracy, seed=seed, information=information)
        for method, seeds in told.items()
        for seed, (accuracy, information) in enumerate(seeds)
    ]
    (pair,) = pairs_of(records)
    # EM is better on both and says more of one: BBSE says more in the mean
    assert pair.rows[CHOSEN].accuracies() == {0: 0.5, 1: 0.6} and pair.rows[CHOSEN].picked == "BBSE"
    assert pair.ours is pair.rows[CHOSEN]
    # a seed that one of them lacks is left out; one estimate alone is no choice
    (fewer,) = pairs_of(records[:3])
    assert fewer.rows[CHOSEN].accuracies() == {0: 0.5}
    (alone,) = pairs_of(records[:2])
    assert CHOSEN not in alone.rows and alone.ours.method == "vada_orthogonal_em"


def test_a_pair_tells_how_many_images_it_has():
    (pair,) = pairs_of(made_records())
    assert pair.images == "800 of the source and 200 held out, 1,000 of the target, 500 scored"
    (bare,) = pairs_of([made_record("vada", 0.5) | {"metrics": {"row": {"label": "VADA", "paper": None}}}])
    assert bare.images == ""
