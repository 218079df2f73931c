"""Groups, labels and weights of rows, checked and encoded: one code per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core.checks import check_unmasked
from setminus.errors import UserError

__all__ = ["as_columns", "check_weights", "distinct", "encode_groups", "encode_labels", "group_name", "recode"]


def as_columns(sensitive_features: ArrayLike) -> list[NDArray[Any]]:
    """Sensitive features as a list of 1-D arrays, one for each column; missing values raise.

    Parameters
    ----------
    sensitive_features : array-like of shape (n,) or (n, k)
        Lists, arrays, and series or frames of pandas, polars or arrow.

    Returns
    -------
    list of ndarray of shape (n,)

    Examples
    --------
    >>> [column.tolist() for column in as_columns([["f", 1], ["m", 2]])]
    [['f', 'm'], ['1', '2']]
    """
    check_unmasked("sensitive_features", sensitive_features)
    values = np.asarray(sensitive_features)
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] == 0):
        raise UserError(
            f"sensitive_features has shape {values.shape}", expected="one value per row (n,) or columns (n, k)"
        )
    columns = [values] if values.ndim == 1 else list(values.T)
    # the values as given: in a list of strings, numpy turns a missing value into the string "nan"
    listed = values.dtype.kind == "U" and isinstance(sensitive_features, list | tuple)
    given = np.asarray(sensitive_features, dtype=object) if listed else values
    for index, column in enumerate([given] if given.ndim == 1 else list(given.T)):
        missing = _is_missing(column)
        if missing.any():
            raise UserError(
                f"sensitive_features column {index} has {int(missing.sum())} missing values (NaN or None) "
                f"in {len(column)} rows",
                do="drop those rows or give them a group of their own.",
            )
        if listed and len({isinstance(value, str) for value in column}) > 1:
            raise _unordered(column)
    return columns


def encode_groups(sensitive_features: ArrayLike) -> tuple[NDArray[np.intp], list[Any]]:
    """One group code per row, and the sorted labels that the codes stand for.

    Several columns are crossed: only the combinations that occur are groups, and their labels are tuples.

    Parameters
    ----------
    sensitive_features : array-like of shape (n,) or (n, k)
        The group of each row; see `as_columns`.

    Returns
    -------
    codes : ndarray of shape (n,)
    labels : list
        The value of each group; a tuple of values where columns are crossed.

    Examples
    --------
    >>> codes, labels = encode_groups(["m", "f", "f"])
    >>> codes.tolist(), labels
    ([1, 0, 0], ['f', 'm'])
    """
    columns = as_columns(sensitive_features)
    encoded = [distinct(column) for column in columns]
    if len(encoded) == 1:
        labels, codes = encoded[0]
        return codes.astype(np.intp), labels.tolist()
    sizes = [len(labels) for labels, _ in encoded]
    crossed = np.ravel_multi_index([codes for _, codes in encoded], sizes)
    present, codes = np.unique(crossed, return_inverse=True)
    parts = np.unravel_index(present, sizes)
    names = [labels.tolist() for labels, _ in encoded]
    crossed_labels = [tuple(names[k][int(part[i])] for k, part in enumerate(parts)) for i in range(len(present))]
    return codes.astype(np.intp), crossed_labels


def group_name(label: object) -> str:
    """The name of a group in messages, tables and plots: crossed values are joined by a comma.

    Examples
    --------
    >>> group_name(("f", 30)), group_name("m")
    ('f, 30', 'm')
    """
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def distinct(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The sorted values of a column, and the code of each row; values that cannot be ordered raise.

    Examples
    --------
    >>> values, codes = distinct(np.array(["m", "f"]))
    >>> values.tolist(), codes.tolist()
    (['f', 'm'], [1, 0])
    """
    try:
        labels, codes = np.unique(column, return_inverse=True)
    except TypeError:
        raise _unordered(column) from None
    return labels, codes


def encode_labels(values: ArrayLike, *, name: str = "y") -> tuple[NDArray[np.intp], list[Any]]:
    """One code per row, and the sorted labels that the codes stand for; a missing label raises.

    Examples
    --------
    >>> codes, classes = encode_labels(["yes", "no", "yes"])
    >>> codes.tolist(), classes
    ([1, 0, 1], ['no', 'yes'])
    """
    check_unmasked(name, values)
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise UserError(f"{name} has shape {array.shape}", expected="one label per row, shape (n,) with n > 0")
    # the list as given: next to strings, numpy turns numbers into strings, and a missing label into "nan"
    listed = values if isinstance(values, list | tuple) and array.dtype.kind == "U" else None
    try:
        unique, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise _mixed(name, array.tolist()) from None
    labels = unique.tolist()
    if any(label is None or label != label for label in listed or labels):
        raise UserError(f"{name} has missing values (NaN or None)", do="drop those rows.")
    if listed is not None and not all(isinstance(label, str) for label in listed):
        raise _mixed(name, listed)
    return codes.astype(np.intp), labels


def recode(codes: NDArray[np.intp], labels: list[Any], classes: list[Any]) -> NDArray[np.intp]:
    """Codes into `labels` as codes into `classes`, which hold all of the labels.

    Examples
    --------
    >>> recode(np.array([0, 1]), ["b", "c"], ["a", "b", "c"]).tolist()
    [1, 2]
    """
    return np.array([classes.index(label) for label in labels], dtype=np.intp)[codes]


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """The weights of n rows as floats, or None; negative, infinite or missing weights raise.

    Examples
    --------
    >>> check_weights([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    if sample_weight is None:
        return None
    check_unmasked("sample_weight", sample_weight)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise UserError(f"sample_weight has shape {weights.shape}", expected=f"({n},), one weight per row")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise UserError(
            "sample_weight has negative, infinite or missing values, or is zero everywhere",
            do="pass finite weights >= 0.",
        )
    return weights


def _unordered(column: NDArray[Any]) -> UserError:
    kinds = sorted({type(value).__name__ for value in column.tolist()})
    return UserError(
        f"sensitive_features mixes values that cannot be ordered ({', '.join(kinds)})",
        do="use one type per column, for example strings.",
    )


def _is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind in "fM":
        missing: NDArray[np.bool_] = np.isnan(column)
        return missing
    if column.dtype.kind == "O":
        # pandas.NA answers neither == nor bool(); its type's name is the only thing all versions share
        return np.fromiter(
            (
                v is None or type(v).__name__ in {"NAType", "NaTType"} or (isinstance(v, float) and v != v)
                for v in column
            ),
            dtype=bool,
            count=len(column),
        )
    return np.zeros(len(column), dtype=bool)


def _mixed(name: str, labels: Sequence[Any]) -> UserError:
    kinds = sorted({type(label).__name__ for label in labels})
    return UserError(
        f"{name} mixes {', '.join(kinds)}", do="use one type of label, and drop rows whose label is missing."
    )
