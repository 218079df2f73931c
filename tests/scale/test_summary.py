from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from setminus.errors import UserError
from setminus.progress import listen
from setminus.scale.summary import summarize
from setminus.tables.reading import open_table
from setminus.tables.writing import writing

N = 900
NAMES = ["place", "age", "y"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    words = np.array(["north", "south", None, "west"], dtype=object)
    return pa.table({
        "id": np.arange(N),
        "place": pa.array(words[rng.integers(0, 4, N)]),
        "age": pa.array(rng.integers(20, 24, N), mask=rng.random(N) < 0.1),
        "y": rng.integers(0, 2, N).astype(bool),
    })  # fmt: skip


def put(rows, path, size=200):
    with writing(path) as writer:
        for start in range(0, len(rows), size):
            writer.write(rows.slice(start, size))
            # a file may have parts of no rows
            writer.write(rows[:0])
    table = open_table(path)
    return replace(table, source=replace(table.source, block=3000)) if path.suffix == ".csv" else table


def combinations(rows, names):
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def counted(found, names):
    return dict(zip(combinations(found.cells, names), found.counts.tolist(), strict=True))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_every_combination_is_counted_with_its_first_row(ending, rows, tmp_path):
    table = put(rows, tmp_path / f"in.{ending}")
    assert len(table.scanned().starts) > 4
    found = summarize(table, NAMES, kept=["id"], max_rows=10)
    there = combinations(rows, NAMES)
    assert counted(found, NAMES) == Counter(there)
    assert found.n_rows == N == found.counts.sum()
    # one row for each, the first; a missing value is a value of its own
    assert found.cells.num_rows == len(set(there)) == 4 * 5 * 2
    assert [there.index(cell) for cell in combinations(found.cells, NAMES)] == found.cells["id"].to_pylist()
    assert found.cells.schema.field("place").type == pa.string()


def test_the_values_of_two_parts_may_come_in_any_order(tmp_path):
    rows = pa.table({"word": ["a", "b", "b", "c", "b", "a", None, "c"], "id": np.arange(8)})
    found = summarize(put(rows, tmp_path / "in.parquet", size=2), ["word"], kept=["id"], max_rows=8)
    assert counted(found, ["word", "id"]) == {("a", 0): 2, ("b", 1): 3, ("c", 3): 2, (None, 6): 1}


def test_a_column_of_words_that_a_file_stores_as_numbers_of_a_list(tmp_path):
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 0], pa.int8()), pa.array(["a", None, "b"]))
    rows = pa.table({"word": words, "id": np.arange(5)})
    found = summarize(put(rows, tmp_path / "in.arrow"), ["word"], kept=["id"], max_rows=5)
    # missing in the list and missing from it are both missing
    assert counted(found, ["word", "id"]) == {("a", 0): 2, (None, 1): 2, ("b", 2): 1}


def test_billions_of_possible_combinations_of_which_few_exist(tmp_path):
    n = 4000
    numbers = np.random.default_rng(1).permuted(np.tile(np.arange(n), (3, 1)), axis=1)
    # the same four thousand rows twice, in another order
    again = np.random.default_rng(2).permutation(n)
    rows = pa.table({name: np.concatenate([one, one[again]]) for name, one in zip("abc", numbers, strict=True)})
    rows = rows.append_column("id", pa.array(np.arange(2 * n)))
    found = summarize(put(rows, tmp_path / "in.parquet", size=3000), ["a", "b", "c"], kept=["id"], max_rows=10)
    there = combinations(rows, "abc")
    assert counted(found, "abc") == dict.fromkeys(there, 2)
    assert [there.index(cell) for cell in combinations(found.cells, "abc")] == found.cells["id"].to_pylist()


def test_more_combinations_than_a_grouping_has_are_refused(rows, monkeypatch, tmp_path):
    table = put(rows, tmp_path / "in.parquet")
    monkeypatch.setattr("setminus.scale.cells.MAX_CELLS", N)
    assert summarize(table, ["y", "id"], max_rows=10).cells.num_rows == N
    monkeypatch.setattr("setminus.scale.cells.MAX_CELLS", N - 1)
    with pytest.raises(UserError, match=r"in\.parquet has more than 899 combinations of y, id: name columns of few"):
        summarize(table, ["y", "id"], max_rows=10)


def test_a_column_that_is_not_there_is_named(rows, tmp_path):
    for roles in ({"values": ["yy"]}, {"values": ["y"], "scores": ["yy"]}, {"values": ["y"], "kept": ["yy"]}):
        with pytest.raises(UserError, match=r"in\.parquet has no column 'yy'"):
            summarize(put(rows, tmp_path / "in.parquet"), **roles, max_rows=10)


ODD = [0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), 0.0, 1.0, 0.3, 0.7, 0.6, 0.4]
WRONG = [-0.01, 1.01, np.nan, np.inf, None]


