"""Inputs checked, with their error messages: probabilities of the formula; labels, groups and weights of rows.

Values are checked only where that is possible and cheap: on eager arrays. Lazy ones (dask) and traced ones
(jit, vmap, export) have shapes but no values yet.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from array_api_compat import is_array_api_obj, is_dask_array, is_jax_array, is_numpy_array, is_torch_array
from numpy.typing import ArrayLike, NDArray

from setminus.errors import UserError

__all__ = [
    "Array",
    "OnViolation",
    "OverlapWarning",
    "as_columns",
    "check_log_proba",
    "check_on_violation",
    "check_prior",
    "check_proba",
    "check_shapes",
    "check_strength",
    "check_unmasked",
    "check_weights",
    "distinct",
    "encode_groups",
    "encode_labels",
    "group_name",
    "is_eager",
    "missing_groups",
    "recode",
    "report_violation",
    "tolerance",
]

Array = Any
"""An array of numpy, torch, jax, cupy or dask."""

OnViolation = Literal["raise", "clip", "warn"]


class OverlapWarning(UserWarning):
    """The principal classifier rules out a class that the full one does not."""


def is_eager(array: Array) -> bool:
    """Whether the values of `array` exist now and can be checked.

    Examples
    --------
    >>> import numpy as np
    >>> is_eager(np.ones(2))
    True
    """
    if is_dask_array(array):
        return False
    if is_jax_array(array):
        return not isinstance(array, sys.modules["jax"].core.Tracer)
    if is_torch_array(array):
        torch = sys.modules["torch"]
        traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(array)
        fake = type(array).__name__ in {"FakeTensor", "FunctionalTensor"} or array.is_meta
        return not (traced or wrapped or fake)
    return True


def tolerance(dtype: object) -> float:
    """Allowed distance of a row's sum from 1: rounded files and float32 pass, half precision needs more."""
    return 1e-2 if "16" in str(dtype) else 1e-4


def check_shapes(full: Array, principal: Array, prior: Array) -> None:
    """Raise unless `principal` has the shape of `full` and `prior` one entry per class, or per row and class."""
    shape = tuple(full.shape)
    if len(shape) == 0 or shape[-1] < 2:
        raise UserError(
            f"full has shape {shape}",
            do="the last axis must hold one probability for each of 2 or more classes. "
            "For a single P(y=1), stack 1 - p and p.",
        )
    if tuple(principal.shape) != shape:
        raise UserError(
            f"principal has shape {tuple(principal.shape)}, full has {shape}",
            do="both need one probability per row and class, in the same order of classes.",
        )
    prior_shape = tuple(prior.shape)
    aligned = (1,) * (len(shape) - len(prior_shape)) + prior_shape
    fits = len(prior_shape) <= len(shape) and all(p in (1, s) for p, s in zip(aligned, shape, strict=True))
    if not fits or prior_shape[-1:] != shape[-1:]:
        raise UserError(
            f"prior has shape {prior_shape}, full has {shape}",
            expected=f"({shape[-1]},), one entry per class, or one row of them for each row of full",
        )


def check_strength(strength: Any) -> Any:
    """`strength` as a float, or as the 0-d array that it is; raise unless it is one finite number of at least 0.

    The value of a torch or jax array is not checked: it may be a parameter that is being learned.

    Examples
    --------
    >>> check_strength(1)
    1.0
    """
    is_array = is_array_api_obj(strength)
    if is_array and len(strength.shape) > 0:
        raise UserError(f"strength has shape {tuple(strength.shape)}", expected="one number for all rows")
    if is_array and not is_numpy_array(strength):
        return strength
    number = strength.item() if is_array else strength
    if not isinstance(number, int | float | np.integer | np.floating) or not 0 <= number < float("inf"):
        raise UserError(
            f"strength is {strength!r}",
            do="expected a finite number >= 0. 0 keeps the full classifier, "
            "1 removes the principal one, and more than 1 removes more.",
        )
    return float(number)


def check_unmasked(name: str, values: Any) -> None:
    """Raise where a numpy masked array hides values: numpy functions would use the hidden values as data."""
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        raise UserError(
            f"{name} is a masked array with {int(values.mask.sum())} hidden values",
            do="drop those rows, or put values in their place with .filled().",
        )


def check_on_violation(on_violation: str) -> None:
    """Raise unless `on_violation` is "raise", "clip" or "warn"."""
    if on_violation not in get_args(OnViolation):
        raise UserError(f"on_violation is {on_violation!r}", expected="'raise', 'clip' or 'warn'")


def check_proba(name: str, proba: Array, xp: Any) -> None:
    """Raise unless every row of `proba` is a distribution; the message counts the bad values or rows."""
    _refuse(name, "NaN", xp.isnan(proba), xp)
    _refuse(name, "negative", proba < 0, xp)
    slack = tolerance(proba.dtype)
    _refuse(name, "above 1", proba > 1 + slack, xp)
    total = xp.sum(proba, axis=-1)
    off = abs(total - 1) > slack
    if bool(xp.any(off)):
        worst = float(total[off][0])
        raise UserError(
            f"{name} has {int(xp.count_nonzero(off))} rows that do not sum to 1 (the first sums to {worst:.6g})",
            do="pass probabilities, normalised over the last axis.",
        )


