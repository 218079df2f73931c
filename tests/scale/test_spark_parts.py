"""What is asked of Spark, by a stand-in that works in this process; a real cluster is in the file beside this one."""

import os
import shutil
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus.errors import UserError
from setminus.scale.scorers import ProbabilityScorer
from setminus.scale.scoring import score_file
from setminus.scale.spark_parts import score_frame
from setminus.tables.drift import ColumnDrift

N = 2000
SCORER = ProbabilityScorer(["p"], ["q"], [0.4, 0.6])


@dataclass
class Spark:
    """A session, its builder and its context in one: notes what it is asked, and works on the spot."""

    active: bool = False
    fails: Exception | None = None
    defaultParallelism: int = 1
    asked: dict = field(default_factory=dict)
    jobs: list = field(default_factory=list)
    stopped: int = 0
    limited: int = 0

    @property
    def builder(self):
        return self

    @property
    def sparkContext(self):
        return self

    def getActiveSession(self):
        return self if self.active else None

    def master(self, address):
        self.asked["master"] = address
        return self

    def appName(self, name):
        self.asked["name"] = name
        return self

    def config(self, name, value):
        self.asked[name] = value
        return self

    def getOrCreate(self):
        if self.fails is not None:
            raise self.fails
        return self

    def setLogLevel(self, level):
        self.asked["level"] = level

    def stop(self):
        self.stopped += 1

    def limit_blas(self):
        self.limited += 1

    def parallelize(self, indices, slices):
        self.jobs.append((list(indices), slices))
        return SimpleNamespace(map=lambda task: SimpleNamespace(collect=lambda: self._worked(task, indices)))

    def _worked(self, task, indices):
        # workers get a copy, and give one back
        return [cloudpickle.loads(cloudpickle.dumps(cloudpickle.loads(cloudpickle.dumps(task))(i))) for i in indices]


class PySparkException(Exception):
    pass


@pytest.fixture
def spark(monkeypatch):
    found = Spark()
    modules = {
        "pyspark": {},
        "pyspark.errors": {"PySparkException": PySparkException},
        "pyspark.sql": {"SparkSession": found},
        "pyspark.sql.pandas": {},
        "pyspark.sql.pandas.types": {"from_arrow_schema": lambda schema: schema},
    }
    for name, attributes in modules.items():
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
    # it would hold for all tests that follow
    monkeypatch.setattr("setminus.scale.part_files.limit_blas", found.limit_blas)
    monkeypatch.setenv("JAVA_HOME", "/java")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return found


@pytest.fixture
def rows():
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, N))
    return pa.table({"id": np.arange(N), "name": [f"é{i % 7}" for i in range(N)], "p": p, "q": q})


@pytest.fixture
def table(rows, tmp_path):
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=150)
    return tmp_path / "in.parquet"


def scored(table, scorer=SCORER, **options):
    return score_file(table, table.with_name("out.parquet"), scorer, engine="spark", **options)


@pytest.mark.parametrize(("cores", "sizes"), [(1, [8, 6]), (2, [8, 6]), (3, [12, 2])])
def test_the_same_bytes_with_four_parts_for_each_worker_at_a_time(cores, sizes, spark, table, tmp_path):
    spark.defaultParallelism = cores
    done = scored(table)
    score_file(table, tmp_path / "arrow.parquet", SCORER)
    assert (done.n_rows, done.scores) == (N, ("orthogonal",))
    assert done.path.read_bytes() == (tmp_path / "arrow.parquet").read_bytes()
    # each part is a task of its own, and every part is given once
    assert [len(indices) for indices, _ in spark.jobs] == [slices for _, slices in spark.jobs] == sizes
    assert [index for indices, _ in spark.jobs for index in indices] == list(range(14))
    # each of them with one thread for its linear algebra
    assert spark.limited == 14
    assert {path.name for path in tmp_path.iterdir()} == {"in.parquet", "arrow.parquet", "out.parquet"}


@dataclass(frozen=True)
class Given:
    """The names of the columns that it is given."""

    def columns(self, table):
        return ["q", "id"]

    def drift(self, rows):
        return {}

    def score(self, rows):
        return pa.table({"given": [" ".join(rows.column_names)] * rows.num_rows})


def test_a_worker_reads_the_columns_that_the_scorer_needs(spark, table):
    assert set(pq.read_table(scored(table, Given()).path)["given"].to_pylist()) == {"q id"}


def test_values_of_a_csv_stay_as_they_stand(spark, tmp_path):
    (tmp_path / "in.csv").write_text("id,p,q\n007,0.50,0.5\n008,5e-1,.25\n")
    score_file(tmp_path / "in.csv", tmp_path / "out.csv", SCORER, engine="spark")
    assert [line.split(",")[1] for line in (tmp_path / "out.csv").read_text().splitlines()] == [
        '"p"',
        '"0.50"',
        '"5e-1"',
    ]


