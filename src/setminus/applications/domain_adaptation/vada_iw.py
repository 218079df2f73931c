"""VADA with importance weights (after Combes et al. 2020): the source's rows stand for the target's classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import softplus

from setminus.applications.domain_adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.applications.domain_adaptation.target_prior import LabelShift, TargetPrior
from setminus.applications.domain_adaptation.vada import Domains, VadaNetworks
from setminus.applications.domain_adaptation.vada_task import Vada
from setminus.nn.task import Loop

__all__ = ["VadaIw"]


class VadaIw(Vada):
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
        super().__init__(networks, data, config, seed, watch=watch)
        label_shift = label_shift or LabelShift("bbse", every_epoch=True, momentum=0.5)
        self.prior = TargetPrior(
            data, label_shift, start=config.warmup, epoch=config.estimate_every or len(self.target_batches)
        )
        self.modules["prior"] = self.prior

    @property
    def target_prior(self) -> NDArray[np.float64]:
        """The current estimate of the target's class frequencies."""
        prior: NDArray[np.float64] = self.prior.target.cpu().numpy().copy()
        return prior

    def step(self, loop: Loop) -> None:
        """As VADA, with the weights of this step."""
        self.prior.update(loop.index, *self.predictor, self.data)
        super().step(loop)

    def class_weights(self, step: int) -> torch.Tensor | None:
        """``w``; before the first estimate, the weights of the other methods."""
        return super().class_weights(step) if step < self.config.warmup else self._weights()

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """``-mean(w log(1 - D(source))) - mean(log D(target))``."""
        self.prior.observe(domains.target_class_logits)
        weights = self._weights()[domains.source_labels]
        return (weights * softplus(domains.source_logits)).mean() + softplus(-domains.target_logits).mean()

    def discriminator_term(self, domains: Domains) -> torch.Tensor:
        """``-mean(w log D(source)) - mean(log(1 - D(target)))``."""
        weights = self._weights()[domains.source_labels]
        return (weights * softplus(-domains.source_logits)).mean() + softplus(domains.target_logits).mean()

    def _weights(self) -> torch.Tensor:
        return (self.prior.target / self.prior.source).float()
