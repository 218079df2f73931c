"""What whoever translates two folders should know before the long part begins."""

from __future__ import annotations

import numpy as np

from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.transfer.folder_classifiers import FolderClassifiers, Role

__all__ = ["folder_notes"]

WEAK = 0.8
"""Below this share of right verdicts a classifier is little to build on."""
ALIKE = 0.1
"""A column whose shares differ by less than this says little of the folder."""
FEW = 100
"""With fewer images a network knows them by heart."""
PLACES = {0: "folder A", 1: "folder B", UNLABELLED: "the images of neither folder"}


def folder_notes(images: LabelledImages, classifiers: FolderClassifiers, role: Role, column: str) -> list[str]:
    """Weak classifiers, a column that says nothing of the folders, and images that could not be used.

    Parameters
    ----------
    images : LabelledImages
    classifiers : FolderClassifiers
    role : {"change", "keep"}
    column : str

    Returns
    -------
    list of str
        Sentences without their full stop.
    """
    notes = []
    sure, share_a, share_b = classifiers.accuracy["column"], classifiers.given["a"][0], classifiers.given["b"][0]
    if sure.accuracy < WEAK:
        notes.append(
            f"{column!r} is told right for only {sure.accuracy:.0%} of {sure.n} held-out images: what is made of it "
            "will be as unsure; more labels, or larger images, may help"
        )
    if abs(share_a - share_b) < ALIKE:
        nothing = "there is little of it to change" if role == "change" else "it would stay without being told to"
        notes.append(
            f"{images.values[0]!r} is about as frequent in folder A ({share_a:.0%}) as in B ({share_b:.0%}): {nothing}"
        )
    values = {place: np.unique(images.z[(images.y == place) & (images.z != UNLABELLED)]) for place in PLACES}
    unused = [PLACES[place] for place, found in values.items() if len(found) == 1]
    if unused:
        notes.append(
            f"the labels in {' and '.join(unused)} are all the same: {column!r} was learned from the others, since "
            "there whatever else is typical of the place would tell it, too"
        )
    if role == "change" and len(values[0]) == len(values[1]) == 1:
        notes.append(
            f"{column!r} alone tells the folders apart: what else differs is what is left when two near certainties "
            "are subtracted, hence uncertain; folders in which it varies would say more"
        )
    apart = classifiers.accuracy["judge_domain"]
    if not apart.above_chance:
        notes.append(
            f"the folders are told apart for {apart.accuracy:.0%} of {apart.n} held-out images, as by guessing: there "
            "may be nothing to translate"
        )
    for place, name in ((0, "A"), (1, "B")):
        count = int(np.sum(images.y == place))
        if count < FEW:
            notes.append(f"folder {name} has {count} images: expect the networks to learn them by heart")
    return notes