def test_a_session_is_started_on_this_machine_alone_and_stopped(spark, table):
    scored(table)
    assert spark.asked == {
        "master": "local[2]",
        "name": "setminus",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.SETMINUS_THREADS": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
        "level": "ERROR",
    }
    assert spark.stopped == 1
    # workers have this library
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.parametrize(
    ("master", "here", "keyed"),
    [
        ("spark://10.0.0.1:7077", False, False),
        ("yarn", False, False),
        ("local[4]", True, True),
        ("local", True, True),
        # Spark makes no key there
        ("local-cluster[2,1,1024]", True, False),
    ],
)
def test_a_cluster_reaches_the_driver_by_its_own_address(master, here, keyed, spark, table, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-cluster")
    scored(table, master=master)
    assert spark.asked["master"] == master
    assert ("spark.driver.host" in spark.asked) is ("spark.driver.bindAddress" in spark.asked) is here
    assert ("spark.authenticate" in spark.asked) is keyed
    assert os.environ["PYSPARK_PYTHON"] == "python-of-the-cluster"


def test_the_active_session_is_used_and_left_open(spark, table):
    spark.active = True
    assert scored(table).n_rows == N
    assert (spark.asked, spark.stopped) == ({}, 0)
    with pytest.raises(UserError, match="a Spark session is active, and master is 'local': leave master out, or stop"):
        scored(table, master="local")


@pytest.mark.parametrize("error", [PySparkException, OSError, RuntimeError, ValueError])
@pytest.mark.parametrize("master", [None, "spark://nowhere:1"])
def test_a_session_that_does_not_start_is_reported_in_a_line(error, master, spark, table, tmp_path):
    spark.fails = error("no master answers\n\tat org.apache.spark")
    with pytest.raises(UserError) as caught:
        scored(table, master=master)
    first, second = caught.value.lines
    assert first == f"no Spark session could be started at {master or 'local'}: no master answers."
    assert second == "Check the address, and that its Spark has the version of pyspark here."
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_an_error_of_a_worker_names_the_rows(spark, rows, table, tmp_path):
    q = rows.column("q").to_numpy().copy()
    q[500] = 1.5
    pq.write_table(rows.set_column(3, "q", pa.array(q)), table, row_group_size=150)
    with pytest.raises(UserError, match=r"in rows 451 to 600 of in.parquet, principal has"):
        scored(table)
    assert spark.stopped == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@dataclass(frozen=True)
class Drifting:
    """Finds one unseen value in each part, or fails as a bug does."""

    fails: bool = False

    def columns(self, table):
        return ["id"]

    def drift(self, rows):
        return {"id": ColumnDrift(rows.num_rows, 1, 0, 0.0, str(rows["id"][0]))}

    def score(self, rows):
        if self.fails:
            raise ZeroDivisionError
        return pa.table({"twice": np.array(rows["id"]) * 2})


def test_drift_comes_back_and_other_errors_are_not_hidden(spark, table):
    done = scored(table, Drifting())
    assert done.drift == {"id": ColumnDrift(N, 14, 0, 0.0, "0")}
    with pytest.raises(ZeroDivisionError):
        scored(table, Drifting(fails=True))
    assert spark.stopped == 2


@dataclass
class Frame:
    """Rows in batches, as a Spark DataFrame gives them to `mapInArrow`."""

    batches: list
    schema: pa.Schema

    def limit(self, n):
        return Frame(pa.Table.from_batches(self.batches, self.schema).slice(0, n).to_batches(), self.schema)

    def toArrow(self):
        return pa.Table.from_batches(self.batches, self.schema)

    def mapInArrow(self, function, schema):
        given = cloudpickle.loads(cloudpickle.dumps(function))(iter(self.batches))
        return Frame(list(given), schema)


def frame_of(rows, size=300):
    # Spark may give batches of no rows
    return Frame([*rows.to_batches(max_chunksize=size), rows.to_batches()[0].slice(0, 0)], rows.schema)


def test_a_frame_is_scored_where_it_lies(spark, rows, table, tmp_path):
    score_file(table, tmp_path / "arrow.parquet", SCORER)
    found = score_frame(frame_of(rows), SCORER)
    assert len(found.batches) == 7
    assert found.toArrow() == pq.read_table(tmp_path / "arrow.parquet")


def test_what_a_frame_is_refused_for(spark, rows):
    with pytest.raises(UserError, match=r"^the DataFrame has no rows: give one with rows\.$"):
        score_frame(Frame([], rows.schema), SCORER)
    with pytest.raises(UserError, match=r"the DataFrame has a column 'orthogonal' already: drop or rename it"):
        score_frame(frame_of(rows.append_column("orthogonal", rows["p"])), SCORER)
    bad = rows.set_column(2, "p", pa.array(np.full(N, 2.0)))
    with pytest.raises(UserError, match=r"in rows 1 to 1 of a batch of the DataFrame, full has"):
        score_frame(frame_of(bad), SCORER)


def test_without_pyspark_the_error_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    with pytest.raises(ImportError, match=r'engine="spark" needs pyspark.*pip install "setminus\[spark\]"'):
        scored(table)


def test_java_is_missing_in_two_lines(spark, table, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert scored(table).n_rows == N
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(UserError) as caught:
        scored(table)
    assert caught.value.lines == (
        "Spark needs Java, which is not installed.",
        "Install Java 17 or later, or set JAVA_HOME.",
    )
    monkeypatch.setattr(shutil, "which", {"java": "/usr/bin/java"}.get)
    assert scored(table).n_rows == N


def test_master_goes_with_spark(table, tmp_path):
    with pytest.raises(UserError, match=r"master is 'local' with engine='arrow': it goes with engine='spark'\."):
        score_file(table, tmp_path / "out.parquet", SCORER, master="local")
