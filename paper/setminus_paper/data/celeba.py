"""Faces of CelebA in two domains that differ in two attributes, and the four groups of those attributes.

The paper's CelebA-GH has non-blond men as domain A and blond women as domain B: `z1` is the sex, to be changed,
`z2` the hair, to be kept. Any two of the forty attributes can be used. In a `Split` of faces `y` is the domain, or -1
for faces of neither, which separate the two attributes: oracles learn from them, the transfer does not.
"""

from __future__ import annotations

import difflib
import functools
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.images import check_size, decode_into, show_names, stored_files
from setminus.datasets.sources import ChecksumError, DataUnavailableError
from setminus.datasets.split import UNLABELLED, Split, random_split
from setminus.errors import UserError

__all__ = [
    "CELEBA",
    "CELEBA_GH",
    "CelebaTask",
    "environments",
    "even_groups",
    "group_weights",
    "groups_of",
    "load_celeba",
    "oracle_orthogonal",
    "oracle_principal",
    "split_groups",
]

logger = logging.getLogger(__name__)

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

ATTRIBUTES = "list_attr_celeba.txt"
IMAGES = "img_align_celeba"
ARCHIVES = tuple(f"{IMAGES}{suffix}" for suffix in (".zip", ".tar", ".tar.gz", ".tgz"))


@dataclass(frozen=True)
class CelebaTask:
    """Which faces are domain A and which B, by two attributes, as the official file spells them.

    ``z1`` and ``z2`` are 0 where a face is as domain A has it and 1 where it is as B has it. A transfer should change
    `change`, in which the domains always differ, and leave `keep`. `a_has_change` and `a_has_keep` say what the faces
    of A have. Where `a_has_keep` is None, both kinds are in both domains, and ``z2`` is 1 for faces that have `keep`.

    Examples
    --------
    >>> y, z1, z2 = CELEBA_GH.roles(np.array([True, False, True]), np.array([False, True, True]))
    >>> y.tolist(), z1.tolist(), z2.tolist()
    ([0, 1, -1], [0, 1, 0], [0, 1, 1])
    """

    change: str = "Male"
    keep: str = "Blond_Hair"
    a_has_change: bool = True
    a_has_keep: bool | None = False

    def __post_init__(self) -> None:
        if self.change == self.keep:
            raise UserError(f"change and keep are both {self.change!r}", do="give two different attributes.")

    def roles(self, has_change: Bools, has_keep: Bools) -> tuple[Ints, Ints, Ints]:
        """Domain `y` (0 for A, 1 for B, -1 for neither) and factors z1, z2 of faces, from their attributes."""
        z1 = (has_change != self.a_has_change).astype(np.int64)
        z2 = (has_keep != bool(self.a_has_keep)).astype(np.int64)
        y = z1 if self.a_has_keep is None else np.where(z1 == z2, z1, UNLABELLED)
        return y, z1, z2


CELEBA_GH = CelebaTask()
"""Table 2 of the paper: non-blond men against blond women, hair kept."""
CELEBA = CelebaTask(a_has_keep=None)
"""Table 6 of the paper: all men against all women, hair kept."""


def load_celeba(
    task: CelebaTask = CELEBA_GH,
    size: int = 64,
    *,
    per_group: int | None = None,
    random_state: int = 0,
    folder: str | os.PathLike[str] | None = None,
) -> Split:
    """Load the faces of a task from ``list_attr_celeba.txt`` and ``img_align_celeba`` (folder, zip or tar).

    An archive is read as a stream, only the faces that are wanted are decoded, and nothing is written to the disk. The
    largest square in the middle of a face is resized. `per_group` limits the faces of each of the four groups of (z1,
    z2), drawn at random. The files are in `folder`, by default ``images/celeba`` in the folder ``SETMINUS_DATA``.

    Returns
    -------
    Split
        `x` is uint8 of shape (n, size, size, 3), `y` the domain (0, 1, or -1 for neither), `z1` the attribute to
        change and `z2` that to keep, in the order of the official file.
    """
    check_size(size)
    place = _folder(folder)
    names, has = _attributes(place / ATTRIBUTES, (task.change, task.keep))
    y, z1, z2 = task.roles(has[:, 0], has[:, 1])
    rows = _draw(2 * z1 + z2, per_group, random_state)
    for domain, letter in enumerate("AB"):
        count = int((y[rows] == domain).sum())
        if count < 2:
            raise UserError(f"domain {letter} of {task} has {count} faces", do="at least 2 are needed.")
    _say_terms()
    x = np.empty((len(rows), size, size, 3), dtype=np.uint8)
    decode_into(x, _wanted(place, {names[row]: i for i, row in enumerate(rows)}))
    return Split(x=x, y=y[rows], z1=z1[rows], z2=z2[rows])


