"""Files of photographs, of any size and kind, as one array of small square images."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.datasets.image_arrays import Bytes
from setminus.datasets.sources import ChecksumError
from setminus.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from PIL import Image

KINDS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""What is read. Pillow knows more, some of which starts other programs: a stranger's file must not."""
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
"""How the name of an image ends, in small letters."""

SHOWN = 5
"""How many names an error shows."""


class UnreadableImageError(UserError):
    """A file is no whole image; the message names it."""


def decode_image(file: bytes | Path, size: int, name: str) -> Bytes:
    """Read an image: upright, in color, cut to the square in its middle, resized.

    The orientation that a camera noted is applied; grey becomes three equal channels; what is transparent shows
    white; of a moving image the first frame counts.

    Parameters
    ----------
    file : bytes or Path
        The content of the file, or where it is.
    size : int
        The new height and width.
    name : str
        Of the file, for the error.

    Returns
    -------
    uint8 array of shape (size, size, 3)
        Red, green, blue.

    Raises
    ------
    UnreadableImageError
        If the file is damaged or of another kind.

    Examples
    --------
    >>> grey = b"P5 4 2 255 " + bytes([9, 50, 50, 9, 9, 70, 70, 9])
    >>> decode_image(grey, 2, "grey.pgm").tolist()
    [[[50, 50, 50], [50, 50, 50]], [[70, 70, 70], [70, 70, 70]]]
    """
    check_size(size)
    image_module, operations = _pillow()
    try:
        with image_module.open(io.BytesIO(file) if isinstance(file, bytes) else file, formats=KINDS) as image:
            # a large photograph in JPEG need not be decoded at its full size
            image.draft(None, (2 * size, 2 * size))
            upright = _in_color(operations.exif_transpose(image), image_module)
            side = min(upright.size)
            left, top = ((length - side) // 2 for length in upright.size)
            # cut first: resized within the whole, the edge of the square would mix with what lies outside
            square = upright.crop((left, top, left + side, top + side))
            return np.array(square.resize((size, size), image_module.Resampling.BILINEAR))
    except image_module.UnidentifiedImageError:
        reason = f"not a file of the kinds {', '.join(KINDS)}"
    # a decoder that meets damaged bytes may raise anything
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    raise UnreadableImageError(f"{name!r} cannot be read as an image ({reason})", do="replace or remove it.")


def decode_into(images: Bytes, files: Iterable[tuple[int, str, bytes | Path]]) -> None:
    """Read many images, each into its row, and name all those that cannot be read.

    Parameters
    ----------
    images : uint8 array of shape (n, size, size, 3)
        Where the images go.
    files : iterable of (int, str, bytes or Path)
        For each image its row, its name for the error, and its content or place.

    Raises
    ------
    UnreadableImageError
        After the last file, if any could not be read.

    Examples
    --------
    >>> images = np.zeros((2, 1, 1, 3), dtype=np.uint8)
    >>> decode_into(images, [(1, "white.pgm", b"P5 1 1 255 " + bytes([255]))])
    >>> images[:, 0, 0].tolist()
    [[0, 0, 0], [255, 255, 255]]
    """
    failures: dict[str, UnreadableImageError] = {}
    for row, name, file in files:
        try:
            images[row] = decode_image(file, images.shape[1], name)
        except UnreadableImageError as error:
            failures[name] = error
    if len(failures) == 1:
        raise failures.popitem()[1]
    if failures:
        first = next(iter(failures.values()))
        raise UnreadableImageError(
            f"{len(failures)} of {len(images)} files cannot be read as images, {show_names(failures)}; {first.came}",
            do="replace or remove them.",
        )


def stored_files(stored: Path, names: Collection[str]) -> Iterator[tuple[str, bytes | Path]]:
    """Find files by name in a folder, a zip or a tar, wherever they lie in an archive; nothing is unpacked.

    Parameters
    ----------
    stored : Path
        A folder that exists, a ``.zip``, or a tar, compressed or not.
    names : collection of str
        Plain file names; others are passed over.

    Yields
    ------
    name : str
    file : bytes or Path
        The content from an archive, the place in a folder.

    Raises
    ------
    ChecksumError
        If an archive is damaged.
    """
    try:
        if stored.is_dir():
            yield from ((name, stored / name) for name in names if (stored / name).is_file())
        elif stored.suffix == ".zip":
            with zipfile.ZipFile(stored) as archive:
                for member in archive.namelist():
                    if (name := PurePosixPath(member).name) in names:
                        yield name, archive.read(member)
        else:
            # as a stream: one pass in the order of the file, also through a compressed one
            with tarfile.open(stored, "r|*") as stream:
                for entry in stream:
                    if (name := PurePosixPath(entry.name).name) in names and (content := stream.extractfile(entry)):
                        yield name, content.read()
    # the last is a zip that is encrypted or packed in a way that Python lacks
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ChecksumError(f"{stored} cannot be read as an archive ({error})", do="replace the file.") from error


def show_names(names: Collection[str]) -> str:
    r"""Write a list of names for an error: quoted, control characters escaped, not more than a few.

    Parameters
    ----------
    names : collection of str
        At least one.

    Returns
    -------
    str
        On one line.

    Examples
    --------
    >>> show_names(["a.jpg", "b\n.jpg"])
    "'a.jpg', 'b\\n.jpg'"
    >>> show_names("abcdefgh")
    "'a', 'b', 'c', 'd', 'e' and 3 more"
    """
    shown = ", ".join(repr(name) for name in list(names)[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def check_size(size: int) -> None:
    """Refuse what is no size of an image.

    Parameters
    ----------
    size : int
        Height and width.

    Examples
    --------
    >>> check_size(0)
    Traceback (most recent call last):
    ...
    setminus.errors.UserError: size is 0: give the height and width of the images, a whole number of at least 1.
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise UserError(
            f"size is {size!r}", do="give the height and width of the images, a whole number of at least 1."
        )


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise MissingExtraError("reading image files", "pillow", extra="nn") from error
    return Image, ImageOps


def _in_color(image: Image.Image, module: Any) -> Image.Image:
    if image.mode.startswith("I;16"):
        # pillow would cut 16 bits off at 255 instead of scaling them
        image = module.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise UserError("its levels have no known range", do="save it with 8 or 16 bits per channel")
    if image.has_transparency_data:
        white = module.new("RGBA", image.size, "white")
        image = module.alpha_composite(white, image.convert("RGBA"))
    return image.convert("RGB")
