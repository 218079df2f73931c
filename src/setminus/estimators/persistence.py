"""Models to files and back, by skops: a file from an unknown source runs no code.

A file is a zip of one JSON file and of arrays. `load` unpacks it within bounds, compares its types with the list in
`model_contents`, makes the objects, and checks their contents.
"""

from __future__ import annotations

import io
import json
import math
import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from setminus.errors import UserError, printable
from setminus.estimators.model_contents import DamagedError, check_contents, outside_settings, refused_name
from setminus.files import atomic_write

__all__ = ["LIMIT", "Archive", "Node", "load", "model_errors", "read_archive", "save"]

LIMIT = "SETMINUS_MODEL_BYTES"
"""The environment variable with the number of bytes that a model file may unpack to."""

MAX_BYTES = 2 << 30
MAX_RATIO, SMALL = 100, 256 << 20
"""`save` compresses small models only: a file that unpacks to more than `SMALL` and to `MAX_RATIO` times its size was
not written by it."""
SCHEMA_COST = 24
"""The most bytes of memory that a byte of the JSON file can take, as a list of empty lists does."""
MAX_DEPTH = 400
"""Lists and objects of the JSON file within each other. How deep skops can recurse depends on a limit of Python, which
other libraries raise."""
SCHEMA, PROTOCOL = "schema.json", 2
CHUNK = 1 << 20
MAX_NAMES, MAX_CHARACTERS = 12, 200
"""Names in an error message, and characters of each."""

Header = tuple[tuple[int, ...], np.dtype[Any]]

