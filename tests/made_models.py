"""Model files as a stranger would make them: written by `save`, then changed inside; and processes to open them in."""

import io
import json
import multiprocessing
import os
import zipfile

import numpy as np
import pytest
import skops.io

SCHEMA = "schema.json"
# each process is split off from one that has all imports behind it, and no thread of its own
PROCESSES = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
PROCESSES.set_forkserver_preload(["tests.made_models", "setminus.estimators.model_contents"])


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def edited(path, change):
    """Change the nodes of a model file in place; `change` gets the schema, and arrays by their name, to change."""
    files = members(path)
    schema = json.loads(files[SCHEMA])
    arrays = {name: np.load(io.BytesIO(content)) for name, content in files.items() if name.endswith(".npy")}
    change(schema, arrays)
    files |= {name: npy(array) for name, array in arrays.items()}
    return write(path, files | {SCHEMA: json.dumps(schema)})


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def nodes(value, name):
    """All nodes of a type in a schema."""
    if isinstance(value, dict):
        if value.get("__class__") == name:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from nodes(one, name)


def attributes(schema, name):
    """The attributes of the first object of a type, as nodes."""
    return next(nodes(schema, name))["content"]["content"]


def plain(value):
    """A node for what JSON can hold."""
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)} | {
        "__id__": 1_000_000 + abs(hash(str(value))) % 1_000_000
    }


def set_attribute(schema, name, attribute, node):
    """Set an attribute of the first object of a type, a new one or an old one."""
    content = next(nodes(schema, name))["content"]
    if attribute not in content["content"]:
        key = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode", "__id__": 2_000_000}
        content["key_types"]["content"].append(key)
    content["content"][attribute] = node


def load_by_skops_alone(path):
    """What an older version did: every type that the file names is trusted, and nothing is looked at."""
    return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))


def predict_by_skops_alone(path, rows, log):
    model = load_by_skops_alone(path)
    log.write_text("loaded")
    log.write_text(str(model.predict(rows)))


def outcome(work, *arguments, seconds=60, memory=None):
    """Call a function in a process of its own, perhaps with so many bytes of memory, and give its exit code.

    It is negative where a signal ended the process: ``-signal.SIGXCPU`` after so many seconds of work, which on a busy
    machine take longer.
    """
    pytest.importorskip("resource", reason="limits of POSIX")
    process = PROCESSES.Process(target=_call, args=(work, arguments, seconds, memory))
    process.start()
    process.join(30 * seconds)
    process.kill()
    process.join()
    return process.exitcode


def _call(work, arguments, seconds, memory):
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    work(*arguments)
