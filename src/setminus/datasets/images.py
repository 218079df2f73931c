"""Images as arrays: read from files, resized, and on the scale of the networks.

Images are uint8 of shape (n, height, width, channels) throughout the data layer; grey ones have one channel.
"""

from __future__ import annotations

import io
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.sources import ChecksumError
from setminus.errors import MissingExtraError, UserError

__all__ = [
    "SUFFIXES",
    "Bytes",
    "UnreadableImageError",
    "check_size",
    "decode_image",
    "decode_into",
    "from_signed_nchw",
    "middle_square",
    "read_upright",
    "resize",
    "show_names",
    "stored_files",
    "to_rgb",
    "to_signed_nchw",
]

Bytes = NDArray[np.uint8]

CHUNK = 2048
"""Images that are turned into floats at a time: the floats of a whole set would not fit in memory."""


def resize(images: Bytes, size: int | tuple[int, int]) -> Bytes:
    """Resize images: bilinear along an axis that grows, the average over the covered area along one that shrinks.

    Both are linear and separable, ``new = rows @ image @ columns.T``; every new pixel is a weighted mean of old
    ones, so that a flat image stays as it is.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width) or (n, height, width, channels)
        What to resize.
    size : int or (int, int)
        The new height and width; one number is used for both.

    Returns
    -------
    uint8 array of shape (n, new_height, new_width[, channels])
        Rounded to the nearest level.

    Examples
    --------
    >>> import numpy as np
    >>> resize(np.array([[[0, 100], [100, 200]]], dtype=np.uint8), (1, 2)).tolist()
    [[[50, 150]]]
    """
    _check_images(images)
    height, width = (size, size) if isinstance(size, int) else size
    if min(height, width) < 1:
        raise UserError(f"size is {size}", do="height and width must be at least 1.")
    if images.shape[1:3] == (height, width):
        return images
    channels = images.shape[3] if images.ndim == 4 else 1
    rows = _weights(images.shape[1], height)
    # one product for all rows of all images: the channels lie innermost and each is mapped to itself
    columns = np.kron(_weights(images.shape[2], width), np.eye(channels, dtype=np.float32))
    flat = images.reshape(len(images), images.shape[1], -1)
    resized = np.empty((len(images), height, width * channels), dtype=np.uint8)
    for start in range(0, len(images), CHUNK):
        chunk = flat[start : start + CHUNK].astype(np.float32)
        resized[start : start + CHUNK] = np.rint(rows @ (chunk @ columns.T)).clip(0, 255)
    return resized.reshape(len(images), height, width, *images.shape[3:])


def to_rgb(images: Bytes) -> Bytes:
    """Give grey images three equal channels; images in color stay as they are.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width), (n, height, width, 1) or (n, height, width, 3)
        Grey or in color.

    Returns
    -------
    uint8 array of shape (n, height, width, 3)
        In color.

    Examples
    --------
    >>> import numpy as np
    >>> to_rgb(np.zeros((5, 28, 28), dtype=np.uint8)).shape
    (5, 28, 28, 3)
    """
    _check_images(images)
    if images.ndim == 3:
        images = images[..., None]
    if images.shape[3] not in (1, 3):
        raise UserError(
            f"images have {images.shape[3]} channels", do="give grey ones (1 channel) or red-green-blue (3)."
        )
    return images if images.shape[3] == 3 else np.repeat(images, 3, axis=3)


def to_signed_nchw(images: Bytes) -> NDArray[np.float32]:
    """Turn images into what the networks take: ``images / 127.5 - 1``, channels first.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width, channels)
        Levels 0 to 255.

    Returns
    -------
    float32 array of shape (n, channels, height, width)
        From -1 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> to_signed_nchw(np.array([[[[0, 51, 255]]]], dtype=np.uint8)).ravel().tolist()
    [-1.0, -0.6000000238418579, 1.0]
    """
    _check_images(images)
    if images.ndim != 4:
        raise UserError(
            f"images have shape {images.shape}", do="give (n, height, width, channels); to_rgb adds channels."
        )
    scaled = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32)
    scaled /= np.float32(127.5)
    scaled -= np.float32(1)
    return scaled


