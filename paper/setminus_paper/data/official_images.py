"""The owners' own files of the image sets, read without running anything that is in them.

The prepared form of a set is a mapping from ``x_train``, ``y_train``, ``x_test``, ... to arrays; `load_images`
keeps it as an ``.npz``. CIFAR-10 is read in its binary version: the Python one is a pickle, which can run code.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.images import CHUNK, Bytes, decode_into, resize
from setminus.datasets.sources import ChecksumError, DataUnavailableError, fetch, forget, read_bytes

Arrays = dict[str, NDArray[Any]]

STL10_SIDE = 96
MNIST_IDX = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
MNIST_CSV = {"train": "mnist_train.csv", "test": "mnist_test.csv"}
CIFAR10_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR10_TRAIN = tuple(f"data_batch_{k}.bin" for k in range(1, 6))
CIFAR10_TEST = "test_batch.bin"
# how many images the files hold of which the owner publishes no checksum: a cut file shows
OFFICIAL_ROWS = {
    **dict.fromkeys((*CIFAR10_TRAIN, CIFAR10_TEST), 10_000),
    "train_32x32.mat": 73_257,
    "test_32x32.mat": 26_032,
    "train_X.bin": 5_000,
    "test_X.bin": 8_000,
    "unlabeled_X.bin": 100_000,
    "mnist_m_train_labels.txt": 59_001,
    "mnist_m_test_labels.txt": 9_001,
    "GT-final_test.csv": 12_630,
    "GTSRB/Final_Training": 39_209,
    "train_labelling.txt": 100_000,
}
SIDE = 32
"""Height and width of images that come as single files of different sizes: their middle square is resized."""
SIGNS = 43


def read_official(name: str) -> Arrays:
    """Read a set of `IMAGE_SETS` from its official files: those in the folder ``SETMINUS_DATA``, or fetched.

    The arrays ``x_train``, ``y_train`` and so on are images of shape (n, height, width[, channels]) and labels from 0.
    """
    failures: list[str] = []
    for way in _WAYS.get(name, ()):
        try:
            return way()
        except DataUnavailableError as error:
            failures += error.tried or [error.came]
    raise DataUnavailableError(
        f"the official files of {name} could not be found or fetched", tried=[*dict.fromkeys(failures)]
    )


def forget_fetched(name: str) -> None:
    """Remove what `read_official` brought into the cache, once the prepared form is there.

    Parameters
    ----------
    name : str
        A name from `IMAGE_SETS`.
    """
    for file in _FETCHED.get(name, ()):
        forget(file)


def parse_idx(content: bytes, name: str) -> Bytes:
    """Read the format of MNIST: two zero bytes, the type, the number of axes, the axes, the bytes.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "labels").tolist()
    [7, 8, 9]
    """
    unsigned_bytes = b"\x00\x00\x08"
    n_axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * n_axes
    shape = tuple(np.frombuffer(content[4:start], dtype=">u4").tolist()) if len(content) >= start else ()
    if content[:3] != unsigned_bytes or len(content) - start != np.prod(shape, dtype=np.int64):
        raise ChecksumError(f"{name} is no whole idx file of bytes ({len(content)} bytes)", do="replace the file.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def parse_cifar10(content: bytes, name: str) -> tuple[Bytes, Bytes]:
    """Images and labels of a batch of CIFAR-10's binary version: rows of a label and the red, green, blue plane."""
    _check_size(len(content), OFFICIAL_ROWS[name] * (1 + 3 * 32 * 32), name)
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    return rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), rows[:, 0]


def _mnist_idx() -> Arrays:
    return {key: parse_idx(read_bytes(file), file) for key, file in MNIST_IDX.items()}


def _mnist_csv() -> Arrays:
    arrays: Arrays = {}
    for part, file in MNIST_CSV.items():
        rows = np.loadtxt(fetch(file), delimiter=",", skiprows=1, dtype=np.uint8)
        arrays |= {f"x_{part}": rows[:, 1:].reshape(-1, 28, 28), f"y_{part}": rows[:, 0]}
    return arrays


def _cifar10_unpacked() -> Arrays:
    folder = _folder("images/cifar-10-batches-bin", (*CIFAR10_TRAIN, CIFAR10_TEST))
    return _cifar10(lambda name: (folder / name).read_bytes())


def _cifar10_archive() -> Arrays:
    with tarfile.open(fetch(CIFAR10_ARCHIVE), "r:gz") as archive:
        # read in memory: nothing is unpacked, so that no path in the archive matters
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}

        def read(name: str) -> bytes:
            content = archive.extractfile(members[name])
            return content.read() if content is not None else b""

        return _cifar10(read)


def _cifar10(read: Callable[[str], bytes]) -> Arrays:
    train = [parse_cifar10(read(name), name) for name in CIFAR10_TRAIN]
    x_test, y_test = parse_cifar10(read(CIFAR10_TEST), CIFAR10_TEST)
    x_train, y_train = (np.concatenate(arrays) for arrays in zip(*train, strict=True))
    return {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}


def _svhn() -> Arrays:
    from scipy.io import loadmat

    files = {"train": "train_32x32.mat", "test": "test_32x32.mat"}
    folder = _folder("images/svhn", tuple(files.values()))
    arrays: Arrays = {}
    for part, name in files.items():
        try:
            file = loadmat(folder / name, variable_names=["X", "y"])
            x, y = np.moveaxis(file["X"], 3, 0), file["y"].ravel()
        # a broken file makes scipy raise almost anything
        except Exception as error:
            raise ChecksumError(
                f"{folder / name} cannot be read ({error})", do="replace or remove the file."
            ) from error
        _check_size(len(x), OFFICIAL_ROWS[name], name, "images")
        # the files call the digit 0 "10"
        arrays |= {f"x_{part}": x, f"y_{part}": y % 10}
    return arrays


