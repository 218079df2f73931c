import contextlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import cloudpickle
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from setminus import OrthogonalClassifier, save
from setminus.errors import UserError
from setminus.progress import listen
from setminus.scale.dask_parts import _check_address, _check_workers, _own_version
from setminus.scale.part_files import limit_blas, part_folder
from setminus.scale.scorers import ModelScorer, ProbabilityScorer
from setminus.scale.scoring import score_file
from setminus.tables.drift import ColumnDrift
from setminus.tables.reading import open_table

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
# workers cannot import a test module
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SCORER = ProbabilityScorer(["p"], ["q"], [0.4, 0.6])
N = 2000


def started(**options):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50, **options
    )


def in_threads(**options):
    """Workers that are threads of this process, and are spoken to as those of others: quick to start."""
    return started(processes=False, **options)


@pytest.fixture(scope="module", autouse=True)
def threads_as_before():
    """A worker of this process must not limit the linear algebra of all tests that follow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setminus.scale.part_files.limit_blas", lambda: None)
        yield


@pytest.fixture(scope="module")
def cluster():
    with in_threads(protocol="tcp") as cluster:
        yield cluster


@pytest.fixture
def one_worker(monkeypatch):
    """A local cluster of one process: a second one takes seconds to start."""
    monkeypatch.setattr("setminus.scale.dask_parts.WORKERS", 1)


@pytest.fixture
def rows():
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, N))
    return pa.table({"id": np.arange(N), 'na"me, <b>\n': [f"é{i % 7}" for i in range(N)], "p": p, "q": q})


def put(rows, path):
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=150)
        return open_table(path)
    with pa.output_stream(path, compression="gzip" if path.suffix == ".gz" else None) as sink:
        pa.csv.write_csv(rows, sink)
    table = open_table(path)
    return replace(table, source=replace(table.source, block=20_000))


def both(table, scorer, folder, **options):
    """The file that each engine writes, as bytes."""
    for engine, more in (("arrow", {}), ("dask", options)):
        score_file(table, folder / f"{engine}.parquet", scorer, engine=engine, **more)
    return [(folder / f"{engine}.parquet").read_bytes() for engine in ("arrow", "dask")]


@pytest.mark.parametrize("name", ["in.parquet", "in.csv", "in.csv.gz"])
def test_both_engines_write_the_same_bytes(name, rows, cluster, tmp_path):
    arrow, dask = both(put(rows, tmp_path / name), SCORER, tmp_path, scheduler=cluster.scheduler_address)
    assert arrow == dask
    scored = pq.read_table(tmp_path / "dask.parquet")
    assert scored["id"].to_pylist() == list(range(N))
    assert len(list(tmp_path.iterdir())) == 3
    table = open_table(tmp_path / "dask.parquet")
    assert len(table.starts) > 5


def test_both_engines_agree_on_a_model(rows, cluster, tmp_path):
    X, y = rows.select(["p", "q"]).to_pandas(), np.array(rows["p"]) > 0.5
    X["group"] = np.array(rows["id"]) % 2
    model = OrthogonalClassifier(LogisticRegression(), sensitive_columns=["group"]).fit(X, y)
    save(model, tmp_path / "m.skops")
    table = put(pa.Table.from_pandas(X), tmp_path / "in.parquet")
    scorer = ModelScorer(tmp_path / "m.skops")
    arrow, dask = both(table, scorer, tmp_path, scheduler=cluster.scheduler_address)
    assert arrow == dask


@dataclass(frozen=True)
class Watched(ProbabilityScorer):
    """Scores as ever; in a worker it writes down where it is."""

    log: str = ""

    def score(self, rows):
        with contextlib.suppress(ValueError):
            worker = distributed.get_worker()
            blas = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
            place = [os.environ["SETMINUS_THREADS"], worker.state.nthreads, blas, os.getpid(), worker.local_directory]
            with open(self.log, "a") as file:  # noqa: PTH123
                file.write(json.dumps(place) + "\n")
        return super().score(rows)


def test_a_local_cluster_comes_and_goes(rows, tmp_path, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "log"
    scorer = Watched(SCORER.full, SCORER.principal, SCORER.prior, log=str(log))
    seen, defaults = [], []

    def look(event):
        if event.kind == "advanced":
            seen.append((event.done, event.total))
            defaults.append(distributed.client._get_global_client())

    with listen(look):
        arrow, dask = both(put(rows, tmp_path / "in.parquet"), scorer, tmp_path)
    assert arrow == dask
    places = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(places) == 14
    # each worker: one thread for tasks, one for linear algebra and for our own loops
    assert {tuple(place[:3]) for place in places} == {("1", 1, 1)}
    assert 1 <= len({pid for *_, pid, _ in places}) <= 2
    folders = [Path(folder).relative_to(tmp_path).parts[0] for *_, folder in places]
    assert all(folder.startswith(".dask.parquet.") and folder.endswith(".parts") for folder in folders)
    # what else is computed with Dask in this process does not go to our cluster
    assert set(defaults) == {None}
    assert seen[-1] == (N, N)
    # 14 parts, by each engine
    assert [done for done, _ in seen].count(N) == 2
    assert len(seen) == 2 * 14
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrow.parquet", "dask.parquet", "in.parquet"]


def test_both_engines_keep_the_values_of_a_csv_as_they_stand(cluster, tmp_path):
    (tmp_path / "in.csv").write_text("id,p,q\n007,0.50,0.5\n008,5e-1,.25\n")
    written = []
    for engine, more in (("arrow", {}), ("dask", {"scheduler": cluster.scheduler_address})):
        score_file(tmp_path / "in.csv", tmp_path / f"{engine}.csv", SCORER, engine=engine, **more)
        written.append((tmp_path / f"{engine}.csv").read_text())
    assert written[0] == written[1]
    assert written[1].splitlines()[2].startswith('"008","5e-1",".25",')


@dataclass(frozen=True)
class Drifting:
    """Finds one unseen value in each part."""

    def columns(self, table):
        return ["id"]

    def drift(self, rows):
        return {"id": ColumnDrift(rows.num_rows, 1, 0, 0.0, str(rows["id"][0]))}

    def score(self, rows):
        return pa.table({"twice": np.array(rows["id"]) * 2})


def test_drift_comes_back_from_the_workers(rows, cluster, tmp_path):
    table = put(rows, tmp_path / "in.parquet")
    done = score_file(
        table, tmp_path / "out.parquet", Drifting(), engine="dask", scheduler=cluster.scheduler_address
    )  # fmt: skip
    assert done.drift == {"id": ColumnDrift(N, 14, 0, 0.0, "0")}


def test_row_groups_of_no_rows_are_passed_over(rows, cluster, tmp_path):
    with pq.ParquetWriter(tmp_path / "in.parquet", rows.schema) as writer:
        for part in (rows[:0], rows[:300], rows[:0], rows[300:], rows[:0]):
            writer.write_table(part)
    arrow, dask = both(tmp_path / "in.parquet", SCORER, tmp_path, scheduler=cluster.scheduler_address)
    assert arrow == dask
    assert pq.read_table(tmp_path / "dask.parquet").num_rows == N


@dataclass(frozen=True)
class Slow:
    """Takes its time, so that a worker can be killed in the middle of it, and writes down each start."""

    log: str

    def columns(self, table):
        return ["id"]

    def drift(self, rows):
        return {}

    def score(self, rows):
        with open(self.log, "a") as file:  # noqa: PTH123
            file.write(f"{os.getpid()} {rows['id'][0].as_py()}\n")
        time.sleep(0.15)
        return pa.table({"twice": np.array(rows["id"]) * 2})


def test_a_killed_worker_neither_loses_nor_doubles_a_row(rows, tmp_path):
    table = put(rows, tmp_path / "in.parquet")
    log = tmp_path / "log"
    killed = []

    def kill_one():
        # half-way, the one that began a task last: it is asleep in it
        while not log.exists() or len(log.read_text().splitlines()) < 5:
            time.sleep(0.01)
        killed.append(int(log.read_text().split()[-2]))
        os.kill(killed[0], signal.SIGKILL)

    with started() as cluster:
        killer = threading.Thread(target=kill_one)
        killer.start()
        done = score_file(
            table, tmp_path / "out.parquet", Slow(str(log)), engine="dask", scheduler=cluster.scheduler_address
        )
        killer.join()
    scored = pq.read_table(done.path)
    assert scored["id"].to_pylist() == list(range(N))
    assert scored["twice"].to_pylist() == list(range(0, 2 * N, 2))
    began = [line.split() for line in log.read_text().splitlines()]
    # the control: something was done again, and by another process
    assert len(began) > len({start for _, start in began}) == 14
    interrupted = [start for pid, start in began if int(pid) == killed[0]][-1]
    assert len({pid for pid, start in began if start == interrupted}) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "log", "out.parquet"]


@dataclass(frozen=True)
class Deadly:
    def columns(self, table):
        return ["id"]

    def drift(self, rows):
        return {}

    def score(self, rows):
        os._exit(1)


@pytest.mark.usefixtures("one_worker")
def test_a_part_that_kills_every_worker_is_named(rows, tmp_path):
    table = put(rows[:100], tmp_path / "in.parquet")
    with (
        # Dask tries four times otherwise
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        pytest.raises(UserError, match=r"every worker that worked on the rows from 1 of in\.parquet died"),
    ):
        score_file(table, tmp_path / "out.parquet", Deadly(), engine="dask")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_bad_value_is_reported_as_by_the_other_engine(rows, cluster, tmp_path):
    values = rows["p"].to_pylist()
    values[1000] = None
    table = put(rows.set_column(2, "p", pa.array(values)), tmp_path / "in.parquet")
    said = []
    for options in ({}, {"engine": "dask", "scheduler": cluster.scheduler_address}):
        with pytest.raises(UserError, match=r"in rows 901 to 1,050 of in\.parquet, full has 2 values") as caught:
            score_file(table, tmp_path / "out.parquet", SCORER, **options)
        said.append((caught.value.came, caught.value.do))
    assert said[0] == said[1]
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_workers_with_another_version_are_refused(rows, cluster, monkeypatch, tmp_path):
    monkeypatch.setattr("setminus.scale.dask_parts._own_version", lambda: "9.9")
    table = put(rows, tmp_path / "in.parquet")
    with pytest.raises(UserError, match=r"the workers have setminus .*, expected 9\.9 as here"):
        score_file(table, tmp_path / "out.parquet", SCORER, engine="dask", scheduler=cluster.scheduler_address)


@dataclass
class Workers:
    """A client whose workers have these versions; None where setminus is not installed."""

    versions: list

    def run(self, function, *args):
        assert function is importlib.metadata.version and args == ("setminus",)
        if None in self.versions:
            raise importlib.metadata.PackageNotFoundError("setminus")
        return dict(enumerate(self.versions))


@pytest.mark.parametrize(
    ("versions", "had"),
    [(["1", "0.5"], "0.5 and 1"), (["0.5"], "0.5"), ([None], "not installed"), ([], "not installed")],
)
def test_the_versions_of_the_workers_are_named(versions, had):
    here = _own_version()
    _check_workers(Workers([here, here]))
    with pytest.raises(UserError, match=rf"have setminus {had}, expected {here} as here.*\[scale\]=={here}"):
        _check_workers(Workers(versions))


def test_the_folder_of_the_parts_is_removed_even_if_a_worker_still_writes(monkeypatch, tmp_path):
    removed, tried = shutil.rmtree, []

    def busy(folder, ignore_errors=False):
        tried.append(folder)
        if len(tried) > 2:
            removed(folder)
        elif not ignore_errors:
            raise OSError("the folder is not empty")

    monkeypatch.setattr(shutil, "rmtree", busy)
    with pytest.raises(KeyError), part_folder(tmp_path / "out.parquet") as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith(".out.parquet.") and folder.name.endswith(".parts")
        raise KeyError
    assert len(tried) == 3
    assert list(tmp_path.iterdir()) == []
    # one that can never be removed is left
    monkeypatch.setattr(shutil, "rmtree", lambda folder, **options: tried.append(folder))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with part_folder(tmp_path / "out.parquet"):
        pass
    assert len(list(tmp_path.iterdir())) == 1
    assert len(tried) < 50


def test_a_worker_has_one_thread_for_linear_algebra_for_good():
    with threadpool_limits(2):
        before = threadpool_info()
        limit_blas.__wrapped__()
        threads = {(pool["user_api"], pool["num_threads"]) for pool in threadpool_info()}
    # other pools keep theirs
    others = {(pool["user_api"], 2) for pool in before if pool["user_api"] != "blas"}
    assert threads == {("blas", 1), *others} != {("blas", 1)}


def test_a_scheduler_that_does_not_answer(rows, monkeypatch, tmp_path):
    monkeypatch.setattr("setminus.scale.dask_parts.PATIENCE", 0.5)
    table = put(rows, tmp_path / "in.parquet")
    with pytest.raises(UserError, match=r"no Dask scheduler with a worker answers at tcp://127\.0\.0\.1:9"):
        score_file(table, tmp_path / "out.parquet", SCORER, engine="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UserError, match="no Dask scheduler with a worker answers at nonsense"):
        score_file(table, tmp_path / "out.parquet", SCORER, engine="dask", scheduler="nonsense://localhost")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def listening():
    """The ports that this process and those it started listen on."""
    here = psutil.Process()
    found = [one for part in [here, *here.children(recursive=True)] for one in part.net_connections("inet")]
    assert all(one.laddr.ip == "127.0.0.1" for one in found if one.status == psutil.CONN_LISTEN)
    return {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}


INTRUDER = """
import asyncio, http.client, json, os, pickle, sys
from distributed import Security
from distributed.comm import connect

