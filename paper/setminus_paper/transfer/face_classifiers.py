"""Faces dealt to training and judging, and every classifier of them that tables 2 and 6 need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.datasets.split import Split
from setminus.nn.networks import GaussianNoise, PhotoClassifier, seeded
from setminus.transfer.column_domain import DomainByColumn
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier
from setminus.transfer.evaluation import oracle_latents
from setminus.transfer.log_ratios import OrthogonalRatio, PairRatio
from setminus.transfer.pixels import image_tensor, signed
from setminus_paper.data.celeba import CelebaTask, load_celeba
from setminus_paper.data.two_factors import (
    environments,
    even_groups,
    group_weights,
    groups_of,
    oracle_orthogonal,
    oracle_principal,
    split_groups,
)
from setminus_paper.transfer.fid import ClassifierFeatures
from setminus_paper.transfer.importance import fit_orthogonal_by_importance
from setminus_paper.transfer.principals import fit_last_layer_principal
from setminus_paper.transfer.style_transfer_tables import Row, Source

__all__ = ["GROUPS", "Faces", "by_group", "dealt", "group_features", "judged_right", "judges", "log_ratio"]

GROUPS = ("00", "01", "10", "11")
"""Of (z1, z2)."""
NOISE = 0.3
"""Of the images that `_coarse_groups` learns from, on the scale of [-1, 1]."""


@dataclass(frozen=True)
class Faces:
    """The faces of one seed: those to learn from, and those to judge by."""

    train: Split
    test: Split
    seed: int

    def domain(self, which: int, part: Literal["train", "test"] = "train") -> torch.Tensor:
        """Images of domain A (0) or B (1), as bytes."""
        split = self.train if part == "train" else self.test
        return image_tensor(split.x[split.y == which])

    @property
    def domains(self) -> Split:
        """The training faces that are in A or B."""
        return self.train.take(self.train.y >= 0)

    @property
    def groups(self) -> dict[str, int]:
        """How many training faces there are of each group."""
        return dict(zip(GROUPS, np.bincount(groups_of(self.train), minlength=4).tolist(), strict=True))


# the rows of a seed share what is cached here, and a process measures several rows
@cache
def dealt(task: CelebaTask, pixels: int, seed: int) -> Faces:
    """Deal all faces to training and judging, four to one as in the paper."""
    train, test = split_groups(load_celeba(task, pixels), (0.8, 0.2), seed)
    return Faces(train, test, seed)


def log_ratio(row: Row, faces: Faces, config: ClassifierConfig, clamp: float) -> nn.Module | None:
    """What the row's generators are told of z2; nothing for plain CycleGAN."""
    if row.source is None:
        return None
    bounds = (1 / clamp, clamp)
    both = faces.domains
    shares = tuple((np.bincount(both.y, minlength=2) / len(both)).tolist())
    known = principal(row.source, faces, config)
    # the groups weigh the same for the principal classifier, hence its two classes do: its prior is uniform
    if row.loss == "importance":
        by_importance = fit_orthogonal_by_importance(
            _mirrored(both.x),
            torch.from_numpy(both.y).repeat(2),
            known,
            config,
            seed=faces.seed,
            network=_network(config, faces.seed),
        )
        return OrthogonalRatio(by_importance, prior=shares, clamp=bounds)
    if row.source == "oracle":
        return PairRatio(full_of_groups(faces, config), known, clamp=bounds)
    return PairRatio(full(faces, config), known, full_prior=shares, clamp=bounds)


@cache
def full(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """A classifier of the two domains as they are."""
    return _fitted(faces.domains, config, faces.seed, weighted=False)


def full_of_groups(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """The same, for equally frequent domains, read off a classifier of the four groups."""
    a, b = (np.bincount(groups_of(faces.domains)[faces.domains.y == domain], minlength=4) for domain in (0, 1))
    return _of_groups(faces, config, a / a.sum(), b / b.sum())


@cache
def principal(source: Source, faces: Faces, config: ClassifierConfig) -> nn.Module:
    """A classifier of z1: of all groups alike, or from two environments.

    An oracle's is read off the classifier of groups that `full_of_groups` is read off, too: what that network takes
    for signs of z1 is then the same in both, and their quotient is free of it, right or wrong. Two networks of their
    own do not agree on the faces between the domains, which are what the generators shall make.
    """
    if source == "oracle":
        # by z1 alone, with either hair in half of the cases
        return _of_groups(faces, config, np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.5, 0.5]))
    fitted, held_out = (
        [_evened(one, faces.seed) for one in environments(part)]
        for part in split_groups(faces.train, (7 / 8, 1 / 8), faces.seed)
    )
    return fit_last_layer_principal(source, fitted, held_out, _pooled(fitted, config, faces.seed))


