r"""VADA with the orthogonal discriminator, ``w_x \ w_1``: domains without what the class says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch.nn.functional import one_hot

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.estimating_vada import EstimatingVada
from setminus.adaptation.target_prior import LabelShift
from setminus.adaptation.vada import (
    Domains,
    VadaNetworks,
    plain_discriminator_term,
    plain_domain_term,
)
from setminus.errors import UserError
from setminus.nn.losses import domain_discriminator_loss, domain_encoder_loss

__all__ = ["VadaOrthogonal", "principal_log_odds"]

LEAST = 1e-3
"""The least class frequency that enters a ratio: an estimate of 0 says that it is rare, not that it is impossible."""


class VadaOrthogonal(EstimatingVada):
    r"""VADA whose encoder plays against ``w_x \ w_1``; here y is the domain, and z1 is the class.

    What the discriminator can tell of the domain by the class alone is taken out before the encoder answers to it:
    then features of a class are aligned with features of that class.

    Parameters
    ----------
    networks, data, config, seed, watch
        See `AdaptationTask`.
    label_shift : LabelShift, optional
        By default maximum likelihood on calibrated probabilities, once, before the domains are aligned. The paper
        has ``LabelShift("pseudo_hard")``, its public code ``LabelShift("pseudo_soft")``.
    target_classes : {"soft", "hard"}, default="soft"
        The class of a target row: the mean of the principal classifier over its probabilities, as in the paper's
        public code, or its most probable class, as in the paper.
    discriminator : {"full", "orthogonal"}, default="full"
        What the discriminating network learns. "full" is the paper's: the network learns w_x, and the encoder gets
        ``logits - log odds of w_1``. With "orthogonal" it learns the orthogonal part itself, by its domain loss on
        ``logits + log odds of w_1``, and the encoder gets its logits. Both have the same value where the network is at
        its best, not the same gradient: the log odds of w_1 are constants of a row. In the first form a network that
        knows the classes still has a slope between them where all classes are aligned, and keeps pushing the source
        one way and the target the other; in the second it is flat there.
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        label_shift: LabelShift | None = None,
        target_classes: Literal["soft", "hard"] = "soft",
        discriminator: Literal["full", "orthogonal"] = "full",
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(networks, data, config, seed, label_shift=label_shift or LabelShift("em"), watch=watch)
        if target_classes not in ("soft", "hard"):
            raise UserError(f"target_classes is {target_classes!r}", expected="'soft' or 'hard'")
        if discriminator not in ("full", "orthogonal"):
            raise UserError(f"discriminator is {discriminator!r}", expected="'full' or 'orthogonal'")
        self.target_classes = target_classes
        self.discriminator = discriminator

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """The swapped domain loss of the orthogonal discriminator."""
        self.prior.observe(domains.target_class_logits)
        if self.discriminator == "orthogonal":
            return plain_domain_term(domains)
        source, target = self._log_odds(domains)
        return domain_encoder_loss(
            domains.source_logits - source, domains.target_logits - target, domains.source_weights
        )

    def discriminator_term(self, domains: Domains) -> torch.Tensor:
        """The domain loss of the full discriminator."""
        if self.discriminator == "full":
            return plain_discriminator_term(domains)
        source, target = self._log_odds(domains)
        return domain_discriminator_loss(
            domains.source_logits + source, domains.target_logits + target, domains.source_weights
        )

    def _log_odds(self, domains: Domains) -> tuple[torch.Tensor, torch.Tensor]:
        proba = domains.target_class_logits.softmax(1)
        if self.target_classes == "hard":
            proba = one_hot(proba.argmax(1), proba.shape[1]).to(proba)
        known = one_hot(domains.source_labels, proba.shape[1]).to(proba)
        priors = self.prior.source.to(proba), self.prior.target.to(proba)
        return principal_log_odds(known, *priors), principal_log_odds(proba, *priors)


def principal_log_odds(proba: torch.Tensor, source_prior: torch.Tensor, target_prior: torch.Tensor) -> torch.Tensor:
    """The log odds of source of the principal classifier ``w_1 = sum_k proba[k] p(source | class k)``.

    ``p(source | class k) = source_prior[k] / (source_prior[k] + target_prior[k])``

    Parameters
    ----------
    proba : Tensor of shape (n, C)
        The class of each row; one-hot where it is known.
    source_prior, target_prior : Tensor of shape (C,)
        Frequencies below 1e-3 count as 1e-3.

    Returns
    -------
    Tensor of shape (n,)

    Examples
    --------
    >>> principal_log_odds(torch.eye(2), torch.tensor([0.75, 0.25]), torch.tensor([0.25, 0.75])).exp()
    tensor([3.0000, 0.3333])
    """
    source, target = source_prior.clamp(min=LEAST), target_prior.clamp(min=LEAST)
    of_source = proba.to(source.dtype) @ (source / (source + target))
    return of_source.logit()
