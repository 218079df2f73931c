"""What is said of the tables follows the numbers: turn them, and the words turn."""

import pytest
from setminus_paper.report.fairness_rows import rows_of
from setminus_paper.report.fairness_standing import frontier, near_the_paper, order_of_rows, standing

from tests.made_tables import ROWS, made_records


def of_paper(shift=0.0, noise=1e-4):
    """The paper's rows with the paper's own numbers, or away from them."""
    own = {method: row[7] for method, row in ROWS.items() if row[7]}
    moved = {method: tuple(value + shift for value in numbers) for method, numbers in own.items()}
    return rows_of(made_records(methods=tuple(own), noise=noise, **moved))


def outcomes(**replaced):
    rows = rows_of(made_records(**replaced))
    return {label: (outcome, why) for label, outcome, why in standing(rows, "validation")}


def test_the_papers_own_numbers_are_near_and_others_are_not():
    assert near_the_paper(of_paper(), "validation").startswith("27 of the paper's 27 numbers")
    far = near_the_paper(of_paper(shift=0.03), "validation")
    assert far.startswith("0 of the paper's 27 numbers")
    assert "off by 3.0 points in accuracy, 0.03 in the demographic parity gap and 0.03" in far
    assert (
        near_the_paper(rows_of(made_records(methods=("tuned",))), "validation") == "None of these rows is in the paper."
    )


def test_the_papers_order_is_found_and_a_turned_row_is_named():
    told = dict(order_of_rows(of_paper(), "validation"))
    # of 36 pairs, those that the paper has level have no order
    assert told["accuracy"].startswith("of 33 pairs, 33 stand as in the paper and 0 are too close")
    assert told["accuracy"].endswith("none stands the other way round.")
    own = {method: row[7] for method, row in ROWS.items() if row[7]}
    rows = rows_of(made_records(methods=tuple(own), noise=1e-4, **{**own, "vanilla": (0.80, 0.19, 0.20)}))
    turned = dict(order_of_rows(rows, "validation"))
    assert "Vanilla is below" in turned["accuracy"]
    assert "25 stand as in the paper" in turned["accuracy"]
    assert turned["equalized odds gap"].endswith("none stands the other way round.")


def test_noise_makes_pairs_too_close_to_tell():
    told = dict(order_of_rows(of_paper(noise=0.2), "validation"))
    count = int(told["equalized odds gap"].split(" and ")[1].split()[0])
    assert count > 25


@pytest.mark.parametrize(
    ("rival", "outcome"),
    [((0.820, 0.1, 0.30), "win"), ((0.8412, 0.1, 0.0655), "level"), ((0.860, 0.1, 0.01), "lose")],
)
def test_where_we_lose_is_read_from_the_numbers(rival, outcome):
    found, why = outcomes(leace=rival)["LEACE"]
    assert found == outcome
    assert ("more accurate and fairer than all of ours" in why) == (outcome == "lose")


def test_a_fairer_rival_that_pays_for_it_is_not_called_beaten():
    found, why = outcomes(leace=(0.80, 0.1, 0.005))["LEACE"]
    assert found == "lose"
    assert "none of ours is both as accurate and as fair" in why


def test_only_like_is_compared_with_like():
    found = outcomes(tuned=(0.90, 0.01, 0.001), boosting_tuned_proxy=(0.95, 0.01, 0.001))
    # LEACE does not need the group: the row that does must not beat it, nor the one with other features
    assert "w_x \\ proxy" in found["LEACE"][1]
    assert found["AIF360 EqOdds"] == ("win", found["AIF360 EqOdds"][1])
    assert "w_x \\ w_1, tuned has 90.0 %" in found["AIF360 EqOdds"][1]
    assert not {"Vanilla", "w_x \\ w_1", "gradient boosting"} & found.keys()


def test_those_that_lose_come_first():
    order = [outcome for _, outcome, _ in standing(rows_of(made_records()), "validation")]
    assert order == sorted(order, key=("lose", "level", "win").index)
    assert {"lose", "win"} <= {*order}


def test_no_row_beats_one_of_the_frontier():
    rows = rows_of(made_records())
    best = frontier(rows, "validation")
    for row in rows:
        beaten = any(
            other.mean("accuracy") > row.mean("accuracy") and other.mean("eo_gap") < row.mean("eo_gap")
            for other in rows
        )
        assert beaten == (row not in best)
