"""A gap over several groupings is the largest of the gaps by each of them, computed one by one."""

import numpy as np
import pandas as pd
import pytest

from setminus import demographic_parity_gap, equalized_odds_gap
from setminus.core.gaps import count_table, demographic_parity_from_table, equalized_odds_from_table
from setminus.errors import UserError
from setminus.estimators.groupings import Groupings, needed_labels


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 2000), "age": rng.integers(20, 80, 2000)})
    y = rng.integers(0, 2, 2000)
    # women over 62 are treated differently: sex and age alone hardly show it
    odd = (frame["sex"] == "f") & (frame["age"] >= 62)
    return frame, y, np.where(rng.random(2000) < 0.3 + 0.5 * odd, 1, y)


def by_hand(metric, groups, y, decisions):
    inside = groups.notna().to_numpy() if groups.ndim == 1 else groups.notna().all(axis=1).to_numpy()
    return metric(y[inside], decisions[inside], sensitive_features=groups[inside].to_numpy())


@pytest.mark.parametrize("over", ["each", "crossed", "both"])
@pytest.mark.parametrize("missing", [0, 300])
def test_the_gap_is_the_largest_over_the_groupings(people, over, missing):
    frame, y, decisions = people
    frame = frame.assign(sex=frame["sex"].astype(object).where(np.arange(2000) >= missing, None))
    old = pd.cut(frame["age"], [0, 39, 61, 200], labels=["a", "b", "c"]).astype(str)
    known = Groupings(over, bins={"age": [40, 62]})
    cells = known.learn(frame, y)
    table = count_table(cells, y, decisions, (known.n_cells, 2, 2))
    assert table.sum() == 2000, "rows in no group are counted, and compared with none"
    for metric, from_table in (
        (equalized_odds_gap, equalized_odds_from_table),
        (demographic_parity_gap, demographic_parity_from_table),
    ):
        each = [by_hand(metric, groups, y, decisions) for groups in (frame["sex"], old)]
        crossed = by_hand(metric, pd.DataFrame({"sex": frame["sex"], "old": old}).astype(object), y, decisions)
        expected = {"each": max(each), "crossed": crossed, "both": max(*each, crossed)}
        found = known.gap(from_table)(np.stack([table, table * 2]))
        np.testing.assert_allclose(found, [expected[over]] * 2, atol=1e-12)
        assert crossed > max(each) + 0.05, "otherwise the three could not be told apart"


def test_each_grouping_is_told_apart(people):
    frame, y, _ = people
    known = Groupings("both", bins={"age": [40]})
    known.learn(frame, y)
    assert known.titles == ["sex", "age", "sex x age"]
    assert known.names[:4] == ["f", "m", "age below 40", "age 40 and above"] and "f, age below 40" in known.names
    assert known.grouping.tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    assert known.members.sum(axis=1).tolist() == [2, 2, 2, 2, 1, 1, 1, 1]


def test_each_row_is_named_in_each_grouping():
    frame = pd.DataFrame({"sex": ["f", "m"] * 16, "old": ["no", "no", "yes", "yes"] * 8})
    known = Groupings("both")
    known.learn(frame, np.repeat([0, 1], 16))
    seen = known.named_each(frame[:2].assign(sex=["m", None]))
    assert [(title, names.tolist()) for title, names in seen] == [
        ("sex", ["m", None]),
        ("old", ["old no", "old no"]),
        ("sex x old", ["m, old no", None]),
    ]


def test_small_crossings_stop_nothing_where_each_column_is_compared():
    frame = pd.DataFrame({"sex": ["f"] * 30 + ["m"] * 31, "race": ["a"] * 29 + ["b"] + ["b"] * 30 + ["a"]})
    y = np.arange(61) % 2
    known = Groupings("each", least=10, small="raise")
    known.learn(frame, y)
    assert known.names == ["f", "m", "a", "b"]
    with pytest.raises(ValueError, match=r"too few rows: 'f, b' \(1\), 'm, a' \(1\)"):
        Groupings("crossed", least=10, small="raise").learn(frame, y)


def test_a_principal_is_given_the_crossed_groups_by_name():
    frame = pd.DataFrame({"sex": ["f", "m", None] * 20, "old": [0, 1, 1] * 20})
    known = Groupings("crossed", least=2)
    known.learn(frame, np.arange(60) % 2)
    assert known.named(frame)[:3].tolist() == ["f, old 0", "m, old 1", None]


def test_which_labels_are_compared():
    assert needed_labels("equalized_odds", 3) == [0, 1, 2] == needed_labels("equal_opportunity", 3)
    assert needed_labels("equal_opportunity", 2) == [1] and needed_labels("equal_opportunity", 2, favorable=0) == [0]
    assert needed_labels("demographic_parity", 3) == []


def test_one_grouping_of_all_rows_keeps_the_gap_as_it_is(people):
    frame, y, _ = people
    known = Groupings("crossed")
    known.learn(frame["sex"], y)
    assert known.gap(equalized_odds_from_table) is equalized_odds_from_table


@pytest.mark.parametrize("small", ["raise", "drop"])
def test_each_column_treats_its_small_groups_as_asked(small):
    rare = np.array(["usual"] * 190 + ["other"] * 98 + ["rare"] * 2)
    frame = pd.DataFrame({"rare": rare, "even": np.arange(290) % 2})
    known = Groupings("each", least=5, small=small)
    y = np.arange(290) // 2 % 2
    if small == "raise":
        with pytest.raises(UserError, match="rare"):
            known.learn(frame, y, needed=[0, 1])
    else:
        known.learn(frame, y, needed=[0, 1])
        assert not any("rare" in name.split() for name in known.groupings[0].names)


@pytest.mark.parametrize("over", ["crossed", "each", "both"])
def test_new_rows_are_in_the_cells_of_the_rows_that_were_learned(over):
    rng = np.random.default_rng(0)
    people = pd.DataFrame({
        "sex": rng.choice(["f", "m", None], 500, p=[0.5, 0.4, 0.1]),
        "place": rng.choice(["north", "south", "rare"], 500, p=[0.5, 0.49, 0.01]),
        "age": rng.integers(20, 60, 500),
    })  # fmt: skip
    known = Groupings(over, least=20, small="merge", bins={"age": [40]})
    cells = known.learn(people, np.zeros(500, dtype=np.intp), needed=[])
    assert known.n_cells > 4
    assert (known.cells(people) == cells).all()
    assert (known.cells(people[::-1]) == cells[::-1]).all()
    new = people.assign(place=["west", *people["place"][1:]])
    assert known.cells(new).tolist() == [-1, *cells[1:].tolist()]
