"""The classifiers that a translation of two folders needs, and how far they can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.errors import UserError
from setminus.transfer.column_domain import (
    DomainByColumn,
    overlap_weights,
    shares_by_classifier,
    smoothed_shares,
)
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier, log_proba
from setminus.transfer.folder_parts import Part
from setminus.transfer.held_out_accuracy import Told, told
from setminus.transfer.log_ratios import OrthogonalRatio, PairRatio
from setminus.transfer.translation_networks import classifier_for

__all__ = ["FolderClassifiers", "Role", "check_principal", "fit_folder_classifiers"]

Role = Literal["change", "keep"]
"""What is to become of the column's factor."""

COLUMN_PRIOR = (0.5, 0.5)
"""The shares of the values under `overlap_weights`."""
BATCH_SIZE = 64
MOST_EPOCHS = 20
"""So that few images are not learned by heart."""


# eq=False: comparing networks has no meaning here
@dataclass(frozen=True, eq=False)
class FolderClassifiers:
    """Classifiers of the folder and of the column; those whose names begin with "judge" are no generator's business.

    Parameters
    ----------
    modules : dict of str to Module
        "column" (or a ready "principal"), "judge_domain", "judge_column", and "domain" where the column is to change.
    given : dict of str to list
        p(z|A) at "a", p(z|B) at "b".
    domain_prior : list of two numbers
        The shares of A and B in the images that "domain" and "judge_domain" were trained on.
    principal_prior : two numbers or "uniform"
        Of a ready principal classifier.
    accuracy : dict of str to Told
        Of "column", "judge_domain", "judge_column", and of "rest": of the folder by all but the column.
    """

    modules: dict[str, nn.Module]
    given: dict[str, list[float]]
    domain_prior: list[float]
    principal_prior: Any = "uniform"
    accuracy: dict[str, Told] = field(default_factory=dict)

    def log_ratio(self, role: Role, clamp: float) -> nn.Module:
        r"""The log of P(z2) / Q(z2), for the generators.

        Where the column is to change it is z1, and z2 all else that differs: ``full \ principal``. Where it is to
        stay it is z2 itself.

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
            return OrthogonalRatio(self._by_column("column"), clamp=bounds)
        principal = self.modules.get("principal") or self._by_column("column")
        return PairRatio(
            self.modules["domain"],
            principal,
            full_prior=self.domain_prior,
            principal_prior=self.principal_prior if "principal" in self.modules else "uniform",
            clamp=bounds,
        )

    def verdicts(self, images: torch.Tensor) -> dict[str, NDArray[np.int64]]:
        """What the judges see: the folder, the column's value, and the folder by all but the column.

        Parameters
        ----------
        images : Tensor of shape (n, 3, size, size)
            As bytes or in [-1, 1].

        Returns
        -------
        dict of str to int array of shape (n,)
            "domain", "column" and "rest", each 0 or 1.
        """
        domain = log_proba(self.modules["judge_domain"], images)
        column = log_proba(self.modules["judge_column"], images)
        by_column = log_proba(self._by_column("judge_column"), images)
        of_domain = domain - torch.tensor(self.domain_prior).log()
        found = {"domain": domain, "column": column, "rest": of_domain - by_column}
        return {name: values.argmax(1).numpy() for name, values in found.items()}

    def _by_column(self, name: str) -> DomainByColumn:
        return DomainByColumn(
            self.modules[name], column_prior=COLUMN_PRIOR, given_a=self.given["a"], given_b=self.given["b"]
        )


def fit_folder_classifiers(
    train: Part,
    held_out: Part,
    role: Role,
    *,
    width: int,
    steps: int,
    seed: int,
    principal: nn.Module | None = None,
    principal_prior: Any = "uniform",
) -> FolderClassifiers:
    """Train every classifier that the translation and its judgement need.

    Parameters
    ----------
    train, held_out : Part
    role : {"change", "keep"}
    width : int
        Channels of the classifiers' first layers.
    steps : int
        Batches that each learns from, unless that were more than twenty epochs.
    seed : int
    principal : Module, optional
        A ready classifier of the domain by what is to change, in place of the column's.
    principal_prior : two numbers or "uniform"
        The shares of A and B in the data that it was trained on.

    Returns
    -------
    FolderClassifiers

    Raises
    ------
    ValueError
        If the column cannot be told from the images better than by guessing.
    """
    size = train.x.shape[-1]

    def fit(part: Part, target: NDArray[np.int64], weights: NDArray[Any] | None, seed: int) -> nn.Module:
        batches = max(1, len(target) // BATCH_SIZE)
        epochs = min(MOST_EPOCHS, math.ceil(steps / batches))
        # the average looks back over the last steps, how many there may be
        average = max(0.5, 1 - 8 / (epochs * batches))
        config = ClassifierConfig(width=width, epochs=epochs, batch_size=BATCH_SIZE, average=average)
        rows = None if weights is None else torch.from_numpy(weights).float()
        network = classifier_for(size, width, seed=seed)
        return fit_domain_classifier(part.x, torch.from_numpy(target), config, seed=seed, weights=rows, network=network)

    known, folders = train.labelled, train.in_folders
    weights = overlap_weights(known.y, known.z)
    # a row without weight would only take room in a batch
    useful = known.take(weights > 0)
    weights = weights[weights > 0]
    # the judges start elsewhere, and see other batches
    other = seed + 1_000
    modules = {"judge_column": fit(useful, useful.z, weights, other)}
    if principal is None:
        modules["column"] = fit(useful, useful.z, weights, seed)
    column = modules.get("column", modules["judge_column"])
    accuracy = {"judge_column": _column_told(modules["judge_column"], held_out)}
    accuracy["column"] = _column_told(column, held_out)
    _check_column(accuracy["column"])
    if principal is not None:
        modules["principal"] = principal
    modules["judge_domain"] = fit(folders, folders.y, None, other)
    if role == "change":
        modules["domain"] = fit(folders, folders.y, None, seed)
    found = FolderClassifiers(
        modules,
        given={"a": _given(train.take(train.y == 0), column), "b": _given(train.take(train.y == 1), column)},
        domain_prior=(np.bincount(folders.y, minlength=2) / len(folders.y)).tolist(),
        principal_prior=principal_prior,
        accuracy=accuracy,
    )
    judged = held_out.in_folders
    verdicts = found.verdicts(judged.x)
    alike = 1 / np.bincount(judged.y, minlength=2)[judged.y]
    accuracy["judge_domain"] = told(verdicts["domain"], judged.y, alike)
    accuracy["rest"] = told(verdicts["rest"], judged.y, alike)
    return found


def check_principal(principal: nn.Module, probe: torch.Tensor) -> None:
    """Refuse a principal classifier that is not one of two domains.

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
    # whatever a stranger's network raises, it is about the images
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
        raise UserError("the principal classifier gives logits that are not finite", expected="numbers, train it anew")


