"""Rivals of table 3 that the library does not have: ADDA and CyCADA of the paper, and RLSbench's remedy for VADA."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.adaptation.domains import DomainData, LabelShift, class_logits, estimated_prior, evaluating
from setminus.adaptation.methods import AdaptationConfig, AdaptationTask, Vada
from setminus.adaptation.vada import VadaConfig, VadaNetworks, vada_step
from setminus.errors import UserError
from setminus.nn.cyclegan import (
    CycleGAN,
    CycleGANWeights,
    DigitDiscriminator,
    DigitGenerator,
    cyclegan_step,
    plain_adversarial,
)
from setminus.nn.losses import Direction, domain_discriminator_loss, gan_generator_loss
from setminus.nn.networks import check_images, seeded
from setminus.nn.passes import Batches, adam, frozen, in_float32, running_statistics_kept
from setminus.nn.training import Loop

__all__ = ["Adda", "BalancedVada", "Cycada", "semantic_loss"]

MIN_SHARE = 1e-12
"""The smallest share of a class in a logarithm."""


class BalancedVada(Vada):
    """VADA on balanced batches of both domains, and predictions for the target's class frequencies.

    The remedy of RLSbench (Garg et al. 2023) for adaptation under label shift. Batches of the source have equal class
    frequencies; so have batches of the target, by pseudo-labels that are renewed in each epoch, or every
    `AdaptationConfig.estimate_every` steps. Probabilities are multiplied by the target's class frequencies, which
    black-box shift estimation on held-out source rows gives.
    """

    def __init__(
        self, networks: VadaNetworks, data: DomainData, config: AdaptationConfig, seed: int, **options: Any
    ) -> None:
        super().__init__(networks, data, replace(config, balanced="batches"), seed, **options)
        self._first = config.first_estimate or config.warmup
        self._every = config.estimate_every or len(self.target_batches)
        self.pseudo = _PseudoLabels(len(data.target))
        self.modules["pseudo"] = self.pseudo
        self._balanced_from = -1

    def source_weights(self, labels: torch.Tensor) -> None:
        """None: the domain losses see balanced batches of both domains."""
        return

    def step(self, loop: Loop) -> None:
        """As VADA, with new pseudo-labels where they are due."""
        since = loop.index - self._first
        if since >= 0:
            if since % self._every == 0:
                self.pseudo.labels.copy_(class_logits(*self.predictor, self.data.target).argmax(1))
            renewed = since // self._every
            if renewed != self._balanced_from:
                # also where a training was resumed
                self._balanced_from, size, seed = renewed, self.config.batch, self.target_batches.seed
                self.target_batches = Batches(self.data.target, size=size, seed=seed, balance_by=self.pseudo.labels)
        super().step(loop)

    def predict_proba(self, x: torch.Tensor) -> NDArray[np.float64]:
        """Probabilities of a balanced classifier, multiplied by the estimated frequencies."""
        prior = estimated_prior(*self.predictor, self.data, LabelShift("bbse"))
        logits = class_logits(*self.predictor, x).cpu().double()
        proba: NDArray[np.float64] = (logits + torch.from_numpy(prior).clamp(min=MIN_SHARE).log()).softmax(1).numpy()
        return proba


class _PseudoLabels(nn.Module):  # type: ignore[misc]
    """The classes that batches of the target are balanced by, in a buffer, so that a resumed training has them."""

    labels: torch.Tensor

    def __init__(self, n: int) -> None:
        super().__init__()
        self.register_buffer("labels", torch.zeros(n, dtype=torch.int64))


class Adda(AdaptationTask):
    """ADDA (Tzeng et al. 2017): a copy of the source encoder learns target features that look like source features.

    The warm-up, of at least one step, trains encoder and head on the source. From then on both are fixed; the copy is
    trained against the discriminator, as the generator of a GAN, and the head classifies its features. The weight of
    the domain loss scales the copy's learning rate, which has to be small, since no loss ties the copy to the classes.
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
        """The source's cross entropy, later the adversarial losses of copy and discriminator."""
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
            # its weights are fixed; its running statistics become those of the target
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


