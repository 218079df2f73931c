"""A model file as skops writes it, unpacked within bounds: a zip of one JSON file and of arrays."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

__all__ = ["LIMIT", "Archive", "DamagedError", "LimitError", "Node", "read_archive"]

LIMIT = "SETMINUS_MODEL_BYTES"
"""The environment variable that sets how many bytes a model file may unpack to."""

MAX_BYTES = 2 << 30
MAX_RATIO, SMALL = 100, 256 << 20
"""`save` does not compress: a file that unpacks to many times its size, and to more than a little, is none of it."""
SCHEMA_COST = 24
"""Bytes of memory for a byte of the JSON file at most: a list of empty lists takes most."""
SCHEMA, PROTOCOL = "schema.json", 2
CHUNK = 1 << 20


Header = tuple[tuple[int, ...], np.dtype[Any]]


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
        The same archive, written anew from what was read here: no other reader can find anything else in it.
    nodes : set of Node
    """

    content: bytes
    nodes: frozenset[Node]


MOVED = {"setminus.applications.domain_adaptation.adapter": "setminus.adaptation.adapter"}
"""Modules of classes in files of earlier versions, and where these classes are now."""


class DamagedError(ValueError):
    """What is wrong with a model file, in words for its user."""


class LimitError(ValueError):
    """Too much to unpack; the message is for the user as it is."""


def read_archive(path: Path) -> Archive:
    """Read a model file without making any of its objects.

    Parameters
    ----------
    path : Path

    Raises
    ------
    LimitError
        If it unpacks to more than is allowed.
    Exception
        Of many kinds, for damage: zipfile, json and numpy raise their own.
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
    """How many bytes are left to unpack."""

    def __init__(self, path: Path):
        self.name, self.packed, self.taken = path.name, path.stat().st_size, 0
        asked = os.environ.get(LIMIT)
        if asked is not None and not asked.isdecimal():
            raise LimitError(f"{LIMIT} is {asked!r}: expected a number of bytes, such as {MAX_BYTES}.")
        self.room = int(asked) if asked else min(MAX_BYTES, max(SMALL, MAX_RATIO * self.packed))

    def take(self, size: int) -> None:
        self.taken += size
        if self.taken > self.room:
            raise LimitError(
                f"{self.name} has {self.packed:,} bytes and unpacks to at least {self.taken:,}, more than the "
                f"{self.room:,} that are allowed: if you know who made it, set {LIMIT} to a larger number."
            )


def _read(source: ZipFile, info: ZipInfo) -> bytes:
    """The content of a member, in steps: what is declared bounds what is made, and has to be what comes."""
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise DamagedError(f"{info.filename} is compressed in another way than by deflate")
    with source.open(info) as member:
        data = b"".join(iter(lambda: member.read(CHUNK), b""))
    if len(data) != info.file_size:
        raise DamagedError(f"{info.filename} has {len(data):,} bytes instead of {info.file_size:,}")
    return data


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Whatever skops could take for a node, wherever it stands."""
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                yield value
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DamagedError("a name in it is no text")
    return value


def _header(data: bytes) -> Header:
    """What an array says that it is, having seen that it is; objects, which only a pickle could hold, are refused."""
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
    shape, _, dtype = read(stream)
    count = math.prod(shape)
    if dtype.hasobject or min(shape, default=1) < 0 or count * dtype.itemsize != len(data) - stream.tell():
        raise DamagedError(f"an array says that it is {dtype} of shape {shape}, and is not")
    if count and not dtype.itemsize:
        raise DamagedError(f"an array has {count:,} values of no size")
    return shape, dtype


def _check_numbers(schema: Any, sums: dict[str, str]) -> None:
    """Raise where two nodes that have the same number are not the same.

    Skops takes a node whose number it has seen for that one, without looking. What is checked of a node would then be
    true of another; a small file could stand for a model of any size, or for one that holds itself.
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
    """Raise where scikit-learn would make a tree from what is none: its compiled code takes the shapes as they come."""
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
