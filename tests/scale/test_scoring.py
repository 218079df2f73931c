import csv
import gzip
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from setminus import orthogonalize
from setminus.errors import UserError
from setminus.progress import listen
from setminus.scale.scorers import ProbabilityScorer
from setminus.scale.scoring import score_file
from setminus.tables.drift import column_drift
from setminus.tables.reading import open_table
from setminus.tables.writing import writing

SCORER = ProbabilityScorer(["p"], ["q"], [0.4, 0.6])
# both from one column: the scores are 0.5
SCORES_P = ProbabilityScorer(["p"], ["p"], "uniform")
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
    source = put(rows, tmp_path / f"in.{given}")
    events = []
    with listen(events.append):
        done = score_file(source, tmp_path / f"out.{wanted}", SCORER)
    seen = [(event.done, event.total) for event in events if event.kind == "advanced"]
    assert {(event.name, event.unit) for event in events} >= {(f"score {source.name}", "rows")}
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


def test_row_groups_of_no_rows_are_passed_over(rows, tmp_path):
    with pq.ParquetWriter(tmp_path / "in.parquet", rows.schema) as writer:
        for part in (rows[:0], rows[:300], rows[:0], rows[300:], rows[:0]):
            writer.write_table(part)
    done = score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", SCORER)
    assert done.n_rows == len(rows)
    np.testing.assert_array_equal(pq.read_table(tmp_path / "out.parquet")["orthogonal"], expected(rows))


def test_a_score_does_not_replace_a_column(rows, tmp_path):
    source = put(rows, tmp_path / "in.parquet")
    with pytest.raises(
        UserError, match=r"has a column 'q' already, .*: rename that column, or leave it out of the file"
    ):
        score_file(source, tmp_path / "no.parquet", replace(SCORER, name="q"))
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
    with pytest.raises(ValueError, match="engine is 'ray': expected 'arrow', 'dask' or 'spark'"):
        score_file(source, tmp_path / "out.parquet", SCORER, engine="ray")
    with pytest.raises(ValueError, match="it goes with engine='dask'"):
        score_file(source, tmp_path / "out.parquet", SCORER, scheduler="tcp://localhost:1")
    with pytest.raises(UserError, match=r"^in\.parquet is both the source and the output: write to another file"):
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
    # few digits: a CSV of them is read and written sooner
    rows = pa.table({"p": p.round(3), "q": q.round(3), "x": p.round(1), "z": q.round(1)})
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


@dataclass(frozen=True)
class Trained:
    """Knows the words of `word`, and the range of `p` where that was kept; its own words are formulas."""

    kept: bool = True

    def columns(self, table):
        return ["word", "p"]

    def drift(self, rows):
        low, high = ({"low": 0}, {"high": 1}) if self.kept else ({}, {})
        p = {"name": "p", "kind": "number", "missing": 0.0, **low, **high}
        word = {"name": "word", "kind": "category", "missing": 0.0, "levels": ["a", "b"]}
        return column_drift(rows, [word, p])

    def score(self, rows):
        return pa.table({"=made": ["=1+1"] * rows.num_rows})


