"""The compiled loops of `orthogonalize`: each reads a row once, checks it, and writes it normalised.

They need numba (extra `fast`), which compiles them to vector instructions. A power is computed here from additions,
products and bit shifts, since a call of a library's `pow` for each number prevents that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

__all__ = ["Kernel", "compiled_rows"]

Floats = NDArray[Any]
Kernel = Callable[[Floats, Floats, Floats, float, float, float, Floats], bool]


def compiled_rows(n_classes: int, power: bool, shared: bool) -> Kernel:
    """The loop over rows of `n_classes` classes, as `setminus.core.orthogonalize.orthogonalize_rows` describes it.

    Parameters
    ----------
    n_classes : int
    power : bool
        Whether the strength is another than 1.
    shared : bool
        Whether all rows have one prior.
    """
    if n_classes == 2 and shared:
        return _compiled(_binary_power_rows if power else _binary_rows)
    return _compiled(_rows_of(n_classes, power, shared))


def _compiled(loop: Any) -> Kernel:
    compile_loop = functools.partial(numba.njit, nogil=True, error_model="numpy", fastmath={"contract"})
    try:
        compiled: Kernel = compile_loop(cache=True)(loop)
    except (RuntimeError, OSError):  # neither the package's folder nor one of the user's can be written
        compiled = compile_loop()(loop)
    return compiled


def ratio_power(a: Any, b: Any, strength: Any) -> Any:
    """``(a / b)**strength`` of positive normal numbers, to 2 units in the last place.

    ``a / b = 2**k * a / c`` with ``c = b * 2**k`` near a. So the logarithm of the power to base 2 is ``strength * k +
    strength * log2(a / c)``. The first product is exact, with the strength in two parts; the second is small, and so is
    its error. A caller refuses numbers whose power would leave the range of normal numbers.
    """
    raise NotImplementedError


@overload(ratio_power, inline="always")  # type: ignore[untyped-decorator]
def _ratio_power(a: Any, b: Any, strength: Any) -> Any:
    return _ratio_power_double if a == numba.float64 else _ratio_power_single


# Integers are moved into the last bits of a number, and out of them, by adding 2**52 (2**23): converting takes longer.
# Polynomials: interpolation at Chebyshev's points; terms in pairs, since each product has to wait for the one before.


def _ratio_power_double(a: Any, b: Any, strength: Any) -> Any:
    # the first 24 bits of the strength: times an exponent of 11 bits that is exact
    high = np.uint64(np.float64(strength).view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)).view(np.float64)
    a_bits, b_bits = np.float64(a).view(np.uint64), np.float64(b).view(np.uint64)
    exponent = (a_bits - b_bits + np.uint64(0x3FF8000000000000)) >> np.uint64(52)
    k = np.uint64(exponent | np.uint64(0x4330000000000000)).view(np.float64) - (4503599627370496.0 + 1023.0)
    c = np.uint64(b_bits + ((exponent - np.uint64(1023)) << np.uint64(52))).view(np.float64)
    # log2(a / c) = 2 / log 2 * atanh z, to 4e-17
    z = (a - c) / (a + c)
    u = z * z
    v = u * u
    p = (0.9617966939259796 + 0.5770780163458644 * u) + v * (0.4121985869737041 + 0.3205983235131048 * u)
    p += (v * v) * ((0.26234875791992986 + 0.2204902221830985 * u) + v * 0.2181772479941685)
    whole = high * k
    rest = (strength - high) * k + strength * (z * 2.8853900817779268 + z * u * p)
    y = (whole + rest) + 6755399441055744.0
    f = (whole - (y - 6755399441055744.0)) + rest
    # 2**f - 1 = f * e, to 2e-17
    g = f * f
    h = g * g
    e = (0.6931471805599453 + 0.24022650695910098 * f) + g * (0.055504108664821594 + 0.009618129107606871 * f)
    i = (0.0013333558146416926 + 0.00015403530441765086 * f) + g * (1.5252733829851596e-05 + 1.3215442570224649e-06 * f)
    e += h * i
    e += (h * h) * ((1.0178062436412765e-07 + 7.072589488396345e-09 * f) + g * 4.4549624846332123e-10)
    scale = np.uint64((np.float64(y).view(np.uint64) + np.uint64(1023)) << np.uint64(52)).view(np.float64)
    return (e * f) * scale + scale


def _ratio_power_single(a: Any, b: Any, strength: Any) -> Any:
    high = np.uint32(np.float32(strength).view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    a_bits, b_bits = np.float32(a).view(np.uint32), np.float32(b).view(np.uint32)
    exponent = np.uint32(np.uint32(a_bits - b_bits + np.uint32(0x3FC00000)) >> np.uint32(23))
    k = np.uint32(exponent | np.uint32(0x4B000000)).view(np.float32) - np.float32(8388608.0 + 127.0)
    c = np.uint32(b_bits + np.uint32(np.uint32(exponent - np.uint32(127)) << np.uint32(23))).view(np.float32)
    # to 6e-9
    z = (a - c) / (a + c)
    u = z * z
    p = np.float32(0.96179737774248314) + u * (np.float32(0.57677232681637693) + u * np.float32(0.43226736255302973))
    whole = high * k
    rest = (strength - high) * k + strength * (z * np.float32(2.8853900817779268) + z * u * p)
    y = (whole + rest) + np.float32(12582912.0)
    f = (whole - (y - np.float32(12582912.0))) + rest
    # to 8e-9
    g = f * f
    e = np.float32(0.69314718803071341) + np.float32(0.24022650760606957) * f
    e += g * (np.float32(0.0555035709268903) + np.float32(0.0096180825386369608) * f)
    e += (g * g) * (np.float32(0.0013390874847810528) + np.float32(0.00015453172887040159) * f)
    scale = np.uint32(np.uint32(np.float32(y).view(np.uint32) + np.uint32(127)) << np.uint32(23)).view(np.float32)
    return (e * f) * scale + scale


def _binary_rows(
    full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
) -> bool:
    # in the arrays' own precision: one double among singles would make doubles of all
    kind = prior.dtype.type
    one, zero, least, most_off = kind(1), kind(0), kind(floor), kind(slack)
    p0, p1 = prior[0, 0], prior[0, 1]
    # flat, so that the compiler knows the distance of two rows
    f, q, r = full.reshape(-1), principal.reshape(-1), out.reshape(-1)
    odd = np.int32(0)
    for i in range(len(full)):
        f0, f1, q0, q1 = f[2 * i], f[2 * i + 1], q[2 * i], q[2 * i + 1]
        # prior * full / principal with both sides times q0 * q1: one division a row
        a0 = p0 * f0 * q1
        a1 = p1 * f1 * q0
        off = abs(f0 + f1 - one) + abs(q0 + q1 - one)
        plain = (min(f0, f1) >= zero) & (min(q0, q1) >= least) & (off <= most_off)
        odd = np.int32(odd | np.int32(0 if plain else 1))
        scale = one / (a0 + a1)
        r[2 * i] = a0 * scale
        r[2 * i + 1] = a1 * scale
    return bool(odd == 0)


def _binary_power_rows(
    full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
) -> bool:
    kind = prior.dtype.type
    one, zero, least, most_off, s = kind(1), kind(0), kind(floor), kind(slack), kind(strength)
    p = kind((np.float64(prior[0, 0]) / np.float64(prior[0, 1])) ** strength)
    f, q, r = full.reshape(-1), principal.reshape(-1), out.reshape(-1)
    odd = np.int32(0)
    for i in range(len(full)):
        f0, f1, q0, q1 = f[2 * i], f[2 * i + 1], q[2 * i], q[2 * i + 1]
        # of the odds: one power a row
        a0 = f0 * (p * ratio_power(q1, q0, s))
        off = abs(f0 + f1 - one) + abs(q0 + q1 - one)
        plain = (min(f0, f1) >= zero) & (min(q0, q1) >= least) & (off <= most_off)
        odd = np.int32(odd | np.int32(0 if plain else 1))
        scale = one / (a0 + f1)
        r[2 * i] = a0 * scale
        r[2 * i + 1] = f1 * scale
    return bool(odd == 0)


def _rows_of(n_classes: int, power: bool, shared: bool) -> Any:
    """The loop for `n_classes`, a constant when it is compiled, so that the compiler unrolls a row."""
    # as many numbers as whole turns of the loop hold, four vectors of 16 singles where vectors are longest: the
    # remaining ones are computed one by one
    step = 64 // math.gcd(n_classes, 64)
    rows, short = step * max(1, 1024 // (n_classes * step)), n_classes <= 16

    def loop(
        full: Floats, principal: Floats, prior: Floats, strength: float, floor: float, slack: float, out: Floats
    ) -> bool:
        kind = prior.dtype.type
        one, zero, least, most_off, s = kind(1), kind(0), kind(floor), kind(slack), kind(strength)
        odd = np.int32(0)
        flat_full, flat_principal, flat_out = full.reshape(-1), principal.reshape(-1), out.reshape(-1)
        flat_prior, size = prior.reshape(-1), rows * n_classes
        laid_out, r = np.empty(size, prior.dtype), np.empty(size, prior.dtype)
        for j in range(size if shared else 0):
            laid_out[j] = np.float64(flat_prior[j % n_classes]) ** strength
        for start in range(0, len(flat_full), size):
            # a few rows at a time stay in the nearest cache: divided all at once, then summed row by row; in an array
            # of their own, since numbers just written to `out` take longer to read
            stop = min(start + size, len(flat_full))
            f, q, result = flat_full[start:stop], flat_principal[start:stop], flat_out[start:stop]
            p = laid_out if shared else flat_prior[start:stop]
            for j in range(len(f)):
                odd = np.int32(odd | np.int32(0 if (f[j] >= zero) & (q[j] >= least) else 1))
                if not power:
                    r[j] = p[j] * f[j] / q[j]
                elif shared:
                    r[j] = f[j] * (p[j] * ratio_power(one, q[j], s))
                else:
                    r[j] = f[j] * ratio_power(p[j], q[j], s)
            for i in range(len(f) // n_classes):
                at = slice(i * n_classes, (i + 1) * n_classes)
                f_row, q_row, r_row, result_row = f[at], q[at], r[at], result[at]
                if short:
                    total, full_total = _sum_of_halves(r_row, n_classes), _sum_of_halves(f_row, n_classes)
                    principal_total = _sum_of_halves(q_row, n_classes)
                else:
                    total, full_total, principal_total = _sums(r_row, f_row, q_row, n_classes)
                # the deviations are added, since NaN gets past min() and max()
                off = abs(full_total - one) + abs(principal_total - one)
                odd = np.int32(odd | np.int32(0 if (off <= most_off) & (total > zero) else 1))
                scale = one / total
                for k in range(n_classes):
                    result_row[k] = r_row[k] * scale
        return bool(odd == 0)

    return loop


# a sum waits for the one before it: two at once take half as long
@numba.njit(error_model="numpy", fastmath={"contract"})  # type: ignore[untyped-decorator]
def _sum_of_halves(a: Floats, length: int) -> Any:
    first, last, half = a.dtype.type(0), a.dtype.type(0), length // 2
    for k in range(half):
        first += a[k]
        last += a[half + k]
    for k in range(2 * half, length):
        last += a[k]
    return first + last


# in any order: several at once, and more exact
@numba.njit(error_model="numpy", fastmath={"contract", "reassoc"})  # type: ignore[untyped-decorator]
def _sums(a: Floats, b: Floats, c: Floats, length: int) -> Any:
    zero = a.dtype.type(0)
    a_total, b_total, c_total = zero, zero, zero
    for k in range(length):
        a_total += a[k]
        b_total += b[k]
        c_total += c[k]
    return a_total, b_total, c_total
