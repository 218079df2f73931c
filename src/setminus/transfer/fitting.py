"""Style transfer between two domains: the factor in a column of labels is changed or kept; a verdict on the result."""

from __future__ import annotations

import base64
import copy
import io
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.datasets.images import Bytes
from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.errors import UserError
from setminus.nn.checkpoints import finished_steps, has_checkpoint
from setminus.nn.cyclegan import CycleGAN, CycleGANWeights
from setminus.nn.passes import Precision, fast_precision, pick_device
from setminus.nn.training import Loop, Observer, Outcome, TrainingConfig, train
from setminus.progress import tracked
from setminus.transfer.factor_classifiers import (
    PLACES,
    FactorClassifiers,
    Part,
    Role,
    check_principal,
    deal_out,
    fingerprint,
    fit_factor_classifiers,
    restore_classifiers,
    store_classifiers,
)
from setminus.transfer.model_files import ImageTranslator
from setminus.transfer.networks import check_width, networks_for, signed
from setminus.transfer.transfer_task import TransferConfig, TransferTask
from setminus.transfer.verdict import DIRECTIONS, TranslationJudge, Verdict, keeps_up, merit, verdict, worst

__all__ = [
    "Device",
    "FittedTranslation",
    "TranslationConfig",
    "WatchedTask",
    "fit_translation",
    "fitting_notes",
    "strip_png",
    "transfer_config",
]


WEAK = 0.8
"""Below this accuracy a classifier is weak."""
SMALL_DIFFERENCE = 0.1
"""Frequencies of a value in A and B that differ by less are about equal."""
MANY_WRONG = 0.03
"""Fraction of wrong labels whose lower limit is worth a warning."""
FEW = 100
"""With fewer images a network overfits."""