def _column_told(column: nn.Module, held_out: Part) -> Told:
    known = held_out.labelled
    try:
        weights = overlap_weights(known.y, known.z)
    except ValueError:
        raise UserError(
            "too few images have labels to hold any out",
            do="label at least 2 images of each value in one folder, or "
            "outside of both. A classifier could not be judged otherwise.",
        ) from None
    return told(log_proba(column, known.x).argmax(1).numpy(), known.z, weights)


def _check_column(found: Told) -> None:
    if found.by_chance >= 1:
        raise UserError(
            f"{found.n} labelled images are held out, so few that guessing may tell the column of all of them",
            do="label more images, 30 or more of each value, so that the classifier can be judged.",
        )
    if not found.above_chance:
        raise UserError(
            f"the column is told right for {found.accuracy:.0%} of {found.n} held-out images, and guessing reaches "
            f"{found.by_chance:.0%}",
            do="the method does not apply to what cannot be seen. Label more images, or choose "
            "a column that shows in them.",
        )


def _given(folder: Part, column: nn.Module) -> list[float]:
    """p(z|domain): by the labels, and in a folder without any by what the classifier sees."""
    known = folder.labelled
    if len(known.z):
        return [float(share) for share in smoothed_shares(known.z)]
    return [float(share) for share in shares_by_classifier(log_proba(column, folder.x).exp().numpy(), COLUMN_PRIOR)]
