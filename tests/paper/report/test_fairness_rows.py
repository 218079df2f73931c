"""Rows from records: nothing lost, nothing counted twice, in an order of their own."""

import random
from statistics import mean

import pytest
from setminus_paper.report.fairness_rows import difference, estimate, rows_of

from tests.made_tables import ROWS, made_records


def test_rows_do_not_depend_on_the_order_of_the_records():
    records = made_records()
    shuffled = random.Random(0).sample(records, len(records))
    assert rows_of(records) == rows_of(shuffled)
    labels = [row.label for row in rows_of(records)]
    assert labels[0] == "Vanilla"
    assert labels.index("ReBias (50)") < labels.index("ReBias (100)")
    assert [row.kind for row in rows_of(records)] == ["paper"] * 9 + ["ours"] * 5 + ["peer"] * 5
    assert len(labels) == len(ROWS)


def test_a_row_holds_the_numbers_of_its_records():
    records = made_records(methods=("laftr_0.1", "tuned"))
    laftr, tuned = rows_of(records)
    of_laftr = [r["metrics"] for r in records if r["config"]["method"] == "laftr_0.1"]
    for rule in ("validation", "test_oracle"):
        assert laftr.mean("accuracy", rule) == pytest.approx(mean(one[rule]["accuracy"] for one in of_laftr))
    assert laftr.mean("accuracy", "test_oracle") > laftr.mean("accuracy")
    assert (laftr.family, laftr.ours, laftr.needs_group, laftr.paper["eo_gap"]) == ("LAFTR", False, False, 0.09)
    assert (tuned.family, tuned.ours, tuned.needs_group, tuned.paper) == ("w_x \\ w_1, tuned", True, True, None)


def test_a_seed_that_was_measured_again_counts_once():
    records = made_records(methods=("vanilla",), seeds=3)
    again = {**records[0], "metrics": {**records[0]["metrics"], "validation": records[1]["metrics"]["validation"]}}
    (row,) = rows_of([*records, again])
    assert row.seeds == (0, 1, 2)
    assert row.measured["validation"]["accuracy"][0] == records[1]["metrics"]["validation"]["accuracy"]


def test_the_interval_holds_one_more_run_as_often_as_it_says():
    rng = random.Random(1)
    inside = 0
    for _ in range(2000):
        *values, one_more = (rng.gauss(0.5, 0.05) for _ in range(6))
        found = estimate(values)
        inside += found.low <= one_more <= found.high
    assert inside / 2000 == pytest.approx(0.95, abs=0.015)


def test_no_interval_without_a_second_seed_and_none_below_zero():
    alone = estimate([0.2])
    assert (alone.mean, alone.deviation, alone.low, alone.high) == (0.2, None, None, None)
    assert estimate([0.001, 0.03]).low == 0.0
    assert estimate([0.5, 0.51]).low > 0.0


def test_seeds_are_compared_each_with_itself():
    records = made_records(methods=("vanilla", "tuned"), noise=0.0)
    for record in records:
        # what all methods share in a seed does not tell them apart
        record["metrics"]["validation"] = {
            key: value + 0.1 * record["seed"] for key, value in record["metrics"]["validation"].items()
        }
    vanilla, tuned = rows_of(records)
    found, error = difference(vanilla, tuned, "accuracy", "validation")
    assert found == pytest.approx(0.002)
    assert error < 1e-9
    fewer = rows_of([r for r in records if r["config"]["method"] == "vanilla" or r["seed"] < 2])
    assert difference(*fewer, "accuracy", "validation")[0] == pytest.approx(0.002)
    single = rows_of([r for r in records if r["seed"] == 0])
    assert difference(*single, "accuracy", "validation")[1] == float("inf")
