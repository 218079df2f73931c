"""Spark on a real local cluster of two worker processes; skipped where Java or pyspark is missing."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus.errors import UserError
from setminus.scale.scorers import ProbabilityScorer
from setminus.scale.scoring import score_file

# in the extra spark alone: its 460 MB would make every installation for tests minutes longer
pyspark = pytest.importorskip("pyspark", reason='pyspark is not installed: pip install "setminus[spark]"')
needs_java = pytest.mark.skipif(
    not (shutil.which("java") or os.environ.get("JAVA_HOME")), reason="Spark needs Java, which is not installed"
)
# workers cannot import a test module, and Spark has a cloudpickle of its own
pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])

N = 2000
SCORER = ProbabilityScorer(["p"], ["q"], [0.4, 0.6])


@dataclass(frozen=True)
class Deadly(ProbabilityScorer):
    """Scores as ever, and once kills the worker that it runs in."""

    marker: str = ""

    def score(self, rows):
        if rows["p"][0].as_py() > 0.5:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                parents = psutil.Process().parents()
                (executor,) = [one for one in parents if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline())]
                executor.kill()
        return super().score(rows)


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def table(tmp_path):
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, N))
    rows = pa.table({"id": np.arange(N), "name": [f"é{i % 7}" for i in range(N)], "p": p, "q": q})
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=150)
    return tmp_path / "in.parquet"


@needs_java
class TestOnACluster:
    def test_the_same_bytes_though_a_worker_is_killed(self, session, table, tmp_path):
        score_file(table, tmp_path / "arrow.parquet", SCORER)
        marker = tmp_path / "killed"
        deadly = Deadly(SCORER.full, SCORER.principal, SCORER.prior, marker=str(marker))
        done = score_file(table, tmp_path / "spark.parquet", deadly, engine="spark")
        assert marker.exists()
        assert done.n_rows == N
        assert (tmp_path / "spark.parquet").read_bytes() == (tmp_path / "arrow.parquet").read_bytes()
        assert {path.name for path in tmp_path.iterdir()} == {"in.parquet", "arrow.parquet", "spark.parquet", "killed"}

    def test_an_error_of_a_worker_names_the_rows(self, session, table, tmp_path):
        rows = pq.read_table(table)
        q = rows.column("q").to_numpy().copy()
        q[500] = 1.5
        pq.write_table(rows.set_column(3, "q", pa.array(q)), table, row_group_size=150)
        with pytest.raises(UserError, match=r"in rows 451 to 600 of in.parquet, principal has"):
            score_file(table, tmp_path / "out.parquet", SCORER, engine="spark")
        assert not (tmp_path / "out.parquet").exists()

    def test_a_frame_is_scored_where_it_lies(self, session, table, tmp_path):
        from setminus.scale.spark_parts import score_frame

        score_file(table, tmp_path / "arrow.parquet", SCORER)
        scored = score_frame(session.read.parquet(str(table)).repartition(3), SCORER).toArrow().sort_by("id")
        expected = pq.read_table(tmp_path / "arrow.parquet")
        assert scored.column_names == expected.column_names
        np.testing.assert_array_equal(scored["orthogonal"].to_numpy(), expected["orthogonal"].to_numpy())

    def test_one_session_at_a_time(self, session, table, tmp_path):
        with pytest.raises(UserError, match="a Spark session is active, and master is 'local'"):
            score_file(table, tmp_path / "out.parquet", SCORER, engine="spark", master="local")
