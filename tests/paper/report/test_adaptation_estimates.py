"""How far an estimate is from the truth is taken at the evaluation that counts, and stands beside what VADA assumes."""

import numpy as np
import pytest
from setminus_paper.report.adaptation_estimates import distance_table, distances_of
from setminus_paper.report.adaptation_rows import pairs_of

from tests.made_adaptation import STEPS, made_record


def test_distances_are_those_at_the_evaluation_that_counts():
    records = [made_record(method, 0.5, seed=seed) for method in ("vada", "vada_orthogonal_em") for seed in (0, 1)]
    (found,) = distances_of(pairs_of(records))
    assert found.name == "svhn-mnist, 70/30"
    assert found.source == pytest.approx(0.4) and found.equal == pytest.approx(0.2)
    # the made estimates go from the source's frequencies nine tenths of the way to the target's, step by step
    assert found.estimates == {"EM": pytest.approx(0.4 * np.linspace(1, 0.1, len(STEPS))[-2], abs=1e-3)}


def test_a_seed_whose_estimate_is_further_away_counts_as_much():
    near, far = (made_record("vada_orthogonal_bbse", 0.5, seed=seed) for seed in (0, 1))
    far["metrics"]["step"] = STEPS[0]
    (alone,), (both,) = (distances_of(pairs_of(some)) for some in ([near], [near, far]))
    assert both.estimates["BBSE"] == pytest.approx((alone.estimates["BBSE"] + 0.4) / 2)


def test_the_table_has_a_column_for_every_estimate_of_any_pair_and_no_pair_without():
    records = [
        made_record("vada_orthogonal_em", 0.5),
        made_record("vada_orthogonal_shrunk", 0.5, pair="mnist-usps", shift=0.95),
        made_record("vada", 0.5, pair="syn_signs-gtsrb"),
    ]
    heads, rows = distance_table(pairs_of(records))
    assert heads == ["the source's", "equal", "EM", "shrunk pseudo-labels"]
    assert [name for name, _ in rows] == ["svhn-mnist, 70/30", "mnist-usps, 95/5"]
    assert [cells[:2] for _, cells in rows] == [["40", "20"], ["90", "45"]]
    assert [[cell != "" for cell in cells[2:]] for _, cells in rows] == [[True, False], [False, True]]
    assert distance_table([]) == (["the source's", "equal"], [])