async def enter(address, security):
    # what a scheduler gives to one who asks it to call a function; None from whoever does not answer
    try:
        comm = await asyncio.wait_for(connect(address, timeout=5, **security.get_connection_args("client")), 10)
        await comm.write({"op": "run_function", "function": pickle.dumps(os.getpid), "reply": True})
        answer = await asyncio.wait_for(comm.read(), 5)
        return answer.get("result") if isinstance(answer, dict) else None
    except (OSError, TypeError, ValueError, RuntimeError, asyncio.TimeoutError):
        return None

def page(port):
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        asked.request("GET", "/info/main/workers.html")
        return asked.getresponse().status
    except (OSError, http.client.HTTPException):
        return None

async def main(ports):
    other = Security.temporary()
    plain = await asyncio.gather(*(enter(f"tcp://127.0.0.1:{port}", Security()) for port in ports))
    with_another_key = await asyncio.gather(*(enter(f"tls://127.0.0.1:{port}", other) for port in ports))
    return {"plain": plain, "with another key": with_another_key, "pages": [page(port) for port in ports]}

print(json.dumps(asyncio.run(main(list(map(int, sys.argv[1:]))))), flush=True)
os._exit(0)
"""


@pytest.mark.usefixtures("one_worker")
@pytest.mark.parametrize("kept_out", [True, False], ids=["as it is", "as it was"])
def test_nobody_else_can_use_the_local_cluster(kept_out, rows, monkeypatch, tmp_path):
    if not kept_out:
        # the control: what an older version started
        monkeypatch.setattr(distributed.Security, "temporary", lambda: None)
    before = listening()
    seen = {}

    def intrude(event):
        if event.kind == "advanced" and not seen:
            ports = listening() - before
            command = [sys.executable, "-c", INTRUDER, *map(str, ports)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
            seen.update(json.loads(done.stdout))

    table = put(rows, tmp_path / "in.parquet")
    with listen(intrude):
        done = score_file(table, tmp_path / "out.parquet", SCORER, engine="dask")
    assert done.n_rows == N
    assert len(seen["plain"]) >= 3
    # code of another process, run by the one that scores
    assert (os.getpid() in seen["plain"]) is not kept_out
    assert set(seen["with another key"]) == {None}
    # Dask has a port for pages in any case: there are none on it
    assert set(seen["pages"]) <= {None, 404}
    assert listening() <= before


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """A scheduler that speaks TLS, and the configuration that Dask needs for it."""
    security = distributed.Security.temporary()
    folder = tmp_path_factory.mktemp("keys")
    (folder / "ca.pem").write_text(security.tls_ca_file)
    (folder / "cert.pem").write_text(security.tls_client_cert)
    (folder / "key.pem").write_text(security.tls_client_key)
    files = {"ca-file": "ca.pem", "client.cert": "cert.pem", "client.key": "key.pem"}
    config = {f"distributed.comm.tls.{key}": str(folder / name) for key, name in files.items()}
    with in_threads(protocol="tls", security=security) as cluster:
        yield cluster.scheduler_address, config


def test_a_scheduler_with_tls_is_used_with_the_certificates_of_dask(rows, encrypted, tmp_path):
    address, config = encrypted
    assert address.startswith("tls://")
    with dask.config.set(config):
        arrow, scored = both(put(rows, tmp_path / "in.parquet"), SCORER, tmp_path, scheduler=address)
    assert arrow == scored


def test_a_scheduler_with_tls_needs_certificates(rows, encrypted, monkeypatch, tmp_path):
    monkeypatch.setattr("setminus.scale.dask_parts.PATIENCE", 2)
    table = put(rows, tmp_path / "in.parquet")
    with pytest.raises(UserError, match=r"no Dask scheduler .* for tls://, set distributed\.comm\.tls in Dask's"):
        score_file(table, tmp_path / "out.parquet", SCORER, engine="dask", scheduler=encrypted[0])


@pytest.mark.parametrize(
    "address", ["tcp://10.255.255.1:8786", "10.255.255.1:8786", "tcp://far.invalid:1", "ws://[2001:db8::1]:1"]
)
def test_a_scheduler_elsewhere_without_tls_is_refused(address, rows, tmp_path):
    table = put(rows, tmp_path / "in.parquet")
    with pytest.raises(UserError, match=r"is on another machine and without TLS.* give a tls:// address"):
        score_file(table, tmp_path / "out.parquet", SCORER, engine="dask", scheduler=address)
    # whoever says so to Dask may
    with dask.config.set({"distributed.comm.require-encryption": False}):
        _check_address(address)
    with dask.config.set({"distributed.comm.require-encryption": True}), pytest.raises(UserError):
        _check_address(address)


@pytest.mark.parametrize(
    "address",
    ["tcp://127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786", "tls://far.invalid:1", "wss://far.invalid:1"],
)
def test_a_scheduler_here_or_with_tls_is_asked(address):
    _check_address(address)


@pytest.mark.parametrize("missing", ["distributed", "cryptography"])
def test_without_dask_the_error_says_what_to_install(missing, rows, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, missing, None)
    table = put(rows, tmp_path / "in.parquet")
    with pytest.raises(ImportError, match=r'pip install "setminus\[scale\]"'):
        score_file(table, tmp_path / "out.parquet", SCORER, engine="dask")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
