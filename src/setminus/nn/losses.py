"""Losses: GAN, the paper's orthogonal GAN, domain adversarial training, consistency, entropy and smoothness.

A discriminator D gives logits, that is, log D / (1 - D); ``softplus(-logits) = -log D`` and
``softplus(logits) = -log(1 - D)`` never overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import softplus

from setminus.errors import UserError

__all__ = [
    "conditional_entropy",
    "cycle_loss",
    "domain_discriminator_loss",
    "domain_encoder_loss",
    "gan_discriminator_loss",
    "gan_generator_loss",
    "identity_loss",
    "log_density_ratio",
    "orthogonal_generator_loss",
    "orthogonal_logits",
    "unit_rows",
    "virtual_adversarial_divergence",
    "virtual_adversarial_loss",
]

Direction = Literal["a_to_b", "b_to_a"]


def gan_discriminator_loss(real_logits: torch.Tensor, fake_logits: torch.Tensor) -> torch.Tensor:
    """The discriminator's side of the sigmoid GAN: ``-mean(log D(real)) - mean(log(1 - D(fake)))``.

    Parameters
    ----------
    real_logits, fake_logits : Tensor of any shape
        The discriminator on real images, and on generated ones that were detached from their generator.

    Examples
    --------
    >>> gan_discriminator_loss(torch.zeros(4), torch.zeros(6)) / math.log(2)
    tensor(2.)
    """
    return softplus(-real_logits).mean() + softplus(fake_logits).mean()


def gan_generator_loss(fake_logits: torch.Tensor) -> torch.Tensor:
    """The generator's side, in the non-saturating form: ``-mean(log D(fake))``.

    Its gradient does not vanish where the discriminator recognises the fakes, unlike that of
    ``mean(log(1 - D(fake)))``; both fall as D(fake) rises.

    Parameters
    ----------
    fake_logits : Tensor of any shape
        The discriminator on generated images.

    Examples
    --------
    >>> gan_generator_loss(torch.zeros(6)) / math.log(2)
    tensor(1.)
    """
    return softplus(-fake_logits).mean()


def log_density_ratio(
    log_full: torch.Tensor,
    log_principal: torch.Tensor,
    full_prior: Any,
    principal_prior: Any,
    *,
    clamp: tuple[float, float] | None = None,
) -> torch.Tensor:
    """The log of r = P(z2) / Q(z2), from two classifiers of the domain: 0 is A, with density P, 1 is B, with Q.

    ``log r = (log full_0 - log full_1 - log odds of full_prior)
    - (log principal_0 - log principal_1 - log odds of principal_prior)``

    By Bayes' rule a classifier's log odds are the log density ratio of what it sees plus the log odds of the domains
    that it was trained with. Once both are freed of the latter, the first is the ratio of x = (z1, z2), the second
    that of z1, and their difference that of z2, where z1 and z2 are independent in each domain.

    Parameters
    ----------
    log_full, log_principal : Tensor of shape (n, 2)
        Log-probabilities of the two domains.
    full_prior, principal_prior : two numbers (A, B) or "uniform"
        The share of each domain in the data that each classifier was trained on; "uniform" is half and half.
    clamp : (low, high), optional
        Hold r within these bounds; the paper's public code used (0.1, 9). No gradient passes outside of them.

    Returns
    -------
    Tensor of shape (n,)

    Examples
    --------
    >>> log_full, log_principal = torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.75, 0.25]]).log()
    >>> log_density_ratio(log_full, log_principal, "uniform", "uniform").exp()
    tensor([3.])
    >>> log_density_ratio(log_full, log_principal, "uniform", "uniform", clamp=(0.1, 2)).exp()
    tensor([2.])
    """
    if log_full.ndim != 2 or log_full.shape[1] != 2 or log_principal.shape != log_full.shape:
        raise UserError(
            f"log_full has shape {tuple(log_full.shape)} and log_principal {tuple(log_principal.shape)}",
            expected="(n, 2) for both, the log-probabilities of domain A and domain B",
        )
    log_ratio_x = log_full[:, 0] - log_full[:, 1] - _log_odds("full_prior", full_prior)
    log_ratio_z1 = log_principal[:, 0] - log_principal[:, 1] - _log_odds("principal_prior", principal_prior)
    log_ratio_z2 = log_ratio_x - log_ratio_z1
    if clamp is None:
        return log_ratio_z2
    low, high = clamp
    if not 0 < low <= high:
        raise UserError(f"clamp is ({low}, {high})", expected="bounds on r itself with 0 < low <= high, or None")
    return log_ratio_z2.clamp(math.log(low), math.log(high))


def orthogonal_logits(logits: torch.Tensor, log_ratio: torch.Tensor, direction: Direction) -> torch.Tensor:
    """The discriminator without z2: ``logit phi = logit D + log r`` from A to B, ``logit D - log r`` from B to A.

    The optimal D between real B and generated B also uses z2, since generated images keep the z2 of
    domain A: its logit holds log Q(z2) / P(z2) = -log r, which this takes out. This is the paper's
    ``phi(D, r) = D r / (1 - D + D r)``.

    Parameters
    ----------
    logits : Tensor of shape (n, ...)
        The discriminator on generated images: one logit per image, or one per patch.
    log_ratio : Tensor of shape (n,)
        `log_density_ratio` of the same generated images; a patch uses the ratio of its image.
    direction : {"a_to_b", "b_to_a"}
        What the generator does.

    Returns
    -------
    Tensor of the shape of `logits`

    Examples
    --------
    >>> logits, log_ratio = torch.tensor([[0.5], [1.0]]), torch.tensor([0.25, -2.0])
    >>> orthogonal_logits(logits, log_ratio, "a_to_b")
    tensor([[ 0.7500], [-1.0000]])
    """
    if direction not in ("a_to_b", "b_to_a"):
        raise UserError(f"direction is {direction!r}", expected="'a_to_b' or 'b_to_a'")
    if log_ratio.ndim != 1 or log_ratio.shape != logits.shape[:1]:
        raise UserError(
            f"log_ratio has shape {tuple(log_ratio.shape)}, logits have {tuple(logits.shape)}",
            expected="one ratio per image, (n,) next to (n, ...)",
        )
    per_image = log_ratio.reshape(-1, *(1,) * (logits.ndim - 1))
    return logits + per_image if direction == "a_to_b" else logits - per_image


def orthogonal_generator_loss(fake_logits: torch.Tensor, log_ratio: torch.Tensor, direction: Direction) -> torch.Tensor:
    """The paper's orthogonal GAN loss, in the non-saturating form: ``-mean(log phi(D(fake), r(fake)))``.

    The generator alone plays against phi; its discriminator is trained with the plain `gan_discriminator_loss`.
    Where the principal classifier is the full one, r = 1 and this is `gan_generator_loss`.

    Parameters
    ----------
    fake_logits, log_ratio, direction
        See `orthogonal_logits`.

    Examples
    --------
    >>> fake_logits = torch.tensor([0.3, -0.4])
    >>> orthogonal_generator_loss(fake_logits, torch.zeros(2), "a_to_b") == gan_generator_loss(fake_logits)
    tensor(True)
    """
    return gan_generator_loss(orthogonal_logits(fake_logits, log_ratio, direction))


def domain_discriminator_loss(
    source_logits: torch.Tensor, target_logits: torch.Tensor, source_weights: torch.Tensor | None = None
) -> torch.Tensor:
    """The domain discriminator's side: ``-mean(log D(source)) - mean(log(1 - D(target)))``, D = p(source).

    Parameters
    ----------
    source_logits, target_logits : Tensor of any shape
        The discriminator on features of each domain, detached from their encoder.
    source_weights : Tensor of the shape of `source_logits`, optional
        Of mean 1 over the rows that a batch is drawn from: ``-mean(weights * log D(source))``.

    Examples
    --------
    >>> domain_discriminator_loss(torch.full((4,), -100.0), torch.full((4,), 100.0))
    tensor(200.)
    """
    return _weighted(softplus(-source_logits), source_weights) + softplus(target_logits).mean()


def domain_encoder_loss(
    source_logits: torch.Tensor, target_logits: torch.Tensor, source_weights: torch.Tensor | None = None
) -> torch.Tensor:
    """The encoder's side, with the domains swapped: ``-mean(log(1 - D(source))) - mean(log D(target))``.

    As in `gan_generator_loss`, swapping the labels instead of the sign keeps the gradient where D is sure. For the
    orthogonal discriminator pass its log odds, ``log orthogonal_source - log orthogonal_target``, as logits.

    Parameters
    ----------
    source_logits, target_logits : Tensor of any shape
        The discriminator on features of each domain.
    source_weights : Tensor of the shape of `source_logits`, optional
        As in `domain_discriminator_loss`.

    Examples
    --------
    >>> domain_encoder_loss(torch.full((4,), 100.0), torch.full((4,), -100.0))
    tensor(200.)
    """
    return _weighted(softplus(source_logits), source_weights) + softplus(-target_logits).mean()


def _weighted(losses: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    return losses.mean() if weights is None else (weights * losses).mean()


def _log_odds(name: str, prior: Any) -> float:
    if isinstance(prior, str) and prior == "uniform":
        return 0.0
    frequencies = np.asarray(prior, dtype=np.float64) if not isinstance(prior, str) else np.empty(0)
    # `not (... and ...)` also catches NaN
    if frequencies.shape != (2,) or not (frequencies.min() > 0 and abs(frequencies.sum() - 1) < 1e-4):
        raise UserError(
            f"{name} is {prior!r}",
            expected="the shares of domain A and domain B in the data that the classifier was "
            "trained on, two positive numbers that sum to 1, or 'uniform'",
        )
    return math.log(frequencies[0]) - math.log(frequencies[1])


def cycle_loss(a: torch.Tensor, a_again: torch.Tensor, b: torch.Tensor, b_again: torch.Tensor) -> torch.Tensor:
    """Cycle consistency: ``mean|b_to_a(a_to_b(a)) - a| + mean|a_to_b(b_to_a(b)) - b|``.

    Parameters
    ----------
    a, b : Tensor
        Images of each domain.
    a_again, b_again : Tensor
        The same images after both generators; of the same shapes.

    Examples
    --------
    >>> cycle_loss(torch.zeros(2), torch.tensor([1.0, -2.0]), torch.zeros(3), torch.zeros(3))
    tensor(1.5000)
    """
    return _mean_distance("a_again", a_again, a) + _mean_distance("b_again", b_again, b)


def identity_loss(a: torch.Tensor, a_from_a: torch.Tensor, b: torch.Tensor, b_from_b: torch.Tensor) -> torch.Tensor:
    """Identity loss of generators on their own target domain: ``mean|b_to_a(a) - a| + mean|a_to_b(b) - b|``.

    Parameters
    ----------
    a, b : Tensor
        Images of each domain.
    a_from_a, b_from_b : Tensor
        ``b_to_a(a)`` and ``a_to_b(b)``: what each generator makes of an image that is already where it should be.

    Examples
    --------
    >>> identity_loss(torch.zeros(2), torch.zeros(2), torch.zeros(2), torch.tensor([0.0, 4.0]))
    tensor(2.)
    """
    return _mean_distance("a_from_a", a_from_a, a) + _mean_distance("b_from_b", b_from_b, b)


def conditional_entropy(logits: torch.Tensor) -> torch.Tensor:
    """Mean entropy of a classifier's predictions: ``-mean_x sum_y p(y | x) log p(y | x)``, between 0 and log C.

    Parameters
    ----------
    logits : Tensor of shape (..., C)
        Finite logits, or log-probabilities, which `log_softmax` leaves as they are.

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
    """The change of a classifier's prediction under the small step that changes it most (VAT, Miyato et al. 2018).

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
        rounding: the direction still changes the prediction much, but 1e-3 finds the one of the equation.
    power_steps : int, default=1
    clean_logits : Tensor of shape (n, C), optional
        ``classifier(x)`` where it is there already.
    generator : torch.Generator, optional
        Where the first directions come from, on the device of `x`; torch's global one by default.

    Notes
    -----
    With dropout or noise in the classifier its predictions differ between calls, and the direction leads further away
    from the clean prediction rather than along the largest curvature.

    Examples
    --------
    >>> x = torch.randn(6, 2)
    >>> virtual_adversarial_loss(lambda x: 0 * x, x)
    tensor(0.)
    >>> virtual_adversarial_loss(lambda x: 2 * x, x) > 0
    tensor(True)
    """
    return virtual_adversarial_divergence(
        classifier, x, radius=radius, xi=xi, power_steps=power_steps, clean_logits=clean_logits, generator=generator
    ).mean()