@cache
def judges(faces: Faces, config: ClassifierConfig) -> tuple[nn.Module, nn.Module]:
    """The oracles of z1 and of z2; neither is a classifier that a generator has seen."""
    z1, z2 = (_fitted(make(faces.train), config, faces.seed + 1_000) for make in (oracle_principal, oracle_orthogonal))
    return z1, z2


@cache
def group_features(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """What a classifier of the four groups sees of a face, for the FID; not the one that a generator has seen."""
    seed = faces.seed + 2_000
    return ClassifierFeatures(_groups(faces, config, _network(config, seed, n_classes=len(GROUPS)), seed))


def judged_right(oracles: tuple[nn.Module, nn.Module], faces: Faces) -> dict[str, float]:
    """How often the oracles are right on held-out faces, the groups alike."""
    told = oracle_latents(*oracles)(signed(image_tensor(faces.test.x)))
    weights = group_weights(faces.test)
    return {
        name: float(np.average(verdicts == getattr(faces.test, name), weights=weights))
        for name, verdicts in zip(("z1", "z2"), told, strict=True)
    }


def by_group(ratio: nn.Module, faces: Faces) -> dict[str, list[float]]:
    """What the log ratio is on held-out faces of each group: it should be large for the hair of A, small for B's."""
    with torch.no_grad():
        values = torch.cat([ratio(signed(part)) for part in image_tensor(faces.test.x).split(256)]).numpy()
    groups = [values[groups_of(faces.test) == k] for k in range(len(GROUPS))]
    return {
        "mean": [round(float(one.mean()), 4) for one in groups],
        "sd": [round(float(one.std()), 4) for one in groups],
    }


def _groups(faces: Faces, config: ClassifierConfig, network: nn.Module, seed: int) -> nn.Module:
    """A classifier of the four groups, all of them equally frequent."""
    return _fitted(replace(faces.train, y=groups_of(faces.train)), config, seed, network=network)


@cache
def _coarse_groups(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """One that sees images of half the size, noisy while it is trained.

    Generators that are told what a classifier says of their images find the fine texture that it falls for. This one
    does not see the finest, and has learned to look past the rest.
    """
    network = _network(config, faces.seed, n_classes=len(GROUPS))
    network.features = nn.Sequential(nn.AvgPool2d(2), GaussianNoise(NOISE), network.features)
    return _groups(faces, config, network, faces.seed)


def _of_groups(
    faces: Faces, config: ClassifierConfig, given_a: NDArray[np.float64], given_b: NDArray[np.float64]
) -> nn.Module:
    """A classifier of two mixtures of the groups."""
    alike = np.full(len(GROUPS), 1 / len(GROUPS))
    groups = _coarse_groups(faces, config)
    return DomainByColumn(groups, column_prior=alike, given_a=given_a, given_b=given_b)


def _pooled(sets: Sequence[tuple[torch.Tensor, torch.Tensor]], config: ClassifierConfig, seed: int) -> nn.Module:
    """A classifier of both environments together; with its repeated faces an epoch is twice as long as another's."""
    x, y = (torch.cat(parts) for parts in zip(*sets, strict=True))
    shorter = replace(config, epochs=-(-config.epochs // 2))
    return fit_domain_classifier(x, y, shorter, seed=seed, network=_network(config, seed))


def _evened(environment: Split, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    evened = even_groups(environment, seed)
    return image_tensor(evened.x), torch.from_numpy(evened.y)


def _fitted(
    split: Split, config: ClassifierConfig, seed: int, *, weighted: bool = True, network: nn.Module | None = None
) -> nn.Module:
    """A classifier of `y`, from faces and their mirror images, the groups of (z1, z2) alike where weighted."""
    weights = torch.from_numpy(group_weights(split)).float().repeat(2) if weighted else None
    return fit_domain_classifier(
        _mirrored(split.x),
        torch.from_numpy(split.y).repeat(2),
        config,
        seed=seed,
        weights=weights,
        network=network or _network(config, seed),
    )


def _network(config: ClassifierConfig, seed: int, n_classes: int = 2) -> nn.Module:
    network: nn.Module = seeded(seed, lambda: PhotoClassifier(n_classes, width=config.width))
    return network


def _mirrored(images: NDArray[np.uint8]) -> torch.Tensor:
    return image_tensor(np.concatenate([images, images[:, :, ::-1]]))
