"""The classifiers that a translation between two domains needs, their accuracy on held-out images, and their files."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.errors import UserError
from setminus.nn.checkpoints import load_checkpoint, save_checkpoint
from setminus.transfer.domain_classifiers import (
    ClassifierConfig,
    DomainByColumn,
    fit_domain_classifier,
    log_proba,
    overlap_weights,
    shares_by_classifier,
    smoothed_shares,
)
from setminus.transfer.networks import classifier_for, image_tensor
from setminus.transfer.transfer_task import OrthogonalRatio, PairRatio

__all__ = [
    "PLACES",
    "Factor",
    "FactorClassifiers",
    "HeldOutAccuracy",
    "Part",
    "Role",
    "check_principal",
    "deal_out",
    "fingerprint",
    "fit_factor_classifiers",
    "held_out_accuracy",
    "restore_classifiers",
    "store_classifiers",
    "wrong_label_fraction",
]

Ints = NDArray[np.int64]
PLACES = {0: "folder A", 1: "folder B", UNLABELLED: "the images of neither folder"}


# eq=False: comparing arrays field by field has no single truth value
@dataclass(frozen=True, eq=False)
class Part:
    """Images with their domain and labels.

    Parameters
    ----------
    x : uint8 Tensor of shape (n, 3, size, size)
    y : int array of shape (n,)
        0 in domain A, 1 in B, -1 in neither.
    z : int array of shape (n,)
        The column's value: 0, 1, ...; -1 where there is no label.
    kept : int array of shape (n,), optional
        The values of a second column, which is kept, likewise.
    """

    x: torch.Tensor
    y: Ints
    z: Ints
    kept: Ints | None = None

    def take(self, rows: NDArray[np.bool_]) -> Part:
        """The images of a mask."""
        kept = None if self.kept is None else self.kept[rows]
        return Part(self.x[torch.from_numpy(rows)], self.y[rows], self.z[rows], kept)

    @property
    def by_kept(self) -> Part:
        """The same images with the second column in the first one's place."""
        return Part(self.x, self.y, self.z if self.kept is None else self.kept)

    @property
    def a(self) -> torch.Tensor:
        """The images of domain A."""
        return self.take(self.y == 0).x

    @property
    def b(self) -> torch.Tensor:
        """The images of domain B."""
        return self.take(self.y == 1).x

    @property
    def labelled(self) -> Part:
        """The images with a label, in a domain or not."""
        return self.take(self.z != UNLABELLED)

    @property
    def in_folders(self) -> Part:
        """The images of A and B, labelled or not."""
        return self.take(self.y != UNLABELLED)


def deal_out(images: LabelledImages, share: float, seed: int) -> tuple[Part, Part]:
    """Hold out a share of the images of each domain and value, at random.

    Returns
    -------
    train, held_out : Part
        Both have images of A and of B, and every value that has two images or more in a place.

    Examples
    --------
    >>> y, z = np.repeat([0, 1], 10), np.tile([0, 1], 10)
    >>> images = LabelledImages(np.zeros((20, 2, 2, 3), np.uint8), y, z, ("dark", "fair"), ())
    >>> [len(part.y) for part in deal_out(images, 0.2, seed=0)]
    [16, 4]
    """
    if not 0 < share < 1:
        raise UserError(f"the share of held-out images is {share}", expected="a number between 0 and 1, such as 0.2")
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(images.y), dtype=bool)
    for place in np.unique(images.y):
        for value in np.unique(images.z):
            rows = rng.permutation(np.flatnonzero((images.y == place) & (images.z == value)))
            # at least one, if one is left to learn from
            held_out[rows[: min(max(1, round(share * len(rows))), len(rows) - 1)]] = True
        rows = np.flatnonzero(images.y == place)
        if place != UNLABELLED and not held_out[rows].any():
            held_out[rows[-1]] = True
    whole = Part(image_tensor(images.x), images.y, images.z, images.kept)
    return whole.take(~held_out), whole.take(held_out)


ONE_SIDED, TWO_SIDED = 1.645, 1.96
"""The 95 and the 97.5 % quantile of the standard normal distribution."""


