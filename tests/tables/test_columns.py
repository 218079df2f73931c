import datetime
import decimal

import pyarrow as pa
import pytest

from setminus.tables.columns import describe
from setminus.tables.reading import open_table

N = 60


def one(values, kind=None):
    (summary,) = describe(pa.table({"c": pa.array(values, kind)}))
    return summary


@pytest.mark.parametrize(
    ("values", "kind", "distinct"),
    [
        ([1.5, 2.5, None, float("nan")] * 15, "number", 2),
        ([1, 2, 2] * 20, "number", 2),
        (list(range(5, N + 5)), "identifier", N),
        (list(range(0, 2 * N, 2)), "number", N),
        (list(range(10)), "number", 10),
        ([decimal.Decimal("1.5"), decimal.Decimal("2.5")] * 30, "number", 2),
        (["m", "f"] * 30, "category", 2),
        (["Yes", "no", None] * 20, "yes/no", 2),
        (["t", "f"] * 30, "yes/no", 2),
        (["f", "n"] * 30, "category", 2),
        ([0, 1] * 30, "yes/no", 2),
        ([True, False] * 30, "yes/no", 2),
        ([True, None] * 30, "category", 1),
        ([f"name {i}" for i in range(N)], "identifier", N),
        ([f"level {i % 25}" for i in range(N)], "category", 25),
        ([f"level {i % 10}" for i in range(11)], "category", 10),
        ([f"level {i % 201}" for i in range(1000)], "identifier", 201),
        (["same"] * N, "constant", 1),
        (["same", None] * 30, "category", 1),
        ([None] * N, "constant", 0),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 30, "date", 2),
        ([datetime.datetime(2020, 1, 1, 10), None] * 30, "date", 1),
        ([datetime.timedelta(hours=1), None, datetime.timedelta(hours=3)] * 20, "number", 2),
        ([[1], [2]] * 30, "other", 0),
        ([{"a": 1}] * 30, "other", 0),
        ([b"raw"] * 30, "other", 0),
    ],
)
def test_kinds(values, kind, distinct):
    found = one(values)
    assert (found.kind, found.distinct) == (kind, distinct)
    assert found.kept == (kind in ("number", "category", "yes/no", "date"))
    assert found.use.startswith("left out") is not found.kept


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text(kind):
    assert one(["m", "f"] * 30, kind).kind == "category"
    assert (
        describe(pa.table({"c": pa.array(["m", "f"] * 30, kind).cast(pa.string()).dictionary_encode()}))[0].distinct
        == 2
    )


def test_small_floats():
    assert one([1.5, 2.5, float("nan")] * 20, pa.float32()).missing == pytest.approx(1 / 3)
    assert describe(pa.table({"c": pa.array([1.5, 2.5] * 30, pa.float64()).cast(pa.float16())}))[0].kind == "number"


def test_much_missing_is_kept_with_a_warning():
    much, some = one(["a", "b", None, None] * 15), one(["a", "b", "c", "d", None] * 12)
    assert much.kept
    assert much.warning == "50% of its values are missing"
    assert much.use == "one of 2 levels, missing is one more"
    assert some.warning is None
    assert one([1.5, 2.5, None] * 20).use == "as a number; missing is told apart"


def test_hostile_names(tmp_path):
    names = ['a "b"', "c, d", "<b>x</b>", "e\nf"]
    table = pa.table({name: [1.5, 2.5] for name in names})
    assert [summary.name for summary in describe(table)] == names


def test_missing_tokens_of_a_csv_are_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age, job\n39, ?\nNA, clerk\n28, cook\n")
    age, job = describe(open_table(path).read())
    assert (age.kind, age.missing) == ("number", pytest.approx(1 / 3))
    assert (job.name, job.kind, job.distinct, job.missing) == ("job", "category", 2, pytest.approx(1 / 3))


@pytest.mark.parametrize(("values", "share"), [([None], 1.0), ([1.5], 0.0), ([None, 1.5], 0.5), ([], 0.0)])
def test_the_share_of_missing_values_of_few_rows(values, share):
    assert one(values, pa.float64()).missing == share
