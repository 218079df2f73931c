"""Style transfer between a user's two folders: one factor, which a column of labels tells, is changed or kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from setminus.datasets.images import Bytes
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.errors import UserError
from setminus.nn.checkpoints import has_checkpoint
from setminus.nn.passes import Precision, fast_precision
from setminus.nn.training import Loop, Observer, Outcome, TrainingConfig, train
from setminus.progress import tracked
from setminus.transfer.folder_classifiers import (
    FolderClassifiers,
    Role,
    check_principal,
    fit_folder_classifiers,
)
from setminus.transfer.folder_judge import FolderJudge
from setminus.transfer.folder_parts import Part, deal_out
from setminus.transfer.pixels import signed
from setminus.transfer.stored_classifiers import (
    fingerprint,
    restore_classifiers,
    store_classifiers,
)
from setminus.transfer.transfer_task import TransferConfig, TransferTask
from setminus.transfer.translation_networks import check_width, networks_for
from setminus.transfer.translator import ImageTranslator

__all__ = ["FolderTranslation", "TranslationConfig", "fit_translation"]

LOGGED = 200
"""Entries of the losses over a training."""
CLIP = 1.0
"""Largest norm of a gradient: one batch that goes wrong must not undo a thousand."""
FREE = ("steps", "every")
"""What may be another one when a training goes on."""


@dataclass(frozen=True)
class TranslationConfig:
    """How two folders are translated into each other.

    Parameters
    ----------
    role : {"change", "keep"}
        What is to become of the column's factor. "change" subtracts it from what tells the folders apart, and keeps
        the rest; "keep" keeps it, and changes the rest.
    steps, batch_size, rate
        Of the generators and discriminators; images of each folder in a batch, rate of Adam.
    width : int
        Channels of their first layers.
    every : int
        Steps between two looks at the result, each with a grid of samples and a checkpoint.
    clamp : float
        The largest ratio of the folders' densities that the generators are told, and the inverse of the smallest. Cut
        near the true ratio (the paper has 9), an estimate's errors would count in one direction only.
    held_out : float
        Share of the images that nothing is learned from.
    judged : int
        Held-out images of each folder that are looked at, at most.
    classifier_width, classifier_steps : int
        See `fit_folder_classifiers`.
    seed : int
    precision : "32-true" or "bf16-mixed", optional
        By default the quicker one on this machine.
    """

    role: Role
    steps: int = 2_000
    batch_size: int = 16
    rate: float = 2e-4
    width: int = 32
    every: int = 500
    clamp: float = 30.0
    held_out: float = 0.2
    judged: int = 256
    classifier_width: int = 16
    classifier_steps: int = 400
    seed: int = 0
    precision: Precision | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise UserError(f"role is {self.role!r}", expected=f"one of {', '.join(get_args(Role))}")
        check_width(self.width)
        check_width(self.classifier_width)
        counts = ("steps", "batch_size", "every", "judged", "classifier_steps")
        few = [f"{name} is {getattr(self, name)}" for name in counts if getattr(self, name) < 1]
        if few:
            raise UserError(f"{', '.join(few)}", expected="at least 1")
        if not self.clamp >= 1 or not self.rate > 0:
            raise UserError(f"clamp is {self.clamp}, rate is {self.rate}", expected="a clamp from 1 on, a rate above 0")


# eq=False: comparing networks has no meaning here
@dataclass(frozen=True, eq=False)
class FolderTranslation:
    """What came out.

    Parameters
    ----------
    translator : ImageTranslator
    classifiers : FolderClassifiers
        With their accuracies on held-out images.
    scores : dict
        What `FolderJudge` says at the end.
    strips : dict of str to uint8 array
        Held-out images and their translations, see `FolderJudge.strips`.
    outcome : Outcome
        The scores and losses along the way.
    images : dict of str to int
        How many there were to learn from and to judge by, of each folder.
    """

    translator: ImageTranslator
    classifiers: FolderClassifiers
    scores: dict[str, Any]
    strips: dict[str, Bytes]
    outcome: Outcome
    images: dict[str, int]


class _WatchedTask(TransferTask):
    """A translation that shows a grid of samples at each look."""

    judge: FolderJudge
    look: Callable[[int, Bytes], None] | None = None

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        scores = super().evaluate(loop)
        if self.look is not None:
            self.look(loop.index + 1, self.judge.grid(self.networks))
        return scores


def fit_translation(
    images: LabelledImages,
    config: TranslationConfig,
    *,
    principal: nn.Module | None = None,
    principal_prior: Any = "uniform",
    folder: Path | None = None,
    resume: bool = False,
    checked: Callable[[FolderClassifiers, dict[str, int]], None] | None = None,
    look: Callable[[int, Bytes], None] | None = None,
    observers: Sequence[Observer] = (),
) -> FolderTranslation:
    """Learn to translate the pictures of two folders into each other.

    Parameters
    ----------
    images : LabelledImages
        Such as `TwoFactorFolder` loads.
    config : TranslationConfig
    principal : Module, optional
        A ready classifier of the domain by what is to change, from images in [-1, 1] to logits of shape (n, 2); the
        column then only judges.
    principal_prior : two numbers or "uniform"
        The shares of A and B in the data that it was trained on.
    folder : Path, optional
        For classifiers and checkpoints, from which `resume` goes on.
    resume : bool
    checked : callable, optional
        Called with the classifiers and the numbers of images, before the long part begins.
    look : callable, optional
        Called with the number of steps and a grid of samples: A, A to B, B, B to A.
    observers : sequence of Observer
        Of the long part.

    Returns
    -------
    FolderTranslation

    Raises
    ------
    ValueError
        Before anything long, where the images, the column or the principal classifier do not do.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> z = np.where(rng.random(80) < 0.8, y, 1 - y)
    >>> x = np.stack([200 * z, 200 * y, 0 * y], axis=1).astype(np.uint8)[:, None, None].repeat(12, 1).repeat(12, 2)
    >>> config = TranslationConfig("change", steps=1, width=2, batch_size=4, classifier_width=2, classifier_steps=60)
    >>> made = fit_translation(LabelledImages(x, y, z, ("dark", "red"), ()), config)
    >>> made.translator.translate(x[:3]).shape
    (3, 12, 12, 3)
    """
    size = images.x.shape[1]
    networks = networks_for(size, config.width, seed=config.seed)
    parts = deal_out(images, config.held_out, config.seed)
    if principal is not None:
        if config.role != "change":
            raise UserError(
                "a principal classifier came with role 'keep'", do="it tells what is to change, use 'change'."
            )
        check_principal(principal, signed(parts[0].x[:2]))
    with tracked("learn to tell the folders and the column"):
        classifiers = _classifiers(images, parts, config, principal, principal_prior, folder, resume)
    train_part, held_out = parts
    judged = [_some(images, config.judged, config.seed) for images in (held_out.a, held_out.b)]
    counts = {"a": len(train_part.a), "b": len(train_part.b), "a_held": len(judged[0]), "b_held": len(judged[1])}
    if checked is not None:
        checked(classifiers, counts)
    judge = FolderJudge(classifiers, *judged)
    task = _WatchedTask(
        networks,
        train_part.a,
        train_part.b,
        TransferConfig(batch_size=config.batch_size, rate=config.rate, seed=config.seed, rest_at=config.steps),
        log_ratio=classifiers.log_ratio(config.role, config.clamp),
        judge=judge,
    )
    task.look = look
    training = TrainingConfig(
        steps=config.steps,
        seed=config.seed,
        clip=CLIP,
        log_every=max(1, config.steps // LOGGED),
        evaluate_every=config.every,
        checkpoint_every=config.every,
        precision=config.precision or fast_precision(),
        threads=None,
    )
    checkpoints = None if folder is None else folder / "training"
    with tracked("train the generators"):
        outcome = train(task, training, folder=checkpoints, resume=resume, observers=observers)
    for network in (networks.a_to_b, networks.b_to_a):
        network.eval()
    return FolderTranslation(
        ImageTranslator(networks.a_to_b, networks.b_to_a, size, config.width),
        classifiers,
        {key: value for key, value in outcome.evaluations[-1].items() if key != "step"},
        judge.strips(networks),
        outcome,
        counts,
    )


def _some(images: torch.Tensor, most: int, seed: int) -> torch.Tensor:
    """At most so many, drawn by the seed: by their names, pictures of one kind may stand together."""
    if len(images) <= most:
        return images
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[:most]]


def _classifiers(
    images: LabelledImages,
    parts: tuple[Part, Part],
    config: TranslationConfig,
    principal: nn.Module | None,
    principal_prior: Any,
    folder: Path | None,
    resume: bool,
) -> FolderClassifiers:
    """Those of a training that goes on, or new ones."""
    settings = {key: value for key, value in asdict(config).items() if key not in FREE}
    identity = {**settings, "images": fingerprint(images), "principal": principal is not None}
    kept = None if folder is None else folder / "classifiers"
    if kept is not None and resume and has_checkpoint(kept):
        return restore_classifiers(
            kept,
            identity,
            size=images.x.shape[1],
            width=config.classifier_width,
            principal=principal,
            principal_prior=principal_prior,
        )
    classifiers = fit_folder_classifiers(
        *parts,
        config.role,
        width=config.classifier_width,
        steps=config.classifier_steps,
        seed=config.seed,
        principal=principal,
        principal_prior=principal_prior,
    )
    if kept is not None:
        store_classifiers(kept, classifiers, identity)
    return classifiers
