"""The growth is measured on files that double: made alike at every size, and measured in a process of its own."""

import pyarrow.parquet as pq

from benchmarks.scaling import generate, measure


def test_each_command_has_its_cost(tmp_path):
    generate(tmp_path / "rows.parquet", 1000)
    assert pq.ParquetFile(tmp_path / "rows.parquet").metadata.num_rows == 1000
    costs = measure(tmp_path, 1000)
    assert [*costs] == ["fit", "apply", "audit"]
    for cost in costs.values():
        assert cost["seconds"] > 0 and cost["cpu_seconds"] > 0 and cost["peak"] > 2**20
