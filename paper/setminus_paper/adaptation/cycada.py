"""Source images in the look of the target, and features alike (CyCADA, Hoffman et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.adaptation.adaptation_task import (
    AdaptationConfig,
    AdaptationTask,
    DomainData,
    evaluating,
)
from setminus.adaptation.vada import VadaConfig, VadaNetworks, vada_step
from setminus.errors import UserError
from setminus.nn.batches import Batches
from setminus.nn.cyclegan import CycleGAN, CycleGANWeights, cyclegan_step, plain_adversarial
from setminus.nn.losses import Direction
from setminus.nn.networks import check_images, seeded
from setminus.nn.passes import adam, frozen, in_float32
from setminus.nn.training import Loop
from setminus.nn.translation_networks import DigitDiscriminator, DigitGenerator

__all__ = ["Cycada", "semantic_loss"]


class Cycada(AdaptationTask):
    """Learn to classify source images that were translated to the target's look by a CycleGAN.

    Three phases follow each other:

    1. in the warm-up the classifier learns from the source;
    2. it is held, while two generators learn to translate between the domains, there and back, so that it keeps what
       it says of an image: ``adversarial + cycle * cycle_loss + semantic * semantic_loss`` in both directions;
    3. these are held, while it learns from translated source images with the labels they had, against a discriminator
       of their features and the target's: ``cross_entropy + domain * domain_term``, as DANN.

    Parameters
    ----------
    networks, seed, watch
        See `AdaptationTask`. The seed is also that of the initial weights of the CycleGAN.
    data : DomainData
        Square images of shape (n, channels, size, size) in [-1, 1], with a size of 8 or more that is a multiple of 4.
    config : AdaptationConfig
        With a `warmup` of at least 1.
    width, discriminator_width : int
        Channels of the first layer of the generators, and of the discriminators of images.
    translation : float between 0 and 1, default=0.5
        The share of the second phase in the steps after the warm-up. A training that is resumed with more steps than
        it was begun with has them in the third.
    translation_rate : float, default=1e-3
        Adam's, of the CycleGAN. The usual 2e-4 wants thousands of steps.
    cycle, semantic : float
        The weights of the two consistency losses.
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
        # a translation takes the classes as they are: a discriminator of images knows no weights
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
            # of images, by the name that the step of a CycleGAN has for them
            "discriminators": adam(self.translators.discriminators.parameters(), translation_rate),
        }

    @property
    def met(self) -> int:
        """The end of the second phase: until then the classifier is that of the warm-up."""
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
    """What a held classifier says of an image, its translation should keep.

    ``cross_entropy(head(encoder(translated)), argmax head(encoder(images)))``, each batch by its own statistics:
    the domains have their own, and so do images on their way between them.

    Parameters
    ----------
    encoder, head : Module
        Without dropout and noise, whatever their mode; gradients pass through them, none is for their weights.
    images, translated : Tensor of shape (n, channels, height, width)
        In the same order. No gradient passes to `images`.

    Returns
    -------
    Tensor of shape ()

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
            said = head(encoder(images)).argmax(1)
        logits = in_float32(head(encoder(translated)))
    return cross_entropy(logits, said)


class _Schedule(nn.Module):  # type: ignore[misc]
    """Where the second phase ends, as a buffer: the same for a training that is resumed with more steps."""

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
    # one channel after the other in memory: GroupNorm in bfloat16 takes twice as long the other way
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
