import gzip
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus import orthogonalize
from setminus.errors import UserError
from setminus.progress import listen
from setminus.scale.scorers import ProbabilityScorer
from setminus.scale.scoring import score_file
from setminus.tables.reading import open_table
from setminus.tables.writing import writing

SCORER = ProbabilityScorer(["p"], ["q"], [0.4, 0.6])
N = 1000


@pytest.fixture
def rows():
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, N))
    return pa.table({"id": np.arange(N), 'na"me, <b>\n': [f"é{i % 7}" for i in range(N)], "p": p, "q": q})


def expected(rows):
    p, q = (np.column_stack([1 - rows[name].to_numpy(), rows[name].to_numpy()]) for name in "pq")
    return orthogonalize(p, q, [0.4, 0.6])[:, 1]


def put(rows, path, size=300):
    with writing(path) as writer:
        for start in range(0, len(rows), size):
            writer.write(rows.slice(start, size))
    return path


@pytest.mark.parametrize("given", ["csv", "csv.gz", "parquet", "arrow"])
@pytest.mark.parametrize("wanted", ["csv", "tsv", "parquet", "feather"])
def test_every_row_keeps_its_place_and_gets_its_score(given, wanted, rows, tmp_path):
    seen = []
    source = put(rows, tmp_path / f"in.{given}")
    with listen(lambda event: seen.append((event.done, event.total)) if event.kind == "advanced" else None):
        done = score_file(source, tmp_path / f"out.{wanted}", SCORER)
    assert (done.n_rows, done.scores) == (N, ("orthogonal",))
    scored = open_table(done.path).read()
    assert scored.column_names == [*rows.column_names, "orthogonal"]
    assert scored.drop_columns(["orthogonal"]).to_pydict() == rows.to_pydict()
    np.testing.assert_array_equal(scored["orthogonal"], expected(rows))
    assert seen[-1] == (N, N)
    assert len(seen) == (1 if "csv" in given else 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"in.{given}", f"out.{wanted}"])


def test_a_csv_of_many_blocks(rows, tmp_path):
    table = open_table(put(rows, tmp_path / "in.csv"))
    table = replace(table, source=replace(table.source, block=5000))
    seen = []
    with listen(seen.append):
        score_file(table, tmp_path / "out.parquet", SCORER)
    assert [event.kind for event in seen].count("advanced") > 5
    np.testing.assert_array_equal(pq.read_table(tmp_path / "out.parquet")["orthogonal"], expected(rows))


def test_parquet_stays_as_it_was(rows, tmp_path):
    pq.write_table(rows.replace_schema_metadata({"k": "v"}), tmp_path / "in.parquet", 300, compression="zstd")
    score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", SCORER)
    before, after = (pq.ParquetFile(tmp_path / f"{name}.parquet") for name in ("in", "out"))
    assert after.schema_arrow.metadata[b"k"] == b"v"
    for index in range(before.num_row_groups):
        assert after.metadata.row_group(index).num_rows == before.metadata.row_group(index).num_rows
        assert after.metadata.row_group(index).column(4).compression == "ZSTD"
    group = after.metadata.row_group(0)
    # the names repeat, the numbers do not
    assert [group.column(k).has_dictionary_page for k in range(5)] == [False, True, False, False, False]


@pytest.mark.parametrize("engine", ["arrow", "dask"])
def test_row_groups_of_no_rows_are_passed_over(rows, tmp_path, engine):
    with pq.ParquetWriter(tmp_path / "in.parquet", rows.schema) as writer:
        for part in (rows[:0], rows[:300], rows[:0], rows[300:], rows[:0]):
            writer.write_table(part)
    done = score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", SCORER, engine=engine)
    assert done.n_rows == len(rows)
    np.testing.assert_array_equal(pq.read_table(tmp_path / "out.parquet")["orthogonal"], expected(rows))


def test_columns_to_keep(rows, tmp_path):
    source = put(rows, tmp_path / "in.parquet")
    for keep, names in ((False, []), (["q", "id"], ["q", "id"]), (True, rows.column_names)):
        score_file(source, tmp_path / "out.parquet", SCORER, keep=keep)
        assert pq.read_table(tmp_path / "out.parquet").column_names == [*names, "orthogonal"]
        assert pq.read_table(tmp_path / "out.parquet").num_rows == N
    with pytest.raises(UserError, match="no column 'Q'"):
        score_file(source, tmp_path / "no.parquet", SCORER, keep=["Q"])
    with pytest.raises(UserError, match="has a column 'q' already"):
        score_file(source, tmp_path / "no.parquet", replace(SCORER, name="q"))
    score_file(source, tmp_path / "yes.parquet", replace(SCORER, name="q"), keep=["id"])
    assert not (tmp_path / "no.parquet").exists()