@dataclass(frozen=True)
class HeldOutAccuracy:
    """Balanced accuracy of a classifier on held-out images: 0.5 is chance.

    Parameters
    ----------
    accuracy : float
    n : int
        Number of images.
    by_chance : float
        The 95 % quantile of the accuracy of guessing.
    """

    accuracy: float
    n: int
    by_chance: float

    @property
    def above_chance(self) -> bool:
        """Whether it is significantly better than guessing."""
        return self.accuracy > self.by_chance


def held_out_accuracy(predicted: NDArray[Any], truth: NDArray[Any], weights: NDArray[Any]) -> HeldOutAccuracy:
    """The weighted accuracy of predictions.

    Examples
    --------
    >>> import numpy as np
    >>> held_out_accuracy(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 1.0, 3.0]))
    HeldOutAccuracy(accuracy=0.8333333333333334, n=4, by_chance=0.974...)
    """
    total = float(weights.sum())
    error = 0.5 * math.sqrt(float((weights**2).sum())) / total
    right = float((weights * (predicted == truth)).sum())
    return HeldOutAccuracy(right / total, int((weights > 0).sum()), min(1.0, 0.5 + ONE_SIDED * error))


Role = Literal["change", "keep"]
"""Whether the column's factor is changed or kept."""

BATCH_SIZE = 64
MAX_EPOCHS = 60
"""A limit where there are few images, which are soon learned."""
RATE, WEIGHT_DECAY = 0.05, 0.015
"""With the usual decay, a hundredth of it, the few heavily weighted images are learned by heart: textures lost `r`."""
SHIFT = 1 / 14
"""Largest shift of a training image, as a share of its side: 2 pixels of 28."""


@dataclass(frozen=True)
class Factor:
    """What is known of a column besides its classifiers.

    Parameters
    ----------
    prior : list of float
        The frequencies of its values under `overlap_weights`, with which its classifiers are trained.
    a, b : list of float
        p(z|A) and p(z|B).
    wrong_labels : list of three numbers
        The estimated fraction of wrong labels, with its 95 % interval; see `wrong_label_fraction`.
    """

    prior: list[float]
    a: list[float]
    b: list[float]
    wrong_labels: list[float] = field(default_factory=lambda: [0.0, 0.0, 1.0])


# eq=False: comparing networks has no meaning here
@dataclass(frozen=True, eq=False)
class FactorClassifiers:
    """Classifiers of the domain and of columns; the generators never train against those named "judge_...".

    Parameters
    ----------
    modules : dict of str to Module
        "column" (or a ready "principal"), "judge_domain", "judge_column", and "judge_rest", of the domain without the
        column; where the column is to change, "rest" likewise, or "domain" if there is a ready principal or the column
        alone separates the domains; "kept" and "judge_kept" of a second column, which is kept, in place of these.
    factors : dict of str to Factor
        Of "column", and of "kept".
    domain_prior : list of two numbers
        The frequencies of A and B in the training images of "domain" and "judge_domain".
    principal_prior : two numbers or "uniform"
        Of a ready principal classifier.
    accuracy : dict of str to HeldOutAccuracy
        Of "column", "judge_domain", "judge_column", and of "rest": the second column, or the domain predicted without
        the column.
    """

    modules: dict[str, nn.Module]
    factors: dict[str, Factor]
    domain_prior: list[float]
    principal_prior: Any = "uniform"
    accuracy: dict[str, HeldOutAccuracy] = field(default_factory=dict)

    def log_ratio(self, role: Role, clamp: float) -> nn.Module:
        r"""The log of P(z2) / Q(z2), for the generators.

        To keep a column, z2 is that column. To change it without another that is kept, z1 is the column and z2 every
        other difference: ``full \ principal``. One classifier whose training images are weighted by the inverse of the
        principal's probability estimates that without a quotient, which is far off on combinations of factors that are
        rare in training, and these are what a translation makes. The quotient is taken where the principal is given.

        Parameters
        ----------
        role : {"change", "keep"}
        clamp : float
            The largest ratio, and the inverse of the smallest.

        Returns
        -------
        Module
            From images to log ratios of shape (n,).
        """
        bounds = (1 / clamp, clamp)
        if role == "keep":
            return OrthogonalRatio(self._by("column"), clamp=bounds)
        if "kept" in self.modules:
            return OrthogonalRatio(self._by("kept"), clamp=bounds)
        if "rest" in self.modules:
            return OrthogonalRatio(self.modules["rest"], clamp=bounds)
        principal = self.modules.get("principal") or self._by("column")
        return PairRatio(
            self.modules["domain"],
            principal,
            full_prior=self.domain_prior,
            principal_prior=self.principal_prior if "principal" in self.modules else "uniform",
            clamp=bounds,
        )

    def log_probas(self, images: torch.Tensor) -> dict[str, NDArray[np.float64]]:
        """The judges' log-probabilities for each image.

        Returns
        -------
        dict of str to float array of shape (n, K)
            Of both domains ("domain"), of the domains by the column alone ("column") and without it ("rest"); of the
            values of the column ("value") and of a second one ("kept").
        """
        domain, of_column = log_proba(self.modules["judge_domain"], images), self._by("judge_column")
        found = {
            "domain": domain,
            "column": log_proba(of_column, images),
            "value": log_proba(of_column.column, images),
        }
        if "kept" in self.modules:
            of_kept = self._by("judge_kept")
            found |= {"rest": log_proba(of_kept, images), "kept": log_proba(of_kept.column, images)}
        else:
            found["rest"] = log_proba(self.modules["judge_rest"], images)
        return {name: values.numpy() for name, values in found.items()}

    def _by(self, name: str) -> DomainByColumn:
        factor = self.factors[name.removeprefix("judge_")]
        return DomainByColumn(self.modules[name], column_prior=factor.prior, given_a=factor.a, given_b=factor.b)


