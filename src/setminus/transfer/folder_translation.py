"""Style transfer between a user's two folders: the factor in a column of labels is changed or kept."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.datasets.images import Bytes, from_signed_nchw
from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.errors import UserError
from setminus.nn.checkpoints import has_checkpoint
from setminus.nn.cyclegan import CycleGAN
from setminus.nn.passes import Precision, fast_precision
from setminus.nn.training import Loop, Observer, Outcome, TrainingConfig, train
from setminus.progress import tracked
from setminus.transfer.folder_classifiers import (
    FolderClassifiers,
    Part,
    Role,
    check_principal,
    deal_out,
    fingerprint,
    fit_folder_classifiers,
    restore_classifiers,
    store_classifiers,
)
from setminus.transfer.transfer_task import TransferConfig, TransferTask
from setminus.transfer.translator import ImageTranslator, check_width, networks_for, signed, translate

__all__ = ["FolderJudge", "FolderTranslation", "TranslationConfig", "fit_translation", "folder_notes", "strip_png"]

DIRECTIONS = ("a_to_b", "b_to_a")


class FolderJudge:
    """Fractions of held-out images whose predicted folder, column or rest changes by translation.

    Parameters
    ----------
    classifiers : FolderClassifiers
    a, b : Tensor of shape (n, 3, size, size)
        Held-out images of each folder.
    shown : int
        Images of each folder in samples.
    """

    def __init__(self, classifiers: FolderClassifiers, a: torch.Tensor, b: torch.Tensor, shown: int = 8):
        self.classifiers = classifiers
        self.real = {"a_to_b": signed(a), "b_to_a": signed(b)}
        self.before = {direction: classifiers.verdicts(images) for direction, images in self.real.items()}
        self.shown = shown

    def __call__(self, networks: CycleGAN) -> dict[str, Any]:
        """The changed fractions of "domain", "column" and "rest" for "a_to_b", "b_to_a" and "both"."""
        changed = {}
        for direction in DIRECTIONS:
            after = self.classifiers.verdicts(translate(getattr(networks, direction), self.real[direction]))
            changed[direction] = {name: after[name] != old for name, old in self.before[direction].items()}
        names = list(changed["a_to_b"])
        both = {name: np.concatenate([changed[direction][name] for direction in DIRECTIONS]) for name in names}
        return {
            group: {name: round(float(one.mean()), 4) for name, one in shares.items()}
            for group, shares in {**changed, "both": both}.items()
        }

    def strips(self, networks: CycleGAN) -> dict[str, Bytes]:
        """The first images and their translations: "a", "a_to_b", "b", "b_to_a", of shape (n, size, size, 3)."""
        rows = {}
        for folder, direction in zip("ab", DIRECTIONS, strict=True):
            images = self.real[direction][: self.shown]
            rows[folder] = from_signed_nchw(images.numpy())
            rows[direction] = from_signed_nchw(translate(getattr(networks, direction), images).numpy())
        return rows

    def grid(self, networks: CycleGAN) -> Bytes:
        """The strips below each other, as one image of shape (4 * size, n * size, 3)."""
        strips = [np.concatenate(list(images), axis=1) for images in self.strips(networks).values()]
        widest = max(strip.shape[1] for strip in strips)
        # a folder may have fewer held-out images than the other
        white = [np.full((strip.shape[0], widest - strip.shape[1], 3), 255, np.uint8) for strip in strips]
        return np.concatenate([np.concatenate(pair, axis=1) for pair in zip(strips, white, strict=True)])


WEAK = 0.8
"""Below this accuracy a classifier is weak."""
SMALL_DIFFERENCE = 0.1
"""Frequencies of a value in A and B that differ by less are about equal."""
FEW = 100
"""With fewer images a network overfits."""
PLACES = {0: "folder A", 1: "folder B", UNLABELLED: "the images of neither folder"}


def folder_notes(images: LabelledImages, classifiers: FolderClassifiers, role: Role, column: str) -> list[str]:
    """Warnings before the long part: weak classifiers, columns and images; sentences without their full stop."""
    notes = []
    sure, share_a, share_b = classifiers.accuracy["column"], classifiers.given["a"][0], classifiers.given["b"][0]
    if sure.accuracy < WEAK:
        notes.append(
            f"{column!r} is predicted with an accuracy of only {sure.accuracy:.0%} on {sure.n} held-out images, which "
            "limits the translation; more labels or larger images may help"
        )
    if abs(share_a - share_b) < SMALL_DIFFERENCE:
        nothing = "there is little of it to change" if role == "change" else "it would be kept without --keep"
        notes.append(
            f"{images.values[0]!r} is about as frequent in folder A ({share_a:.0%}) as in B ({share_b:.0%}): {nothing}"
        )
    values = {place: np.unique(images.z[(images.y == place) & (images.z != UNLABELLED)]) for place in PLACES}
    unused = [PLACES[place] for place, found in values.items() if len(found) == 1]
    if unused:
        notes.append(
            f"the labels in {' and '.join(unused)} are all the same and were not used: {column!r} was learned from the "
            "other images, where it can be separated from the folder"
        )
    if role == "change" and len(values[0]) == len(values[1]) == 1:
        notes.append(
            f"{column!r} alone separates the folders, so the other differences are estimated with large errors; "
            "folders in which it varies would help"
        )
    apart = classifiers.accuracy["judge_domain"]
    if not apart.above_chance:
        notes.append(
            f"the folder is predicted with an accuracy of {apart.accuracy:.0%} on {apart.n} held-out images, no better "
            "than guessing: there may be nothing to translate"
        )
    for place, name in ((0, "A"), (1, "B")):
        count = int(np.sum(images.y == place))
        if count < FEW:
            notes.append(f"folder {name} has {count} images: expect overfitting")
    return notes


N_LOGGED = 200
"""Logged losses of a training, about."""
CLIP = 1.0
"""Largest norm of a gradient: one bad batch must not undo a thousand good ones."""
FREE = ("steps", "every")
"""Settings that may change when a training is resumed."""


@dataclass(frozen=True)
class TranslationConfig:
    """How two folders are translated into each other.

    Parameters
    ----------
    role : {"change", "keep"}
        "change" changes the column's factor and keeps the other differences between the folders; "keep" keeps it and
        changes the others.
    steps, batch_size, rate
        Training steps of generators and discriminators; images of each folder in a batch; learning rate of Adam.
    width : int
        Channels of their first layers.
    every : int
        Steps between two evaluations, each with a grid of samples and a checkpoint.
    clamp : float
        The largest density ratio of the folders in the generators' loss, and the inverse of the smallest. A bound near
        the true ratio (the paper has 9) would cut estimation errors on one side only.
    held_out : float
        Fraction of held-out images.
    judged : int
        Maximum number of held-out images of each folder that are evaluated.
    classifier_width, classifier_steps : int
        See `fit_folder_classifiers`.
    seed : int
    precision : "32-true" or "bf16-mixed", optional
        By default the faster one on this machine.
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
    """A fitted translation.

    Parameters
    ----------
    translator : ImageTranslator
    classifiers : FolderClassifiers
        With their accuracy on held-out images.
    scores : dict
        The final scores of `FolderJudge`.
    strips : dict of str to uint8 array
        Held-out images and their translations, see `FolderJudge.strips`.
    outcome : Outcome
        Scores and losses during training.
    images : dict of str to int
        Numbers of training and held-out images of each folder.
    """

    translator: ImageTranslator
    classifiers: FolderClassifiers
    scores: dict[str, Any]
    strips: dict[str, Bytes]
    outcome: Outcome
    images: dict[str, int]


