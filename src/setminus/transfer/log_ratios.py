r"""What the orthogonal GAN loss needs of an image: the log of r = P(z2) / Q(z2), A's density of z2 over B's.

It comes from ``full \ principal``, or from an estimate of p(y|z2) itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from setminus.nn.losses import log_density_ratio
from setminus.nn.passes import in_float32

__all__ = ["CLAMP", "OrthogonalRatio", "PairRatio"]

CLAMP = (1 / 9, 9.0)
"""Bounds on r that let the ratio of the paper's colored digits through, p(z2|A) / p(z2|B) = 0.9 / 0.1, and no more."""


class _Ratio(nn.Module):  # type: ignore[misc]
    """Classifiers that are read and never trained: their weights take no gradient, their modes stay evaluation."""

    def __init__(self, clamp: tuple[float, float] | None) -> None:
        super().__init__()
        self.clamp = clamp

    def train(self, mode: bool = True) -> _Ratio:
        """Stay in evaluation mode: batch statistics of generated images would be theirs, not the domains'."""
        return super().train(False)  # type: ignore[no-any-return]

    def _frozen(self) -> None:
        self.requires_grad_(False)
        self.train()


class PairRatio(_Ratio):
    r"""The log ratio by ``full \ principal``: the density ratio of x over that of z1.

    Parameters
    ----------
    full, principal : Module
        From images to logits of shape (n, 2): domain A, domain B. Both are frozen.
    full_prior, principal_prior : two numbers (A, B) or "uniform"
        The domains' shares in the data that each was trained on.
    clamp : (low, high), optional
        Bounds on r; None lets everything through.

    Examples
    --------
    >>> full = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> PairRatio(full, full)(torch.rand(5, 3, 2, 2))
    tensor([0., 0., 0., 0., 0.])
    """

    def __init__(
        self,
        full: nn.Module,
        principal: nn.Module,
        *,
        full_prior: Any = "uniform",
        principal_prior: Any = "uniform",
        clamp: tuple[float, float] | None = CLAMP,
    ) -> None:
        super().__init__(clamp)
        self.full = full
        self.principal = principal
        self.full_prior = full_prior
        self.principal_prior = principal_prior
        self._frozen()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Log ratios of shape (n,)."""
        return log_density_ratio(
            _log_proba(self.full(images)),
            _log_proba(self.principal(images)),
            self.full_prior,
            self.principal_prior,
            clamp=self.clamp,
        )


class OrthogonalRatio(_Ratio):
    """The log ratio by a classifier that predicts the domain from z2 alone.

    Parameters
    ----------
    orthogonal : Module
        From images to logits of shape (n, 2), such as the one that importance sampling trains. It is frozen.
    prior : two numbers (A, B) or "uniform"
        The domains' shares in the data that it was trained on.
    clamp : (low, high), optional

    Examples
    --------
    >>> constant = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> _ = nn.init.zeros_(constant[1].weight), constant[1].bias.data.copy_(torch.tensor([0.75, 0.25]).log())
    >>> OrthogonalRatio(constant)(torch.rand(2, 3, 2, 2)).exp()
    tensor([3., 3.])
    """

    def __init__(
        self, orthogonal: nn.Module, *, prior: Any = "uniform", clamp: tuple[float, float] | None = CLAMP
    ) -> None:
        super().__init__(clamp)
        self.orthogonal = orthogonal
        self.prior = prior
        self._frozen()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Log ratios of shape (n,)."""
        log_orthogonal = _log_proba(self.orthogonal(images))
        # nothing is known of z1 alone: a principal classifier that always says 1/2 takes nothing away
        log_half = torch.full_like(log_orthogonal, 0.5).log()
        return log_density_ratio(log_orthogonal, log_half, self.prior, "uniform", clamp=self.clamp)


def _log_proba(logits: torch.Tensor) -> torch.Tensor:
    return in_float32(logits).log_softmax(-1)