@pytest.mark.parametrize("threshold", [None, 0.5, 0.3, 0.7])
def test_a_cell_has_one_decision_of_a_single_probability(threshold, tmp_path):
    def decision(p):
        if p is None or not 0 <= p <= 1:
            return "no probability"
        # of the class itself and of the other, where a tie belongs to neither or to both
        return (p > 0.5, p == 0.5) if threshold is None else (p >= threshold, 1 - p >= threshold)

    scores = [*ODD, *WRONG, *np.random.default_rng(0).random(50)] * 2
    rows = pa.table({"y": ["a"] * len(scores), "p": pa.array(scores, pa.float64(), from_pandas=True)})
    found = summarize(put(rows, tmp_path / "in.parquet", size=20), ["y"], ["p"], threshold=threshold, max_rows=1)
    expected = Counter(decision(p) for p in rows["p"].to_pylist())
    assert dict(zip(map(decision, found.cells["p"].to_pylist()), found.counts.tolist(), strict=True)) == expected
    assert found.cells.num_rows == len(expected) >= 3


@pytest.mark.parametrize("threshold", [None, 0.25, 0.5])
def test_a_cell_has_one_decision_of_several_probabilities(threshold, tmp_path):
    def decision(*scores):
        if any(p is None or not 0 <= p <= 1 for p in scores):
            return "no probabilities"
        shares = [p / sum(scores) for p in scores]
        return tuple(p == max(shares) if threshold is None else p >= threshold for p in shares)

    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 200)
    # ties, and rows that do not sum to 1: their shares decide
    proba = np.vstack([proba, [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.25, 0.25, 0.5], [0.2, 0.2, 0.1], [1, 1, 1]]])
    columns = [pa.array([*proba[:, k], *np.roll([0.2, 0.5, value], k)], from_pandas=True) for k, value in
               enumerate([-0.01, 1.01, np.nan])]  # fmt: skip
    rows = pa.table({"y": [0] * len(columns[0]), **dict(zip("pqr", columns, strict=True))})
    found = summarize(put(rows, tmp_path / "in.parquet"), ["y"], list("pqr"), threshold=threshold, max_rows=1)
    expected = Counter(decision(*row) for row in combinations(rows, "pqr"))
    decisions = [decision(*row) for row in combinations(found.cells, "pqr")]
    assert dict(zip(decisions, found.counts.tolist(), strict=True)) == expected
    assert expected["no probabilities"] == 3 and len(expected) >= 7


def test_scores_of_text_are_one_cell_and_of_whole_numbers_probabilities(tmp_path):
    rows = pa.table({"y": [0, 0, 0], "p": ["high", "low", "0.3"], "q": [0, 1, 1]})
    table = put(rows, tmp_path / "in.parquet")
    assert summarize(table, ["y"], ["p"], max_rows=1).counts.tolist() == [3]
    assert counted(summarize(table, ["y"], ["q"], max_rows=1), "q") == {(0,): 1, (1,): 2}


def test_the_sample_is_of_distinct_rows_in_their_order(rows, tmp_path):
    table = put(rows, tmp_path / "in.parquet")

    def drawn(max_rows, **options):
        sample = summarize(table, ["y"], kept=["id", "place"], max_rows=max_rows, **options).sample
        ids = sample["id"].to_pylist()
        assert (
            sample.select(["y", "id", "place"]).to_pylist() == rows.take(ids).select(["y", "id", "place"]).to_pylist()
        )
        assert ids == sorted(set(ids))
        return ids

    assert drawn(N) == drawn(N + 1) == list(range(N))
    assert len(drawn(100)) == 100
    assert drawn(100) == drawn(100, seed=0) != drawn(100, seed=1)
    # every row is as likely: the expected counts of 5 fifths, 5 standard deviations
    fifths = np.histogram([one for seed in range(40) for one in drawn(100, seed=seed)], bins=5, range=(0, N))[0]
    assert abs(fifths - 800).max() < 5 * np.sqrt(4000 * 0.2 * 0.8)


def test_the_sample_has_every_value_of_a_required_column_and_no_row_without_one(tmp_path):
    rare = np.array(["a"] * 300, dtype=object)
    rare[[40, 250, 280]] = "rare", None, "rare"
    other = np.array(["x"] * 300, dtype=object)
    other[[10, 40, 100]] = None, None, "once"
    rows = pa.table({"group": pa.array(rare), "other": pa.array(other), "id": np.arange(300)})
    table = put(rows, tmp_path / "in.parquet", size=100)
    required = ["group", "other"]
    found = summarize(table, required, kept=["id"], required=required, max_rows=5, seed=3)
    drawn, added = found.sample["id"].to_pylist()[:5], found.sample["id"].to_pylist()[5:]
    assert not {*drawn} & {10, 40, 100, 250, 280}
    # each value that was not drawn, by its first row that lacks nothing
    assert added == [280, 100]
    assert counted(found, required)[None, "x"] == 1
    every = summarize(table, required, kept=["id"], required=required, max_rows=300)
    assert every.sample["id"].to_pylist() == [one for one in range(300) if one not in (10, 40, 250)]
    # not asked for: missing values may be drawn, and nothing is added
    free = summarize(table, required, kept=["id"], max_rows=300)
    assert free.sample["id"].to_pylist() == list(range(300))


def test_progress_counts_the_rows(rows, tmp_path):
    table, events = put(rows, tmp_path / "in.parquet"), []
    with listen(events.append):
        summarize(table, ["y"], max_rows=10)
    reading = [event for event in events if event.name == "read in.parquet"]
    assert {(event.total, event.unit) for event in reading} == {(N, "rows")}
    assert [event.done for event in reading if event.kind == "advanced"][-1] == N
