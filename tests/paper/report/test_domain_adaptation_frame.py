"""The frame of table 3: paired differences, a choice without target labels, and the slope over shifts."""

import pytest
from scipy.stats import ttest_rel
from setminus_paper.report.domain_adaptation import CHOSEN, difference, frame_of, gains_by_shift, ours, trend

from tests.made_adaptation import made_record, made_records


def values(method, accuracies, first=0, **other):
    return [made_record(method, value, seed=first + seed, **other) for seed, value in enumerate(accuracies)]


def test_methods_are_in_the_papers_order_and_pairs_with_several_seeds_first():
    records = [made_record("vada", 0.5, shift=0.95), *made_records(), made_record("dann", 0.5)]
    frame = frame_of(records[::-1])
    own = frame[frame["shift"] == 0.7]
    assert [*own.method.drop_duplicates()][:4] == ["source_only", "dann", "adda", "vada"]
    assert own.method.iloc[-1] == CHOSEN and frame["shift"].iloc[-1] == 0.95


def test_a_repeated_seed_counts_once_and_the_papers_number_belongs_to_its_shift():
    again = [made_record("vada", 0.1, paper=0.8), made_record("vada", 0.6, paper=0.8)]
    frame = frame_of([*again, made_record("vada", 0.6, paper=0.8, shift=0.5)])
    assert frame["information"].tolist() == [0.6, 0.6]
    assert frame[frame["shift"] == 0.7].paper.tolist() == [0.8] and frame[frame["shift"] == 0.5].paper.isna().all()


def test_differences_are_paired_with_the_interval_of_students_test():
    own, vada = (0.62, 0.71, 0.66, 0.80), (0.60, 0.66, 0.65, 0.74)
    found = difference(frame_of([*values("dann", own), *values("vada", vada)]), "dann", "vada").iloc[0]
    low, high = ttest_rel(own, vada).confidence_interval(0.95)
    assert (found.difference, found.low, found.high) == pytest.approx((0.035, low, high))
    # the negative control: seeds that do not belong together give a wider interval
    apart = difference(frame_of([*values("dann", own), *values("vada", vada[::-1])]), "dann", "vada").iloc[0]
    assert apart.high - apart.low > found.high - found.low


def test_the_estimate_is_chosen_for_all_seeds_by_information_and_not_by_accuracy():
    measured = {"vada_orthogonal_em": ((0.9, 1.0), (0.9, 1.5)), "vada_orthogonal_bbse": ((0.5, 2.0), (0.6, 1.0))}
    records = [
        made_record(method, accuracy, seed=seed, information=information)
        for method, seeds in measured.items()
        for seed, (accuracy, information) in enumerate(seeds)
    ]
    # EM is more accurate on both seeds: BBSE has more information in the mean
    frame = frame_of(records)
    chosen = frame[frame.method == CHOSEN]
    assert chosen["information"].tolist() == [0.5, 0.6] and {*chosen.picked} == {"BBSE"} and ours(frame) == CHOSEN
    # a seed that one estimate lacks is left out; one estimate alone is no choice
    fewer = frame_of(records[:3])
    assert fewer[fewer.method == CHOSEN]["seed"].tolist() == [0]
    alone = frame_of(records[:2])
    assert CHOSEN not in {*alone.method} and ours(alone) == "vada_orthogonal_em"


def curve(gains, method="vada_orthogonal_em"):
    return [
        record
        for shift, gain in gains.items()
        for seed in range(3)
        for record in (
            made_record("vada", 0.6 + 0.01 * (seed == 1), pair="mnist-usps", seed=seed, shift=shift),
            made_record(method, 0.6 + gain, pair="mnist-usps", seed=seed, shift=shift),
        )
    ]


def test_gains_and_their_slope_by_the_shift():
    frame = frame_of(curve({0.9: 0.2, 0.5: 0.0, 0.7: 0.1}))
    (by_method,) = gains_by_shift(frame).values()
    assert by_method["vada_orthogonal_em"].index.tolist() == [0.5, 0.7, 0.9]
    assert trend(frame, "mnist-usps", "vada_orthogonal_em") == pytest.approx((0.05, 0.05, 0.05))
    falling = frame_of(curve({0.5: 0.2, 0.7: 0.1, 0.9: 0.0}))
    assert trend(falling, "mnist-usps", "vada_orthogonal_em")[0] == pytest.approx(-0.05)
    assert gains_by_shift(frame_of(curve({0.7: 0.1}))) == {}
