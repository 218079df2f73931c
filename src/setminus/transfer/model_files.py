"""A translator in memory, and as a folder of files without any code in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors.torch import load, save
from torch import nn

from setminus.datasets.images import Bytes, from_signed_nchw
from setminus.errors import UserError
from setminus.files import atomic_writes
from setminus.nn.losses import Direction
from setminus.transfer.networks import Kind, image_tensor, kind_for, networks_for, translate

__all__ = ["CONFIG", "ImageTranslator", "load_translator", "read_config", "save_translator"]

CONFIG = "config.json"
"""Written last: a folder without it is no model."""
MAX_CONFIG = 16 << 20
GENERATORS, CLASSIFIERS = "generators.safetensors", "classifiers.safetensors"
FORMAT, VERSION = "setminus translation", 1


# eq=False: comparing networks has no meaning here
@dataclass(frozen=True, eq=False)
class ImageTranslator:
    """Pictures of one folder's kind to those of the other's.

    Parameters
    ----------
    a_to_b, b_to_a : Module
        Generators for images of `size`.
    size, width : int
        See `networks_for`.
    about : dict
        Where it comes from, in plain values: the column, its values, what became of it.
    kind : {"blend", "unet", "digit"}, optional
        Of the generators; by default that of `kind_for`.
    """

    a_to_b: nn.Module
    b_to_a: nn.Module
    size: int
    width: int
    about: dict[str, Any] = field(default_factory=dict)
    kind: Kind | None = None

    def translate(self, images: Bytes, direction: Direction = "a_to_b") -> Bytes:
        """Translate pictures.

        Parameters
        ----------
        images : uint8 array of shape (n, size, size, 3)
            At least one.
        direction : {"a_to_b", "b_to_a"}

        Returns
        -------
        uint8 array of shape (n, size, size, 3)

        Examples
        --------
        >>> import numpy as np
        >>> networks = networks_for(16, 4, seed=0)
        >>> translator = ImageTranslator(networks.a_to_b, networks.b_to_a, size=16, width=4)
        >>> translator.translate(np.zeros((2, 16, 16, 3), dtype=np.uint8)).shape
        (2, 16, 16, 3)
        """
        if direction not in get_args(Direction):
            raise UserError(f"direction is {direction!r}", expected=f"one of {', '.join(get_args(Direction))}")
        if images.shape[1:] != (self.size, self.size, 3) or len(images) == 0:
            raise UserError(
                f"images have the shape {images.shape}",
                expected=f"(n, {self.size}, {self.size}, 3), n > 0; decode_image cuts and resizes",
            )
        generator = self.a_to_b if direction == "a_to_b" else self.b_to_a
        return from_signed_nchw(translate(generator.eval(), image_tensor(images)).numpy())


def save_translator(
    translator: ImageTranslator, folder: str | os.PathLike[str], classifiers: Mapping[str, nn.Module] | None = None
) -> Path:
    """Write a translator to a folder, which is a model when the last file is there, and none before.

    Parameters
    ----------
    translator : ImageTranslator
    folder : path
        Made where it does not exist.
    classifiers : mapping of str to Module, optional
        To keep beside it; translating does not need them.

    Returns
    -------
    Path
        The folder.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    files = {GENERATORS: save(_tensors({"a_to_b": translator.a_to_b, "b_to_a": translator.b_to_a}))}
    if classifiers:
        files[CLASSIFIERS] = save(_tensors(classifiers))
    config = {
        "format": FORMAT,
        "version": VERSION,
        "network": translator.kind or kind_for(translator.size),
        "size": translator.size,
        "width": translator.width,
        "about": translator.about,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    # a name of the disk may be no UTF-8: JSON has an escape for that
    text = json.dumps(config, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    files[CONFIG] = text + b"\n"
    # the checksums last: between two renames a reader finds a mixture, and they refuse it
    with atomic_writes(*(home / name for name in files)) as partials:
        for partial, content in zip(partials, files.values(), strict=True):
            partial.write_bytes(content)
    return home


def load_translator(folder: str | os.PathLike[str]) -> ImageTranslator:
    """Read what `save_translator` wrote; nothing in the files is run.

    Raises
    ------
    ValueError
        If the folder is no model, is damaged, or has a format that this version does not read.

    Examples
    --------
    >>> import tempfile
    >>> networks = networks_for(16, 4, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_translator(ImageTranslator(networks.a_to_b, networks.b_to_a, size=16, width=4), folder)
    ...     load_translator(folder).size
    16
    """
    home = Path(folder)
    config = read_config(home)
    try:
        if not (home / GENERATORS).is_file():
            raise ValueError("it is missing, or no file")
        content = (home / GENERATORS).read_bytes()
        if hashlib.sha256(content).hexdigest() != config["sha256"][GENERATORS]:
            raise ValueError("it is not the file that the model was written with")
        tensors = load(content)
        if config["network"] not in get_args(Kind):
            raise ValueError(f"there are no networks of the kind {config['network']!r}")
        # first without weights: a small file may ask for networks that no machine has room for
        with torch.device("meta"):
            asked = networks_for(config["size"], config["width"], seed=0, kind=config["network"])
        if _kinds(tensors) != _kinds(_state({name: getattr(asked, name) for name in get_args(Direction)})):
            raise ValueError(f"its weights are not those of networks of width {config['width']}")
        networks = networks_for(config["size"], config["width"], seed=0, kind=config["network"])
        for name in get_args(Direction):
            own = {key.removeprefix(f"{name}."): one for key, one in tensors.items() if key.startswith(f"{name}.")}
            getattr(networks, name).load_state_dict(own)
        about = dict(config["about"])
    except MemoryError:
        raise
    # of the system, of json and of safetensors, which have no common kind
    except Exception as error:
        # what Python says of its own objects is kept for the traceback
        odd = isinstance(error, (TypeError, LookupError, AttributeError)) or not str(error)
        reason = f"{type(error).__name__}, its parts do not fit together" if odd else str(error).splitlines()[0]
        raise UserError(
            f"the model in {str(home)!r} is damaged ({GENERATORS}, {reason})", do="fit it again, or copy it again."
        ) from error
    return ImageTranslator(networks.a_to_b, networks.b_to_a, config["size"], config["width"], about, config["network"])


def read_config(home: Path) -> dict[str, Any]:
    """What the model in a folder says of itself, without its weights; a UserError where there is none."""
    if not (home / CONFIG).is_file():
        raise UserError(
            f"{str(home)!r} holds no model", expected=f"the folder that `setminus transfer fit` wrote, with {CONFIG}"
        )
    try:
        if (home / CONFIG).stat().st_size > MAX_CONFIG:
            raise ValueError(f"more than {MAX_CONFIG:,} bytes")
        config = json.loads((home / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = "no UTF-8 text" if isinstance(error, UnicodeError) else error
        raise UserError(
            f"the model in {str(home)!r} is damaged ({CONFIG}, {reason})", do="fit it again, or copy it again."
        ) from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise UserError(
            f"{str(home)!r} holds a {CONFIG} of something else",
            expected="the folder that `setminus transfer fit` wrote",
        )
    if config.get("version") != VERSION:
        raise UserError(
            f"the model in {str(home)!r} has format {config.get('version')!r}, this version of setminus reads "
            f"{VERSION}",
            do="update setminus, or fit it again.",
        )
    return config


def _tensors(modules: Mapping[str, nn.Module]) -> dict[str, torch.Tensor]:
    # copies: safetensors takes no memory that two tensors share, nor any other layout than the plain one
    return {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in _state(modules).items()
    }


def _state(modules: Mapping[str, nn.Module]) -> dict[str, torch.Tensor]:
    return {f"{name}.{key}": one for name, module in modules.items() for key, one in module.state_dict().items()}


def _kinds(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}
