"""How dependent two samples are: the Hilbert-Schmidt independence criterion."""

from __future__ import annotations

import torch

from setminus.errors import UserError

__all__ = ["hsic"]


def hsic(
    x: torch.Tensor, y: torch.Tensor, *, bandwidth_x: float | None = None, bandwidth_y: float | None = None
) -> torch.Tensor:
    """How dependent two paired samples of 4 or more rows are: the unbiased estimate of HSIC by Song et al. (2012).

    ``(trace(K_x K_y) + sum(K_x) sum(K_y) / ((n - 1)(n - 2)) - 2 sum(K_x K_y) / (n - 2)) / (n (n - 3))``

    where ``K_x[i, j] = exp(-|x_i - x_j|^2 / (2 bandwidth_x^2))`` off the diagonal and 0 on it, K_y likewise, and the
    sums run over all entries. Its mean is 0 where x and y are independent, hence it is often negative there. A
    bandwidth is by default the median of the distances that are not 0, so that groups, where most distances are 0, have
    one; no gradient passes through it.

    Examples
    --------
    >>> x = torch.arange(6.0)
    >>> hsic(x, x) > hsic(x, torch.tensor([3.0, 0.0, 4.0, 5.0, 1.0, 2.0]))
    tensor(True)
    """
    n = len(x)
    if n < 4 or len(y) != n:
        raise UserError(f"x has {n} rows and y {len(y)}", expected="the same number for both, 4 or more")
    k_x = _gaussian_kernel("bandwidth_x", x, bandwidth_x)
    k_y = _gaussian_kernel("bandwidth_y", y, bandwidth_y)
    trace = (k_x * k_y).sum()
    sum_of_product = (k_x.sum(0) * k_y.sum(0)).sum()
    return (trace + k_x.sum() * k_y.sum() / ((n - 1) * (n - 2)) - 2 * sum_of_product / (n - 2)) / (n * (n - 3))


def _gaussian_kernel(name: str, x: torch.Tensor, bandwidth: float | None) -> torch.Tensor:
    """exp(-distance^2 / (2 bandwidth^2)) of each pair, with the diagonal zeroed."""
    rows = x.reshape(len(x), -1)
    rows = rows if rows.is_floating_point() else rows.to(torch.get_default_dtype())
    # without the matrix product: it cancels for near pairs in float32
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    if bandwidth is None:
        between = distances.detach().where(distances > 0, torch.nan)
        scale = between.nanmedian().nan_to_num(nan=1.0)
    elif bandwidth > 0:
        scale = bandwidth
    else:
        raise UserError(f"{name} is {bandwidth}", expected="a positive number, or None for the median distance")
    kernel = torch.exp(-(distances**2) / (2 * scale**2))
    return kernel - torch.diag(kernel.diagonal())
