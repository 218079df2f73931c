"""Values that a model of the first table can make nothing of are counted, and others are not."""

import pyarrow as pa
import pytest

from setminus.tables.encoding import TableEncoder
from setminus.tables.strangers import strange_shares

OLD = pa.table(
    {
        "age": [20, 30, 40, None],
        "flag": ["yes", "no", "yes", "no"],
        "ward": ["east", "west", None, "east"],
    }
)


def shares(**columns):
    new = pa.table({**{name: OLD.column(name) for name in OLD.column_names}, **columns})
    return strange_shares(OLD, new, TableEncoder().fit(OLD).columns_)


def test_a_table_is_no_stranger_to_itself():
    assert shares() == {"age": 0.0, "flag": 0.0, "ward": 0.0}


@pytest.mark.parametrize(
    ("column", "values", "share"),
    [
        ("age", [25, 35, 55, None], 0.0),
        ("age", [25, 35, 1e30, None], 0.25),
        ("age", [-500, 35, 1e30, None], 0.5),
        ("age", [None, None, None, 30], 0.5),
        ("age", [None] * 4, 0.75),
        ("ward", ["north", "west", "east", None], 0.25),
        ("ward", [None] * 4, 0.75),
    ],
)
def test_new_levels_numbers_far_off_and_more_missing_are_counted(column, values, share):
    kind = pa.string() if column == "ward" else pa.float64()
    assert shares(**{column: pa.array(values, kind)})[column] == pytest.approx(share)