def check_log_proba(name: str, log_proba: Array, xp: Any) -> None:
    """Raise unless every row of `log_proba` is the log of a distribution."""
    _refuse(name, "NaN", xp.isnan(log_proba), xp)
    _refuse(name, "above 0", log_proba > tolerance(log_proba.dtype), xp)
    check_proba(f"exp({name})", xp.exp(log_proba), xp)


def check_prior(prior: Array, xp: Any) -> None:
    """Raise unless `prior` is a distribution with no class at 0."""
    check_proba("prior", prior, xp)
    absent = prior <= 0
    if bool(xp.any(absent)):
        by_class = xp.any(xp.reshape(absent, (-1, prior.shape[-1])), axis=0)
        classes = [i for i in range(prior.shape[-1]) if bool(by_class[i])]
        raise UserError(
            f"prior is 0 for class {_listed(classes)}",
            do="a class that the principal classifier never saw cannot "
            "be removed. Drop it from full, principal and prior.",
        )


def report_violation(violation: Array, on_violation: str, xp: Any) -> None:
    """Raise or warn where the principal is exactly 0 and the full classifier is not; "clip" stays silent."""
    if on_violation == "clip" or not bool(xp.any(violation)):
        return
    flat = xp.reshape(violation, (-1, violation.shape[-1]))
    rows = int(xp.count_nonzero(xp.any(flat, axis=-1)))
    by_class = xp.any(flat, axis=0)
    classes = [i for i in range(flat.shape[-1]) if bool(by_class[i])]
    found = (
        f"no overlap in {rows} of {flat.shape[0]} rows, where the principal probability of class {_listed(classes)} is "
        "exactly 0 and the full one is not"
    )
    if on_violation == "raise":
        raise UserError(
            found,
            do="their ratio is unbounded. Smooth or calibrate the principal classifier, or pass on_violation='clip' to "
            "replace 0 by the smallest positive number.",
        )
    warnings.warn(f"{found}: 0 is replaced by the smallest positive number.", OverlapWarning, stacklevel=3)


def _refuse(name: str, what: str, wrong: Array, xp: Any) -> None:
    if bool(xp.any(wrong)):
        count = int(xp.count_nonzero(wrong))
        raise UserError(f"{name} has {count} values that are {what}", do="pass probabilities between 0 and 1.")


def _listed(classes: list[int]) -> str:
    return ", ".join(map(str, classes))


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
    given = _as_given(sensitive_features, values)
    listed = given is not values
    for index, column in enumerate([given] if given.ndim == 1 else list(given.T)):
        missing = _is_missing(column)
        if missing.any():
            raise UserError(
                f"sensitive_features column {index} has {int(missing.sum())} missing values (NaN or None) "
                f"in {len(column)} rows",
                do="drop those rows or put them in a separate group.",
            )
        if listed and len({isinstance(value, str) for value in column}) > 1:
            raise _unordered(column)
    return columns


def missing_groups(sensitive_features: ArrayLike) -> NDArray[np.bool_]:
    """Which rows have no group: NaN or None in one of the columns.

    Examples
    --------
    >>> missing_groups(["f", None, "m"]).tolist()
    [False, True, False]
    """
    given = _as_given(sensitive_features, np.asarray(sensitive_features))
    if given.ndim not in (1, 2):
        return np.zeros(len(given) if given.ndim else 0, dtype=bool)
    missing: NDArray[np.bool_] = np.any(
        [_is_missing(column) for column in ([given] if given.ndim == 1 else list(given.T))], axis=0
    )
    return missing


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


def _as_given(sensitive_features: ArrayLike, values: NDArray[Any]) -> NDArray[Any]:
    """The values as they came: in a list of strings, numpy turns a missing value into the string "nan"."""
    listed = values.dtype.kind == "U" and isinstance(sensitive_features, list | tuple)
    return np.asarray(sensitive_features, dtype=object) if listed else values


def _is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind in "fM":
        missing: NDArray[np.bool_] = np.isnan(column)
        return missing
    if column.dtype.kind == "O":
        listed = column.tolist()
        # pandas.NA answers neither == nor bool(); its type's name is the only thing all versions share
        empty = {kind for kind in {*map(type, listed)} if kind.__name__ in {"NoneType", "NAType", "NaTType"}}
        floats = {kind for kind in {*map(type, listed)} if issubclass(kind, float)} - empty
        # by type, and value by value only where there are floats: words are many
        missing = np.fromiter(map((empty | floats).__contains__, map(type, listed)), dtype=bool, count=len(listed))
        for row in np.flatnonzero(missing) if floats else ():
            missing[row] = type(listed[row]) in empty or listed[row] != listed[row]
        return missing
    return np.zeros(len(column), dtype=bool)


def _mixed(name: str, labels: Sequence[Any]) -> UserError:
    kinds = sorted({type(label).__name__ for label in labels})
    return UserError(
        f"{name} mixes {', '.join(kinds)}", do="use one type of label, and drop rows whose label is missing."
    )
