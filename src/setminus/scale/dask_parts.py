"""Tasks for the parts of a table, run by the workers of Dask.

Anybody who can connect to a scheduler runs code as its user. The scheduler started here accepts only connections with a
key that is made for the run and kept in memory; one on another machine must use TLS.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from setminus.errors import MissingExtraError, UserError
from setminus.scale.part_files import RunTasks
from setminus.tables.reading import Table

__all__ = ["dask_tasks"]

WORKERS = 2
PATIENCE = 30
"""Seconds to wait for a scheduler, and for its first worker."""


@contextmanager
def dask_tasks(scheduler: str | None, folder: Path) -> Iterator[RunTasks]:
    """A function that runs a task for some parts of a table on workers, and gives the results in order.

    Parameters
    ----------
    scheduler : str or None
        Address of a running scheduler; None starts 2 worker processes here. Certificates for ``tls://`` come from
        Dask's own configuration, ``distributed.comm.tls``.
    folder : Path
        Where workers that are started here keep their files.
    """
    try:
        import cloudpickle  # type: ignore[import-untyped]
        import cryptography  # noqa: F401
        from distributed import KilledWorker
    except ImportError as error:
        raise MissingExtraError('engine="dask"', "Dask and cryptography", extra="scale") from error

    with _client(scheduler, folder) as client:

        def run(task: Callable[[int], Any], table: Table, indices: list[int]) -> Iterator[Any]:
            # packed here, so that a task that a worker cannot unpack fails in the task, whose error is reported; and in
            # a separate task, so that a long list of parts is not sent with each of them
            job = client.submit(bytes, cloudpickle.dumps(task), pure=False)
            futures = [client.submit(_run, job, index, pure=False, priority=-index) for index in indices]
            try:
                for index, future in zip(indices, futures, strict=True):
                    try:
                        yield future.result()
                    except KilledWorker as error:
                        raise UserError(
                            f"every worker that worked on the rows from {table.starts[index] + 1:,} of "
                            f"{table.path.name} died",
                            do="give workers more memory, or write the file in smaller row groups.",
                        ) from error
                    future.release()
            finally:
                client.cancel(futures)

        yield run


def _run(job: bytes, index: int) -> Any:
    import cloudpickle

    return cloudpickle.loads(job)(index)


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
            f"the scheduler {scheduler} is on another machine and without TLS, where others on the network could read "
            "the rows and run code here",
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