class _WatchedTask(TransferTask):
    """A translation that shows a grid of samples at each evaluation."""

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
        A fitted classifier of the domain by the factor to change, from images in [-1, 1] to logits of shape (n, 2); the
        column is then used for evaluation only.
    principal_prior : two numbers or "uniform"
        The frequencies of A and B in its training data.
    folder : Path, optional
        For classifiers and checkpoints, from which `resume` goes on.
    resume : bool
    checked : callable, optional
        Called with the classifiers and the numbers of images, before the long part begins.
    look : callable, optional
        Called with the number of steps and a grid of samples: A, A to B, B, B to A.
    observers : sequence of Observer
        Of the long part.

    Raises
    ------
    ValueError
        Before any training, if the images, the column or the principal classifier cannot be used.

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
            raise UserError("a principal classifier came with role 'keep'", expected="role 'change'")
        check_principal(principal, signed(parts[0].x[:2]))
    with tracked("train the classifiers"):
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
        TransferConfig(batch_size=config.batch_size, rate=config.rate, seed=config.seed, decay_end=config.steps),
        log_ratio=classifiers.log_ratio(config.role, config.clamp),
        judge=judge,
    )
    task.look = look
    training = TrainingConfig(
        steps=config.steps,
        seed=config.seed,
        clip=CLIP,
        log_every=max(1, config.steps // N_LOGGED),
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


def _some(images: torch.Tensor, max_images: int, seed: int) -> torch.Tensor:
    """At most so many, at random: sorted by name, similar pictures may be neighbours."""
    if len(images) <= max_images:
        return images
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[:max_images]]


def _classifiers(
    images: LabelledImages,
    parts: tuple[Part, Part],
    config: TranslationConfig,
    principal: nn.Module | None,
    principal_prior: Any,
    folder: Path | None,
    resume: bool,
) -> FolderClassifiers:
    """Those of a resumed training, or new ones."""
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


def strip_png(images: NDArray[np.uint8]) -> str:
    """Images of shape (n, height, width, 3) in one row, as a PNG in base64, for a record.

    Examples
    --------
    >>> strip_png(np.zeros((2, 4, 4, 3), dtype=np.uint8))[:8]
    'iVBORw0K'
    """
    from PIL import Image

    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or len(images) == 0:
        raise UserError(
            f"images are {images.dtype} of shape {images.shape}", expected="uint8 of shape (n, height, width, 3), n > 0"
        )
    buffer = io.BytesIO()
    Image.fromarray(np.concatenate(list(images), axis=1)).save(buffer, format="PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
