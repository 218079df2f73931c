"""What a network should leave alone: consistency losses, entropy, and a measure of dependence."""

from __future__ import annotations

from collections.abc import Callable

import torch

from setminus.errors import UserError

__all__ = ["conditional_entropy", "cycle_loss", "hsic", "identity_loss", "virtual_adversarial_loss"]


def cycle_loss(a: torch.Tensor, a_again: torch.Tensor, b: torch.Tensor, b_again: torch.Tensor) -> torch.Tensor:
    """There and back again: ``mean|b_to_a(a_to_b(a)) - a| + mean|a_to_b(b_to_a(b)) - b|``.

    Parameters
    ----------
    a, b : Tensor
        Images of each domain.
    a_again, b_again : Tensor
        The same images after both generators; of the same shapes.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> cycle_loss(torch.zeros(2), torch.tensor([1.0, -2.0]), torch.zeros(3), torch.zeros(3))
    tensor(1.5000)
    """
    return _mean_distance("a_again", a_again, a) + _mean_distance("b_again", b_again, b)


def identity_loss(a: torch.Tensor, a_from_a: torch.Tensor, b: torch.Tensor, b_from_b: torch.Tensor) -> torch.Tensor:
    """A generator leaves its own domain alone: ``mean|b_to_a(a) - a| + mean|a_to_b(b) - b|``.

    Parameters
    ----------
    a, b : Tensor
        Images of each domain.
    a_from_a, b_from_b : Tensor
        ``b_to_a(a)`` and ``a_to_b(b)``: what each generator makes of an image that is already where it should be.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> identity_loss(torch.zeros(2), torch.zeros(2), torch.zeros(2), torch.tensor([0.0, 4.0]))
    tensor(2.)
    """
    return _mean_distance("a_from_a", a_from_a, a) + _mean_distance("b_from_b", b_from_b, b)


def conditional_entropy(logits: torch.Tensor) -> torch.Tensor:
    """How undecided a classifier is: ``-mean_x sum_y p(y | x) log p(y | x)``, between 0 and log C.

    Parameters
    ----------
    logits : Tensor of shape (..., C)
        Finite logits, or log-probabilities, which `log_softmax` leaves as they are.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> conditional_entropy(torch.zeros(5, 4)).exp()
    tensor(4.)
    """
    log_proba = logits.log_softmax(-1)
    return -(log_proba.exp() * log_proba).sum(-1).mean()


def virtual_adversarial_loss(
    classifier: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    *,
    radius: float = 3.5,
    xi: float = 1e-6,
    power_steps: int = 1,
    clean_logits: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """How far a classifier's answer moves under the small step that moves it most (VAT, Miyato et al. 2018).

    ``mean KL(p(y | x) || p(y | x + radius * d))``, with p(y | x) held constant and d the unit vector, for each row,
    that maximises KL to second order. It is found from a random one by power iteration,
    ``d = unit(gradient of KL(p(y | x) || p(y | x + xi * d)) in d)``.

    Parameters
    ----------
    classifier : callable
        From inputs like `x` to logits of shape (n, C). It is called ``1 + power_steps`` times, and once more without
        `clean_logits`; only the last call passes gradients to its weights. Batch statistics are the caller's
        business: a network in training mode updates its running averages in each of these calls.
    x : Tensor of shape (n, ...)
        Taken as constant: no gradient passes to it.
    radius : float, default=3.5
        Length of the step, in the Euclidean norm of a row.
    xi : float, default=1e-6
        Length of the step of the finite difference. The default is the paper's. For float32 images it is close to
        rounding: the direction found still moves the answer much, but 1e-3 finds the one of the equation.
    power_steps : int, default=1
    clean_logits : Tensor of shape (n, C), optional
        ``classifier(x)`` where it is there already.
    generator : torch.Generator, optional
        Where the first directions come from, on the device of `x`; torch's global one by default.

    Returns
    -------
    Tensor of shape ()

    Notes
    -----
    With dropout or noise in the classifier its answers differ between calls, and the direction is the one that leads
    further away from the clean answer rather than the one of largest curvature.

    Examples
    --------
    >>> x = torch.randn(6, 2)
    >>> virtual_adversarial_loss(lambda x: 0 * x, x)
    tensor(0.)
    >>> virtual_adversarial_loss(lambda x: 2 * x, x) > 0
    tensor(True)
    """
    if not (radius > 0 and xi > 0 and power_steps >= 1):
        raise UserError(
            f"radius is {radius}, xi is {xi}, power_steps is {power_steps}",
            expected="positive lengths and 1 or more steps",
        )
    x = x.detach()
    if clean_logits is None:
        with torch.no_grad():
            clean_logits = classifier(x)
    log_clean = clean_logits.detach().log_softmax(-1)
    direction = _unit(torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator))
    for _ in range(power_steps):
        # the direction needs a gradient even where the loss is only read, under no_grad
        with torch.enable_grad():
            direction.requires_grad_()
            divergence = _kl(log_clean, classifier(x + xi * direction)).sum()
            (slope,) = torch.autograd.grad(divergence, direction)
        direction = _unit(slope)
    return _kl(log_clean, classifier(x + radius * direction)).mean()


def hsic(
    x: torch.Tensor, y: torch.Tensor, *, bandwidth_x: float | None = None, bandwidth_y: float | None = None
) -> torch.Tensor:
    """How dependent two paired samples are: the unbiased estimate of HSIC by Song et al. (2012).

    ``(trace(K_x K_y) + sum(K_x) sum(K_y) / ((n - 1)(n - 2)) - 2 sum(K_x K_y) / (n - 2)) / (n (n - 3))``

    where ``K_x[i, j] = exp(-|x_i - x_j|^2 / (2 bandwidth_x^2))`` off the diagonal and 0 on it, K_y likewise, and the
    sums run over all entries. Its mean is 0 where x and y are independent, hence it is often negative there.

    Parameters
    ----------
    x, y : Tensor of shape (n, ...)
        One row per pair, 4 or more of them; what is in a row is flattened.
    bandwidth_x, bandwidth_y : float, optional
        By default the median of the distances that are not 0, as a constant: no gradient passes through it. Ties are
        left out so that groups, where most distances are 0, have a bandwidth.

    Returns
    -------
    Tensor of shape ()

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


def _mean_distance(name: str, made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    if made.shape != wanted.shape:
        raise UserError(
            f"{name} has shape {tuple(made.shape)}, its original {tuple(wanted.shape)}",
            do="pass the images that were made from these, in the same order.",
        )
    return (made - wanted).abs().mean()


def _kl(log_p: torch.Tensor, q_logits: torch.Tensor) -> torch.Tensor:
    return (log_p.exp() * (log_p - q_logits.log_softmax(-1))).sum(-1)


def _unit(rows: torch.Tensor) -> torch.Tensor:
    """Each row at length 1; rows of zeros, where no direction is steeper than another, stay zeros."""
    flat = rows.detach().flatten(1)
    # by the largest entry first: the squares of small slopes underflow
    flat = flat / flat.abs().amax(1, keepdim=True).clamp_min(torch.finfo(flat.dtype).tiny)
    length = flat.norm(dim=1, keepdim=True)
    return (flat / length.clamp_min(1)).reshape(rows.shape)


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
