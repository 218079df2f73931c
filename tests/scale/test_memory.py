import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from setminus.tables.writing import writing

MiB = 1 << 20
CHILD = """
import sys
from dataclasses import replace
from pathlib import Path
from setminus.scale.probabilities import ProbabilityScorer
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
