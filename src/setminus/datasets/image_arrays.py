"""Arrays of images in the shape and on the scale that a network asks for.

Images are uint8 of shape (n, height, width, channels) throughout the data layer; grey ones have one channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError

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
        The new height and width; one number stands for both.

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
