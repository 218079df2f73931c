"""The growth is measured on files that double; and a sample keeps the memory of a fit within limits."""

import json

import pyarrow.parquet as pq

from benchmarks.scaling import generate
from setminus.commands import build_app


def test_fit_uses_random_rows_of_a_large_file_and_says_so(tmp_path):
    people = tmp_path / "people.parquet"
    generate(people, 4000)
    assert pq.ParquetFile(people).metadata.num_rows == 4000
    task = f"fit {people} --label income --ignore sex --positive high --full logistic --quiet --max-train-rows 1500"
    build_app()([*task.split(), "--out", str(tmp_path / "m.skops")], standalone_mode=False)
    record = json.loads((tmp_path / "m.audit.json").read_text())
    assert "1,500 random rows of 4,000 were used; --max-train-rows takes more" in record["task"]["notes"]
    assert sum(record["task"]["rows"][part] for part in ("train", "test")) == 1500
