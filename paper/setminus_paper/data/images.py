"""The image sets of the paper, from prepared files or the owners' official ones, and label shift by choice of rows."""

from __future__ import annotations

import logging
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.sources import ChecksumError, DataUnavailableError, cache_folder, find_local
from setminus.datasets.split import UNLABELLED, Split
from setminus.errors import UserError
from setminus.files import atomic_write
from setminus_paper.data.drawn_digits import DRAWN_SETS, draw_digits
from setminus_paper.data.official_images import Arrays, forget_fetched, read_official

__all__ = [
    "IMAGE_SETS",
    "ImageSet",
    "class_names",
    "keep_classes",
    "load_images",
    "load_npz",
    "shift_by_halves",
]

logger = logging.getLogger(__name__)

Part = Literal["train", "test", "unlabelled"]

DIGITS = tuple("0123456789")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10 = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
# the class ids of the German benchmark, which the synthetic signs share
TRAFFIC_SIGNS = (
    *("speed limit 20", "speed limit 30", "speed limit 50", "speed limit 60", "speed limit 70", "speed limit 80"),
    *("end of speed limit 80", "speed limit 100", "speed limit 120", "no passing", "no passing for trucks"),
    *("right of way at the next intersection", "priority road", "yield", "stop", "no vehicles", "no trucks"),
    *("no entry", "danger", "curve to the left", "curve to the right", "double curve", "bumpy road", "slippery road"),
    *("road narrows on the right", "road work", "traffic lights", "pedestrians", "children", "bicycles"),
    *("ice or snow", "wild animals", "end of all limits", "turn right ahead", "turn left ahead", "ahead only"),
    *("ahead or right", "ahead or left", "keep right", "keep left", "roundabout", "end of no passing"),
    *("end of no passing for trucks",),
)


class AbsentPartError(UserError):
    """A prepared file lacks a part, which the official files may have."""


@dataclass(frozen=True)
class ImageSet:
    """An image set: its name, the shape (height, width, channels) of an image, its classes, and where to get it.

    `drawn` sets are made on demand and need no files.
    """

    name: str
    shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    advice: str
    drawn: bool = False


def _npz_only(owner: str) -> str:
    return f"made from the official files ({owner}) if need be."


IMAGE_SETS: dict[str, ImageSet] = {
    known.name: known
    for known in (
        ImageSet(
            "mnist",
            (28, 28, 1),
            DIGITS,
            "or put the four official files (train-images-idx3-ubyte.gz and so on) into images/mnist/ there.",
        ),
        ImageSet("usps", (16, 16, 1), DIGITS, _npz_only("zip.train.gz and zip.test.gz of hastie.su.domains")),
        ImageSet(
            "mnist_m",
            (32, 32, 3),
            DIGITS,
            "or unpack mnist_m.tar.gz of the authors (yaroslav.ganin.net) into images/ there.",
        ),
        ImageSet(
            "svhn",
            (32, 32, 3),
            DIGITS,
            "or put train_32x32.mat and test_32x32.mat (ufldl.stanford.edu/housenumbers) into images/svhn/ there.",
        ),
        ImageSet("drawn_digits", (32, 32, 3), DIGITS, "", drawn=True),
        ImageSet(
            "gtsrb",
            (32, 32, 3),
            TRAFFIC_SIGNS,
            "or unpack GTSRB_Final_Training_Images.zip, GTSRB_Final_Test_Images.zip and GTSRB_Final_Test_GT.zip "
            "(benchmark.ini.rub.de) into images/, with GT-final_test.csv in images/GTSRB/ there.",
        ),
        ImageSet(
            "syn_signs",
            (32, 32, 3),
            TRAFFIC_SIGNS,
            "or unpack synthetic_data.zip of the Synthetic Signs dataset (graphics.cs.msu.ru) into images/ there.",
        ),
        ImageSet(
            "cifar10",
            (32, 32, 3),
            CIFAR10,
            "or put cifar-10-binary.tar.gz (www.cs.toronto.edu/~kriz/cifar.html) into images/ there, "
            "as it is or unpacked.",
        ),
        ImageSet(
            "stl10",
            (32, 32, 3),
            STL10,
            "or unpack stl10_binary.tar.gz (cs.stanford.edu/~acoates/stl10) into images/ there.",
        ),
    )
}