def words(path, values, empty=0):
    """A file of parts of 2 rows, with `empty` parts of no rows after the first."""
    table = pa.table({"word": values, "p": [0.5] * len(values)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for start in range(0, len(values), 2):
            for part in [table.slice(start, 2)] + [table[:0]] * (empty if start == 0 else 0):
                writer.write_table(part)
    return path


def test_unseen_values_are_counted_over_all_parts(tmp_path):
    source = words(tmp_path / "in.parquet", ["a", "x", "b", "b", "y", "y"], empty=2)
    done = score_file(source, tmp_path / "out.parquet", Trained())
    assert {name: part.unseen for name, part in done.drift.items() if part.unseen} == {"word": 3}
    assert (done.drift["word"].rows, done.drift["word"].example, done.drift["p"].rows) == (6, "x", 6)
    assert done.path == tmp_path / "out.parquet"


def test_strict_refuses_unseen_values_and_what_cannot_be_compared(tmp_path):
    def strict(values, scorer):
        score_file(words(tmp_path / "in.parquet", values, empty=1), tmp_path / "out.parquet", scorer, strict=True)

    strict(["a", "b", "a"], Trained())
    (tmp_path / "out.parquet").unlink()
    with pytest.raises(UserError, match=r"in\.parquet has values that training .*: word in 2 of 4 rows \(such as 'x'"):
        strict(["a", "x", "b", "y"], Trained())
    with pytest.raises(UserError, match=r"mend or leave out those rows, or .* without --strict"):
        strict(["x"], Trained())
    with pytest.raises(UserError, match=r"in\.parquet cannot be compared .* does not hold the range of p"):
        strict(["a", "b"], Trained(kept=False))
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
    with pytest.raises(UserError, match=r"does not hold their values: fit it again .*--strict"):
        score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", SCORES_P, strict=True)


@pytest.mark.parametrize(
    ("neutralize", "source", "score"), [(None, "=a", "'=1+1"), (True, "'=a", "'=1+1"), (False, "=a", "=1+1")]
)
def test_formulas_of_a_model_are_neutralized_and_those_of_the_source_on_request(neutralize, source, score, tmp_path):
    given = words(tmp_path / "in.parquet", ["=a"])
    score_file(given, tmp_path / "out.csv", Trained(), neutralize=neutralize)
    name = "'=made" if score.startswith("'") else "=made"
    assert list(csv.DictReader((tmp_path / "out.csv").open())) == [{"word": source, "p": "0.5", name: score}]
    # no spreadsheet runs what is in Parquet
    score_file(given, tmp_path / "out.parquet", Trained(), neutralize=neutralize)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"word": "=a", "p": 0.5, "=made": "=1+1"}]


def test_values_of_a_csv_stay_as_they_stand(tmp_path):
    (tmp_path / "in.csv").write_text("id,p,seen\n007,0.50,NA\n008,5e-1,2020-01-01\n")
    done = score_file(tmp_path / "in.csv", tmp_path / "out.csv", SCORES_P)
    kept = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [list(row.values())[:3] for row in kept] == [["007", "0.50", "NA"], ["008", "5e-1", "2020-01-01"]]
    assert [float(row["orthogonal"]) for row in kept] == [0.5, 0.5]
    assert done.notes == open_table(tmp_path / "in.csv").scanned().notes
    # a table of types has values
    score_file(tmp_path / "in.csv", tmp_path / "out.parquet", SCORES_P)
    assert pq.read_table(tmp_path / "out.parquet")["p"].to_pylist() == [0.5, 0.5]


def test_notes_about_the_source_are_passed_on(tmp_path):
    (tmp_path / "in.csv").write_text('p,pay\n0.5,"59,915"\n0.5,"1,200,300"\n')
    done = score_file(tmp_path / "in.csv", tmp_path / "out.csv", SCORES_P)
    assert done.notes == open_table(tmp_path / "in.csv").scanned().notes != ()


def test_the_dictionary_of_a_file_without_one_is_for_its_own_columns(rows, tmp_path):
    score_file(put(rows, tmp_path / "in.csv"), tmp_path / "out.parquet", SCORER)
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    assert [group.column(k).has_dictionary_page for k in (1, 4)] == [True, False]
    pq.write_table(rows, tmp_path / "in.parquet", use_dictionary=False)
    score_file(tmp_path / "in.parquet", tmp_path / "out.parquet", SCORER)
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    assert not any(group.column(k).has_dictionary_page for k in range(5))


@dataclass(frozen=True)
class Threads:
    """The largest number of threads of a linear algebra library, while it scores."""

    def columns(self, table):
        return ["p"]

    def drift(self, rows):
        return {}

    def score(self, rows):
        most = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return pa.table({"threads": [most] * rows.num_rows})


@pytest.mark.parametrize("limit", [1, 2])
def test_a_part_has_one_thread_for_its_linear_algebra(limit, rows, tmp_path):
    with threadpool_limits(limit, user_api="blas"):
        score_file(put(rows, tmp_path / "in.parquet"), tmp_path / "out.parquet", Threads())
        assert set(pq.read_table(tmp_path / "out.parquet")["threads"].to_pylist()) == {1}
        # the control, and afterwards it is as before
        assert Threads().score(rows)["threads"][0].as_py() == limit
