r"""``prior * full / principal``, normalised and validated, in one pass over memory: for numpy arrays.

With numba (extra `fast`) the pass is a compiled loop over rows; without it, numpy on blocks that stay in cache.
Both run on threads, since both release the interpreter's lock. Rows outside the safe range, where a product
could overflow or a value is not a probability, are only detected here; `orthogonalize` computes them again.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.core.checks import tolerance
from setminus.errors import UserError

__all__ = ["orthogonalize_rows"]

Floats = NDArray[Any]
Kernel = Callable[[Floats, Floats, Floats, float, float, float, Floats], bool]

BLOCK = 1 << 16
"""Elements of a block: small enough to stay in cache, large enough that threads seldom wait for the lock."""

COMPILED_FROM = 1 << 20
"""Elements from which a compiled pass is worth the second that its first compilation takes."""


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
    easy = strength == 1 and not per_row
    kernel = _compiled(n_classes, easy) if straight and full.size >= COMPILED_FROM else None
    rows = [a.reshape(-1, n_classes) for a in (full, principal)]
    target = out.reshape(-1, n_classes)
    floor, slack = float(np.sqrt(np.finfo(full.dtype).tiny)), tolerance(full.dtype)
    # a prior this small takes products out of the safe range by itself
    plain = bool(prior.min() >= floor)

    def block(start: int, stop: int, run: Kernel) -> bool:
        at = slice(start, stop)
        here = prior[at] if per_row else tiled[: stop - start] if run is _numpy_block else prior
        return run(rows[0][at], rows[1][at], here, strength, floor, slack, target[at])

    if kernel is None:
        size = max(1, BLOCK // n_classes)
        if not per_row:  # laid out once: numpy broadcasts short rows slowly
            tiled = np.tile(prior, (min(size, len(target)), 1))
        plain &= _on_threads(functools.partial(block, run=_numpy_block), len(target), size)
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
            np.power(np.divide(prior, principal, out=out), strength, out=out)
            out *= full
        # laid out, not broadcast: numpy is slow on short rows
        out *= np.repeat(1 / (out @ ones), full.shape[-1]).reshape(full.shape)
        # written so that NaN fails
        return bool(
            full.min() >= 0
            and principal.min() >= floor
            and abs(full @ ones - 1).max() <= slack
            and abs(principal @ ones - 1).max() <= slack
            and (strength <= 1 or np.isfinite(out).all())
        )


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
def _compiled(n_classes: int, easy: bool) -> Kernel | None:
    """The compiled loop over rows of `n_classes` classes; None without numba. Easy: strength 1, one prior for all."""
    try:
        import numba
    except ImportError:
        return None
    loop = _power_rows if not easy else _binary_rows if n_classes == 2 else _rows_of(n_classes)
    compile_loop = functools.partial(numba.njit, nogil=True, error_model="numpy", fastmath={"contract"})
    try:
        compiled: Kernel = compile_loop(cache=True)(loop)
    except (RuntimeError, OSError):  # neither the package's folder nor one of the user's can be written
        compiled = compile_loop()(loop)
    return compiled


def _binary_rows(
    full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
) -> bool:
    p0, p1 = prior[0, 0], prior[0, 1]
    odd = 0
    for i in range(len(full)):
        f0, f1 = full[i, 0], full[i, 1]
        q0, q1 = principal[i, 0], principal[i, 1]
        # prior * full / principal with both sides times q0 * q1: one division a row
        a0 = p0 * f0 * q1
        a1 = p1 * f1 * q0
        plain = (min(f0, f1) >= 0) & (min(q0, q1) >= floor) & (abs(f0 + f1 - 1) + abs(q0 + q1 - 1) <= slack)
        odd += 0 if plain else 1
        scale = 1 / (a0 + a1)
        out[i, 0] = a0 * scale
        out[i, 1] = a1 * scale
    return odd == 0


def _rows_of(n_classes: int) -> Kernel:
    """The loop for `n_classes`, a constant when it is compiled, so that the compiler unrolls a row."""
    rows = max(1, 128 // n_classes)

    def loop(
        full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
    ) -> bool:
        odd = 0
        flat_full, flat_principal, flat_out = full.reshape(-1), principal.reshape(-1), out.reshape(-1)
        laid_out = np.empty(rows * n_classes, prior.dtype)
        for j in range(len(laid_out)):
            laid_out[j] = prior[0, j % n_classes]
        for start in range(0, len(flat_full), len(laid_out)):
            # a few rows at a time stay in the nearest cache: divided all at once, then summed row by row
            stop = min(start + len(laid_out), len(flat_full))
            f, q, r = flat_full[start:stop], flat_principal[start:stop], flat_out[start:stop]
            for j in range(len(f)):
                odd += (f[j] < 0) | (q[j] < floor)
                r[j] = laid_out[j] * f[j] / q[j]
            for i in range(len(f) // n_classes):
                total, full_total, principal_total = 0.0, 0.0, 0.0
                for k in range(n_classes):
                    total += r[i * n_classes + k]
                    full_total += f[i * n_classes + k]
                    principal_total += q[i * n_classes + k]
                # the deviations are added, since NaN gets past min() and max()
                off = abs(full_total - 1) + abs(principal_total - 1)
                odd += 0 if (off <= slack) & (total > 0) else 1
                scale = 1 / total
                for k in range(n_classes):
                    r[i * n_classes + k] *= scale
        return odd == 0

    return loop


def _power_rows(
    full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
) -> bool:
    step = 1 if len(prior) > 1 else 0
    odd = 0
    for i in range(len(full)):
        total, full_total, principal_total = 0.0, 0.0, 0.0
        plain = True
        for k in range(full.shape[1]):
            f, q = full[i, k], principal[i, k]
            out[i, k] = f * (prior[i * step, k] / q) ** strength
            total += out[i, k]
            full_total += f
            principal_total += q
            plain &= (f >= 0) & (q >= floor)
        plain &= (abs(full_total - 1) <= slack) & (abs(principal_total - 1) <= slack)
        # a power can leave the range that `floor` keeps products in
        plain &= (total > floor) & (total < 1 / floor)
        odd += 0 if plain else 1
        scale = 1 / total
        for k in range(full.shape[1]):
            out[i, k] *= scale
    return odd == 0
