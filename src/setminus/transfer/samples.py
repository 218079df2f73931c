"""A few images side by side, small enough for a record: a PNG in base64."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["strip_png"]


def strip_png(images: NDArray[np.uint8]) -> str:
    """Images in one row.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width, 3)

    Returns
    -------
    str
        A PNG of ``n * width`` by ``height`` pixels in base64.

    Examples
    --------
    >>> strip_png(np.zeros((2, 4, 4, 3), dtype=np.uint8))[:8]
    'iVBORw0K'
    """
    from PIL import Image

    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or len(images) == 0:
        raise UserError(
            f"images are {images.dtype} of shape {images.shape}", expected="uint8 of shape (n, height, width, 3), n > 0"
        )
    buffer = io.BytesIO()
    Image.fromarray(np.concatenate(list(images), axis=1)).save(buffer, format="PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
