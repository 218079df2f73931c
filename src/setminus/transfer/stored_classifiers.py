"""Classifiers that a stopped translation has learned already, and of what: another one must not go on with them."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from setminus.datasets.two_factor_folder import LabelledImages
from setminus.errors import UserError
from setminus.nn.checkpoints import load_checkpoint, save_checkpoint
from setminus.transfer.folder_classifiers import FolderClassifiers
from setminus.transfer.held_out_accuracy import Told
from setminus.transfer.translation_networks import classifier_for

__all__ = ["fingerprint", "restore_classifiers", "store_classifiers"]


def fingerprint(images: LabelledImages) -> str:
    """A checksum of images, folders and labels.

    Examples
    --------
    >>> x, y = np.zeros((2, 1, 1, 3), dtype=np.uint8), np.array([0, 1])
    >>> one, other = (LabelledImages(x, y, z, ("a", "b"), ()) for z in (y, 1 - y))
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    digest = hashlib.sha256()
    for array in (images.x, images.y, images.z):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def store_classifiers(folder: Path, classifiers: FolderClassifiers, identity: dict[str, Any]) -> None:
    """Write classifiers for `restore_classifiers`.

    Parameters
    ----------
    folder : Path
    classifiers : FolderClassifiers
    identity : dict
        Plain values that say of what they were learned, and how.
    """
    own = {name: dict(one.state_dict()) for name, one in classifiers.modules.items() if name != "principal"}
    save_checkpoint(
        folder,
        0,
        {
            "identity": identity,
            "modules": own,
            "given": classifiers.given,
            "domain_prior": classifiers.domain_prior,
            "accuracy": {name: asdict(one) for name, one in classifiers.accuracy.items()},
        },
    )


def restore_classifiers(
    folder: Path,
    identity: dict[str, Any],
    *,
    size: int,
    width: int,
    principal: nn.Module | None = None,
    principal_prior: Any = "uniform",
) -> FolderClassifiers:
    """Read what `store_classifiers` wrote, for the same images and settings.

    Parameters
    ----------
    folder : Path
    identity : dict
    size, width : int
        See `classifier_for`.
    principal, principal_prior
        See `fit_folder_classifiers`; they are not stored.

    Returns
    -------
    FolderClassifiers

    Raises
    ------
    ValueError
        If they belong to other images or settings, or are damaged.
    """
    _, state = load_checkpoint(folder)
    stored = state["identity"]
    if stored != identity:
        other = sorted(key for key in {*stored, *identity} if stored.get(key) != identity.get(key))
        raise UserError(
            f"what was begun in {str(folder.parent)!r} differs in {', '.join(other)}",
            do="give the same folders, labels and settings as then, or begin anew in another folder.",
        )
    modules: dict[str, nn.Module] = {}
    for name, weights in state["modules"].items():
        network = classifier_for(size, width, seed=0)
        network.load_state_dict(weights)
        modules[name] = network.eval()
    if principal is not None:
        modules["principal"] = principal
    accuracy = {name: Told(**one) for name, one in state["accuracy"].items()}
    return FolderClassifiers(modules, state["given"], state["domain_prior"], principal_prior, accuracy)
