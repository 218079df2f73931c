"""The settings of table 3: pairs of image sets with a label shift, sizes of the runs, and the methods."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from setminus.adaptation.domain_rows import held_out_rows
from setminus.adaptation.domains import DomainData
from setminus.adaptation.label_shift import class_frequencies
from setminus.adaptation.vada import VadaConfig
from setminus.datasets.images import resize, to_rgb, to_signed_nchw
from setminus.datasets.split import Split
from setminus.errors import UserError
from setminus.nn.passes import prepare
from setminus_paper.data.images import AbsentPartError, class_names, keep_classes, load_images, shift_by_halves
from setminus_paper.published import TABLE3
from setminus_paper.run import Scale

__all__ = [
    "ABLATION",
    "ALL_ROWS",
    "FIRST_SEED",
    "LOSSES",
    "ORTHOGONAL",
    "OTHER_SOURCE",
    "PAIRS",
    "PHOTOGRAPHS",
    "ROWS",
    "SIZES",
    "PaperPair",
    "Row",
    "Scoring",
    "ShiftedPair",
    "Size",
    "check_shift",
    "load_pair",
    "paper_accuracy",
    "shared_classes",
    "shifted_pair",
]

PIXELS = 32
"""Height and width of all images."""
HELD_OUT = 0.2
"""Share of source rows that no method is trained on, for estimates of class frequencies, where a size has no other."""
MAX_HELD_OUT = 2_000
SAME_CLASS = {"car": "automobile"}
"""Classes that two sets name differently."""


@dataclass(frozen=True)
class PaperPair:
    """Two image sets of `load_images`; `scored_share` of the target's rows is scored if it has no test part."""

    source: str
    target: str
    scored_share: float | None = None


PAIRS: dict[str, PaperPair] = {
    "mnist-mnist_m": PaperPair("mnist", "mnist_m"),
    "svhn-mnist": PaperPair("svhn", "mnist"),
    "mnist-usps": PaperPair("mnist", "usps"),
    "syn_signs-gtsrb": PaperPair("syn_signs", "gtsrb"),
    "mnist-svhn": PaperPair("mnist", "svhn"),
    "drawn_digits-svhn": PaperPair("drawn_digits", "svhn"),
    "cifar10-stl10": PaperPair("cifar10", "stl10", scored_share=0.3),
    "stl10-cifar10": PaperPair("stl10", "cifar10"),
}


# eq=False: comparing arrays field by field has no single truth value
@dataclass(frozen=True, eq=False)
class Scoring:
    """The target's labels, for scoring only: no method gets them.

    `images` are not adapted to; `target_prior` has the true class frequencies of the rows that are. `weights` of the
    images give them the target's label shift, where none was dropped.
    """

    images: torch.Tensor
    labels: NDArray[np.int64]
    target_prior: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class ShiftedPair:
    """Rows to learn from, rows to score, and the names of the classes 0, 1, 2, ..."""

    data: DomainData
    scoring: Scoring
    classes: tuple[str, ...]


def load_pair(name: str, *, shift: float = 0.7, seed: int = 0, **options: Any) -> ShiftedPair:
    """One of `PAIRS` with its label shift; `options` are those of `shifted_pair`."""
    pair = PAIRS[name]
    classes = shared_classes(pair.source, pair.target)
    source, adapt = _labelled(pair.source, "train", classes), _labelled(pair.target, "train", classes)
    try:
        score = _labelled(pair.target, "test", classes)
    except AbsentPartError:
        if pair.scored_share is None:
            raise
        adapt, score = _parted(adapt, pair.scored_share, seed)
    return shifted_pair(source, adapt, score, classes, shift=shift, seed=seed, **options)


def shared_classes(source: str, target: str) -> tuple[str, ...]:
    """The classes that two image sets have in common by name, in the source's order.

    Examples
    --------
    >>> shared_classes("cifar10", "stl10")
    ('airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'horse', 'ship', 'truck')
    """
    known = _names(target)
    return tuple(name for name in _names(source) if name in known)


