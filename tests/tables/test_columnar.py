"""Types that pyarrow, polars and pandas write: read, left out or refused, and never the end of a command."""

import datetime
import decimal
import uuid

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from setminus.commands.rows import Roles, read_rows, split_rows
from setminus.tables import columnar
from setminus.tables.columns import describe
from setminus.tables.encoding import TableEncoder
from setminus.tables.errors import TableError
from setminus.tables.reading import open_table

N = 120
WORDS = pa.array((["a", "b", None] * N)[:N])
BASE = {"sex": (["m", "m", "f"] * N)[:N], "income": (["hi", "lo"] * N)[:N], "age": np.arange(N) * 1.5}
MOMENT = datetime.datetime(2020, 1, 1, 12)


def numbers(kind, size=7):
    return pa.array([i % size for i in range(N)], pa.int64()).cast(kind)


ARRAYS = {
    "string_view": (WORDS.cast(pa.string_view()), "category"),
    "large_string": (WORDS.cast(pa.large_string()), "category"),
    "binary_view": (WORDS.cast(pa.binary_view()), "other"),
    "large_binary": (pa.array([b"\xff"] * N, pa.large_binary()), "other"),
    "dictionary": (WORDS.dictionary_encode(), "category"),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(numbers(pa.uint32(), 2), pa.array(["a", "b"], pa.string_view())),
        "category",
    ),
    "run ends": (pc.run_end_encode(numbers(pa.int64())), "number"),
    "run ends of words": (pc.run_end_encode(WORDS), "category"),
    "list of views": (pa.array([["a"]] * N, pa.list_(pa.string_view())), "other"),
    "large list of views": (pa.array([["a"]] * N, pa.large_list(pa.string_view())), "other"),
    "fixed list of views": (pa.array([["a"]] * N, pa.list_(pa.string_view(), 1)), "other"),
    "struct of views": (pa.array([{"x": "a"}] * N, pa.struct([("x", pa.string_view())])), "other"),
    "list": (pa.array([[1]] * N), "other"),
    "map": (pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())), "other"),
    "decimal": (pa.array([decimal.Decimal(i % 7) / 4 for i in range(N)], pa.decimal128(10, 2)), "number"),
    "duration": (numbers(pa.duration("ns")), "number"),
    "zoned": (numbers(pa.timestamp("us", tz="Europe/Paris")), "date"),
    "time": (numbers(pa.time64("ns")), "date"),
    "null": (pa.nulls(N), "constant"),
    "bool": (pa.array([True, False] * (N // 2)), "yes/no"),
    "uint64": (pa.array([2**64 - 1 - i % 3 for i in range(N)], pa.uint64()), "number"),
    "float16": (numbers(pa.float16()), "number"),
    "uuid": (pa.array([uuid.UUID(int=2**128 - 1 - i).bytes for i in range(N)], pa.uuid()), "other"),
    "interval": (pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval()), "other"),
}


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_is_read_and_split(name, ending, tmp_path):
    array, kind = ARRAYS[name]
    table = pa.table({**BASE, "extra": array})
    try:
        if ending == "parquet":
            pq.write_table(table, tmp_path / "t.parquet", 50)
        else:
            pyarrow.feather.write_feather(table, tmp_path / "t.arrow", chunksize=50)
    except pa.ArrowNotImplementedError:
        pytest.skip("pyarrow cannot write it")
    opened = open_table(tmp_path / f"t.{ending}")
    rows = read_rows(opened, Roles("income", ["sex"]))
    assert opened.read().schema == opened.schema
    train, _ = split_rows(rows, 0.25, 0)
    assert {column.name: column.kind for column in describe(train.X)}["extra"] == kind
    encoder = TableEncoder().fit(train.X)
    assert ("extra" in encoder.get_feature_names_out()) is (kind in ("number", "category", "date", "yes/no"))
    assert encoder.transform(opened.part(1)).shape == (50, len(encoder.get_feature_names_out()))
    for role in ("income", "sex"):
        roles = Roles("extra", ["sex"]) if role == "income" else Roles("income", ["extra"])
        try:
            read_rows(opened, roles)
        except TableError as error:
            assert error.advice
        else:
            assert name not in ("list", "map", "large_binary", "uuid")


POLARS = {
    "text": polars.Series(["a", "b"] * (N // 2)),
    "categories": polars.Series(["a", "b"] * (N // 2), dtype=polars.Categorical),
    "enum": polars.Series(["a", "b"] * (N // 2), dtype=polars.Enum(["a", "b"])),
    "bytes": polars.Series([b"a", b"b"] * (N // 2)),
    "decimals": polars.Series([decimal.Decimal(i) for i in range(N)], dtype=polars.Decimal(10, 2)),
    "durations": polars.Series([datetime.timedelta(hours=i) for i in range(N)]),
    "moments": polars.Series([MOMENT + datetime.timedelta(hours=i % 50) for i in range(N)]),
    "zoned": polars.Series([MOMENT] * N).dt.replace_time_zone("Europe/Paris"),
    "lists": polars.Series([["a"]] * N),
    "structs": polars.Series([{"x": "a"}] * N),
    "nothing": polars.Series([None] * N),
}
PANDAS = {
    "text": ["a", "b"] * (N // 2),
    "categories": pandas.Categorical(["a", "b"] * (N // 2)),
    "integers": pandas.array([1, None] * (N // 2), dtype="Int64"),
    "booleans": pandas.array([True, None] * (N // 2), dtype="boolean"),
    "zoned": pandas.date_range("2020", periods=N, tz="Europe/Paris"),
    "durations": pandas.to_timedelta(np.arange(N), unit="s"),
    "periods": pandas.period_range("2020", periods=N, freq="D"),
    "lists": [["a"]] * N,
    "nothing": [None] * N,
}


@pytest.mark.parametrize("ending", ["ipc", "parquet"])
@pytest.mark.parametrize("writer", ["polars", "pandas"])
def test_what_polars_and_pandas_write_by_default(writer, ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    if writer == "polars":
        frame = polars.DataFrame({**BASE, **POLARS})
        frame.write_ipc(path) if ending == "ipc" else frame.write_parquet(path)
    else:
        pandas_frame = pandas.DataFrame({**BASE, **PANDAS})
        pandas_frame.to_feather(path) if ending == "ipc" else pandas_frame.to_parquet(path)
    rows = read_rows(open_table(path), Roles("income", ["sex"]))
    train, test = split_rows(rows, 0.25, 0)
    kinds = {column.name: column.kind for column in describe(rows.X)}
    assert kinds["text"] == kinds["categories"] == "category"
    assert kinds["durations"] == "number"
    assert kinds["lists"] == "other"
    assert kinds["nothing"] == "constant"
    assert TableEncoder().fit(train.X).transform(test.X).shape[0] == len(test)


def test_a_label_of_views_may_be_missing(tmp_path):
    polars.DataFrame({**BASE, "income": (["hi", "lo", None] * N)[:N]}).write_ipc(tmp_path / "t.ipc")
    assert len(read_rows(open_table(tmp_path / "t.ipc"), Roles("income", ["sex"]))) == 2 * N // 3


def test_durations_are_days_whatever_their_unit():
    arrays = [pa.array([1, 36], pa.int64()).cast(pa.int64()) for _ in range(2)]
    hours = {
        unit: pc.multiply(arrays[0], 3600 * 10**power).cast(pa.duration(unit)) for unit, power in (("s", 0), ("ns", 9))
    }
    encoder = TableEncoder(kinds={"x": "number"}).fit(pa.table({"x": hours["s"]}))
    for kind in hours:
        np.testing.assert_allclose(encoder.transform(pa.table({"x": hours[kind]})), [[1 / 24], [1.5]])


def test_integers_of_128_bits_are_refused_by_their_type(tmp_path):
    polars.DataFrame({"a": [1]}, schema={"a": polars.Int128}).write_ipc(tmp_path / "t.ipc")
    with pytest.raises(TableError, match="holds a type that cannot be read") as caught:
        open_table(tmp_path / "t.ipc")
    assert "64 bits" in caught.value.advice


def test_duplicate_names_and_no_columns(tmp_path):
    twice = pa.table([[1], [2]], names=["a", "a"])
    pyarrow.feather.write_feather(twice, tmp_path / "t.arrow")
    with pytest.raises(TableError, match="2 columns called 'a'"):
        open_table(tmp_path / "t.arrow")
    with pa.OSFile(str(tmp_path / "none.arrow"), "wb") as file, pa.ipc.new_file(file, pa.schema([])) as writer:
        writer.write_table(pa.table({}))
    with pytest.raises(TableError, match="has no columns"):
        open_table(tmp_path / "none.arrow")


def test_a_row_group_that_no_memory_holds_is_not_read(tmp_path, monkeypatch):
    pq.write_table(pa.table({"x": np.zeros(1_000_000), "y": np.zeros(1_000_000)}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 10_000
    monkeypatch.setattr(columnar, "available_memory", lambda: 12e6)
    table = open_table(tmp_path / "t.parquet")
    for read in (table.read, lambda: table.part(0), lambda: list(table.batches())):
        with pytest.raises(TableError, match=r"a row group of t\.parquet needs more than 0\.0 GB"):
            read()
    assert table.part(0, ["x"]).num_rows == 1_000_000