def load_images(name: str, part: Part = "train") -> Split:
    """Load a part of an image set: uint8 images of shape (n, height, width, channels), labels from 0 (-1: none).

    The prepared ``images/<name>.npz`` in the folder ``SETMINUS_DATA`` is used if it exists; it may hold a random part
    of the set. Otherwise the official files are read whole, from that folder or fetched, and cached as an ``.npz``.
    "drawn_digits" has no files: the same digits are drawn at each call.
    """
    known = _image_set(name)
    if known.drawn:
        return _drawn(part)
    given = find_local(f"{name}.npz")
    if given is not None:
        return load_npz(given, part, known)
    prepared = cache_folder() / "prepared" / f"{name}.npz"
    if prepared.is_file():
        try:
            return load_npz(prepared, part, known)
        except ChecksumError as error:
            # the cache is ours to replace
            logger.warning("ignoring the prepared copy: %s", error)
    _prepare(known, prepared)
    return load_npz(prepared, part, known)


def class_names(name: str) -> tuple[str, ...]:
    """Names of the classes 0, 1, 2, ... of a set.

    Examples
    --------
    >>> class_names("cifar10")[6], class_names("gtsrb")[14]
    ('frog', 'stop')
    """
    return _image_set(name).class_names


def load_npz(path: str | os.PathLike[str], part: Part = "train", known: ImageSet | None = None) -> Split:
    """Load a part of a prepared file, also of one's own making.

    The file has ``x_train``, ``y_train``, ``x_test``, ``y_test``, or some of them, or ``x_unlabelled``: uint8 images of
    shape (n, height, width) or (n, height, width, channels), integer labels of shape (n,). It must be the set `known`,
    if one is given. A damaged or other file is a `ChecksumError`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "mine.npz")
    ...     np.savez(path, x_train=np.zeros((3, 8, 8), dtype=np.uint8), y_train=np.array([2, 0, 1]))
    ...     split = load_npz(path)
    >>> split.x.shape, split.y.tolist()
    ((3, 8, 8, 1), [2, 0, 1])
    """
    keys = (f"x_{part}",) if part == "unlabelled" else (f"x_{part}", f"y_{part}")
    try:
        # no pickle: a file from a stranger must not run code. Reading an array whole also checks its crc
        with np.load(path, allow_pickle=False) as file:
            names = list(file.files)
            arrays = {key: file[key] for key in keys if key in names}
    except FileNotFoundError:
        raise
    # no zip, a cut or spoiled one, a single array, a pickle
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ChecksumError(
            f"{path} is no whole .npz of images ({reason})", do="replace or remove the file."
        ) from error
    if not arrays:
        parts = sorted(name.removeprefix("x_") for name in names if name.startswith("x_"))
        raise AbsentPartError(f"{path} has no part {part!r}", do=f"it has {parts}.")
    if len(arrays) < len(keys):
        raise ChecksumError(f"{path} holds {sorted(names)}", expected=f"both of {list(keys)}, as the part is labelled")
    return _split(arrays[keys[0]], arrays.get(f"y_{part}"), str(path), known)


def shift_by_halves(
    split: Split, first: float = 0.7, second: float = 0.3, *, seed: int, n_classes: int | None = None
) -> Split:
    """Make the first half of the classes more frequent than the second: the paper's label shift.

    The classes below ``n_classes // 2`` are the first half. Both halves are trimmed to the size of the smaller
    one; of what stays, the shares `first` and `second` are kept. The paper's source domain has (0.7, 0.3), its
    target domain (0.3, 0.7). By default `n_classes` is one more than the highest label.

    Examples
    --------
    >>> digits = Split(x=np.zeros((200, 1)), y=np.arange(200) % 10)
    >>> shifted = shift_by_halves(digits, seed=0)
    >>> int(np.sum(shifted.y < 5)), int(np.sum(shifted.y >= 5))
    (70, 30)
    """
    for name, share in {"first": first, "second": second}.items():
        if not 0 <= share <= 1:
            raise UserError(f"{name} is {share}", do="it is a share and must be in [0, 1].")
    n_classes = _count_classes(split, n_classes)
    if n_classes < 2:
        raise UserError(f"there is {n_classes} class", do="two halves need at least two classes.")
    lower = split.y < n_classes // 2
    rng = np.random.default_rng(seed)
    size = min(np.sum(lower), np.sum(~lower))
    if size == 0:
        raise UserError(
            f"all {len(split)} rows are in one half of the {n_classes} classes", do="the other needs rows, too."
        )
    kept = [
        rng.choice(np.flatnonzero(half), size=round(share * size), replace=False)
        for half, share in ((lower, first), (~lower, second))
    ]
    return split.take(np.sort(np.concatenate(kept)))


