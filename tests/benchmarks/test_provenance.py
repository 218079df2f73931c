"""Every record of a benchmark has its commit and its command."""

import re
from pathlib import Path

from benchmarks.provenance import provenance

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_record_has_its_versions_its_commit_and_its_command():
    found = provenance("python -m benchmarks speed", "numba")
    assert found["command"] == "python -m benchmarks speed"
    assert {"setminus", "numpy", "numba"} <= {*found["versions"]}
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", found["commit"])


def test_each_benchmark_that_writes_records_gives_them():
    writers = [path for path in BENCHMARKS.glob("*.py") if "append_record(" in path.read_text()]
    # run_record has the command itself, and resuming copies whole records
    without = [path.stem for path in writers if not re.search(r"provenance\(|run_record\(", path.read_text())]
    assert len(writers) > 10 and without == ["resuming"]