MOVED = {"setminus.applications.domain_adaptation.adapter": "setminus.adaptation.adapter"}
"""Modules of classes in files of earlier versions, and where these classes are now."""


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to `path`, atomically: an error leaves no partial file.

    Parameters
    ----------
    model : estimator
    path : path
        Where to write, by custom ending in ``.skops``.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from setminus import GroupPrincipal
    >>> model = GroupPrincipal().fit(None, [0, 1, 0, 1], sensitive_features=["f", "f", "m", "m"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(model, Path(folder) / "model.skops"))
    GroupPrincipal()
    """
    with atomic_write(path) as partial:
        partial.write_bytes(_packed(_skops().dumps(model)))
    return Path(path)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Read a model that `save` wrote.

    Only types on a reviewed list are made: those of this library, and those of scikit-learn with their parts. Any other
    type is refused by name before it is made. The contents are then checked, so that a prediction reads no file and
    stays within its own memory; SECURITY.md has the details.

    Parameters
    ----------
    path : path
    trusted : iterable of str
        Names of further types, functions or settings to allow, as the error message gives them. Use it only for files
        from a source that you know.

    Returns
    -------
    estimator

    Raises
    ------
    FileNotFoundError
    ValueError
        If the file is damaged, holds an untrusted type, or unpacks to more than ``SETMINUS_MODEL_BYTES`` (by default
        2 GiB, and 100 times its size).
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}: check the path, or save a model there first.")
    if isinstance(trusted, str):
        raise TypeError(f"trusted is the string {trusted!r}: expected a list of type names, trusted=[{trusted!r}].")
    try:
        return _made(source, frozenset(trusted))
    except RefusedError:
        raise
    # zip, json, numpy, skops and the types themselves raise errors of many kinds on damaged input
    except Exception as error:
        raise UserError(
            f"{source.name} is not a model file of setminus, or is damaged ({_reason(error)})",
            do="copy it again, or save the model again.",
        ) from error


@contextmanager
def model_errors(name: str) -> Iterator[None]:
    """Turn any error of a loaded model into a `UserError`: parts of a damaged file may not fit together.

    Parameters
    ----------
    name : str
        What to call the file.

    Examples
    --------
    >>> with model_errors("m.skops"):
    ...     [0][1]
    Traceback (most recent call last):
    setminus.errors.UserError: the model m.skops fails (IndexError, its parts do not fit together): ...
    """
    try:
        yield
    except (ValueError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise UserError(f"the model {name} fails ({_reason(error)})", do="fit it again, or copy it again.") from error


class RefusedError(UserError):
    """A file that may be intact, and is refused because of its types or its size.

    `typed` is what to do on the command line, where that differs from Python.
    """

    typed = ""

    @property
    def lines(self) -> tuple[str, str]:
        """What the command prints."""
        wrong, remedy = super().lines
        return wrong, self.typed or remedy


def _skops() -> Any:
    """The module ``skops.io``, without torch and dask: it imports all of scikit-learn, adapters for these included."""
    adapters = [f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask")]
    hidden = [name for name in adapters if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        return import_module("skops.io")
    finally:
        for name in hidden:
            del sys.modules[name]


def _made(source: Path, trusted: frozenset[str]) -> Any:
    import sklearn
    from sklearn.exceptions import InconsistentVersionWarning

    skops = _skops()
    archive = read_archive(source)
    refused = {name for node in archive.nodes if (name := refused_name(*node)) is not None} - trusted
    # skops also names functions that a node calls
    found = skops.get_untrusted_types(data=archive.content)
    known = {f"{node.module}.{node.name}" for node in archive.nodes}
    untrusted = refused | (set(found) - known - trusted)
    if untrusted:
        raise _refusal(source.name, untrusted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = skops.loads(archive.content, trusted=found)
    check_contents(model)
    reaching = set(outside_settings(model)) - trusted
    if reaching:
        raise _refusal(source.name, reaching)
    if any(isinstance(one.message, InconsistentVersionWarning) for one in caught):
        # once, not for each part, and without the version that the file names, which may be any text
        warnings.warn(
            f"{source.name} was saved with another version of scikit-learn than {sklearn.__version__}: its predictions "
            "may differ. Save it again with this version.",
            UserWarning,
            stacklevel=3,
        )
    return model


def _refusal(name: str, untrusted: Iterable[str]) -> RefusedError:
    """The error for what is not trusted; what to do can be copied, in Python and on the command line."""
    names = [printable(one) for one in sorted(set(untrusted))]
    listed = [one for one in names if len(one) <= MAX_CHARACTERS][:MAX_NAMES]
    more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    error = RefusedError(
        f"{name} holds what is not trusted, {', '.join(listed) or _short(names[0])}{more}",
        do=f"if you know who made the file, allow it by load(path, trusted={listed}).",
    )
    options = " ".join(f"--trust {shlex.quote(one)}" for one in listed)
    error.typed = f"If you know who made the file, add this to the command: {options}"
    return error


def _reason(error: Exception) -> str:
    """The cause for the user; errors of Python and numpy about their own objects are left to the traceback."""
    if isinstance(error, (DamagedError, BadZipFile)):
        return _short(str(error))
    return f"{type(error).__name__}, its parts do not fit together"


def _short(text: str) -> str:
    """A text from the file, shortened to one line of a message."""
    line = printable(text)
    return line if len(line) <= MAX_CHARACTERS else f"{line[:MAX_CHARACTERS]}..."


def _packed(content: bytes) -> bytes:
    """The same archive in less room: JSON without spaces, equal members once, deflated. A large one is left alone."""
    if len(content) > SMALL:
        return content
    with ZipFile(io.BytesIO(content)) as source:
        schema = json.loads(source.read(SCHEMA))
        names: dict[bytes, str] = {}
        unpacked = 0
        for node in _nodes(schema):
            if isinstance(node.get("file"), str):
                data = source.read(node["file"])
                unpacked += len(data)
                node["file"] = names.setdefault(data, node["file"])
    text = json.dumps(schema, separators=(",", ":"))
    # beyond this, `load` takes a high ratio for an attack
    if SCHEMA_COST * len(text) + unpacked > SMALL:
        return content
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as target:
        target.writestr(SCHEMA, text)
        for data, name in names.items():
            target.writestr(name, data)
    return packed.getvalue()


class Node(NamedTuple):
    """A node of the file: how it is loaded, and as what."""

    loader: str
    module: str
    name: str


@dataclass(frozen=True)
class Archive:
    """What is in a model file.

    Attributes
    ----------
    content : bytes
        The same archive, written again from the checked parts, so that skops reads nothing else.
    nodes : set of Node
    """

    content: bytes
    nodes: frozenset[Node]


def read_archive(path: Path) -> Archive:
    """Read a model file without making any of its objects.

    Parameters
    ----------
    path : Path

    Raises
    ------
    RefusedError
        If it unpacks to more than is allowed.
    Exception
        Of many kinds, for a damaged file: zipfile, json and numpy raise their own.
    """
    with ZipFile(path) as source:
        room = _Room(path)
        members = {info.filename: info for info in source.infolist()}
        if len(members) < len(source.infolist()):
            raise DamagedError("two members have the same name")
        room.take(SCHEMA_COST * members[SCHEMA].file_size)
        schema = json.loads(_read(source, members[SCHEMA]))
        protocol = schema["protocol"]
        if type(protocol) is not int or protocol < PROTOCOL:
            raise DamagedError(f"the protocol is {protocol!r}, expected {PROTOCOL} or later")
        nodes = list(_nodes(schema))
        for node in nodes:
            node["__module__"] = MOVED.get(_text(node["__module__"]), node["__module__"])
        # skops reads a file once for each number
        for name, _ in {(_text(node["file"]), node["__id__"]) for node in nodes if "file" in node}:
            room.take(members[name].file_size)
        arrays = {node["file"] for node in nodes if node["__loader__"] == "NdArrayNode" and "file" in node}
        headers: dict[str, Header] = {}
        sums: dict[str, str] = {}
        content = io.BytesIO()
        with ZipFile(content, "w") as copy:
            copy.writestr(SCHEMA, json.dumps(schema))
            for name in sorted({node["file"] for node in nodes if "file" in node}):
                data = _read(source, members[name])
                sums[name] = sha256(data).hexdigest()
                if name in arrays:
                    headers[name] = _header(data)
                copy.writestr(name, data)
    _check_numbers(schema, sums)
    for node in nodes:
        if node["__loader__"] == "TreeNode":
            _check_tree(node, headers)
    kinds = {Node(*map(_text, (node["__loader__"], node["__module__"], node["__class__"]))) for node in nodes}
    return Archive(content.getvalue(), frozenset(kinds))


class _Room:
    """The number of bytes that are left to unpack."""

    def __init__(self, path: Path):
        self.name, self.packed, self.taken = path.name, path.stat().st_size, 0
        asked = os.environ.get(LIMIT)
        if asked is not None and not asked.isdecimal():
            raise RefusedError(f"{LIMIT} is {asked!r}", expected=f"a number of bytes, such as {MAX_BYTES}")
        self.room = int(asked) if asked else min(MAX_BYTES, max(SMALL, MAX_RATIO * self.packed))

    def take(self, size: int) -> None:
        self.taken += size
        if self.taken > self.room:
            raise RefusedError(
                f"{self.name} has {self.packed:,} bytes and unpacks to at least {self.taken:,}, more than the "
                f"{self.room:,} that are allowed",
                do=f"if you know who made it, set {LIMIT} to a larger number.",
            )


def _read(source: ZipFile, info: ZipInfo) -> bytes:
    """The content of a member, read in steps; its size must be the declared one."""
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise DamagedError(f"{info.filename} is compressed in another way than by deflate")
    with source.open(info) as member:
        data = b"".join(iter(lambda: member.read(CHUNK), b""))
    if len(data) != info.file_size:
        raise DamagedError(f"{info.filename} has {len(data):,} bytes instead of {info.file_size:,}")
    return data


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Everything in the schema that skops could read as a node."""
    stack = [(schema, 1)]
    while stack:
        value, depth = stack.pop()
        if not isinstance(value, dict | list):
            continue
        if depth > MAX_DEPTH:
            raise DamagedError(f"parts lie more than {MAX_DEPTH} deep in each other")
        if isinstance(value, dict) and "__loader__" in value:
            yield value
        stack += [(part, depth + 1) for part in (value.values() if isinstance(value, dict) else value)]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DamagedError("a name is not text")
    return value


def _header(data: bytes) -> Header:
    """Shape and dtype of an array, checked against its size; arrays of objects, which need a pickle, are refused."""
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
    shape, _, dtype = read(stream)
    count = math.prod(shape)
    if dtype.hasobject or min(shape, default=1) < 0 or count * dtype.itemsize != len(data) - stream.tell():
        raise DamagedError(f"the bytes of an array do not match its header, {dtype} of shape {shape}")
    if count and not dtype.itemsize:
        raise DamagedError(f"an array has {count:,} values of no size")
    return shape, dtype


def _check_numbers(schema: Any, sums: dict[str, str]) -> None:
    """Raise where two nodes with the same number differ.

    Skops replaces a node by an earlier one with the same number, without a check. The checks of a node would then apply
    to another one, and a small file could hold a model of any size, or one that contains itself.
    """
    seen: dict[Any, str] = {}

    def digest(value: Any) -> Any:
        if isinstance(value, list):
            return [digest(one) for one in value]
        if not isinstance(value, dict):
            return value
        parts = [
            (key, sums[one] if key == "file" and isinstance(one, str) else digest(one))
            for key, one in value.items()
            if key != "__id__"
        ]
        whole = sha256(repr(parts).encode()).hexdigest()
        if "__loader__" in value and seen.setdefault(value["__id__"], whole) != whole:
            raise DamagedError(f"two different nodes have the number {value['__id__']}")
        return whole

    digest(schema)


def _check_tree(node: dict[str, Any], headers: dict[str, Header]) -> None:
    """Raise where the parts of a tree do not fit: the compiled code of scikit-learn does not check their shapes."""
    _, n_classes, outputs = node["__reduce__"]["args"]["content"]
    state = node["content"]["content"]
    n_outputs = json.loads(outputs["content"])
    (classes, counted), (nodes, fields), (values, floats) = (
        headers[one["file"]] for one in (n_classes, state["nodes"], state["values"])
    )
    loaders = node["__reduce__"]["args"]["__loader__"], node["content"]["__loader__"], outputs["__loader__"]
    if not (
        loaders == ("TupleNode", "DictNode", "JsonNode")
        and type(n_outputs) is int
        and n_outputs >= 1
        and counted.kind == "i"
        and classes == (n_outputs,)
        and fields.names
        and len(nodes) == 1
        and floats.kind == "f"
        and len(values) == 3
        and values[:2] == (*nodes, n_outputs)
    ):
        raise DamagedError("a Tree with values out of range")
