"""Reading and auditing are measured on the same file, each in a process of its own."""

import pyarrow.parquet as pq

from benchmarks.auditing import FILES, generate, run
from setminus.records import read_records


def test_a_record_has_both_sides(tmp_path, monkeypatch):
    for columns in FILES.values():
        generate(tmp_path / "rows.parquet", 100, columns)
        assert pq.read_table(tmp_path / "rows.parquet").column_names == columns
    monkeypatch.delitem(FILES, "scores")
    found = run(3000, tmp_path / "records.jsonl", repeats=1)
    (record,) = read_records(tmp_path / "records.jsonl")
    assert record["metrics"].keys() == FILES.keys()
    for one in found.values():
        (turn,) = one["turns"]
        assert one["ratio"] == turn["audit"]["cpu seconds"] / turn["read"]["cpu seconds"] > 0
        assert one["peak MiB"] == turn["audit"]["peak MiB"]
