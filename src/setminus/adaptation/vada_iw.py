"""VADA with importance weights (after Combes et al. 2020): the source's rows stand for the target's classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.estimating_vada import EstimatingVada
from setminus.adaptation.target_prior import LabelShift
from setminus.adaptation.vada import Domains, VadaNetworks
from setminus.nn.losses import domain_discriminator_loss, domain_encoder_loss

__all__ = ["VadaIw"]

LEAST = 1e-12
"""The least weight of a class in the cross entropy, a weighted mean: a batch may have only classes with an estimate of
0, whose mean would be 0 / 0. Beside any other class it is nothing."""


class VadaIw(EstimatingVada):
    """VADA where a source row of class k weighs ``w[k] = target prior / source prior``, in every loss but VAT.

    Both players see the weighted source: its features then have the classes of the target, and may be aligned.

    Parameters
    ----------
    networks, data, config, seed, watch
        See `AdaptationTask`.
    label_shift : LabelShift, optional
        By default as in the paper: black-box shift estimation after each epoch, with a momentum of 0.5.
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        label_shift: LabelShift | None = None,
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        label_shift = label_shift or LabelShift("bbse", every_epoch=True, momentum=0.5)
        super().__init__(networks, data, config, seed, label_shift=label_shift, watch=watch)

    def class_weights(self, step: int) -> torch.Tensor | None:
        """``w``; before the first estimate, the weights of the other methods."""
        return super().class_weights(step) if step < self.config.warmup else self._weights().clamp(min=LEAST)

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """``-mean(w log(1 - D(source))) - mean(log D(target))``."""
        self.prior.observe(domains.target_class_logits)
        return domain_encoder_loss(domains.source_logits, domains.target_logits, self._row_weights(domains))

    def discriminator_term(self, domains: Domains) -> torch.Tensor:
        """``-mean(w log D(source)) - mean(log(1 - D(target)))``."""
        return domain_discriminator_loss(domains.source_logits, domains.target_logits, self._row_weights(domains))

    def _row_weights(self, domains: Domains) -> torch.Tensor:
        return self._weights()[domains.source_labels]

    def _weights(self) -> torch.Tensor:
        # over the classes that the batches have
        balanced = self.config.balanced == "batches"
        shares = torch.full_like(self.prior.source, 1 / self.data.n_classes) if balanced else self.prior.source
        return (self.prior.target / shares).float()