def keep_classes(split: Split, classes: Sequence[int]) -> Split:
    """Keep the rows of some classes and renumber them: ``classes[k]`` becomes k.

    Examples
    --------
    >>> keep_classes(Split(x=np.zeros((4, 1)), y=np.array([0, 1, 2, 3])), [3, 0, 1]).y.tolist()
    [1, 2, 0]
    """
    chosen = np.asarray(classes)
    n_classes = _count_classes(split, None)
    if len(np.unique(chosen)) != len(chosen) or not np.all((chosen >= 0) & (chosen < n_classes)):
        raise UserError(
            f"classes are {list(classes)}", do=f"they must be different labels between 0 and {n_classes - 1}."
        )
    renamed = np.full(n_classes, -1)
    renamed[chosen] = np.arange(len(chosen))
    kept = split.take(np.isin(split.y, chosen))
    return replace(kept, y=renamed[kept.y])


def _image_set(name: str) -> ImageSet:
    if name not in IMAGE_SETS:
        raise UserError(f"no image set is called {name!r}", do=f"the known ones are {sorted(IMAGE_SETS)}.")
    return IMAGE_SETS[name]


def _drawn(part: str) -> Split:
    if part not in DRAWN_SETS:
        raise UserError(f"drawn_digits has no part {part!r}", do=f"it has {sorted(DRAWN_SETS)}.")
    n, random_state = DRAWN_SETS[part]
    return draw_digits(n, random_state=random_state)


def _prepare(known: ImageSet, prepared: Path) -> None:
    try:
        arrays = read_official(known.name)
    except DataUnavailableError as error:
        folder = os.environ.get("SETMINUS_DATA")
        absent = f"{Path(folder, 'images', known.name)}.npz does not exist" if folder else "not set"
        raise DataUnavailableError(
            f"{known.name} could not be found or fetched",
            do=f"put the prepared file at images/{known.name}.npz in a folder and set the environment variable "
            f"SETMINUS_DATA to that folder, {known.advice}",
            tried=[*dict.fromkeys([f"SETMINUS_DATA: {absent}", *error.tried])],
        ) from None
    checked: Arrays = {}
    for part in get_args(Part):
        if f"x_{part}" in arrays:
            labels = arrays.get(f"y_{part}")
            split = _split(arrays[f"x_{part}"], labels, f"the official {part} part of {known.name}", known)
            checked |= {f"x_{part}": split.x} | ({} if labels is None else {f"y_{part}": split.y})
    prepared.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(prepared) as partial:
        np.savez(partial, allow_pickle=False, **checked)
    forget_fetched(known.name)
    logger.info("prepared %s at %s", known.name, prepared)


def _split(x: NDArray[Any], labels: NDArray[Any] | None, place: str, known: ImageSet | None) -> Split:
    """Images with their channels and labels as int64; an error where either is not what it should be."""
    if x.ndim == 3:
        x = x[..., None]
    if x.dtype != np.uint8 or x.ndim != 4 or (known is not None and x.shape[1:] != known.shape):
        expected = "(n, height, width, channels)" if known is None else f"(n, {', '.join(map(str, known.shape))})"
        raise ChecksumError(
            f"{place} has images of {x.dtype} and shape {x.shape}", expected=f"uint8 of shape {expected}"
        )
    if labels is None:
        return Split(x=np.ascontiguousarray(x), y=np.full(len(x), UNLABELLED))
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != (len(x),):
        raise ChecksumError(
            f"{place} has labels of {labels.dtype} and shape {labels.shape}",
            expected=f"one integer for each of the {len(x)} images",
        )
    y = labels.astype(np.int64)
    n_classes = y.max(initial=0) + 1 if known is None else len(known.class_names)
    if not np.all((y >= 0) & (y < n_classes)):
        raise ChecksumError(f"{place} has labels from {y.min()} to {y.max()}", expected=f"0 to {n_classes - 1}")
    return Split(x=np.ascontiguousarray(x), y=y)


def _count_classes(split: Split, given: int | None) -> int:
    if len(split) == 0 or not np.issubdtype(split.y.dtype, np.integer) or split.y.min() < 0:
        raise UserError(f"y has {len(split)} rows of {split.y.dtype}", do="label shift needs integer labels from 0.")
    seen = int(split.y.max()) + 1
    if given is not None and given < seen:
        raise UserError(f"n_classes is {given}, but y has the label {seen - 1}", do=f"give at least {seen}.")
    return seen if given is None else given