def fitting_notes(images: LabelledImages, classifiers: FactorClassifiers, role: Role, column: str) -> list[str]:
    """Warnings before the long part: weak classifiers, columns and images; sentences without their full stop."""
    notes = []
    sure, factor = classifiers.accuracy["column"], classifiers.factors["column"]
    share_a, share_b = factor.a[0], factor.b[0]
    if sure.accuracy < WEAK:
        notes.append(
            f"{column!r} is predicted with an accuracy of only {sure.accuracy:.0%} on {sure.n} held-out images, which "
            "limits the translation; more labels or larger images may help"
        )
    wrong, low, high = factor.wrong_labels
    if low > MANY_WRONG:
        notes.append(
            f"about {wrong:.0%} ({low:.0%} to {high:.0%}) of the labels of {column!r} look wrong: two classifiers "
            f"contradict them on held-out images"
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
NETWORKS = ("a_to_b", "b_to_a", "discriminator_a", "discriminator_b")
CLIP = 4.0
"""Largest norm of a gradient: one bad batch must not undo a thousand good ones."""
WEIGHTS = CycleGANWeights(cycle=5.0, identity=5.0, cycle_part=2, identity_part=4, change=1.0)
"""With the usual cycle weight, 10, shapes stayed half of what they were; without `change` photographs are lost."""
PENALTY, PACE, BETAS, AVERAGE = 0.2, 2.0, (0.5, 0.99), 0.99
"""Of the discriminators' gradient, their rate over the generators', Adam's memory, and that of the averaged weights.

With a quarter of this penalty a thousand pictures are learned by heart, and translations become speckled."""
SHIFT = 1 / 8
"""Largest shift of a training picture, as a share of its side; half of them are mirrored, where `mirrors` allows it.

The overlap drawing repeats the pictures with a rare value of what must stay. The discriminators would learn these few
by heart."""
KEEP = 1.0
"""Weight of the keeping loss; see `TransferConfig`."""
FREE = ("steps", "every", "baseline")
"""Settings that may change when a training is resumed."""


WARM_UP = 3
"""Steps that are timed before the training, less the first."""
DEFAULT_STEPS, DEFAULT_BATCH, DEFAULT_RATE, DEFAULT_WIDTH = 2_400, 8, 5e-4, 16
"""As in `OrthogonalTranslator`; ``python -m benchmarks translators`` measures them."""

Device = Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True)
class TranslationConfig:
    """How two domains are translated into each other.

    Parameters
    ----------
    role : {"change", "keep"}
        "change" changes the column's factor and keeps the other differences between the domains; "keep" keeps it and
        changes the others.
    steps, batch_size, rate
        Training steps of generators and discriminators; images of each domain in a batch; learning rate of Adam.
    width : int
        Channels of their first layers.
    every : int, optional
        Steps between two evaluations, each with a grid of samples and a checkpoint; by default a quarter of all. Each
        direction keeps the generator of the best one.
    clamp : float
        The largest density ratio of the domains in the generators' loss, and the inverse of the smallest. A bound near
        the true ratio (the paper has 9) would cut estimation errors on one side only.
    held_out : float
        Fraction of held-out images.
    judged : int
        Maximum number of held-out images of each domain that are evaluated.
    classifier_width, classifier_steps : int
        See `fit_factor_classifiers`.
    seed : int
    precision : "32-true" or "bf16-mixed", optional
        By default the faster one on the device.
    device : {"auto", "cpu", "cuda", "mps"}
    devices : int
        Processes, one on each device; they share a batch.
    threads : int, optional
        Of each process; by default they are not changed.
    baseline : bool
        Train plain CycleGAN as well, with the same networks and steps, to compare.
    """

    role: Role
    steps: int = DEFAULT_STEPS
    batch_size: int = DEFAULT_BATCH
    rate: float = DEFAULT_RATE
    width: int = DEFAULT_WIDTH
    every: int | None = None
    clamp: float = 30.0
    held_out: float = 0.2
    judged: int = 256
    classifier_width: int = 16
    classifier_steps: int = 600
    seed: int = 0
    precision: Precision | None = None
    device: Device = "cpu"
    devices: int = 1
    threads: int | None = None
    baseline: bool = False

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise UserError(f"role is {self.role!r}", expected=f"one of {', '.join(get_args(Role))}")
        check_width(self.width)
        check_width(self.classifier_width)
        pick_device(self.device)
        counts = ("steps", "batch_size", "every", "judged", "classifier_steps", "devices", "threads")
        given = {name: getattr(self, name) for name in counts if getattr(self, name) is not None}
        few = [f"{name} is {count!r}" for name, count in given.items() if not isinstance(count, int) or count < 1]
        if few:
            raise UserError(f"{', '.join(few)}", expected="a whole number of at least 1")
        if not self.clamp >= 1 or not self.rate > 0:
            raise UserError(f"clamp is {self.clamp}, rate is {self.rate}", expected="a clamp from 1 on, a rate above 0")

    def training(self) -> TrainingConfig:
        """Settings of the training loop."""
        device, every = pick_device(self.device), self.every or max(1, self.steps // 4)
        return TrainingConfig(
            steps=self.steps,
            seed=self.seed,
            clip=CLIP,
            ema=AVERAGE,
            log_every=max(1, self.steps // N_LOGGED),
            evaluate_every=every,
            checkpoint_every=every,
            precision=self.precision or fast_precision(device),
            accelerator=device,
            devices=self.devices,
            threads=self.threads,
            # operations of a GPU need settings of its libraries for that
            deterministic=device == "cpu",
        )


# eq=False: comparing networks has no meaning here
@dataclass(frozen=True, eq=False)
class FittedTranslation:
    """A fitted translation.

    Parameters
    ----------
    translator : ImageTranslator
    classifiers : FactorClassifiers
        With their accuracy on held-out images.
    scores : dict
        Of the best evaluation: the scores and distances of `TranslationJudge`, and for each direction the "verdict" and
        the "step".
    strips : dict of str to uint8 array
        Held-out images and their translations, see `TranslationJudge.strips`.
    outcome : Outcome
        Scores and losses during training.
    images : dict of str to int
        Numbers of training and held-out images of each domain.
    baseline : dict
        The scores of plain CycleGAN, and its "strips"; empty without it.
    """

    translator: ImageTranslator
    classifiers: FactorClassifiers
    scores: dict[str, Any]
    strips: dict[str, Bytes]
    outcome: Outcome
    images: dict[str, int]
    baseline: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """That of the worse direction."""
        return worst([self.scores[direction]["verdict"] for direction in DIRECTIONS])


class _Best(nn.Module):  # type: ignore[misc]
    """Of each direction the generator of the best evaluation so far, by `merit`; of several about as good, the last."""

    def __init__(self, networks: CycleGAN) -> None:
        super().__init__()
        for direction in DIRECTIONS:
            self.add_module(direction, copy.deepcopy(getattr(networks, direction)))
            # the highest so far; a buffer, so that a resumed training knows it
            self.register_buffer(f"merit_{direction}", torch.tensor(-torch.inf))
        self.requires_grad_(False)

    def keep(self, networks: CycleGAN, scores: dict[str, Any]) -> None:
        for direction in DIRECTIONS:
            highest, found = self.get_buffer(f"merit_{direction}"), merit(scores[direction])
            if keeps_up(found, highest.item()):
                self.get_submodule(direction).load_state_dict(getattr(networks, direction).state_dict())
            highest.fill_(max(found, highest.item()))


class WatchedTask(TransferTask):
    """A translation that keeps the best generators and shows a grid of samples at each evaluation."""

    judge: TranslationJudge
    look: Callable[[int, Bytes], None] | None = None

    def __init__(self, networks: CycleGAN, *data: Any, **options: Any) -> None:
        super().__init__(networks, *data, **options)
        self.modules["best"] = _Best(networks)

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        """The judge's scores, after which the best generators are those of this evaluation or of an earlier one."""
        scores = super().evaluate(loop)
        self.modules["best"].keep(self.networks, scores)
        if self.look is not None and loop.fabric.is_global_zero:
            self.look(loop.index + 1, self.judge.grid(self.networks))
        return scores

    def best(self) -> CycleGAN:
        """The best generators, with the discriminators of the end."""
        found = self.modules["best"].cpu().eval()
        return replace(self.networks, a_to_b=found.a_to_b, b_to_a=found.b_to_a)


def fit_translation(
    images: LabelledImages,
    config: TranslationConfig,
    *,
    principal: nn.Module | None = None,
    principal_prior: Any = "uniform",
    folder: Path | None = None,
    resume: bool = False,
    checked: Callable[[FactorClassifiers, float | None], None] | None = None,
    look: Callable[[int, Bytes], None] | None = None,
    observers: Sequence[Observer] = (),
) -> FittedTranslation:
    """Learn to translate the pictures of two domains into each other.

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
        Called with the classifiers and the seconds of all steps to come, if a step was timed, before the long part.
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
    >>> made = fit_translation(LabelledImages(x, y, z, ("dark", "red")), config)
    >>> made.translator.translate(x[:3]).shape
    (3, 12, 12, 3)
    """
    size = images.x.shape[1]
    networks = networks_for(size, config.width, seed=config.seed)
    training = config.training()
    parts = deal_out(images, config.held_out, config.seed)
    if principal is not None:
        if config.role != "change" or images.kept is not None:
            raise UserError("a principal classifier came with a factor to keep", expected="a factor to change only")
        check_principal(principal, signed(parts[0].x[:2]))
    with tracked("train the classifiers"):
        classifiers = _classifiers(images, parts, config, principal, principal_prior, folder, resume)
    train_part, held_out = parts
    judged = [_some(images, config.judged, config.seed) for images in (held_out.a, held_out.b)]
    counts = {"a": len(train_part.a), "b": len(train_part.b), "a_held": len(judged[0]), "b_held": len(judged[1])}
    judge = TranslationJudge(classifiers, config.role, *judged)
    usual = transfer_config(batch_size=config.batch_size, rate=config.rate, seed=config.seed, steps=config.steps)
    settings = replace(usual, mirror=judge.mirrors())
    data = (train_part.a, train_part.b, settings)
    log_ratio = classifiers.log_ratio(config.role, config.clamp)
    if checked is not None:
        trial = TransferTask(copy.deepcopy(networks), *data, log_ratio=log_ratio)
        # processes are started once, for the training itself
        each = _seconds_per_step(trial, training) if config.devices == 1 else None
        checked(classifiers, None if each is None else each * _remaining_steps(config, folder, resume))
    task = WatchedTask(networks, *data, log_ratio=log_ratio, judge=judge)
    task.look = look
    with tracked("train the generators"):
        checkpoints = None if folder is None else folder / "training"
        outcome = train(task, training, folder=checkpoints, resume=resume, observers=observers)
    baseline: dict[str, Any] = {}
    if config.baseline:
        plain = networks_for(size, config.width, seed=config.seed)
        with tracked("train plain CycleGAN"):
            checkpoints = None if folder is None else folder / "baseline"
            # CycleGAN itself does not ask how much a picture changes
            free = replace(settings, weights=replace(settings.weights, change=0.0))
            plain_task = TransferTask(plain, train_part.a, train_part.b, free, judge=judge)
            outcome_of_plain = train(plain_task, training, folder=checkpoints, resume=resume)
        # nor does it choose by what is kept: its last weights, averaged
        last = CycleGAN(*(outcome_of_plain.averaged[name].cpu().eval() for name in NETWORKS))
        baseline = _scores(outcome_of_plain, judge.distances(last), [outcome_of_plain.evaluations[-1]])
        baseline["strips"] = judge.strips(last)
    best = task.best()
    return FittedTranslation(
        ImageTranslator(best.a_to_b, best.b_to_a, size, config.width),
        classifiers,
        _scores(outcome, judge.distances(best), outcome.evaluations),
        judge.strips(best),
        outcome,
        counts,
        baseline,
    )


def transfer_config(*, batch_size: int, rate: float, seed: int, steps: int) -> TransferConfig:
    """How generators and discriminators are trained: all but what `TranslationConfig` leaves to the caller."""
    return TransferConfig(
        batch_size=batch_size,
        rate=rate,
        discriminator_pace=PACE,
        betas=BETAS,
        penalty=PENALTY,
        weights=WEIGHTS,
        seed=seed,
        decay_end=steps,
        keep=KEEP,
        overlap=True,
        shift=SHIFT,
        mirror=True,
    )


def _scores(outcome: Outcome, distances: dict[str, dict[str, Any]], choice: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The scores of each direction's best evaluation of a choice, with its step, its distance and its verdict."""
    scored: dict[str, Any] = {}
    for direction in DIRECTIONS:
        best, highest = choice[0], -math.inf
        for one in choice:
            # as `_Best` keeps it
            found = merit(one[direction])
            best, highest = one if keeps_up(found, highest) else best, max(found, highest)
        scores = {**best[direction], "step": best["step"], **distances[direction]}
        curve = [one[direction] for one in outcome.evaluations]
        scored[direction] = {**scores, "verdict": verdict(scores, curve)}
    return scored


def _seconds_per_step(trial: TransferTask, training: TrainingConfig) -> float:
    """The time of a step, by a few whose result is thrown away."""
    times: list[float] = []
    few = TrainingConfig(
        **{
            **asdict(training),
            "steps": WARM_UP,
            "log_every": 1,
            "evaluate_every": 0,
            "checkpoint_every": 0,
        }
    )
    with tracked("time a step"):
        train(trial, few, observers=[lambda step, values: times.append(time.perf_counter())])
    return (times[-1] - times[0]) / (WARM_UP - 1)


def _remaining_steps(config: TranslationConfig, folder: Path | None, resume: bool) -> int:
    """The steps to come, with those of plain CycleGAN."""
    parts = ("training", "baseline") if config.baseline else ("training",)
    done = [finished_steps(folder / part) if folder is not None and resume else 0 for part in parts]
    return sum(max(0, config.steps - steps) for steps in done)


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
) -> FactorClassifiers:
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
    classifiers = fit_factor_classifiers(
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


def strip_png(images: NDArray[np.uint8], per_row: int | None = None) -> str:
    """Images of shape (n, height, width, 3) in rows, by default in one, as a PNG in base64, for a record.

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
    columns = per_row or len(images)
    missing = np.full((-len(images) % columns, *images.shape[1:]), 255, np.uint8)
    rows = np.concatenate([images, missing]).reshape(-1, columns, *images.shape[1:])
    buffer = io.BytesIO()
    Image.fromarray(np.concatenate([np.concatenate(list(row), axis=1) for row in rows])).save(
        buffer, format="PNG", optimize=True
    )
    return base64.b64encode(buffer.getvalue()).decode("ascii")
