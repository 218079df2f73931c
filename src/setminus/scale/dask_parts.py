"""Parts scored by Dask: workers write the scores of each part to a folder, the client reads them in order.

Anybody who can connect to a scheduler runs code as its user. The scheduler started here accepts only connections with a
key that is made for the run and kept in memory; one on another machine must use TLS.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from setminus.errors import MissingExtraError, UserError
from setminus.scale.part_files import part_folder, read_parts, score_part
from setminus.scale.scorers import Parts, Scorer
from setminus.tables.drift import Drift
from setminus.tables.reading import Table

__all__ = ["dask_parts"]

WORKERS = 2
PATIENCE = 30
"""Seconds to wait for a scheduler, and for its first worker."""


def dask_parts(
    table: Table,
    scorer: Scorer,
    kept: list[str],
    needed: list[str],
    as_text: bool,
    target: Path,
    scheduler: str | None,
) -> Parts:
    """Rows to keep, their scores and their drift, part by part in order, scored by workers.

    A task reads one part, scores it, writes the scores to a file of a fixed name and returns the drift. Repeated
    after a worker died, it writes the same file again. The client reads each file once.

    Parameters
    ----------
    table : Table
    scorer : Scorer
    kept, needed : list of str
        The columns to give back, and those that the scorer needs.
    as_text : bool
        Whether to give columns back as they stand in a CSV.
    target : Path
        The output; the folder of the parts is made next to it.
    scheduler : str or None
        Address of a running scheduler; None starts 2 worker processes here. Certificates for ``tls://`` come from
        Dask's own configuration, ``distributed.comm.tls``.
    """
    try:
        import cloudpickle  # type: ignore[import-untyped]
        import cryptography  # noqa: F401
        from distributed import KilledWorker
    except ImportError as error:
        raise MissingExtraError('engine="dask"', "Dask and cryptography", extra="scale") from error

    with part_folder(target) as folder, _client(scheduler, folder) as client:
        table = table.seekable(folder)
        # packed here, so that a scorer that a worker cannot unpack fails in the task, whose error is reported; and in
        # a task of its own, so that a long list of parts is not sent with each of them
        job = client.submit(bytes, cloudpickle.dumps((table, scorer, needed, folder)), pure=False)

        def work(indices: list[int]) -> Iterator[Drift]:
            futures = [client.submit(_score_part, job, index, pure=False, priority=-index) for index in indices]
            try:
                for index, future in zip(indices, futures, strict=True):
                    try:
                        yield future.result()
                    except KilledWorker as error:
                        raise UserError(
                            f"every worker that scored the rows from {table.starts[index] + 1:,} of {table.path.name} "
                            "died",
                            do="give workers more memory, or write the file in smaller row groups.",
                        ) from error
                    future.release()
            finally:
                client.cancel(futures)

        yield from read_parts(table, kept, as_text, folder, work)


def _score_part(job: bytes, index: int) -> Drift:
    import cloudpickle

    table, scorer, needed, folder = cloudpickle.loads(job)
    return score_part(table, scorer, needed, folder, index)


@contextmanager
def _client(scheduler: str | None, folder: Path) -> Iterator[Any]:
    import dask
    from distributed import Client, LocalCluster, Security

    with ExitStack() as stack:
        if scheduler is None:
            security = Security.temporary()
            # Dask opens a port for pages in any case: with nothing on it
            pages: dict[str, list[str]] = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
            with dask.config.set(pages):
                cluster = LocalCluster(
                    n_workers=WORKERS,
                    threads_per_worker=1,
                    security=security,
                    dashboard_address=None,
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    local_directory=str(folder),
                    silence_logs=logging.CRITICAL,
                    env={"SETMINUS_THREADS": "1"},
                )
            address = stack.enter_context(cluster).scheduler_address
        else:
            _check_address(scheduler)
            address, security = scheduler, Security()
        try:
            client = stack.enter_context(Client(address, timeout=PATIENCE, set_as_default=False, security=security))
            client.wait_for_workers(1, timeout=PATIENCE)
            _check_workers(client)
        except UserError:
            raise
        # a TypeError where TLS is asked for without a certificate, a MemoryError where something else answers
        except (OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
            raise UserError(
                f"no Dask scheduler with a worker answers at {address}",
                do="start them with `dask scheduler` and `dask worker`, or leave out the address; for tls://, set "
                "distributed.comm.tls in Dask's configuration (see SECURITY.md).",
            ) from error
        yield client


def _check_address(scheduler: str) -> None:
    """Raise where others could listen on the way to a scheduler: they could read the rows, and answer with code."""
    import dask

    where = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
    host = where.hostname or ""
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    # None unless somebody has decided
    agreed = dask.config.get("distributed.comm.require-encryption", None) is False
    if not (here or agreed or where.scheme in ("tls", "wss")):
        raise UserError(
            f"the scheduler {scheduler} is on another machine and without TLS, where anybody on the way reads the rows "
            "and runs code here",
            do="give a tls:// address, or a tunnel's on 127.0.0.1; in a network of your own, set "
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=False.",
        )


def _check_workers(client: Any) -> None:
    """Raise where a worker has another version of the library: it would hang, or give other scores."""
    here = _own_version()
    try:
        found = set(client.run(version, "setminus").values())
    except PackageNotFoundError:
        found = set()
    if found != {here}:
        raise UserError(
            f"the workers have setminus {' and '.join(sorted(found)) or 'not installed'}, expected {here} as here",
            do=f'install it for every worker: pip install "setminus[scale]=={here}"',
        )


def _own_version() -> str:
    return version("setminus")