def split_groups(split: Split, fractions: Sequence[float], seed: int) -> tuple[Split, ...]:
    """Split faces at random into parts, stratified by the groups of (z1, z2); the paper has (0.8, 0.2)."""
    rows = Split(x=np.arange(len(split)), y=groups_of(split))
    return tuple(split.take(part.x) for part in random_split(rows, fractions, seed))


def groups_of(split: Split) -> NDArray[np.int64]:
    """The group of each row, ``2 * z1 + z2``."""
    z1, z2 = _factors(split)
    return np.asarray(2 * z1 + z2)


def group_weights(split: Split) -> NDArray[np.float64]:
    """Weights of mean 1 that balance the groups of (z1, z2): ``n / (number of groups * size of the row's group)``.

    If all four groups exist, the factors are independent under these weights.

    Examples
    --------
    >>> z1, z2 = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])
    >>> group_weights(Split(x=np.zeros(4), y=z1, z1=z1, z2=z2)).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    _, group, sizes = np.unique(groups_of(split), return_inverse=True, return_counts=True)
    return np.asarray(len(split) / (len(sizes) * sizes[group]))


def even_groups(split: Split, seed: int) -> Split:
    """Balance the groups of (z1, z2) by repeating faces, for methods that take no weights.

    Examples
    --------
    >>> z1, z2 = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])
    >>> even_groups(Split(x=np.zeros(4), y=z1, z1=z1, z2=z2), seed=0).y.mean()
    np.float64(0.5)
    """
    rng = np.random.default_rng(seed)
    group = groups_of(split)
    members = [rng.permutation(np.flatnonzero(group == one)) for one in np.unique(group)]
    largest = max(map(len, members))
    return split.take(rng.permutation(np.concatenate([np.resize(rows, largest) for rows in members])))


def oracle_principal(split: Split) -> Split:
    """All four groups with ``y = z1``: under `group_weights` only `z1` predicts the class."""
    return _all_groups(replace(split, y=_factors(split)[0]))


def oracle_orthogonal(split: Split) -> Split:
    """All four groups with ``y = z2``: under `group_weights` only `z2` predicts the class."""
    return _all_groups(replace(split, y=_factors(split)[1]))


def environments(split: Split) -> list[Split]:
    """The paper's two environments, which share only p(y | z1).

    The first has the two groups in which ``z1 == z2``, so that both factors predict the class; the second has all
    four. In both ``y = z1``.
    """
    everything = oracle_principal(split)
    z1, z2 = _factors(split)
    return [everything.take(z1 == z2), everything]


_ADVICE = (
    f"put the official {ATTRIBUTES} and {IMAGES} (folder, .zip or .tar; mmlab.ie.cuhk.edu.hk/projects/CelebA.html) "
    "into images/celeba/ of a folder and set the environment variable SETMINUS_DATA to that folder."
)


@functools.cache
def _say_terms() -> None:
    # cached: once in a process is enough
    logger.warning("CelebA: by its owners' terms these faces are for non-commercial research only.")


def _folder(given: str | os.PathLike[str] | None) -> Path:
    if given is not None:
        return Path(given)
    data = os.environ.get("SETMINUS_DATA")
    if not data:
        raise DataUnavailableError("CelebA cannot be found, SETMINUS_DATA is not set", do=_ADVICE)
    return Path(data, "images", "celeba")


def _attributes(file: Path, wanted: Sequence[str]) -> tuple[list[str], Bools]:
    """The files in the order of the official list, and whether each has the attributes, of shape (n, len(wanted)).

    The list has the number of faces on the first line, the attributes on the second, then a file and 1 or -1 for each.
    """
    try:
        announced, header, *lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataUnavailableError(f"{file} does not exist", do=_ADVICE) from None
    # no text, or not even two lines
    except ValueError as error:
        raise ChecksumError(f"{file} is not the official list ({error})", do="replace the file.") from error
    known = header.split()
    columns = [1 + _position(name, known) for name in wanted]
    has = {}
    for line in lines:
        name, *values = cells = line.split() or [""]
        # a name with a folder in it could lead anywhere
        if len(values) != len(known) or PurePosixPath(name).name != name or "\\" in name or "\0" in name:
            raise ChecksumError(
                f"{file} has the row {line[:40]!r}",
                expected=f"a file name and {len(known)} values",
                do="replace the file.",
            )
        has[name] = [cells[column] for column in columns]
    if announced.strip() != str(len(lines)) or len(has) < len(lines):
        raise ChecksumError(
            f"{file} announces {announced[:20]!r} faces, but has {len(has)} different ones in {len(lines)} rows",
            expected="the whole official list",
            do="replace the file.",
        )
    table = np.array(list(has.values()))
    if not np.all((table == "1") | (table == "-1")):
        raise ChecksumError(f"{file} has values {np.unique(table)[:5].tolist()}", expected="1 or -1", do="replace it.")
    return list(has), table == "1"


def _position(name: str, known: list[str]) -> int:
    if name in known:
        return known.index(name)
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(name.casefold().replace(" ", "_"), folded, n=1, cutoff=0.5)
    hint = f"did you mean {folded[near[0]]!r}?" if near else f"the known ones are {', '.join(known)}."
    raise UserError(f"no attribute is called {name!r}", do=f"{hint}")


def _draw(group: Ints, per_group: int | None, random_state: int) -> Ints:
    """The rows to take, in their order."""
    if per_group is None:
        return np.arange(len(group))
    if per_group < 1:
        raise UserError(f"per_group is {per_group}", do="at least 1 face of each group is needed.")
    rng = np.random.default_rng(random_state)
    members = [np.flatnonzero(group == one) for one in np.unique(group)]
    return np.sort(np.concatenate([rng.permutation(rows)[:per_group] for rows in members]))


def _wanted(place: Path, rows: dict[str, int]) -> Iterator[tuple[int, str, bytes | Path]]:
    """Row, name and content of the faces, in the order in which they are stored; an error where some are not."""
    stored = next((place / name for name in (f"{IMAGES}/{IMAGES}", IMAGES, *ARCHIVES) if (place / name).exists()), None)
    if stored is None:
        raise DataUnavailableError(f"{place} has none of {IMAGES}/, {', '.join(ARCHIVES)}", do=_ADVICE)
    missing = dict(rows)
    for name, content in stored_files(stored, rows.keys()):
        if missing.pop(name, None) is not None:
            yield rows[name], name, content
    if missing:
        raise ChecksumError(
            f"{stored} lacks {len(missing)} of {len(rows)} faces that {ATTRIBUTES} lists, {show_names(missing)}",
            do="use both files of the same copy.",
        )


def _factors(split: Split) -> tuple[NDArray[Any], NDArray[Any]]:
    if split.z1 is None or split.z2 is None:
        raise UserError("the split has no z1 or no z2", do="both factors are needed, as from load_celeba.")
    return split.z1, split.z2


def _all_groups(split: Split) -> Split:
    sizes = np.bincount(groups_of(split), minlength=4)
    if not sizes.all():
        raise UserError(
            f"the groups (z1, z2) = 00, 01, 10, 11 have {sizes.tolist()} rows",
            do="with an empty group the two factors cannot be separated. Choose other attributes or more faces.",
        )
    return split
