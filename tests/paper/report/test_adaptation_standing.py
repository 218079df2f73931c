"""What is said of table 3 follows from its numbers, and changes with them."""

import pytest
from setminus_paper.report.adaptation_rows import pairs_of
from setminus_paper.report.adaptation_standing import (
    gain_tables,
    gains_by_shift,
    growth,
    order_of_rows,
    trend,
    verdicts,
)

from tests.made_adaptation import made_record, made_records


def records_of(pair="svhn-mnist", seeds=3, **accuracies):
    papers = {"source_only": 0.7, "vada": 0.79, "vada_iw": 0.871, "vada_orthogonal_em": 0.88}
    return [
        made_record(method, value + 0.01 * seed, pair=pair, seed=seed, paper=papers.get(method))
        for method, value in accuracies.items()
        for seed in range(seeds)
    ]


def test_an_order_as_in_the_paper_is_counted_and_another_is_told():
    (pair,) = pairs_of(records_of(source_only=0.5, vada=0.7, vada_iw=0.6, vada_orthogonal_em=0.8))
    told, turned = order_of_rows(pair, "information")
    assert told == "5 of 6 comparisons of two rows come out as in the paper"
    (sentence,) = turned
    assert sentence.startswith("On svhn-mnist VADA + IW less VADA is -10.0 (")
    assert "beyond the noise of the seeds; +8.1 in the paper." in sentence
    (pair,) = pairs_of(records_of(source_only=0.5, vada=0.6, vada_iw=0.7, vada_orthogonal_em=0.8))
    assert order_of_rows(pair, "information") == ("6 of 6 comparisons of two rows come out as in the paper", [])


def test_one_seed_and_equal_numbers_are_told_as_such():
    (pair,) = pairs_of(records_of(seeds=1, vada=0.6, vada_iw=0.6))
    _, (sentence,) = order_of_rows(pair, "information")
    assert "VADA + IW less VADA is +0.0 points here, of one seed" in sentence


def test_a_pair_that_the_paper_lacks_has_no_order():
    (pair,) = pairs_of(made_records("mnist-usps"))
    assert order_of_rows(pair, "information") == ("", [])


def test_the_estimates_are_one_row_of_the_paper():
    (pair,) = pairs_of(made_records())
    told, _ = order_of_rows(pair, "information")
    # source-only, ADDA, VADA, IW and the chosen one
    assert told.startswith("10 of 10")


def test_verdicts_count_pairs_and_name_those_that_are_lost():
    won = records_of("a-b", source_only=0.5, vada=0.6, vada_orthogonal_em=0.7)
    lost = records_of("c-d", source_only=0.5, vada=0.6, vada_orthogonal_em=0.55)
    (told,) = verdicts(pairs_of([*won, *lost]), "information")
    assert told == (
        "Of the pairs with several seeds, by the mean over these, w_x \\ w_1 is above VADA on 1 of 2 (on 1 with an "
        "interval above 0), not on c-d (-5.0 (-5.0 to -5.0)), and above Source-Only on 2 of 2 (on 2 with an interval "
        "above 0)."
    )
    single = records_of("e-f", seeds=1, source_only=0.5, vada=0.6, vada_orthogonal_em=0.7)
    told = verdicts(pairs_of([*won, *single]), "information")
    assert len(told) == 2 and told[1] == (
        "Of the pairs with one seed each, w_x \\ w_1 is above VADA on 1 of 1, and above Source-Only on 1 of 1."
    )
    assert verdicts(pairs_of(records_of(vada=0.6)), "information") == []


def test_verdicts_tell_of_the_papers_own_estimate_where_another_is_chosen():
    rows = {"source_only": 0.5, "vada": 0.6, "vada_orthogonal_em": 0.7, "vada_orthogonal_pseudo": 0.55}
    records = records_of("a-b", **rows)
    for record in records:
        record["metrics"]["information"] = 1.0 + (record["config"]["method"] == "vada_orthogonal_em")
    assert verdicts(pairs_of(records), "information")[1:] == [
        "By the paper's own estimate, pseudo-labels, it is above VADA on 0 of 1 (on 0 with an interval above 0), not "
        "on a-b (-5.0 (-5.0 to -5.0)), and above Source-Only on 1 of 1 (on 1 with an interval above 0)."
    ]
    for record in records:
        record["metrics"]["information"] = 1.0 + (record["config"]["method"] == "vada_orthogonal_pseudo")
    assert len(verdicts(pairs_of(records), "information")) == 1


def curve_records(gains, method="vada_orthogonal_em"):
    records = []
    for shift, gain in gains.items():
        for seed in range(3):
            records.append(made_record("vada", 0.6 + 0.01 * (seed == 1), pair="mnist-usps", seed=seed, shift=shift))
            records.append(made_record(method, 0.6 + gain, pair="mnist-usps", seed=seed, shift=shift))
    return records


def curve(gains):
    return gains_by_shift(pairs_of(curve_records(gains)))


def test_a_gain_that_grows_is_told_and_one_that_does_not_too():
    ((name, gains),) = curve({0.95: 0.1, 0.5: 0.0, 0.7: 0.05}).items()
    told = growth(name, gains)
    assert [gain.shift for gain in gains] == [0.5, 0.7, 0.95]
    assert "at 50/50, +4.7 (+3.2 to +6.1) at 70/30" in told
    assert "Without a shift they agree within the noise of the seeds. By the means, the gain grows with each" in told
    ((name, gains),) = curve({0.5: 0.05, 0.7: 0.1, 0.95: 0.02}).items()
    told = growth(name, gains)
    assert "Without a shift they differ beyond the noise of the seeds." in told
    assert "does not grow from 70/30 to 95/5; at 95/5 it is not larger than at 50/50." in told


def test_the_trend_is_that_of_each_seed():
    ((name, gains),) = curve({0.5: 0.0, 0.7: 0.1, 0.9: 0.2}).items()
    found = trend(gains)
    assert (found.mean, found.low, found.high) == pytest.approx((0.05, 0.05, 0.05))
    assert growth(name, gains).endswith("rises by +5.0 (+5.0 to +5.0) points with every 10 points of shift.")
    ((_, falling),) = curve({0.5: 0.2, 0.7: 0.1, 0.9: 0.0}).items()
    assert trend(falling).mean == pytest.approx(-0.05)


def test_each_estimate_has_its_own_curve_beside_the_chosen_one():
    records = [
        *curve_records({0.5: 0.0, 0.7: 0.1, 0.9: 0.2}),
        *curve_records({0.5: 0.02, 0.9: 0.12}, "vada_orthogonal_bbse"),
    ]
    ((name, heads, rows),) = gain_tables(pairs_of(records))
    assert (name, heads) == ("mnist-usps", ["50/50", "70/30", "90/10", "rise with every 10 points"])
    chosen, em, bbse = rows
    assert [label for label, _ in rows] == [
        "VADA + w_x \\ w_1 (chosen estimate)",
        "VADA + w_x \\ w_1 (EM)",
        "VADA + w_x \\ w_1 (BBSE)",
    ]
    assert em[1][1] == "+9.7 (+8.2 to +11.1)" and em[1][-1] == "+5.0 (+5.0 to +5.0)"
    # where both estimates are known one is chosen, and a shift without an estimate is empty
    assert chosen[1][1] == "" == bbse[1][1]
    assert bbse[1][-1] == "+2.5 (+2.5 to +2.5)"


def test_one_shift_is_no_curve():
    assert curve({0.7: 0.1}) == {}
