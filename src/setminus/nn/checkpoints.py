"""Checkpoints without pickle: tensors in safetensors, everything else in a json file that names them.

The json file is renamed into place last. A run that is killed between the two leaves the older pair intact.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from setminus.errors import UserError
from setminus.files import atomic_write

__all__ = ["finished_steps", "has_checkpoint", "load_checkpoint", "remove_leftovers", "save_checkpoint"]

INDEX = "checkpoint.json"
TENSORS = re.compile(r"checkpoint-\d+\.safetensors")


def save_checkpoint(folder: Path, step: int, state: Any) -> None:
    """Write a state and remove the previous one.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    step : int
        Number of finished steps.
    state : tree
        Dictionaries (with keys of text or integers), lists and tuples of tensors and plain values.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, torch.Tensor] = {}
    plain = _packed(state, "", tensors)
    name = f"checkpoint-{step:09d}.safetensors"
    with atomic_write(folder / name) as partial:
        save_file(tensors, partial)
    with atomic_write(folder / INDEX) as partial:
        partial.write_text(json.dumps({"step": step, "tensors": name, "state": plain}, allow_nan=False))
    _remove_others(folder, name)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return (folder / INDEX).is_file()


def finished_steps(folder: Path) -> int:
    """The number of steps of the checkpoint; 0 where there is none."""
    if not has_checkpoint(folder):
        return 0
    with _damage_reported(folder):
        return int(_read_index(folder)["step"])


def remove_leftovers(folder: Path) -> None:
    """Remove unfinished files of a killed run; only the process that writes in this folder may call it.

    Raises
    ------
    ValueError
        If the checkpoint is damaged.
    """
    for partial in folder.glob(".checkpoint*"):
        shutil.rmtree(partial, ignore_errors=True)
    if not has_checkpoint(folder):
        _remove_others(folder, None)
        return
    with _damage_reported(folder):
        _remove_others(folder, _read_index(folder)["tensors"])


def load_checkpoint(folder: Path) -> tuple[int, Any]:
    """Read what `save_checkpoint` wrote.

    Returns
    -------
    step : int
    state : tree
        With all tensors on the CPU.

    Raises
    ------
    ValueError
        If the checkpoint is damaged.
    """
    with _damage_reported(folder):
        index = _read_index(folder)
        tensors = load_file(folder / index["tensors"])
        return int(index["step"]), _unpacked(index["state"], tensors)


@contextmanager
def _damage_reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{folder} holds no whole checkpoint ({error})", do="remove it and start again.") from error
    except MemoryError:
        raise
    except Exception as error:  # of json and safetensors, which have no common kind
        raise UserError(f"the checkpoint in {folder} is damaged ({error})", do="remove it and start again.") from error


def _read_index(folder: Path) -> dict[str, Any]:
    index: dict[str, Any] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    # no path: what is read lies in this folder
    if not TENSORS.fullmatch(index["tensors"]):
        raise ValueError(f"{index['tensors']!r} is no name of tensors")
    return index


def _remove_others(folder: Path, name: str | None) -> None:
    for other in folder.glob("checkpoint-*.safetensors"):
        if other.name != name:
            other.unlink()


def _packed(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    """The value as json, its tensors put aside; json has no tuples, no keys that are numbers and no NaN."""
    if isinstance(value, torch.Tensor):
        # two paths may read the same where a key holds a slash
        name = f"{len(tensors)}{path}"
        # a copy: safetensors takes no memory that two tensors share
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[key, _packed(item, f"{path}/{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_packed(item, f"{path}/{i}", tensors) for i, item in enumerate(value)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(float(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{path} is a {type(value).__name__}: a checkpoint holds tensors, numbers, text and None.")


def _unpacked(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    (kind, content), *_ = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "float":
        return float(content)
    if kind == "dict":
        return {key: _unpacked(item, tensors) for key, item in content}
    return {"list": list, "tuple": tuple}[kind](_unpacked(item, tensors) for item in content)