def from_signed_nchw(batch: NDArray[np.floating[Any]]) -> Bytes:
    """Turn what a network gives back into images: the inverse of `to_signed_nchw`, rounded and cut at 0 and 255.

    Parameters
    ----------
    batch : float array of shape (n, channels, height, width)
        From -1 to 1.

    Returns
    -------
    uint8 array of shape (n, height, width, channels)
        Levels 0 to 255.

    Examples
    --------
    >>> import numpy as np
    >>> from_signed_nchw(np.array([[[[-1.0]], [[0.6]], [[1.5]]]])).tolist()
    [[[[0, 204, 255]]]]
    """
    if batch.ndim != 4 or not np.issubdtype(batch.dtype, np.floating):
        raise UserError(
            f"batch is {batch.dtype} of shape {batch.shape}",
            do="it must be float of shape (n, channels, height, width).",
        )
    levels: NDArray[Any] = np.rint((batch.transpose(0, 2, 3, 1) + 1) * 127.5)
    return levels.clip(0, 255).astype(np.uint8)


def _check_images(images: Bytes) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise UserError(
            f"images are {images.dtype} of shape {images.shape}",
            do="they must be uint8 of shape (n, height, width) or (n, height, width, channels).",
        )


def _weights(old: int, new: int) -> NDArray[np.float32]:
    """The matrix of shape (new, old) that resizes one axis; each row sums to 1."""
    if new <= old:
        # new pixel i covers the old ones from i * old / new to (i + 1) * old / new
        edges = np.arange(new + 1) * old / new
        start, end = np.arange(old), np.arange(1, old + 1)
        covered = np.minimum(edges[1:, None], end) - np.maximum(edges[:-1, None], start)
        return (covered.clip(min=0) * new / old).astype(np.float32)
    # the centers of pixels, in units of old ones; beyond the outermost centers the edge goes on
    centers = ((np.arange(new) + 0.5) * old / new - 0.5).clip(0, old - 1)
    return (1 - np.abs(centers[:, None] - np.arange(old))).clip(min=0).astype(np.float32)


if TYPE_CHECKING:
    from PIL import Image

KINDS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""What is read. Pillow knows more, some of which starts other programs: an untrusted file must not."""
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
"""How the name of an image ends, in small letters."""

SHOWN = 5
"""How many names an error shows."""


class UnreadableImageError(UserError):
    """A file is not a complete image; the message names it."""


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
    upright = read_upright(file, name, draft=2 * size)
    return np.array(middle_square(upright).resize((size, size), _pillow()[0].Resampling.BILINEAR))


MAX_PIXELS = 100_000_000
"""Largest picture that is decoded whole: 300 MB in color, and as much again for the square in its middle."""


def read_upright(file: bytes | Path, name: str, draft: int | None = None) -> Image.Image:
    """Read a picture as `decode_image` does, without cutting or resizing it.

    Parameters
    ----------
    file, name
        See `decode_image`.
    draft : int, optional
        A smaller height and width that are enough, where the file can be decoded to that.

    Returns
    -------
    PIL.Image.Image
        Red, green, blue.
    """
    image_module, operations = _pillow()
    try:
        # refused here by the number of pixels that are decoded, and not by a warning
        with warnings.catch_warnings(action="ignore", category=image_module.DecompressionBombWarning):
            image = image_module.open(io.BytesIO(file) if isinstance(file, bytes) else file, formats=KINDS)
        with image:
            if draft is not None:
                # a large photograph in JPEG need not be decoded at its full size
                image.draft(None, (draft, draft))
            if image.width * image.height <= MAX_PIXELS:
                # in place: without an orientation it would be copied
                operations.exif_transpose(image, in_place=True)
                return _in_color(image, image_module)
            pixels = image.width * image.height
    except image_module.UnidentifiedImageError:
        reason = f"not a file of the kinds {', '.join(KINDS)}"
    except image_module.DecompressionBombError:
        reason = f"more than {MAX_PIXELS / 1e6:.0f} megapixels"
    # a decoder that meets damaged bytes may raise anything
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        raise UnreadableImageError(
            f"{name!r} has {pixels / 1e6:.0f} megapixels, more than {MAX_PIXELS / 1e6:.0f}",
            do="resize it, or remove it.",
        )
    raise UnreadableImageError(f"{name!r} cannot be read as an image ({reason})", do="replace or remove it.")


def middle_square(image: Image.Image) -> Image.Image:
    """The square in the middle of a picture."""
    side = min(image.size)
    left, top = ((length - side) // 2 for length in image.size)
    # cut and not only resized from there: the edge of the square would mix with what lies outside
    return image if image.width == image.height else image.crop((left, top, left + side, top + side))


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
    """Raise an error where a size is not valid for an image.

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
    if image.mode == "RGB":
        # not converted, which copies; its pixels are read while the file is open
        image.load()
        return image
    return image.convert("RGB")
