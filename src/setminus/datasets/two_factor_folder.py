"""A user's own images in two folders, with labels of one factor in a CSV.

The images of folder A and of folder B differ in more than one factor. The CSV labels one factor, for some images or
for all, so that it can be separated from the others.
"""

from __future__ import annotations

import csv
import difflib
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.images import SUFFIXES, Bytes, check_size, decode_into, show_names
from setminus.datasets.split import UNLABELLED
from setminus.errors import UserError

Ints = NDArray[np.int64]


# eq=False: comparing arrays field by field has no single truth value
@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images of two domains, and others, with the labels of one factor.

    Parameters
    ----------
    x : uint8 array of shape (n, size, size, 3)
        First those of folder A, then those of B, then those of neither.
    y : int array of shape (n,)
        0 in folder A, 1 in B, -1 in neither.
    z : int array of shape (n,)
        0, 1, ..., which stand for `values`; -1 where there is no label.
    values : tuple of str
        The labels, two or more; those that are more frequent in A than in B come first.
    files : tuple of Path
        Where each image comes from.
    kept : int array of shape (n,), optional
        The labels of a second factor, which is kept, likewise.
    kept_values : tuple of str
        What they stand for.
    """

    x: Bytes
    y: Ints
    z: Ints
    values: tuple[str, ...]
    files: tuple[Path, ...] = ()
    kept: Ints | None = None
    kept_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class TwoFactorFolder:
    r"""Images in two folders, with a CSV that labels one factor.

    Parameters
    ----------
    a_folder, b_folder : path
        The images of domain A and of domain B; folders within them are not entered.
    labels_csv : path
        A table with a header, separated by commas. The first column names files: as they are called in folder A or
        B, or, for these and for images elsewhere, by their path from the folder of the CSV.
    column : str
        The column with the factor, of two values or more; an empty cell is no label.
    keep : str, optional
        The column of a second factor, which is kept while the first changes.
    size : int
        Height and width to which images are cut and resized.
    allow_grey : bool
        Read images without color as three equal channels. By default they are refused: among images in color the
        networks would take the lack of it for a part of the style.

    Examples
    --------
    >>> import tempfile
    >>> red = b"P6 1 1 255 " + bytes([100, 0, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a/1", "a/2", "b/3", "b/4", "more/5"):
    ...         Path(folder, name).parent.mkdir(exist_ok=True)
    ...         _ = Path(folder, f"{name}.ppm").write_bytes(red)
    ...     rows = ["file,hair", "1.ppm,dark", "3.ppm,fair", "4.ppm,fair", "more/5.ppm,dark"]
    ...     _ = Path(folder, "labels.csv").write_text("\n".join(rows))
    ...     mine = TwoFactorFolder(f"{folder}/a", f"{folder}/b", f"{folder}/labels.csv", "hair", size=8).load()
    >>> mine.x.shape, mine.values
    ((5, 8, 8, 3), ('dark', 'fair'))
    >>> mine.y.tolist(), mine.z.tolist()
    ([0, 0, 1, 1, -1], [0, -1, 1, 1, 0])
    """

    a_folder: str | os.PathLike[str]
    b_folder: str | os.PathLike[str]
    labels_csv: str | os.PathLike[str]
    column: str
    size: int = 64
    allow_grey: bool = False
    keep: str | None = None

    def load(self) -> LabelledImages:
        """Check folders and labels, then read the images.

        Returns
        -------
        LabelledImages
            All images of both folders, and those images elsewhere that have a label.

        Raises
        ------
        UserError
            If a folder, the CSV or an image cannot be used, or if the labels do not separate the factors.
        """
        check_size(self.size)
        a, b = (_images_in(Path(folder), letter) for folder, letter in ((self.a_folder, "A"), (self.b_folder, "B")))
        if a[0].parent == b[0].parent:
            raise UserError(f"folders A and B are both {str(a[0].parent)!r}", do="give two folders.")
        table = Path(self.labels_csv)
        roots = (a[0].parent, b[0].parent, table.parent.resolve())
        columns = [self.column] if self.keep is None else [self.column, self.keep]
        tables = [_match(read_labels(table, column), roots, table) for column in columns]
        labels = {file: "" for found in tables for file in found}
        in_folders = {*a, *b}
        elsewhere = tuple(file for file in labels if file not in in_folders)
        unlike = [str(file) for file in elsewhere if file.parent in roots[:2]]
        if unlike:
            raise UserError(
                f"{table} names files of folder A or B that are not called like an image: {show_names(unlike)}",
                do=f"let their names end in one of {', '.join(sorted(SUFFIXES))}, or remove these rows.",
            )
        files = (*a, *b, *elsewhere)
        y = np.repeat([0, 1, UNLABELLED], [len(a), len(b), len(elsewhere)])
        coded = [
            code_labels(np.array([found.get(file, "") for file in files]), y, column)
            for column, found in zip(columns, tables, strict=True)
        ]
        x = np.empty((len(files), self.size, self.size, 3), dtype=np.uint8)
        decode_into(x, ((row, str(file), file) for row, file in enumerate(files)))
        if not self.allow_grey:
            _check_color(x, files)
        images = LabelledImages(x, y, *coded[0], files)
        return images if self.keep is None else replace(images, kept=coded[1][0], kept_values=coded[1][1])


MAX_VALUES = 20
"""Largest number of values of a factor: a column of more values is likely a name or a number."""


def code_labels(given: NDArray[np.str_], y: Ints, column: str) -> tuple[Ints, tuple[str, ...]]:
    """Number the labels of a factor, those of domain A first; an error where it cannot be learned from them.

    Parameters
    ----------
    given : array of str of shape (n,)
        The labels; an empty text is none.
    y : int array of shape (n,)
        0 in domain A, 1 in B, -1 in neither.
    column : str
        The name of the factor, for errors.

    Returns
    -------
    z : int array of shape (n,)
        The place of the label among `values`; -1 where there is none.
    values : tuple of str

    Examples
    --------
    >>> z, values = code_labels(np.array(["b", "a", "b", "", "a", "a"]), np.array([0, 0, 0, 0, 1, 1]), "color")
    >>> z.tolist(), values
    ([0, 1, 0, -1, 1, 1], ('b', 'a'))
    """
    labelled = given != ""
    found, counts = np.unique(given[labelled], return_counts=True)
    what = f"column {column!r}"
    if not 2 <= len(found) <= MAX_VALUES:
        raise UserError(
            f"{what} has {len(found)} values ({show_names(found.tolist()) or 'all empty'})",
            expected=f"two, or a few more, up to {MAX_VALUES}",
        )
    if counts.min() < 2:
        raise UserError(
            f"{what} has {str(found[counts.argmin()])!r} for one image", do="each value needs at least 2 images."
        )
    within = [np.unique(given[labelled & (y == domain)]) for domain in (0, 1)]
    if max(map(len, within)) < 2 and not np.any(y == UNLABELLED):
        a, b = (show_names(one.tolist()) or "no label" for one in within)
        raise UserError(
            f"{what} is constant within each folder (A: {a}, B: {b}) and no labelled image is outside of them, so "
            "that it cannot be separated from the other differences between the folders",
            do="list images outside of A and B in the CSV, in which they do not go together.",
        )
    # where a domain has no label it could have any
    shares = [
        (given[labelled & (y == k)][:, None] == found).mean(axis=0) if len(within[k]) else np.full(len(found), 0.5)
        for k in (0, 1)
    ]
    # by the difference of its shares: stable, so that equal ones stay in the order of the alphabet
    found = found[np.argsort(shares[1] - shares[0], kind="stable")]
    places = {value: place for place, value in enumerate(found.tolist())}
    z = np.array([places.get(value, UNLABELLED) for value in given.tolist()], dtype=np.int64)
    return z, tuple(places)


def read_labels(path: str | os.PathLike[str], column: str) -> dict[str, str]:
    """Read the labels of files from a CSV.

    Parameters
    ----------
    path : path
        A table with a header, separated by commas, in UTF-8; the first column names files.
    column : str
        The column with the labels.

    Returns
    -------
    dict of str to str
        From the name to the label, without the rows whose label is empty.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, strict=True) if any(cell.strip() for cell in row)]
    except FileNotFoundError:
        raise UserError(f"{path} does not exist", do="give the CSV with the labels.") from None
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise UserError(f"{path} cannot be read as a CSV in UTF-8 ({error})", do="save it as such.") from error
    header = [cell.strip() for cell in rows[0]] if rows else []
    if len(header) < 2:
        raise UserError(
            f"{path} has the columns {header}",
            expected="a header of a column with file names and at least one with labels, separated by commas",
        )
    if header[1:].count(column) != 1:
        near = difflib.get_close_matches(column, header[1:], n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(
            f"{path} has {header[1:].count(column)} columns of labels called {column!r}",
            do=f"{hint}It has the names of files in {header[0]!r}, then {header[1:]}.",
        )
    uneven = [row[0] for row in rows[1:] if len(row) != len(header)]
    if uneven:
        raise UserError(
            f"{path} has {len(header)} columns, but more or fewer cells in the rows of {show_names(uneven)}",
            do="put a name that has a comma in double quotes.",
        )
    twice = [name for name, count in Counter(row[0] for row in rows[1:]).items() if count > 1]
    if twice:
        raise UserError(f"{path} lists files more than once: {show_names(twice)}", do="keep one row for each.")
    position = header.index(column, 1)
    return {row[0]: label for row in rows[1:] if (label := row[position].strip())}


def _images_in(folder: Path, letter: str) -> list[Path]:
    if not folder.is_dir():
        raise UserError(f"folder {letter} is {str(folder)!r}, which is not a folder", do="give a folder of images.")
    files = [
        file
        for file in sorted(folder.resolve().iterdir())
        # hidden files with the suffix of an image are what some systems leave beside each one
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    ]
    if len(files) < 2:
        raise UserError(
            f"folder {letter}, {str(folder)!r}, has {len(files)} images ({', '.join(sorted(SUFFIXES))})",
            do="at least 2 are needed.",
        )
    return files


def _check_color(x: Bytes, files: tuple[Path, ...]) -> None:
    grey = np.flatnonzero([np.ptp(image, axis=-1).max() == 0 for image in x])
    if len(grey):
        names = show_names([str(files[row]) for row in grey])
        raise UserError(
            f"{len(grey)} of {len(x)} images are grey: {names}",
            expected="images in color, since the lack of it would be learned as a part of the style",
            do="Replace or remove them, or accept them by allow_grey (--allow-grey).",
        )


def _match(labels: dict[str, str], roots: tuple[Path, Path, Path], table: Path) -> dict[Path, str]:
    """The labels by file, where each name leads to one file."""
    hostile = [name for name in labels if not _is_plain(name)]
    if hostile:
        raise UserError(
            f"{table} names files that are absolute, lead upwards or have control characters: {show_names(hostile)}",
            do="name files as in folder A or B, or by their path from the folder of the CSV.",
        )
    # one file may be reached from several roots, also through links to folders: it counts once
    found = {
        name: {(root / name).parent.resolve() / Path(name).name for root in roots if _is_file(root / name)}
        for name in labels
    }
    absent = [name for name, files in found.items() if not files]
    if absent:
        raise UserError(
            f"{table} names {len(absent)} files that are neither in folder A nor in B nor beside the CSV: "
            f"{show_names(absent)}",
            do="correct or remove these rows.",
        )
    unclear = [name for name, files in found.items() if len(files) > 1]
    if unclear:
        raise UserError(
            f"{table} names files that are in more than one of folder A, folder B and the folder of the CSV: "
            f"{show_names(unclear)}",
            do="give their path from the folder of the CSV, or other names.",
        )
    matched = {files.pop(): name for name, files in found.items()}
    if len(matched) < len(labels):
        again = [name for name in labels if name not in matched.values()]
        raise UserError(
            f"{table} lists files more than once, by different paths: {show_names(again)}", do="keep one row for each."
        )
    return {file: labels[name] for file, name in matched.items()}


def _is_plain(name: str) -> bool:
    path = PurePath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and min(name) >= " "


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # a name that is too long for the disk
        return False