def shifted_pair(
    source: Split,
    adapt: Split,
    score: Split,
    classes: tuple[str, ...],
    *,
    shift: float = 0.7,
    seed: int = 0,
    most_rows: int | None = None,
    held_out: float | None = None,
    score_all: bool = False,
) -> ShiftedPair:
    """Give two labelled image sets the paper's label shift, and hide the target's labels.

    Of the first ``C // 2`` classes the source keeps the share `shift`, of the others ``1 - shift``; both parts of the
    target the reverse. The labels of `adapt` serve to choose rows and are then dropped. `most_rows` limits each part
    before the shift takes its share; `held_out` is the share of source rows that no method is trained on; `seed` is
    that of the choice of rows. With `score_all`, every row of `score` is kept, and weights give the shift.

    Examples
    --------
    >>> images = Split(x=np.zeros((100, 28, 28, 1), dtype=np.uint8), y=np.arange(100) % 2)
    >>> pair = shifted_pair(images, images, images, ("even", "odd"))
    >>> pair.scoring.target_prior, len(pair.data.target), tuple(pair.data.target.shape[1:])
    (array([0.3, 0.7]), 50, (3, 32, 32))
    """
    check_shift(shift)
    if most_rows is not None and most_rows < 1:
        raise UserError(f"most_rows is {most_rows}", expected="at least one row, or None for all")
    # different seeds: parts of one size would otherwise lose the same rows
    parts, weights = [], None
    for place, (name, part, first) in enumerate(
        (("source", source, shift), ("target", adapt, 1 - shift), ("scored target", score, 1 - shift))
    ):
        if len(part) == 0:
            raise UserError(f"the {name} domain has no rows", do="adaptation needs rows of both domains.")
        fewer = _fewer(part, most_rows, 3 * seed + place)
        if part is score and score_all:
            weights = half_weights(fewer.y < len(classes) // 2, first)
            parts.append(fewer)
        else:
            parts.append(shift_by_halves(fewer, first, 1 - first, seed=3 * seed + place, n_classes=len(classes)))
    source, adapt, score = parts
    counts = np.bincount(source.y, minlength=len(classes))
    if not counts.all():
        absent = [classes[k] for k in np.flatnonzero(counts == 0)]
        raise UserError(
            f"the source has no rows of {', '.join(absent)} after the shift", do="give more rows, or a smaller shift."
        )
    share = held_out or min(HELD_OUT, MAX_HELD_OUT / len(source))
    held = held_out_rows(source.y, share, check_random_state(seed))
    images, labels = _tensor(source.x), torch.from_numpy(source.y)
    data = DomainData(
        images[~held],
        labels[~held],
        _tensor(adapt.x),
        len(classes),
        images[held] if held.any() else None,
        labels[held] if held.any() else None,
    )
    scoring = Scoring(_tensor(score.x), score.y, class_frequencies(adapt.y, len(classes)), weights)
    return ShiftedPair(data, scoring, classes)


def half_weights(first_half: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """A weight for each row, with mean 1, by which the first half of the classes has a share of all rows.

    Examples
    --------
    >>> half_weights(np.array([True, False, False, False]), 0.4)
    array([1.6, 0.8, 0.8, 0.8])
    """
    present = first_half.mean()
    if not 0 < present < 1:
        raise UserError("all scored rows are in one half of the classes", do="the other needs rows, too.")
    weights: NDArray[np.float64] = np.where(first_half, share / present, (1 - share) / (1 - present))
    return weights


def check_shift(shift: float) -> None:
    """Refuse a shift that is not a share.

    Examples
    --------
    >>> check_shift(70)
    Traceback (most recent call last):
    setminus.errors.UserError: shift is 70: expected the first half's share in the source, between 0 and 1.
    """
    if not 0 < shift < 1:
        raise UserError(f"shift is {shift:g}", expected="the first half's share in the source, between 0 and 1")


def _names(name: str) -> list[str]:
    return [SAME_CLASS.get(one, one) for one in class_names(name)]


def _labelled(name: str, part: str, classes: tuple[str, ...]) -> Split:
    """A part of a set with the shared classes only, numbered as in `classes`."""
    split = load_images(name, part)  # type: ignore[arg-type]
    names = _names(name)
    return keep_classes(split, [names.index(one) for one in classes])


def _parted(split: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Two disjoint parts, with a share of each class in the second."""
    second = held_out_rows(split.y, share, check_random_state(seed))
    return split.take(~second), split.take(second)


def _fewer(split: Split, most: int | None, seed: int) -> Split:
    if most is None or len(split) <= most:
        return split
    return split.take(np.sort(np.random.default_rng(seed).choice(len(split), size=most, replace=False)))


def _tensor(images: NDArray[np.uint8]) -> torch.Tensor:
    return prepare(torch.from_numpy(to_signed_nchw(to_rgb(resize(images, PIXELS)))))


LOSSES: dict[str, VadaConfig] = {
    "mnist-mnist_m": VadaConfig(domain=1e-1),
    "svhn-mnist": VadaConfig(source_vat=0.0),
    "cifar10-stl10": VadaConfig(target_entropy=1e-1, target_vat=1e-1),
    "stl10-cifar10": VadaConfig(target_entropy=1e-1, target_vat=1e-1, source_vat=0.0),
}
"""The paper's weights of the losses where they differ from its usual ones; the same for every method."""
PHOTOGRAPHS = ("cifar10-stl10", "stl10-cifar10")
FIRST_SEED = 9
"""The first seed of the quick size: lower ones were scored while it was chosen, and influenced it."""
FIRST_LARGE_SEED = 20
"""The first seed of the large size: no lower one was scored with it, nor a higher one with any other."""


@dataclass(frozen=True)
class Size:
    """Size of a run.

    ``docs/how-table-3-was-set.md`` has what the quick size was chosen by: held-out source rows, and scores of pairs
    that are not in the table, though their targets are. The need for changes was seen on scores of the table's own
    pairs, on seeds below `FIRST_SEED`.

    Parameters
    ----------
    width, photograph_width : int
        Channels of the network, and of the one for CIFAR and STL.
    batch, rate : int, float
        Rows of each domain in a step, and Adam's rate.
    most_rows : int, optional
        Largest number of rows of each part of a pair, before the shift.
    steps, warmup : int, optional
        All steps, and those before adaptation begins. By default `epochs` of the larger domain, and one of them, or
        five for photographs.
    epochs : int
    estimate_every : int, optional
        Steps between two estimates of the target's class frequencies; by default an epoch of the target.
    balanced : {"weights", "batches"}
        See `AdaptationConfig`.
    rests : bool
        Whether the rate falls to zero over the second half of the steps.
    evaluations : int
    seen_rows : int
        Largest number of target images that the selection uses.
    domain, target : float, optional
        Smallest weights of the domain loss, and of entropy and VAT on the target; by default those of `LOSSES`.
    source_vat : float
        Largest weight of VAT on the source; 0 saves its passes.
    average : float, optional
        Decay of the moving average of the weights, which is what is scored.
    held_out : float, optional
        Share of source rows that no method is trained on.
    first_estimate : int, optional
        The step of the first estimate of the target's class frequencies, with all losses from the first step on.
    source_steps : int, optional
        Steps of the source's classifier that ADDA and CyCADA begin with, before their usual number of steps.
    scored : {"weighted"}, optional
        Score all test images, with weights that give the shift, instead of dropping images.
    selection : {"last"}, optional
        Score the last evaluation, instead of the one selected by `SELECTION`.
    """

    width: int = 64
    photograph_width: int = 192
    batch: int = 64
    rate: float = 1e-3
    most_rows: int | None = None
    steps: int | None = None
    warmup: int | None = None
    epochs: int = 30
    estimate_every: int | None = None
    balanced: Literal["weights", "batches"] = "weights"
    rests: bool = False
    evaluations: int = 30
    seen_rows: int = 5_000
    domain: float = 0.0
    target: float = 0.0
    source_vat: float = 1.0
    average: float | None = None
    held_out: float | None = None
    first_estimate: int | None = None
    source_steps: int | None = None
    scored: Literal["weighted"] | None = None
    selection: Literal["last"] | None = None

    def config(self) -> dict[str, Any]:
        """What is set, for the config of a record."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def schedule(self, pair: str, method: str, data: DomainData) -> tuple[int, int]:
        """All steps, and those before adaptation begins."""
        epoch = max(len(data.source), len(data.target)) // self.batch or 1
        steps = self.steps or self.epochs * epoch
        if self.first_estimate is not None:
            first = (self.source_steps or steps) if method in ("adda", "cycada") else 0
            return steps + first, first
        warmup = self.warmup or epoch * (5 if pair in PHOTOGRAPHS else 1)
        # ADDA adapts a finished classifier
        return steps, max(warmup, steps // 2) if method == "adda" else min(warmup, steps - 1)

    def losses(self, pair: str) -> VadaConfig:
        """The weights of a pair."""
        paper = LOSSES.get(pair, VadaConfig())
        return replace(
            paper,
            domain=max(paper.domain, self.domain),
            target_entropy=max(paper.target_entropy, self.target),
            target_vat=max(paper.target_vat, self.target),
            source_vat=min(paper.source_vat, self.source_vat),
        )


SIZES: dict[Scale, Size] = {
    "quick": Size(
        width=24,
        photograph_width=24,
        batch=16,
        rate=5e-3,
        most_rows=10_000,
        steps=2_500,
        warmup=1_000,
        epochs=0,
        estimate_every=100,
        balanced="batches",
        rests=True,
        evaluations=5,
        seen_rows=1_000,
        # the largest that the paper has for any pair: there are far fewer steps
        domain=1e-1,
        target=1e-1,
        source_vat=0.0,
    ),
    "large": Size(
        width=24,
        photograph_width=24,
        batch=16,
        rate=1e-3,
        steps=5_000,
        epochs=0,
        estimate_every=250,
        balanced="batches",
        evaluations=5,
        seen_rows=1_000,
        average=0.998,
        held_out=0.1,
        first_estimate=500,
        source_steps=5_000,
        scored="weighted",
        selection="last",
    ),
    "paper": Size(),
}


@dataclass(frozen=True)
class Row:
    """A row of the table: a method and its options."""

    label: str
    task: str
    options: dict[str, Any] = field(default_factory=dict)


FOLLOWING: dict[str, Any] = {"every_epoch": True, "momentum": 0.5, "rows": 1_000}
"""After few steps a network predicts the target poorly before adaptation: estimates are repeated, each averaged with
the one before, as in the paper's importance weights."""

ROWS: dict[str, Row] = {
    "source_only": Row("Source-Only", "source_only"),
    "dann": Row("DANN", "dann"),
    "adda": Row("ADDA", "adda"),
    "cycada": Row("CyCADA", "cycada"),
    "vada": Row("VADA", "vada"),
    "vada_iw": Row("VADA + IW", "vada_iw", {"label_shift": {"estimator": "bbse", **FOLLOWING}}),
    "vada_orthogonal_em": Row(
        "VADA + w_x \\ w_1 (EM)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "em", **FOLLOWING}, "discriminator": "orthogonal"},
    ),
    "vada_orthogonal_bbse": Row(
        "VADA + w_x \\ w_1 (BBSE)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "bbse", **FOLLOWING}, "discriminator": "orthogonal"},
    ),
    "vada_orthogonal_shrunk": Row(
        "VADA + w_x \\ w_1 (shrunk)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "pseudo_soft", **FOLLOWING, "shrinkage": 0.5}, "discriminator": "orthogonal"},
    ),
    # the form of the paper's public code
    "vada_orthogonal_public": Row(
        "VADA + w_x \\ w_1 (public code)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "pseudo_soft"}, "discriminator": "full", "target_classes": "soft"},
    ),
    "vada_balanced": Row("VADA, pseudo-balanced and reweighted", "vada_balanced"),
    # the paper's own estimate, discriminator and classes of target rows
    "vada_orthogonal_pseudo": Row(
        "VADA + w_x \\ w_1 (pseudo-labels)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "pseudo_hard"}, "discriminator": "full", "target_classes": "hard"},
    ),
}
ESTIMATORS = {"pseudo_soft": "soft pseudo-labels", "em": "EM", "bbse": "BBSE"}
ABLATION: dict[str, Row] = {
    f"{estimator}_{discriminator}": Row(
        f"{name}, {discriminator} discriminator",
        "vada_orthogonal",
        {"label_shift": {"estimator": estimator, **FOLLOWING}, "discriminator": discriminator},
    )
    for estimator, name in ESTIMATORS.items()
    for discriminator in ("full", "orthogonal")
}
"""Rows that differ in one change each; the last one from soft pseudo-labels with the orthogonal discriminator."""
ABLATION["pseudo_soft_orthogonal_hard"] = Row(
    "soft pseudo-labels, orthogonal discriminator, hard classes",
    "vada_orthogonal",
    {**ABLATION["pseudo_soft_orthogonal"].options, "target_classes": "hard"},
)
ALL_ROWS = {**ROWS, **ABLATION}
ORTHOGONAL = tuple(name for name, row in ROWS.items() if row.task == "vada_orthogonal")
OTHER_SOURCE = {"drawn_digits-svhn": "the paper's source is SYN-DIGITS"}
"""Pairs whose images are not the paper's."""


def paper_accuracy(pair: str, method: str) -> float | None:
    r"""The paper's accuracy; its one row of w_x \ w_1 is shown for each estimate of the class frequencies.

    Examples
    --------
    >>> paper_accuracy("svhn-mnist", "vada_orthogonal_em"), paper_accuracy("mnist-usps", "vada")
    (0.88, None)
    """
    return TABLE3.get(pair, {}).get("orthogonal" if method in ORTHOGONAL else method)
