"""Checks of the inputs of the formula, and their error messages.

Values are checked only where that is possible and cheap: on eager arrays. Lazy ones (dask) and traced ones
(jit, vmap, export) have shapes but no values yet.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Literal, get_args

import numpy as np
from array_api_compat import is_array_api_obj, is_dask_array, is_jax_array, is_numpy_array, is_torch_array

from setminus.errors import UserError

__all__ = [
    "Array",
    "OnViolation",
    "OverlapWarning",
    "check_log_proba",
    "check_on_violation",
    "check_prior",
    "check_proba",
    "check_shapes",
    "check_strength",
    "check_unmasked",
    "is_eager",
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
            "1 takes the principal one out, more takes out more than that.",
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
            "be taken out. Drop it from full, principal and prior.",
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