def virtual_adversarial_divergence(
    classifier: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    *,
    radius: float = 3.5,
    xi: float = 1e-6,
    power_steps: int = 1,
    clean_logits: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """`virtual_adversarial_loss` of each row, so that rows of two domains can share its passes.

    Parameters
    ----------
    classifier, x, radius, xi, power_steps, clean_logits, generator
        See `virtual_adversarial_loss`.

    Returns
    -------
    Tensor of shape (n,)

    Examples
    --------
    >>> virtual_adversarial_divergence(lambda x: 0 * x, torch.randn(3, 2))
    tensor([0., 0., 0.])
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
    direction = unit_rows(torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator))
    for _ in range(power_steps):
        # the direction needs a gradient even where the loss is only read, under no_grad
        with torch.enable_grad():
            direction.requires_grad_()
            divergence = _kl(log_clean, classifier(x + xi * direction)).sum()
            (slope,) = torch.autograd.grad(divergence, direction)
        direction = unit_rows(slope)
    return _kl(log_clean, classifier(x + radius * direction))


def _mean_distance(name: str, made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    if made.shape != wanted.shape:
        raise UserError(
            f"{name} has shape {tuple(made.shape)}, its original {tuple(wanted.shape)}",
            do="pass the images that were made from these, in the same order.",
        )
    return (made - wanted).abs().mean()


def _kl(log_p: torch.Tensor, q_logits: torch.Tensor) -> torch.Tensor:
    return (log_p.exp() * (log_p - q_logits.log_softmax(-1))).sum(-1)


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Each row at length 1; rows of zeros, where no direction is steeper than another, stay zeros.

    Parameters
    ----------
    rows : Tensor of shape (n, ...)

    Examples
    --------
    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    flat = rows.detach().flatten(1)
    # by the largest entry first: the squares of small slopes underflow
    flat = flat / flat.abs().amax(1, keepdim=True).clamp_min(torch.finfo(flat.dtype).tiny)
    length = flat.norm(dim=1, keepdim=True)
    return (flat / length.clamp_min(1)).reshape(rows.shape)