@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("p", float("nan"), "full has 2 values that are NaN"),
        ("p", None, "full has 2 values that are NaN"),
        ("q", 1.5, "principal has 1 values that are negative"),
        ("q", 0.0, "no overlap in 1 of 300 rows"),
    ],
)
def test_a_bad_value_is_named_by_its_rows_and_nothing_is_written(column, value, match, rows, tmp_path):
    values = rows[column].to_pylist()
    values[650] = value
    rows = rows.set_column(rows.column_names.index(column), column, pa.array(values))
    source = put(rows, tmp_path / "in.parquet")
    with pytest.raises(UserError, match=rf"in rows 601 to 900 of in\.parquet, {match}"):
        score_file(source, tmp_path / "out.parquet", SCORER)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
    if value == 0:
        score_file(source, tmp_path / "out.parquet", replace(SCORER, on_violation="clip"))


def test_rows_that_do_not_sum_to_one(tmp_path):
    rows = pa.table({"f0": [0.5, 0.5], "f1": [0.5, 0.7], "p0": [0.5, 0.5], "p1": [0.5, 0.5]})
    scorer = ProbabilityScorer(["f0", "f1"], ["p0", "p1"], "uniform")
    with pytest.raises(UserError, match=r"in rows 1 to 2 of in\.csv, full has 1 rows that do not sum to 1"):
        score_file(put(rows, tmp_path / "in.csv"), tmp_path / "out.csv", scorer)


def test_what_is_refused_before_the_work(rows, tmp_path):
    source = put(rows, tmp_path / "in.parquet")
    with pytest.raises(ValueError, match="engine is 'spark': expected 'arrow' or 'dask'"):
        score_file(source, tmp_path / "out.parquet", SCORER, engine="spark")
    with pytest.raises(ValueError, match="it goes with engine='dask'"):
        score_file(source, tmp_path / "out.parquet", SCORER, scheduler="tcp://localhost:1")
    with pytest.raises(UserError, match="both the source and the output"):
        score_file(source, source, SCORER)
    with pytest.raises(UserError, match="there is no folder"):
        score_file(source, tmp_path / "no" / "out.parquet", SCORER)
    with pytest.raises(UserError, match="there is no file"):
        score_file(tmp_path / "no.parquet", tmp_path / "out.parquet", SCORER)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@dataclass(frozen=True)
class Interrupted:
    """Stops at a later part, as a user does."""

    error: type[BaseException]

    def columns(self, table):
        return ["p", "id"]

    def drift(self, rows):
        return {}

    def score(self, rows):
        if rows["id"][0].as_py() >= 600:
            raise self.error
        return pa.table({"score": rows["p"]})


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_leaves_what_was_there(error, rows, tmp_path):
    source = put(rows, tmp_path / "in.parquet")
    (tmp_path / "out.parquet").write_bytes(b"before")
    with pytest.raises(error):
        score_file(source, tmp_path / "out.parquet", Interrupted(error))
    assert (tmp_path / "out.parquet").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 2


@dataclass(frozen=True)
class Short:
    def columns(self, table):
        return ["p"]

    def drift(self, rows):
        return {}

    def score(self, rows):
        return pa.table({"score": rows["p"][1:]})


def test_a_scorer_that_loses_rows_is_found_out(rows, tmp_path):
    with pytest.raises(ValueError, match="299 scores for 300 rows"):
        score_file(put(rows, tmp_path / "in.parquet"), tmp_path / "out.parquet", Short())


def test_a_cut_off_file_is_refused(rows, tmp_path):
    whole = put(rows, tmp_path / "in.csv").read_bytes()
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(whole)[:-100])
    with pytest.raises(UserError, match="cannot be unpacked"):
        score_file(tmp_path / "in.csv.gz", tmp_path / "out.csv", SCORER)
    assert not (tmp_path / "out.csv").exists()


MiB = 1 << 20
CHILD = """
import sys
from dataclasses import replace
from pathlib import Path
from setminus.scale.scorers import ProbabilityScorer
from setminus.scale.scoring import score_file
from setminus.tables.reading import open_table

table = open_table(sys.argv[1])
if table.format == "csv":
    table = replace(table, source=replace(table.source, block=2 << 20))
score_file(table, sys.argv[2], ProbabilityScorer(["p"], ["q"], "uniform"))
status = Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_memory_does_not_grow_with_the_file(ending, tmp_path):
    group, groups = 50_000, (16, 64)
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, group))
    rows = pa.table({"p": p.round(6), "q": q.round(6), "x": p, "z": q})
    peaks = []
    for count in groups:
        source = tmp_path / f"{count}.{ending}"
        with writing(source) as writer:
            for _ in range(count):
                writer.write(rows)
        command = [sys.executable, "-c", CHILD, str(source), str(tmp_path / f"out.{ending}")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout) * 1024)
    # allocators keep some of what they were given; the rows that are more would be three times the margin
    margin = 24 * MiB
    assert (groups[1] - groups[0]) * rows.nbytes > 3 * margin
    assert peaks[1] - peaks[0] < margin
