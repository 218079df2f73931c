"""The opening sentence, for each kind of gap and any number of groups."""

import pytest

from setminus.report.drawn import Drawn
from setminus.report.lead import lead


def audit_of(rates, n_classes=2, gap=0.25):
    rows = [
        {"group": group, "true_positive_rate": {"value": rate}, "selection_rate": {"value": rate / 2}}
        for group, rate in rates.items()
    ]
    return {"classes": [*range(n_classes)], "group_rates": rows, "demographic_parity": {"value": gap}}


def drawn_of(rates):
    return Drawn(tuple(rates), {}, (1,), (0, 1), {"1": "rich"}, "")


TWO = {"f": 0.5, "m": 0.75}


def test_before_and_after_name_the_groups_once():
    said = lead([audit_of(TWO), audit_of({"f": 0.625, "m": 0.625})], "equal_opportunity", drawn_of(TWO))
    assert said == (
        "Of the rows labelled rich, the model used to find 50.0 % in the group f and 75.0 % in the group m. "
        "Now it finds 62.5 % and 62.5 %."
    )


def test_parity_speaks_of_selection():
    said = lead([audit_of(TWO)], "demographic_parity", drawn_of(TWO))
    assert said == "The score selects 25.0 % in the group f and 37.5 % in the group m."


def test_of_many_groups_the_extremes_are_named():
    many = {"a": 0.5, "b": 0.25, "c": 0.75, "d": 0.5}
    said = lead([audit_of(many)], "equalized_odds_max", drawn_of(many))
    assert said.endswith("finds between 25.0 % (group b) and 75.0 % (group c).")


def test_more_than_two_classes_have_no_single_rate():
    audits = [audit_of(TWO, 3, gap=0.5), audit_of(TWO, 3, gap=0.125)]
    said = lead(audits, "demographic_parity", drawn_of(TWO))
    assert said == "Between the 2 groups, the demographic parity gap was 0.500. Now it is 0.125."


@pytest.mark.parametrize("missing", [("f",), ("f", "m")])
def test_an_undefined_rate_is_left_out(missing):
    after = audit_of(TWO)
    for row in after["group_rates"]:
        if row["group"] in missing:
            row["true_positive_rate"]["value"] = None
    said = lead([audit_of(TWO), after], "equal_opportunity", drawn_of(TWO))
    assert said.endswith("Now it finds 75.0 % in the group m." if len(missing) == 1 else "a share that is not defined.")
