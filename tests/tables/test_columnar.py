"""Types that pyarrow, polars and pandas write: read, left out or refused, and never the end of a command."""

import datetime
import decimal
import re
import uuid
from types import SimpleNamespace

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from setminus import files
from setminus.commands.table_roles import Roles, read_rows, split_rows
from setminus.errors import UserError
from setminus.estimators.groupings import Groupings
from setminus.tables import columnar
from setminus.tables.columns import describe
from setminus.tables.encoding import TableEncoder
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
    train, _ = split_rows(rows, 0.25, 0, Groupings(least=2), [0, 1])
    assert {column.name: column.kind for column in describe(train.X)}["extra"] == kind
    encoder = TableEncoder().fit(train.X)
    assert ("extra" in encoder.get_feature_names_out()) is (kind in ("number", "category", "date", "yes/no"))
    assert encoder.transform(opened.part(1)).shape == (50, len(encoder.get_feature_names_out()))
    for role in ("income", "sex"):
        roles = Roles("extra", ["sex"]) if role == "income" else Roles("income", ["extra"])
        try:
            read_rows(opened, roles)
        except UserError as error:
            assert error.do
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
    train, test = split_rows(rows, 0.25, 0, Groupings(least=2), [0, 1])
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
    with pytest.raises(UserError, match="holds a type that cannot be read") as caught:
        open_table(tmp_path / "t.ipc")
    assert "64 bits" in caught.value.do


def test_duplicate_names_and_no_columns(tmp_path):
    twice = pa.table([[1], [2]], names=["a", "a"])
    pyarrow.feather.write_feather(twice, tmp_path / "t.arrow")
    with pytest.raises(UserError, match="2 columns called 'a'"):
        open_table(tmp_path / "t.arrow")
    with pa.OSFile(str(tmp_path / "none.arrow"), "wb") as file, pa.ipc.new_file(file, pa.schema([])) as writer:
        writer.write_table(pa.table({}))
    with pytest.raises(UserError, match="has no columns"):
        open_table(tmp_path / "none.arrow")


def test_a_row_group_that_no_memory_holds_is_not_read(tmp_path, monkeypatch):
    pq.write_table(pa.table({"x": np.zeros(1_000_000), "y": np.zeros(1_000_000)}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 10_000
    monkeypatch.setattr(columnar, "available_memory", lambda: 12e6)
    table = open_table(tmp_path / "t.parquet")
    for read in (table.read, lambda: table.part(0), lambda: list(table.batches())):
        with pytest.raises(UserError, match=r"a row group of t\.parquet needs more than 0\.0 GB"):
            read()
    assert table.part(0, ["x"]).num_rows == 1_000_000


def test_rows_and_starts_of_several_groups_and_batches(tmp_path):
    table = pa.table({"x": range(10)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=4)
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow", chunksize=4)
    for name in ("t.parquet", "t.arrow"):
        opened = open_table(tmp_path / name)
        assert opened.n_rows == 10
        assert opened.starts == (0, 4, 8, 10)
        assert [part.num_rows for part in opened.batches()] == [4, 4, 2]


@pytest.mark.parametrize(("written", "read"), [("none", "none"), ("snappy", "snappy"), ("zstd", "zstd")])
def test_the_footer_tells_the_compression_and_the_columns_that_repeat(written, read, tmp_path):
    many = np.random.default_rng(0).permutation(5000)
    columns = {
        "few": ["a", "b"] * 2500,
        **{f"few {kind}": many.astype(kind) % 3 for kind in ("int32", "int64", "float32", "float64")},
        **{f"many {kind}": many.astype(kind) for kind in ("int32", "int64", "float32", "float64")},
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", compression=written)
    source = columnar.ParquetSource.open(tmp_path / "t.parquet")
    assert source.compression == read
    assert source.dictionary == tuple(name for name in columns if name.startswith("few"))


def test_a_parquet_file_without_row_groups(tmp_path):
    with pq.ParquetWriter(tmp_path / "t.parquet", pa.schema([("x", pa.int64())])):
        pass
    source = columnar.ParquetSource.open(tmp_path / "t.parquet")
    assert (source.n_rows, source.compression, source.dictionary) == (0, "none", ())


@pytest.mark.parametrize(("kind", "width"), [("INT32", 4), ("FLOAT", 4), ("INT64", 8), ("DOUBLE", 8)])
def test_a_dictionary_repeats_where_it_saves_a_quarter(kind, width):
    def chunk(size, **other):
        known = {"num_values": 100, "physical_type": kind, "has_dictionary_page": True, "total_uncompressed_size": size}
        return SimpleNamespace(**known | other)

    assert columnar._repeats(chunk(75 * width - 1))
    assert not columnar._repeats(chunk(75 * width))
    assert not columnar._repeats(chunk(1, has_dictionary_page=False))
    # text has no width to compare with
    assert columnar._repeats(chunk(10**9, physical_type="BYTE_ARRAY"))


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_what_the_file_says_of_itself_is_kept(name, tmp_path):
    table = pa.table({"x": pa.array(["a", "b"], pa.large_string())}).replace_schema_metadata({"made by": "hand"})
    if name == "t.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        pyarrow.feather.write_feather(table, tmp_path / name)
    assert open_table(tmp_path / name).schema.metadata[b"made by"] == b"hand"


@pytest.mark.parametrize(("name", "kind"), [("t.parquet", "Parquet"), ("t.arrow", "Arrow IPC")])
def test_errors_name_the_file(name, kind, tmp_path, monkeypatch):
    table = pa.table({"x": np.arange(1000)})
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    opened = open_table(path)
    monkeypatch.setattr(files, "available_memory", lambda: 1000)
    with pytest.raises(UserError, match=rf"^{re.escape(name)} needs more than"):
        opened.load()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=rf"^{re.escape(name)} cannot be read as {kind}: \w+ \w+"):
        open_table(path)
