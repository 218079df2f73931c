"""VADA as a method: a warm-up on the source, then both domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.vada import (
    Domains,
    VadaNetworks,
    plain_discriminator_term,
    plain_domain_term,
    vada_step,
)
from setminus.nn.passes import adam
from setminus.nn.training import Loop

__all__ = ["Vada"]


class Vada(AdaptationTask):
    """Features that look alike in both domains, a classifier that is smooth on both and sure on the target.

    What differs between methods of this family is overridden: the weights of the classes, and the loss of each player
    in the game about domains.

    Parameters
    ----------
    networks, data, config, seed, watch
        See `AdaptationTask`.
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(networks, data, config, seed, watch=watch)
        self.modules["discriminator"] = networks.discriminator
        self.optimizers["discriminator"] = adam(networks.discriminator.parameters(), config.rate)
        # the discriminator learns meanwhile: it is ready when the encoder meets it
        self._warmup_losses = replace(config.losses, domain=0.0, target_entropy=0.0, target_vat=0.0)

    def step(self, loop: Loop) -> None:
        """One step of both players on a batch of each domain."""
        source, labels = loop.batch(self.source_batches)
        (target,) = loop.batch(self.target_batches)
        weights = self.class_weights(loop.index)
        terms = vada_step(
            self.networks,
            source,
            labels,
            target,
            loop.update,
            config=self._warmup_losses if loop.index < self.config.warmup else self.config.losses,
            class_weights=None if weights is None else weights.to(loop.device),
            source_weights=self.source_weights(labels),
            domain_term=self.domain_term,
            discriminator_term=self.discriminator_term,
        )
        loop.log(**{name: loss for name, loss in terms.items() if name != "discriminator"})

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """The encoder's loss against the discriminator."""
        return plain_domain_term(domains)

    def discriminator_term(self, domains: Domains) -> torch.Tensor:
        """The discriminator's loss."""
        return plain_discriminator_term(domains)