def fit_factor_classifiers(
    train: Part,
    held_out: Part,
    role: Role,
    *,
    width: int,
    steps: int,
    seed: int,
    principal: nn.Module | None = None,
    principal_prior: Any = "uniform",
) -> FactorClassifiers:
    """Train every classifier that the translation and its evaluation need.

    Parameters
    ----------
    train, held_out : Part
    role : {"change", "keep"}
    width : int
        Channels of the classifiers' first layers.
    steps : int
        Training steps of each classifier, at most sixty epochs.
    seed : int
    principal : Module, optional
        A fitted classifier of the domain by the factor to change, in place of the column's.
    principal_prior : two numbers or "uniform"
        The frequencies of A and B in its training data.

    Raises
    ------
    ValueError
        If the images predict a column no better than guessing.
    """
    size = train.x.shape[-1]

    def fit(part: Part, target: Ints, weights: NDArray[Any] | None, seed: int, n_classes: int = 2) -> nn.Module:
        batches = max(1, len(target) // BATCH_SIZE)
        epochs = min(MAX_EPOCHS, math.ceil(steps / batches))
        config = ClassifierConfig(
            width=width,
            epochs=epochs,
            rate=RATE,
            weight_decay=WEIGHT_DECAY,
            batch_size=BATCH_SIZE,
            # its window is a fixed share of all steps
            average=max(0.5, 1 - 8 / (epochs * batches)),
            shift=max(1, round(SHIFT * size)),
            mixup=True,
        )
        rows = None if weights is None else torch.from_numpy(weights).float()
        network = classifier_for(size, width, seed=seed, n_classes=n_classes)
        return fit_domain_classifier(part.x, torch.from_numpy(target), config, seed=seed, weights=rows, network=network)

    # the judges have other initial weights and batches
    other = seed + 1_000
    modules: dict[str, nn.Module] = {}
    factors: dict[str, Factor] = {}
    accuracy: dict[str, HeldOutAccuracy] = {}
    columns = {"column": (train, held_out)}
    if train.kept is not None:
        columns["kept"] = (train.by_kept, held_out.by_kept)
    for name, (part, unseen) in columns.items():
        _check_labels(part, unseen)
        known = part.labelled
        weights = overlap_weights(known.y, known.z)
        n_values = int(known.z.max()) + 1
        # rows without weight would only fill up batches
        useful, weights = known.take(weights > 0), weights[weights > 0]
        modules[f"judge_{name}"] = fit(useful, useful.z, weights, other, n_values)
        if name == "kept" or principal is None:
            modules[name] = fit(useful, useful.z, weights, seed, n_values)
        network = modules.get(name, modules[f"judge_{name}"])
        for which in (f"judge_{name}", name):
            accuracy[which] = _column_accuracy(modules.get(which, network), unseen)
        _check_column(accuracy[name])
        labelled = unseen.labelled
        probas = [log_proba(one, labelled.x).exp().numpy() for one in (modules[f"judge_{name}"], network)]
        wrong = wrong_label_fraction(np.mean(probas, axis=0), labelled.z)
        prior = np.bincount(useful.z, weights, n_values) / weights.sum()
        shares = [_given(part.take(part.y == place), network, prior) for place in (0, 1)]
        factors[name] = Factor(prior.tolist(), shares[0], shares[1], wrong)
    if principal is not None:
        modules["principal"] = principal
    folders = train.in_folders
    modules["judge_domain"] = fit(folders, folders.y, None, other)
    if "kept" not in modules:
        modules["judge_rest"] = fit(folders, folders.y, _without_column(folders, modules["judge_column"]), other)
        if role == "change":
            balanced = None if principal is not None else _without_column(folders, modules["column"])
            modules["domain" if balanced is None else "rest"] = fit(folders, folders.y, balanced, seed)
    domain_prior = (np.bincount(folders.y, minlength=2) / len(folders.y)).tolist()
    found = FactorClassifiers(modules, factors, domain_prior, principal_prior, accuracy)
    judged = held_out.in_folders
    predicted = {name: values.argmax(1) for name, values in found.log_probas(judged.x).items()}
    balanced = 1 / np.bincount(judged.y, minlength=2)[judged.y]
    accuracy["judge_domain"] = held_out_accuracy(predicted["domain"], judged.y, balanced)
    rest = held_out_accuracy(predicted["rest"], judged.y, balanced)
    accuracy["rest"] = accuracy.pop("judge_kept", rest)
    return found


def check_principal(principal: nn.Module, probe: torch.Tensor) -> None:
    """Check that a principal classifier predicts two domains from images like `probe`.

    Parameters
    ----------
    principal : Module
    probe : Tensor of shape (n, 3, size, size) in [-1, 1]

    Raises
    ------
    ValueError
        If it takes no such images, or if its logits are not finite or not of shape (n, 2).
    """
    try:
        with torch.no_grad():
            logits = principal.eval()(probe)
    # a user's network may raise anything
    except Exception as error:
        raise UserError(
            f"the principal classifier does not take images of shape {tuple(probe.shape)} ({error})",
            do="give one for images in [-1, 1] of the translation's size, channels first.",
        ) from error
    shape = tuple(getattr(logits, "shape", ()))
    if shape != (len(probe), 2):
        raise UserError(
            f"the principal classifier gives {shape} for {len(probe)} images",
            do="expected logits of shape "
            f"({len(probe)}, 2), of domain A and domain B. A classifier of other classes cannot be subtracted.",
        )
    if not bool(torch.isfinite(logits).all()):
        raise UserError(
            "the principal classifier gives logits that are not finite", expected="finite numbers; train it again"
        )


def _without_column(folders: Part, column: nn.Module) -> NDArray[np.float64] | None:
    """Weights under which the column predicts nothing of the domain, by labels, and by predictions where there is none.

    A classifier with these weights learns the other differences alone. None where the column separates the domains.
    """
    z = np.where(folders.z == UNLABELLED, log_proba(column, folders.x).argmax(1).numpy(), folders.z)
    try:
        return overlap_weights(z, folders.y)
    except UserError:
        return None


def _check_labels(train: Part, held_out: Part) -> None:
    """Raise unless some place has two values among its held-out labels: one to learn from, and one to measure by."""
    known = held_out.labelled
    if any(len(np.unique(known.z[known.y == place])) > 1 for place in PLACES):
        return
    y, z = (np.concatenate([getattr(part.labelled, name) for part in (train, held_out)]) for name in ("y", "z"))
    counts = {words: np.bincount(z[y == place], minlength=z.max() + 1) for place, words in PLACES.items()}
    shown = ", ".join(f"{' and '.join(map(str, own))} in {words}" for words, own in counts.items() if own.any())
    raise UserError(
        f"too few images have labels to hold any out (of each value {shown})",
        do="label at least 2 images of each value in one folder, or outside of both.",
    )


def _column_accuracy(column: nn.Module, held_out: Part) -> HeldOutAccuracy:
    known = held_out.labelled
    weights = overlap_weights(known.y, known.z)
    return held_out_accuracy(log_proba(column, known.x).argmax(1).numpy(), known.z, weights)


LIKELY_VISIBLE = 0.7
"""Accuracy from which on a column is not refused, even where so few images are held out that guessing reaches it."""


def wrong_label_fraction(proba: NDArray[np.float64], z: Ints) -> list[float]:
    """Estimate the fraction of wrong labels, with its 95 % interval (Wilson 1927).

    As in confident learning (Northcutt et al. 2021), a held-out label counts as wrong where the classifiers predict
    another value, and are at least as sure of it as they are on average of the pictures that have it as their label.

    Parameters
    ----------
    proba : array of shape (n, K)
        p(z|x) by classifiers that were not trained on these pictures.
    z : int array of shape (n,)
        Their labels.

    Returns
    -------
    [fraction, low, high]

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1]] * 50 + [[0.1, 0.9]] * 50)
    >>> labels = np.repeat([0, 1], 50)
    >>> labels[:10] = 1
    >>> np.round(wrong_label_fraction(proba, labels), 2).tolist()
    [0.1, 0.06, 0.17]
    """
    values, own = proba.argmax(axis=1), proba[np.arange(len(z)), z]
    usual = np.array([own[z == value].mean() if np.any(z == value) else 1.0 for value in range(proba.shape[1])])
    wrong = float(np.mean((values != z) & (proba.max(axis=1) >= usual[values])))
    squared = TWO_SIDED**2 / len(z)
    centre = (wrong + squared / 2) / (1 + squared)
    half = math.sqrt(wrong * (1 - wrong) * squared + squared**2 / 4) / (1 + squared)
    return [wrong, max(0.0, centre - half), min(1.0, centre + half)]


def _check_column(found: HeldOutAccuracy) -> None:
    if found.by_chance >= 1:
        raise UserError(
            f"only {found.n} labelled images are held out, too few to measure the classifier's accuracy",
            do="label more images, 30 or more of each value.",
        )
    # few rare pictures weigh as much as many others: guessing then reaches far, and is no proof against the column
    if not found.above_chance and found.accuracy < LIKELY_VISIBLE:
        raise UserError(
            f"the column is predicted with an accuracy of {found.accuracy:.0%} on {found.n} held-out images, and "
            f"guessing reaches {found.by_chance:.0%}",
            do="check the labels, label more images, or choose a column that is visible in them.",
        )


def _given(folder: Part, column: nn.Module, prior: NDArray[np.float64]) -> list[float]:
    """p(z|domain): by the labels, or by the classifier's predictions in a domain without labels."""
    known = folder.labelled
    if len(known.z):
        return [float(share) for share in smoothed_shares(known.z, len(prior))]
    return [float(share) for share in shares_by_classifier(log_proba(column, folder.x).exp().numpy(), prior)]


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
    for array in (images.x, images.y, images.z, images.kept):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def store_classifiers(folder: Path, classifiers: FactorClassifiers, identity: dict[str, Any]) -> None:
    """Write classifiers for `restore_classifiers`; `identity` identifies their images and settings."""
    own = {name: dict(one.state_dict()) for name, one in classifiers.modules.items() if name != "principal"}
    save_checkpoint(
        folder,
        0,
        {
            "identity": identity,
            "modules": own,
            "factors": {name: asdict(one) for name, one in classifiers.factors.items()},
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
) -> FactorClassifiers:
    """Read what `store_classifiers` wrote, or raise an error if images or settings differ or the file is damaged."""
    _, state = load_checkpoint(folder)
    stored = state["identity"]
    if stored != identity:
        other = sorted(key for key in {*stored, *identity} if stored.get(key) != identity.get(key))
        raise UserError(
            f"the training in {str(folder.parent)!r} was started with another {', '.join(other)}",
            do="give the same folders, labels and settings, or start again in another folder.",
        )
    modules: dict[str, nn.Module] = {}
    for name, weights in state["modules"].items():
        network = classifier_for(size, width, seed=0, n_classes=len(weights["head.bias"]))
        network.load_state_dict(weights)
        modules[name] = network.eval()
    if principal is not None:
        modules["principal"] = principal
    accuracy = {name: HeldOutAccuracy(**one) for name, one in state["accuracy"].items()}
    factors = {name: Factor(**one) for name, one in state["factors"].items()}
    return FactorClassifiers(modules, factors, state["domain_prior"], principal_prior, accuracy)
