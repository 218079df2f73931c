"""An encoder of its own for the target (ADDA, Tzeng et al. 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.vada import VadaNetworks
from setminus.errors import UserError
from setminus.nn.losses import domain_discriminator_loss, gan_generator_loss
from setminus.nn.passes import adam, frozen, in_float32, running_statistics_kept
from setminus.nn.training import Loop

__all__ = ["Adda"]


class Adda(AdaptationTask):
    """First the source classifier, then a copy of its encoder that makes target features look like source features.

    The warm-up trains encoder and head on the source. From then on these are held; the copy plays against the
    discriminator, as the generator of a GAN, and the head classifies what it gives.

    Parameters
    ----------
    networks, data, seed, watch
        See `AdaptationTask`.
    config : AdaptationConfig
        With a `warmup` of at least 1; the weight of the domain loss is the factor of the copy's learning rate, which
        has to be small: nothing else ties the copy to the classes.
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
        if config.warmup < 1:
            raise UserError(
                "warmup is 0", do="ADDA starts from a classifier of the source; give it steps to be trained."
            )
        self.target_encoder = copy.deepcopy(networks.encoder)
        self.modules |= {"target_encoder": self.target_encoder, "discriminator": networks.discriminator}
        self.optimizers |= {
            "target_encoder": adam(self.target_encoder.parameters(), config.rate * config.losses.domain),
            "discriminator": adam(networks.discriminator.parameters(), config.rate),
        }

    @property
    def predictor(self) -> tuple[nn.Module, nn.Module]:
        """The target's encoder, with the source's head."""
        return self.target_encoder, self.networks.head

    def step(self, loop: Loop) -> None:
        """The source's cross entropy, later the game between the copy and the discriminator."""
        source, labels = loop.batch(self.source_batches)
        if loop.index < self.config.warmup:
            self._classify(source, labels, loop)
            self.target_encoder.load_state_dict(self.networks.encoder.state_dict())
        else:
            (target,) = loop.batch(self.target_batches)
            self._align(source, labels, target, loop)

    def _classify(self, source: torch.Tensor, labels: torch.Tensor, loop: Loop) -> None:
        weights = self.class_weights(loop.index)
        logits = in_float32(self.networks.head(self.networks.encoder(source)))
        loop.update("classifier", cross_entropy(logits, labels, None if weights is None else weights.to(loop.device)))

    def _align(self, source: torch.Tensor, labels: torch.Tensor, target: torch.Tensor, loop: Loop) -> None:
        encoder, head, discriminator = self.networks.encoder, self.networks.head, self.networks.discriminator
        with torch.no_grad(), running_statistics_kept(encoder):
            source_features = encoder(source)
        target_features = self.target_encoder(target)
        with torch.no_grad():
            # its weights stay; its running statistics become those of what it now classifies
            head(target_features)
        loop.update(
            "discriminator",
            domain_discriminator_loss(
                in_float32(discriminator(source_features)),
                in_float32(discriminator(target_features.detach())),
                self.source_weights(labels),
            ),
        )
        with frozen(discriminator):
            fooled = in_float32(discriminator(target_features))
        loop.update("target_encoder", gan_generator_loss(fooled))
