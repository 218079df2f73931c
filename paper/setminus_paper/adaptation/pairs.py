"""The pairs of image sets that table 3 adapts between, with another class mix in each domain."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from setminus.adaptation.adaptation_task import DomainData
from setminus.adaptation.label_shift import class_frequencies
from setminus.adaptation.sample_domains import held_out_rows
from setminus.datasets.image_arrays import resize, to_rgb, to_signed_nchw
from setminus.datasets.split import Split
from setminus.errors import UserError
from setminus.nn.passes import prepare
from setminus_paper.data.images import class_names, load_images
from setminus_paper.data.label_shift import keep_classes, shift_by_halves

__all__ = ["PAIRS", "PaperPair", "Scoring", "ShiftedPair", "check_shift", "load_pair", "shared_classes", "shifted_pair"]

SIZE = 32
"""Height and width of all images."""
HELD_OUT = 0.2
"""The share of source rows that no method is trained on: estimates of class frequencies are made from them."""
MOST_HELD_OUT = 2_000
SAME_CLASS = {"car": "automobile"}
"""Names that one set has for what another calls otherwise."""


@dataclass(frozen=True)
class PaperPair:
    """Two image sets by name.

    Attributes
    ----------
    source, target : str
        As `setminus_paper.data.images.load_images` knows them.
    scored_share : float, optional
        The share of the target's labelled rows that is kept for scoring, where it has no test part.
    """

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
    """All that is known of the target's labels. No training is given it.

    Attributes
    ----------
    images : Tensor of shape (n, 3, 32, 32)
        Target images that are not adapted to.
    labels : ndarray of int64 of shape (n,)
    target_prior : ndarray of shape (C,)
        The true class frequencies of the rows that are adapted to.
    """

    images: torch.Tensor
    labels: NDArray[np.int64]
    target_prior: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShiftedPair:
    """What methods learn from, and what they are scored with.

    Attributes
    ----------
    data : DomainData
    scoring : Scoring
    classes : tuple of str
        What the labels 0, 1, 2, ... stand for.
    """

    data: DomainData
    scoring: Scoring
    classes: tuple[str, ...]


def load_pair(name: str, *, shift: float = 0.7, seed: int = 0, most_rows: int | None = None) -> ShiftedPair:
    """A pair of the paper, with its label shift.

    Parameters
    ----------
    name : str
        One of `PAIRS`.
    shift : float between 0 and 1, default=0.7
        See `shifted_pair`.
    seed : int, default=0
    most_rows : int, optional
        The most images of each part, before the shift takes its share; by default all.

    Returns
    -------
    ShiftedPair

    Raises
    ------
    DataUnavailableError
        If no source has one of the sets; it says where to put them.
    """
    if name not in PAIRS:
        near = difflib.get_close_matches(name, PAIRS, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PAIRS)}."
        raise UserError(f"there is no pair {name!r}", do=f"{advice}")
    pair = PAIRS[name]
    classes = shared_classes(pair.source, pair.target)
    source, adapt = _labelled(pair.source, "train", classes), _labelled(pair.target, "train", classes)
    if pair.scored_share is None:
        score = _labelled(pair.target, "test", classes)
    else:
        adapt, score = _parted(adapt, pair.scored_share, seed)
    return shifted_pair(source, adapt, score, classes, shift=shift, seed=seed, most_rows=most_rows)


def shared_classes(source: str, target: str) -> tuple[str, ...]:
    """The classes that two image sets have in common by name, in the source's order.

    Parameters
    ----------
    source, target : str

    Returns
    -------
    tuple of str

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
) -> ShiftedPair:
    """Give two labelled image sets the paper's label shift, and hide the target's labels.

    Of the first ``C // 2`` classes the source keeps the share `shift`, of the others ``1 - shift``; both parts of the
    target the reverse.

    Parameters
    ----------
    source : Split
        Images of uint8 of any size, grey or in color, with labels from 0.
    adapt, score : Split
        Target images to adapt to, whose labels serve to choose rows and are then dropped, and those to score with.
    classes : tuple of str
    shift : float between 0 and 1, default=0.7
        0.5 has no shift.
    seed : int, default=0
        Of the choice of rows.
    most_rows : int, optional
        As in `load_pair`.

    Returns
    -------
    ShiftedPair

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
    # seeds of their own: parts of one size would otherwise lose the same rows
    parts = []
    for place, (name, part, first) in enumerate(
        (("source", source, shift), ("target", adapt, 1 - shift), ("scored target", score, 1 - shift))
    ):
        if len(part) == 0:
            raise UserError(f"the {name} domain has no rows", do="adaptation needs rows of both domains.")
        fewer = _fewer(part, most_rows, 3 * seed + place)
        parts.append(shift_by_halves(fewer, first, 1 - first, seed=3 * seed + place, n_classes=len(classes)))
    source, adapt, score = parts
    counts = np.bincount(source.y, minlength=len(classes))
    if not counts.all():
        absent = [classes[k] for k in np.flatnonzero(counts == 0)]
        raise UserError(
            f"the source has no rows of {', '.join(absent)} after the shift", do="give more rows, or a smaller shift."
        )
    share = min(HELD_OUT, MOST_HELD_OUT / len(source))
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
    scoring = Scoring(_tensor(score.x), score.y, class_frequencies(adapt.y, len(classes)))
    return ShiftedPair(data, scoring, classes)


def check_shift(shift: float) -> None:
    """Refuse what is no share.

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
    """A part of a set with the shared classes only, counted alike in both sets."""
    split = load_images(name, part)  # type: ignore[arg-type]
    names = _names(name)
    return keep_classes(split, [names.index(one) for one in classes])


def _parted(split: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Two parts without common rows, with a share of each class in the second."""
    second = held_out_rows(split.y, share, check_random_state(seed))
    return split.take(~second), split.take(second)


def _fewer(split: Split, most: int | None, seed: int) -> Split:
    if most is None or len(split) <= most:
        return split
    return split.take(np.sort(np.random.default_rng(seed).choice(len(split), size=most, replace=False)))


def _tensor(images: NDArray[np.uint8]) -> torch.Tensor:
    return prepare(torch.from_numpy(to_signed_nchw(to_rgb(resize(images, SIZE)))))