class Cycada(AdaptationTask):
    """CyCADA (Hoffman et al. 2018): classify source images that a CycleGAN translated to the target's look.

    1. In the warm-up, of at least one step, the classifier learns from the source.
    2. The classifier is fixed, and two generators learn to translate between the domains and keep its predictions:
       ``adversarial + cycle * cycle_loss + semantic * semantic_loss`` in both directions.
    3. The generators are fixed, and the classifier learns from translated source images with their labels, against a
       discriminator of features: ``cross_entropy + domain * domain_term``, as DANN.

    Images are square, in [-1, 1], with a size of 8 or more that is a multiple of 4. `translation` is the share of the
    second phase in the steps after the warm-up; a training that is resumed with more steps has them in the third.
    `translation_rate` is Adam's rate for the CycleGAN: the usual 2e-4 needs thousands of steps.
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        width: int = 32,
        discriminator_width: int = 16,
        translation: float = 0.5,
        translation_rate: float = 1e-3,
        cycle: float = 10.0,
        semantic: float = 1.0,
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(networks, data, config, seed, watch=watch)
        if config.warmup < 1:
            raise UserError(
                "warmup is 0", do="CyCADA starts from a classifier of the source; give it steps to be trained."
            )
        if not (0 < translation < 1 and translation_rate > 0 and semantic >= 0):
            raise UserError(
                f"translation is {translation}, translation_rate is {translation_rate}, semantic is {semantic}",
                expected="a share between 0 and 1, a positive rate, and a weight of 0 or more",
            )
        for name, images in (("source", data.source), ("target", data.target)):
            _check_translatable(name, images)
        self.translation = translation
        self.semantic = semantic
        self._weights = CycleGANWeights(cycle=cycle, identity=0.0)
        self._aligning = replace(config.losses, source_vat=0.0, target_vat=0.0, target_entropy=0.0)
        self._warmup_losses = replace(self._aligning, domain=0.0)
        channels, size = data.source.shape[1:3]
        self.translators = seeded(seed, partial(_translators, channels, size, width, discriminator_width))
        self.schedule = _Schedule()
        # no class balance: a discriminator of images has no class weights
        self.images = Batches(data.source, size=config.batch, seed=2 * seed)
        self.modules |= {
            "discriminator": networks.discriminator,
            "generators": self.translators.generators,
            "image_discriminators": self.translators.discriminators,
            "schedule": self.schedule,
        }
        self.optimizers |= {
            "discriminator": adam(networks.discriminator.parameters(), config.rate),
            "generators": adam(self.translators.generators.parameters(), translation_rate),
            # of images, under the name that `cyclegan_step` uses
            "discriminators": adam(self.translators.discriminators.parameters(), translation_rate),
        }

    @property
    def first_adapted_step(self) -> int:
        """The end of the second phase: before it the classifier is that of the warm-up."""
        return max(int(self.schedule.translation_end), self.config.warmup)

    def step(self, loop: Loop) -> None:
        """One step of the phase that `loop.index` is in."""
        source, labels = loop.batch(self.source_batches)
        (target,) = loop.batch(self.target_batches)
        if loop.index < self.config.warmup:
            self._classify(source, labels, target, self._warmup_losses, loop)
        elif loop.index < self._translation_end(loop):
            (images,) = loop.batch(self.images)
            self._translate(_planes(images), _planes(target), loop)
        else:
            with torch.no_grad():
                translated = in_float32(self.translators.a_to_b(_planes(source)))
            self._classify(translated, labels, target, self._aligning, loop)

    def _translation_end(self, loop: Loop) -> int:
        if self.schedule.translation_end < 0:
            steps = round(self.translation * (loop.config.steps - self.config.warmup))
            self.schedule.translation_end.fill_(self.config.warmup + max(steps, 1))
        return int(self.schedule.translation_end)

    def _classify(
        self, source: torch.Tensor, labels: torch.Tensor, target: torch.Tensor, losses: VadaConfig, loop: Loop
    ) -> None:
        weights = self.class_weights(loop.index)
        terms = vada_step(
            self.networks,
            source,
            labels,
            target,
            loop.update,
            config=losses,
            class_weights=None if weights is None else weights.to(loop.device),
            source_weights=self.source_weights(labels),
        )
        loop.log(source_class=terms["source_class"], domain=terms["domain"])

    def _translate(self, source: torch.Tensor, target: torch.Tensor, loop: Loop) -> None:
        originals = {"a_to_b": source, "b_to_a": target}

        def adversarial(fake_logits: torch.Tensor, fakes: torch.Tensor, direction: Direction) -> torch.Tensor:
            kept = semantic_loss(self.networks.encoder, self.networks.head, originals[direction], fakes)
            loop.log(**{f"semantic_{direction}": kept.detach()})
            return plain_adversarial(fake_logits, fakes, direction) + self.semantic * kept

        terms = cyclegan_step(
            self.translators, source, target, loop.update, weights=self._weights, adversarial=adversarial
        )
        loop.log(cycle=terms["cycle"])


def semantic_loss(encoder: nn.Module, head: nn.Module, images: torch.Tensor, translated: torch.Tensor) -> torch.Tensor:
    """A translation should keep the prediction of a fixed classifier.

    ``cross_entropy(head(encoder(translated)), argmax head(encoder(images)))``, each batch by its own statistics,
    because the domains and partly translated images have different ones. No gradient is for the classifier's weights.

    Examples
    --------
    >>> sure = nn.Linear(2, 2, bias=False)
    >>> _ = nn.init.eye_(sure.weight)
    >>> one_of_each = 100 * torch.eye(2)
    >>> semantic_loss(sure, nn.Identity(), one_of_each, one_of_each)
    tensor(0.)
    >>> semantic_loss(sure, nn.Identity(), one_of_each, one_of_each.flip(0))
    tensor(100.)
    """
    with frozen(encoder, head), evaluating(encoder, head, own_statistics=True):
        with torch.no_grad():
            predicted = head(encoder(images)).argmax(1)
        logits = in_float32(head(encoder(translated)))
    return cross_entropy(logits, predicted)


class _Schedule(nn.Module):  # type: ignore[misc]
    """The end of the second phase, in a buffer, so that it is the same when training is resumed with more steps."""

    translation_end: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("translation_end", torch.tensor(-1))


def _translators(channels: int, size: int, width: int, discriminator_width: int) -> CycleGAN:
    # GroupNorm: with BatchNorm a translation would depend on the images beside it, and few steps leave it poorer
    generators = [DigitGenerator(width=width, channels=channels, norm="group") for _ in range(2)]
    discriminators = [DigitDiscriminator(size, width=discriminator_width, channels=channels) for _ in range(2)]
    return CycleGAN(*generators, *discriminators)


def _planes(images: torch.Tensor) -> torch.Tensor:
    # planar: GroupNorm in bfloat16 takes twice as long on interleaved channels
    return images.contiguous()


def _check_translatable(name: str, images: torch.Tensor) -> None:
    if images.ndim != 4:
        raise UserError(
            f"the {name} rows have shape {tuple(images.shape)}",
            do="CyCADA translates images, (n, channels, size, size); use another method for tables and embeddings.",
        )
    check_images(images, images.shape[1], size=images.shape[2], multiple_of=4, at_least=8)
    low, high = images.min().item(), images.max().item()
    if not (low >= -1.001 and high <= 1.001):
        raise UserError(
            f"the {name} images are in [{low:g}, {high:g}]",
            expected="[-1, 1], which is all that a generator can make; rescale them",
        )