def _stl10() -> Arrays:
    images = {"x_train": "train_X.bin", "x_test": "test_X.bin", "x_unlabelled": "unlabeled_X.bin"}
    labels = {"y_train": "train_y.bin", "y_test": "test_y.bin"}
    folder = _folder("images/stl10_binary", (*images.values(), *labels.values()))
    arrays: Arrays = {key: _stl10_images(folder / name) for key, name in images.items()}
    for key, name in labels.items():
        # the files count from 1; a 0 becomes 255, which no set has
        arrays[key] = np.fromfile(folder / name, dtype=np.uint8) - np.uint8(1)
    return arrays


def _stl10_images(path: Path) -> Bytes:
    shape = (OFFICIAL_ROWS[path.name], 3, STL10_SIDE, STL10_SIDE)
    _check_size(path.stat().st_size, int(np.prod(shape)), path.name)
    # planes of columns, not of rows
    images = np.memmap(path, dtype=np.uint8, mode="r", shape=shape).transpose(0, 3, 2, 1)

    def small() -> Iterator[Bytes]:
        for start in range(0, len(images), CHUNK):
            yield resize(np.ascontiguousarray(images[start : start + CHUNK]), 32)

    return np.concatenate(list(small()))


def _mnist_m() -> Arrays:
    parts = {part: f"mnist_m_{part}_labels.txt" for part in ("train", "test")}
    folder = _folder("images/mnist_m", tuple(parts.values()))
    arrays: Arrays = {}
    for part, name in parts.items():
        rows = _rows(folder / name, None)
        arrays |= _listed(part, [(folder / f"mnist_m_{part}" / file, label) for file, label in rows], name)
    return arrays


def _gtsrb() -> Arrays:
    training = [f"Final_Training/Images/{k:05d}/GT-{k:05d}.csv" for k in range(SIGNS)]
    folder = _folder("images/GTSRB", ("GT-final_test.csv", *training))
    found = [(folder / name).parent / row[0] for name in training for row in _rows(folder / name, ";")[1:]]
    labels = [str(int(path.parent.name)) for path in found]
    train = _listed("train", [*zip(found, labels, strict=True)], "GTSRB/Final_Training")
    test = [
        (folder / "Final_Test" / "Images" / row[0], row[-1]) for row in _rows(folder / "GT-final_test.csv", ";")[1:]
    ]
    return {**train, **_listed("test", test, "GT-final_test.csv")}


def _syn_signs() -> Arrays:
    folder = _folder("images/synthetic_data", ("train_labelling.txt",))
    rows = _rows(folder / "train_labelling.txt", None)
    return _listed("train", [(folder / row[0], row[1]) for row in rows], "train_labelling.txt")


def _rows(file: Path, separator: str | None) -> list[list[str]]:
    """The lines of a list of images, each split; some have a heading, which its reader drops."""
    try:
        rows = [line.split(separator) for line in file.read_text(encoding="ascii").splitlines() if line.strip()]
    except ValueError as error:
        raise ChecksumError(f"{file} is no text ({error})", do="replace the file.") from error
    if any(len(row) < 2 for row in rows):
        raise ChecksumError(f"{file} has rows of one value", expected="a file and its class", do="replace the file.")
    return rows


def _listed(part: str, rows: list[tuple[Path, str]], name: str) -> Arrays:
    """The images of a list, one file each, and their labels."""
    _check_size(len(rows), OFFICIAL_ROWS[name], name, "images")
    try:
        labels = np.array([int(label) for _, label in rows])
    except ValueError as error:
        raise ChecksumError(f"{name} has a class that is no number ({error})", do="replace the file.") from error
    images = np.empty((len(rows), SIDE, SIDE, 3), dtype=np.uint8)
    decode_into(images, ((row, str(path), path) for row, (path, _) in enumerate(rows)))
    return {f"x_{part}": images, f"y_{part}": labels}


def _folder(path: str, names: tuple[str, ...]) -> Path:
    given = os.environ.get("SETMINUS_DATA")
    if not given:
        raise DataUnavailableError("SETMINUS_DATA: not set")
    folder = Path(given, path)
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise DataUnavailableError(f"SETMINUS_DATA: {folder} does not hold {', '.join(absent)}")
    return folder


def _check_size(found: int, expected: int, name: str, unit: str = "bytes") -> None:
    if found != expected:
        raise ChecksumError(
            f"{name} has {found:,} {unit}",
            expected=f"{expected:,}, as in the official file",
            do="replace or remove it.",
        )


_WAYS: dict[str, tuple[Callable[[], Arrays], ...]] = {
    "mnist": (_mnist_idx, _mnist_csv),
    "cifar10": (_cifar10_unpacked, _cifar10_archive),
    "svhn": (_svhn,),
    "stl10": (_stl10,),
    "mnist_m": (_mnist_m,),
    "gtsrb": (_gtsrb,),
    "syn_signs": (_syn_signs,),
}
_FETCHED = {
    "mnist": (*MNIST_IDX.values(), *MNIST_CSV.values()),
    "cifar10": (CIFAR10_ARCHIVE,),
}
