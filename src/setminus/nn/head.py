r"""``full \ principal`` as a torch module, so that gradients flow through it and it exports as one network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from setminus.core.checks import check_prior, check_strength
from setminus.core.orthogonalize import log_setminus
from setminus.errors import UserError

__all__ = ["OrthogonalHead"]


class OrthogonalHead(torch.nn.Module):  # type: ignore[misc]
    r"""What the full network knows of y without what the principal one knows: ``full \ principal``.

    ``log orthogonal = log_softmax(full(x)) - strength * (log_softmax(principal(x)) - log_prior) + const``

    with each row normalised. It is differentiable in `x` whether or not its parts are trained. Finite logits
    give no class a probability of 0, so the two parts always overlap.

    Parameters
    ----------
    full, principal : torch.nn.Module
        Both give logits of shape (n, C) on the same input, over the same classes in the same order. The modules
        themselves are kept, not copies. A principal network that looks at a part of `x` picks that part itself.
    prior : array-like of shape (C,) or "uniform"
        p(y): the class frequency of the data that the *principal* network was trained on. It is required, because
        leaving it out silently is the same as "uniform", and wrong unless classes are balanced.
    strength : float or torch.nn.Parameter, default=1.0
        0 keeps the full network, 1 is the paper's formula, more than 1 removes more. Pass a parameter of shape () to
        learn it.
    freeze : bool, default=True
        Take the weights of both parts out of training (`requires_grad` becomes False in the modules that were
        passed) and hold both in evaluation mode, also after `train()`. False leaves them as they are.

    Attributes
    ----------
    log_prior : Tensor of shape (C,), or (1,) for "uniform"
        A buffer, in the dtype and on the device of the first parameter of the parts. The uniform prior
        cancels and is stored as a single 0.
    strength : Tensor of shape ()
        A buffer, or the parameter that was passed.

    Notes
    -----
    Half-precision logits are normalised in float32, in which the answer stays: a difference of two logs has too few
    digits left otherwise.

    Examples
    --------
    >>> import torch
    >>> full, principal = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    >>> head = OrthogonalHead(full, principal, prior=[0.2, 0.3, 0.5])
    >>> x = torch.zeros(4, 2, requires_grad=True)
    >>> head(x).shape
    torch.Size([4, 3])
    >>> head.proba(x).sum(-1).allclose(torch.ones(4))
    True
    """

    log_prior: torch.Tensor
    strength: torch.Tensor

    def __init__(
        self,
        full: torch.nn.Module,
        principal: torch.nn.Module,
        prior: Any,
        strength: float | torch.nn.Parameter = 1.0,
        *,
        freeze: bool = True,
    ) -> None:
        super().__init__()
        self.full = full
        self.principal = principal
        self.freeze = freeze
        like = next(self.parameters(), torch.empty(0))
        placed = {"dtype": torch.promote_types(like.dtype, torch.float32), "device": like.device}
        self.register_buffer("log_prior", _log_prior(prior).to(**placed))
        if isinstance(strength, torch.nn.Parameter):
            self.strength = strength
        else:
            check_strength(strength)
            self.register_buffer("strength", torch.tensor(float(strength), **placed))
        if freeze:
            full.requires_grad_(False)
            principal.requires_grad_(False)
        self.train(self.training)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalised log-probabilities of shape (n, C)."""
        full_logits, principal_logits = self.full(x), self.principal(x)
        _check_logits(full_logits, principal_logits, self.log_prior)
        return log_setminus(_log_softmax(full_logits), _log_softmax(principal_logits), self.log_prior, self.strength)

    def proba(self, x: torch.Tensor) -> torch.Tensor:
        """Probabilities of shape (n, C)."""
        return self.forward(x).exp()

    def train(self, mode: bool = True) -> OrthogonalHead:
        """Set the mode of the head; frozen parts stay in evaluation mode."""
        super().train(mode)
        if self.freeze:
            self.full.eval()
            self.principal.eval()
        return self


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


def _log_prior(prior: Any) -> torch.Tensor:
    if isinstance(prior, str):
        if prior != "uniform":
            raise UserError(f"prior is {prior!r}", expected="class frequencies p(y), or 'uniform'")
        return torch.zeros(1)
    if prior is None:
        raise UserError("prior is None", do="pass the class frequencies p(y) of the principal's data, or 'uniform'.")
    # in float64 until the log is taken, and on the CPU, since some devices know no float64
    values = prior.detach().cpu().double() if isinstance(prior, torch.Tensor) else np.asarray(prior, dtype=np.float64)
    frequencies = torch.as_tensor(values)
    if frequencies.ndim != 1 or len(frequencies) < 2:
        raise UserError(
            f"prior has shape {tuple(frequencies.shape)}", expected="(C,), one frequency for each of 2 or more classes"
        )
    check_prior(frequencies, torch)
    return frequencies.log()


def _check_logits(full_logits: torch.Tensor, principal_logits: torch.Tensor, log_prior: torch.Tensor) -> None:
    for name, logits in (("full", full_logits), ("principal", principal_logits)):
        if logits.ndim != 2 or logits.shape[1] < 2:
            raise UserError(
                f"{name} gives logits of shape {tuple(logits.shape)}",
                do="expected (n, C), one logit for each of 2 or "
                "more classes. For a single logit of P(y=1), give two columns: "
                "torch.cat([torch.zeros_like(logit), logit], dim=1) for a logit of shape (n, 1).",
            )
    if full_logits.shape != principal_logits.shape:
        raise UserError(
            f"principal gives logits of shape {tuple(principal_logits.shape)}, full of {tuple(full_logits.shape)}",
            do="both need one logit per row and class, in the same order of classes.",
        )
    if log_prior.shape[0] not in (1, full_logits.shape[1]):
        raise UserError(
            f"prior has {log_prior.shape[0]} classes, full and principal have {full_logits.shape[1]}",
            do="pass the frequency of each class that they predict.",
        )
