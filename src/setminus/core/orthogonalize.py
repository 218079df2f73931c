r"""A classifier minus a classifier: ``full \ principal``, equation 2 of the paper.

    log orthogonal = log full - strength * (log principal - log prior) + const

`strength = 1` is the paper's formula, ``prior * full / principal`` with each row normalised.

numpy arrays are computed and checked in one pass over memory. With numba (extra `fast`) the pass is a compiled loop
over rows (`setminus.core.fused`); without it, numpy on blocks that stay in cache. Both run on threads, since both
release the interpreter's lock. Rows outside the safe range, where a product could overflow or a value is not a
probability, are only detected in that pass, and computed again in logs.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from numpy.typing import NDArray

from setminus.core.checks import (
    Array,
    OnViolation,
    check_log_proba,
    check_on_violation,
    check_prior,
    check_proba,
    check_shapes,
    check_strength,
    check_unmasked,
    is_eager,
    report_violation,
    tolerance,
)
from setminus.errors import UserError

__all__ = ["log_setminus", "orthogonalize", "orthogonalize_log", "orthogonalize_rows"]

Floats = NDArray[Any]
Kernel = Callable[[Floats, Floats, Floats, float, float, float, Floats], bool]

BLOCK = 1 << 20
"""Bytes of a block of one array: small enough to stay in cache, large enough that threads seldom wait for the lock."""

COMPILED_FROM = 1 << 20
"""Elements from which a compiled pass is worth the second that its first compilation takes."""


def orthogonalize(
    full: Array,
    principal: Array,
    prior: Array | str,
    *,
    strength: float | Array = 1.0,
    on_violation: OnViolation = "raise",
    out: Array | None = None,
) -> Array:
    r"""Remove from the full classifier what the principal classifier can already predict.

    ``orthogonal = prior**strength * full / principal**strength``, each row normalised. Where `full` is
    p(y | x), `principal` is p(y | z1) and x = (z1, z2) with z1 and z2 independent given y, strength 1 gives
    exactly p(y | z2).

    Parameters
    ----------
    full : array of shape (..., C)
        Probabilities of the full classifier; each row sums to 1.
    principal : array of shape (..., C)
        Probabilities of the classifier to ignore, over the same classes in the same order.
    prior : array of shape (C,) or (..., C), or "uniform"
        p(y): the class frequency of the data that the *principal* classifier was fitted on. It is required,
        because a missing prior would mean "uniform", which is wrong unless classes are balanced.
    strength : float, default=1.0
        0 keeps the full classifier, 1 is the paper's formula, more than 1 removes more.
    on_violation : {"raise", "clip", "warn"}, default="raise"
        What to do where a principal probability is exactly 0 and the full one is not (no overlap). "clip"
        replaces 0 by the smallest positive number of the dtype, "warn" does so with a warning. The values of lazy and
        traced arrays are not checked: there "raise" and "warn" act as "clip".
    out : ndarray, optional
        Where to write the result; numpy arrays only. After an error its content is undefined.

    Returns
    -------
    array of shape (..., C)
        Of the same library (numpy, torch, jax, cupy, dask), device and dtype as `full`; differentiable where the
        library is.

    Examples
    --------
    >>> import numpy as np
    >>> full = np.array([[0.2, 0.8]])
    >>> principal = np.array([[0.4, 0.6]])
    >>> orthogonalize(full, principal, [0.5, 0.5]).round(4)
    array([[0.2727, 0.7273]])
    >>> orthogonalize(full, principal, [0.5, 0.5], strength=0)
    array([[0.2, 0.8]])
    """
    check_on_violation(on_violation)
    strength = check_strength(strength)
    full, principal, xp = _same_kind("full", full, "principal", principal)
    prior = _as_prior(prior, full, xp)
    check_shapes(full, principal, prior)
    if is_numpy_array(full) and isinstance(strength, float):
        return _orthogonalize_numpy(full, principal, prior, strength, on_violation, out)
    if out is not None:
        raise UserError(f"out is for numpy arrays only, full is {type(full).__name__}", do="leave it out.")
    if all(map(is_eager, (full, principal, prior))):
        check_proba("full", full, xp)
        check_proba("principal", principal, xp)
        check_prior(prior, xp)
        _check_overlap(full > 0, principal == 0, strength, on_violation, xp)
    return xp.exp(log_setminus(_log(full, xp), _log(principal, xp), _log(prior, xp), strength))


def orthogonalize_log(
    log_full: Array,
    log_principal: Array,
    log_prior: Array | str,
    *,
    strength: float | Array = 1.0,
    on_violation: OnViolation = "raise",
) -> Array:
    r"""`orthogonalize` on normalised log-probabilities, for long tails and for training through it.

    ``log orthogonal = log_full - strength * (log_principal - log_prior) - logsumexp(...)``

    Parameters
    ----------
    log_full, log_principal : array of shape (..., C)
        Log-probabilities, each row normalised (`log_softmax` gives them); -inf is a probability of 0.
    log_prior : array of shape (C,) or (..., C), or "uniform"
        log p(y) of the data that the principal classifier was fitted on.
    strength : float or 0-d array, default=1.0
        See `orthogonalize`; an array may be a parameter that is learned.
    on_violation : {"raise", "clip", "warn"}, default="raise"
        See `orthogonalize`.

    Returns
    -------
    array of shape (..., C)
        Normalised log-probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> log_full, log_principal = np.log([[0.2, 0.8]]), np.log([[0.4, 0.6]])
    >>> np.exp(orthogonalize_log(log_full, log_principal, "uniform")).round(4)
    array([[0.2727, 0.7273]])
    """
    check_on_violation(on_violation)
    strength = check_strength(strength)
    log_full, log_principal, xp = _same_kind("log_full", log_full, "log_principal", log_principal)
    log_prior = _as_prior(log_prior, log_full, xp, log=True)
    check_shapes(log_full, log_principal, log_prior)
    if all(map(is_eager, (log_full, log_principal, log_prior))):
        check_log_proba("log_full", log_full, xp)
        check_log_proba("log_principal", log_principal, xp)
        check_prior(xp.exp(log_prior), xp)
        _check_overlap(log_full > -np.inf, log_principal == -np.inf, strength, on_violation, xp)
    return log_setminus(log_full, log_principal, log_prior, strength)


def log_setminus(log_full: Array, log_principal: Array, log_prior: Array, strength: float | Array = 1.0) -> Array:
    """The formula without checks, for callers that have checked their inputs, such as a training loop.

    A class at -inf in `log_full` stays at -inf. Where only `log_principal` is -inf, it is replaced by the log of the
    smallest positive number of the dtype.

    Examples
    --------
    >>> import numpy as np
    >>> log_setminus(np.log([0.2, 0.8]), np.log([0.2, 0.8]), np.log([0.5, 0.5])).round(4)
    array([-0.6931, -0.6931])
    """
    xp = array_namespace(log_full, log_principal)
    possible = log_full > -np.inf
    floor = float(np.log(xp.finfo(log_full.dtype).smallest_normal))
    # where(), not a product with a mask: -inf times 0 is NaN, in the value and in the gradient
    safe_principal = xp.where(log_principal > -np.inf, log_principal, xp.full_like(log_principal, floor))
    safe_full = xp.where(possible, log_full, xp.zeros_like(log_full))
    score = safe_full - strength * (safe_principal - log_prior)
    score = xp.where(possible, score, xp.full_like(score, -np.inf))
    score = score - xp.max(score, axis=-1, keepdims=True)
    return score - xp.log(xp.sum(xp.exp(score), axis=-1, keepdims=True))


def _orthogonalize_numpy(
    full: np.ndarray[Any, Any],
    principal: np.ndarray[Any, Any],
    prior: np.ndarray[Any, Any],
    strength: float,
    on_violation: OnViolation,
    out: np.ndarray[Any, Any] | None,
) -> np.ndarray[Any, Any]:
    check_prior(prior, np)
    if out is not None and (out.shape != full.shape or out.dtype != full.dtype):
        raise UserError(f"out is {out.dtype} of shape {out.shape}", expected=f"{full.dtype} of shape {full.shape}")
    target = np.empty_like(full) if out is None else out
    # a hard row is computed again from its input, which must not have been overwritten
    overlapping = np.may_share_memory(target, full) or np.may_share_memory(target, principal)
    answer = np.empty_like(full) if overlapping else target
    plain = orthogonalize_rows(full, principal, prior, strength, answer)
    if not plain:
        check_proba("full", full, np)
        check_proba("principal", principal, np)
        _check_overlap(full > 0, principal == 0, strength, on_violation, np)
        priors, floor = np.broadcast_to(prior, full.shape), _floor(full.dtype, strength)
        hard = ~np.isfinite(answer).all(axis=-1) | ~((principal >= floor) & (priors >= floor)).all(axis=-1)
        per_row = priors[hard]
        with np.errstate(divide="ignore"):
            logs = np.log(full[hard]), np.log(principal[hard]), np.log(per_row)
        answer[hard] = np.exp(log_setminus(*logs, strength))
    if answer is not target:
        target[...] = answer
    return target


def _check_overlap(possible: Array, ruled_out: Array, strength: Any, on_violation: OnViolation, xp: Any) -> None:
    if not (isinstance(strength, float) and strength == 0):
        report_violation(possible & ruled_out, on_violation, xp)


def _log(proba: Array, xp: Any) -> Array:
    positive = proba > 0
    # log only where it is finite: the gradient of log at 0 would be NaN even behind a mask
    log_proba = xp.log(xp.where(positive, proba, xp.ones_like(proba)))
    return xp.where(positive, log_proba, xp.full_like(log_proba, -np.inf))


def _same_kind(name_a: str, a: Array, name_b: str, b: Array) -> tuple[Array, Array, Any]:
    """Both as floating-point arrays of one library and dtype, and their namespace."""
    check_unmasked(name_a, a)
    check_unmasked(name_b, b)
    a, b = (x if is_array_api_obj(x) else np.asarray(x) for x in (a, b))
    if is_numpy_array(a) != is_numpy_array(b):
        raise UserError(
            f"{name_a} is {type(a).__name__} and {name_b} is {type(b).__name__}",
            do="pass both as arrays of the same library.",
        )
    xp = array_namespace(a, b)
    for name, x in ((name_a, a), (name_b, b)):
        if not xp.isdtype(x.dtype, ("real floating", "integral", "bool")):
            raise UserError(f"{name} has dtype {x.dtype}", expected="real numbers")
        if len(x.shape) == 0:
            raise UserError(f"{name} is a single number", expected="one probability per class in the last axis")
    dtype = xp.result_type(*(x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64 for x in (a, b)))
    return xp.astype(a, dtype, copy=False), xp.astype(b, dtype, copy=False), xp


def _as_prior(prior: Array | str, full: Array, xp: Any, *, log: bool = False) -> Array:
    if isinstance(prior, str):
        if prior != "uniform":
            raise UserError(f"prior is {prior!r}", expected="class frequencies p(y), or 'uniform'")
        prior = np.full(full.shape[-1], 1 / full.shape[-1])
        prior = np.log(prior) if log else prior
    elif prior is None:
        raise UserError("prior is None", do="pass the class frequencies p(y) of the principal's data, or 'uniform'.")
    if is_array_api_obj(prior) and not is_numpy_array(prior):
        return xp.astype(prior, full.dtype, copy=False)
    values = np.asarray(prior)
    if values.dtype.kind not in "fiu":
        raise UserError(f"prior has dtype {values.dtype}", expected="class frequencies, one number per class")
    placed = {} if is_numpy_array(full) else {"device": device(full)}
    return cast(Array, xp.asarray(values, dtype=full.dtype, **placed))


def orthogonalize_rows(full: Floats, principal: Floats, prior: Floats, strength: float, out: Floats) -> bool:
    """Write ``prior**strength * full / principal**strength``, normalised over the last axis, to `out`.

    Parameters
    ----------
    full, principal : ndarray of shape (..., C)
    prior : ndarray of shape (C,) or broadcast to (..., C)
    strength : float
    out : ndarray of shape (..., C)
        Must not overlap the inputs.

    Returns
    -------
    bool
        Whether every row was plain: a distribution on both sides, with no principal probability so small that
        the result could be inexact. If not, rows of `out` may be wrong, and the caller must check them.

    Examples
    --------
    >>> out = np.empty((1, 2))
    >>> orthogonalize_rows(np.array([[0.2, 0.8]]), np.array([[0.4, 0.6]]), np.array([0.5, 0.5]), 1.0, out)
    True
    >>> out.round(4)
    array([[0.2727, 0.7273]])
    """
    if full.size == 0:
        return True
    n_classes = full.shape[-1]
    per_row = prior.size > n_classes
    prior = np.broadcast_to(prior, full.shape).reshape(-1, n_classes) if per_row else prior.reshape(1, n_classes)
    arrays = [full, principal, out]
    straight = all(a.flags.c_contiguous for a in arrays) and full.dtype.char in "fd"
    kernel = None
    if straight and full.size >= COMPILED_FROM:
        kernel = _compiled(n_classes, strength != 1, not per_row)
        prior = np.ascontiguousarray(prior)
    rows = [a.reshape(-1, n_classes) for a in (full, principal)]
    target = out.reshape(-1, n_classes)
    floor, slack = _floor(full.dtype, strength), tolerance(full.dtype)
    # a prior this small takes products out of the safe range by itself
    plain = bool(prior.min() >= floor)

    def block(start: int, stop: int, run: Kernel) -> bool:
        at = slice(start, stop)
        here = prior[at] if per_row else tiled[: stop - start] if run is _numpy_block else prior
        return run(rows[0][at], rows[1][at], here, strength, floor, slack, target[at])

    if kernel is None:
        size = max(1, BLOCK // (full.itemsize * n_classes))
        if not per_row:  # laid out once: numpy broadcasts short rows slowly
            tiled = np.tile(prior, (min(size, len(target)), 1))
        run = _binary_numpy_block if n_classes == 2 else _numpy_block
        plain &= _on_threads(functools.partial(block, run=run), len(target), size)
    else:
        # compile once, before the threads start; a full disk prevents caching, not compiling
        with contextlib.suppress(OSError):
            block(0, 0, kernel)
        # more blocks than threads: a thread whose core is busy elsewhere takes fewer
        size = -(-len(target) // (8 * _threads()))
        plain &= _on_threads(functools.partial(block, run=kernel), len(target), size)
    if not np.may_share_memory(target, out):  # reshape had to copy
        out[...] = target.reshape(out.shape)
    return plain


def _floor(dtype: np.dtype[Any], strength: float) -> float:
    """The smallest probability whose power, and the product of two of them, stay normal numbers."""
    return float(np.finfo(dtype).tiny ** (0.5 / max(1.0, strength)))


def _numpy_block(
    full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
) -> bool:
    ones = np.ones(full.shape[-1], dtype=full.dtype)
    # the returned flag reports what numpy would warn about
    with np.errstate(all="ignore"):
        if strength == 1:
            np.divide(full, principal, out=out)
            out *= prior
        else:
            _power(np.divide(prior, principal, out=out), strength)
            out *= full
        # laid out, not broadcast: numpy is slow on short rows
        out *= np.repeat(1 / (out @ ones), full.shape[-1]).reshape(full.shape)
        # written so that NaN fails
        return bool(
            full.min() >= 0
            and principal.min() >= floor
            and abs(full @ ones - 1).max() <= slack
            and abs(principal @ ones - 1).max() <= slack
        )


def _binary_numpy_block(
    full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
) -> bool:
    """The same for two classes: one power and one division a row, in columns, which numpy works on faster."""
    f0, f1, q0, q1 = full[:, 0], full[:, 1], principal[:, 0], principal[:, 1]
    with np.errstate(all="ignore"):
        if strength == 1:
            a0, a1 = f0 * q1, f1 * q0
            a0 *= prior[:, 0]
            a1 *= prior[:, 1]
        else:
            odds = q1 / q0
            odds *= prior[:, 0] / prior[:, 1]
            a0, a1 = _power(odds, strength), f1
            a0 *= f0
        total = a0 + a1
        np.divide(a0, total, out=out[:, 0])
        np.divide(a1, total, out=out[:, 1])
        full_total, principal_total = f0 + f1, q0 + q1
        return bool(
            full.min() >= 0
            and principal.min() >= floor
            and abs(full_total.min() - 1) <= slack
            and abs(full_total.max() - 1) <= slack
            and abs(principal_total.min() - 1) <= slack
            and abs(principal_total.max() - 1) <= slack
        )


def _power(x: Floats, strength: float) -> Floats:
    """``x**strength`` in place; by logs, since numpy's vector instructions have log and exp, and no power."""
    if x.dtype == np.float16:
        return np.power(x, strength, out=x)
    np.log(x, out=x)
    x *= strength
    return np.exp(x, out=x)


def _on_threads(block: Callable[[int, int], bool], n_rows: int, size: int) -> bool:
    """Run `block(start, stop)` over all rows; True where every block was plain."""
    starts = range(0, n_rows, size)
    threads = min(_threads(), len(starts))

    def one(start: int) -> bool:
        return block(start, min(start + size, n_rows))

    # every block runs, plain or not: a list, since all() would stop at the first False
    return all(list(map(one, starts) if threads == 1 else _pool(threads, os.getpid()).map(one, starts)))


@functools.cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """One pool for each process: a forked child inherits the parent's pool without its threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix="setminus")


def _threads() -> int:
    """Threads to use: SETMINUS_THREADS, else the cores that this process may run on."""
    asked = os.environ.get("SETMINUS_THREADS")
    if asked:
        if not asked.isdecimal():
            raise UserError(f"SETMINUS_THREADS is {asked!r}", expected="a whole number of threads, such as 2")
        return max(1, int(asked))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _compiled(n_classes: int, power: bool, shared: bool) -> Kernel | None:
    """The compiled loop, see `setminus.core.fused`; None without numba."""
    try:
        from setminus.core.fused import compiled_rows
    except ImportError:
        return None
    return compiled_rows(n_classes, power, shared)
