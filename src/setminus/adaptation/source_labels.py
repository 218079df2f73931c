"""Labels of the source, which stand in one array with whatever the target has in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["labels_of_one_kind"]


def labels_of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """The same labels as an array of their own kind: next to None of the target they were an array of objects.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Of source rows alone.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If some are missing, or some are words and others are not.

    Examples
    --------
    >>> labels_of_one_kind(np.array([1, 0], dtype=object)).dtype
    dtype('int64')
    """
    listed = labels.tolist()
    missing = sum(map(_is_missing, listed))
    if missing:
        raise UserError(
            f"{missing} of {len(labels)} source rows have no label",
            do="label them, leave them out, or mark them as target rows by a negative sample_domain.",
        )
    words = sum(isinstance(label, str) for label in listed)
    if 0 < words < len(listed):
        raise UserError(
            f"{words} of {len(labels)} labels of the source are words, the others are not", expected="one kind for all"
        )
    return np.array(listed) if labels.dtype == object else labels


def _is_missing(label: Any) -> bool:
    try:
        # NaN does not equal itself
        return label is None or bool(label != label)
    except TypeError:
        # pandas' NA does not say whether it does
        return True
