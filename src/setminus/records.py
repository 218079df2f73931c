"""A run's record is one line of JSON; a file of them is what tables, figures and pages are made from."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

from setminus.errors import UserError, printable_json
from setminus.files import atomic_write

__all__ = [
    "RecordError",
    "append_record",
    "read_record",
    "read_records",
    "run_record",
    "to_json",
    "versions",
    "write_json",
]

logger: logging.Logger = logging.getLogger(__name__)


class RecordError(UserError):
    """A record that a page does not show, for a reason that the error gives."""


Record = dict[str, Any]

BESIDE = "beside"
"""The key of metrics that are kept in a separate file, such as images that may be looked at but not passed on; also the
name of the folder of these files. A record is valid without its file."""
REQUIRED = ("name", "config", "seed", "versions", "metrics", "seconds")
NESTED = ("config", "versions", "metrics")
"""The required keys whose values are dictionaries."""


def append_record(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Write a record as one more line of a file, which is made where it does not exist.

    The line goes out in one write, its line break last: a run that is killed leaves a whole line or one without
    a line break, which `read_records` ignores and the next `append_record` removes.

    Parameters
    ----------
    path : path
    record : mapping
        With at least the keys name, config, seed, versions, metrics and seconds; numpy values become plain ones. What
        its metrics hold under `BESIDE`, a dictionary, is written to a separate file.

    Examples
    --------
    >>> import tempfile
    >>> record = dict(name="toy", config={}, seed=0, versions=versions(), metrics={"accuracy": 0.9}, seconds=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_record(Path(folder, "records.jsonl"), record)
    ...     [read["metrics"] for read in read_records(Path(folder, "records.jsonl"))]
    [{'accuracy': 0.9}]
    """
    missing = [key for key in REQUIRED if key not in record]
    if missing:
        raise UserError(
            f"the record has no {', '.join(missing)}; it holds {', '.join(record) or 'nothing'}", do="add these keys."
        )
    apart = record["metrics"].get(BESIDE)
    if apart is not None:
        mark = _mark(record)
        rest = {key: value for key, value in record["metrics"].items() if key != BESIDE}
        record = {**record, "metrics": rest, BESIDE: mark}
    try:
        line = json.dumps(record, allow_nan=False, default=_plain) + "\n"
    except ValueError as error:
        raise UserError(
            f"the record {record['name']!r} holds a NaN or an infinity", do="write None instead."
        ) from error
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if apart is not None:
        place = _beside(Path(path), mark)
        place.parent.mkdir(exist_ok=True)
        write_json(place, apart)
    # appending and unbuffered: two runs that finish together each get a separate line
    with Path(path).open("a+b", buffering=0) as file:
        _mend_end(file)
        file.write(line.encode())
        os.fsync(file.fileno())


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read every record of a file, oldest first.

    Returns
    -------
    list of dict
        What was written beside the file is in their metrics, where it is still there.

    Raises
    ------
    ValueError
        If a whole line is no record, or lacks what every record has; only a last line without a line break, which a
        killed run leaves behind, is ignored (and logged).
    """
    # not splitlines(): json leaves unicode line separators inside a string as they are
    lines = _text(path).split("\n")
    records = []
    for number, line in enumerate(lines, start=1):
        record = _parse(line)
        if record is not None:
            missing = [key for key in REQUIRED if key not in record]
            if missing:
                raise UserError(
                    f"{path}, line {number} is no record",
                    do=f"it has no {', '.join(missing)}. Remove the line, or restore the file.",
                )
            plain = [key for key in NESTED if not isinstance(record[key], dict)]
            if plain:
                raise UserError(
                    f"{path}, line {number} is no record",
                    do=f"{', '.join(plain)} should be an object. Remove the line, or restore the file.",
                )
            records.append(_whole(record, Path(path)))
        elif number == len(lines):
            if line:
                logger.warning("%s: ignoring line %d, which a killed run left unfinished", path, number)
        else:
            raise UserError(
                f"{path}, line {number} is no record", do=f"{line[:60]!r}. Remove the line, or restore the file."
            )
    return records


def read_record(path: str | os.PathLike[str]) -> Record:
    """Read a file that holds one record, as `write_json` wrote it."""
    record = _parse(_text(path))
    if record is None or "job" not in record:
        raise UserError(f"{path} is no record", expected="what `setminus fit`, `adapt` or `audit` wrote")
    return record


def to_json(record: Mapping[str, Any]) -> str:
    """A record as JSON that a person can read.

    Examples
    --------
    >>> print(to_json({"accuracy": 0.9}))
    {
      "accuracy": 0.9
    }
    """
    return printable_json(json.dumps(record, allow_nan=False, default=_plain, indent=2, ensure_ascii=False))


def write_json(path: str | os.PathLike[str], record: Mapping[str, Any]) -> Path:
    """Write a record to a separate file, which appears whole or not at all."""
    with atomic_write(path) as partial:
        partial.write_text(to_json(record) + "\n", encoding="utf-8")
    return Path(path)


def run_record(
    name: str,
    job: str,
    config: Any,
    *,
    command: str,
    task: Mapping[str, Any],
    metrics: Mapping[str, Any],
    steps: Mapping[str, float],
    packages: Sequence[str] = (),
    seed: int | None = None,
) -> Record:
    """The record of one run of a command: `job` is the section of the page that shows it, `steps` has seconds by name.

    `config` is a dataclass, whose seed counts where none is given, or a mapping; see `versions` for `packages`.
    """
    return {
        "name": name,
        "job": job,
        "config": dict(config) if isinstance(config, Mapping) else asdict(config),
        "seed": config.seed if seed is None else seed,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(*packages),
        "command": command,
        "task": task,
        "metrics": metrics,
        "steps": dict(steps),
        "seconds": sum(steps.values()),
    }


def versions(*packages: str) -> dict[str, str]:
    """What a record should say of the software behind it.

    Parameters
    ----------
    *packages : str
        More distributions to name than those that every run uses.

    Examples
    --------
    >>> {"python", "setminus", "scikit-learn"} <= {*versions()}
    True
    """
    found = {"python": platform.python_version()}
    for package in ("setminus", "numpy", "scipy", "scikit-learn", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}


def _mark(record: Mapping[str, Any]) -> str:
    about = json.dumps([record[key] for key in ("name", "config", "seed")], sort_keys=True, default=_plain)
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def _beside(path: Path, mark: str) -> Path:
    return path.parent / BESIDE / f"{mark}.json"


def _whole(record: Record, path: Path) -> Record:
    mark = str(record.get(BESIDE, ""))
    # a record from elsewhere must not lead to another file
    if not re.fullmatch("[0-9a-f]{16}", mark) or not _beside(path, mark).is_file():
        return record
    apart = _parse(_text(_beside(path, mark))) or {}
    return {**record, "metrics": {**record["metrics"], **apart}}


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no record, as it is no text in UTF-8", do="restore the file.") from error


def _parse(text: str) -> Record | None:
    """A record; None for what is no JSON, or holds a NaN, which JSON does not have and no browser reads."""
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _refuse_constant(name: str) -> None:
    raise UserError(f"{name} is no JSON", do="write null instead.")


def _mend_end(file: BinaryIO) -> None:
    """Make the file end with a line break: after a last line that is whole, instead of one that is not."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if file.read(1) in (b"", b"\n"):
        return
    file.seek(0)
    content = file.read()
    end_of_whole_lines = content.rfind(b"\n") + 1
    if _parse(content[end_of_whole_lines:].decode(errors="replace")) is None:
        file.truncate(end_of_whole_lines)
    else:
        file.write(b"\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} {value!r} cannot be written as JSON: turn it into numbers or text.")
