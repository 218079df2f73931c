r"""The methods of adaptation: source only, DANN, VADA, VADA with importance weights, VADA with ``w_x \ w_1``; DIRT-T.

Each is a task for `setminus.nn.training.train`, made from networks, data, a config and a seed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from setminus.adaptation.domains import DomainData, LabelShift, TargetPrior, class_logits
from setminus.adaptation.vada import (
    Domains,
    VadaConfig,
    VadaNetworks,
    plain_discriminator_term,
    plain_domain_term,
    vada_step,
)
from setminus.errors import UserError
from setminus.nn.losses import (
    conditional_entropy,
    virtual_adversarial_loss,
)
from setminus.nn.passes import Batches, adam, in_float32, running_statistics_kept
from setminus.nn.training import Loop, Task

__all__ = [
    "METHODS",
    "AdaptationConfig",
    "AdaptationTask",
    "Dann",
    "DirtT",
    "EstimatingVada",
    "SourceOnly",
    "Vada",
    "VadaIw",
    "VadaOrthogonal",
    "principal_log_odds",
]

MIN_CLASS_WEIGHT = 1e-12
"""The smallest weight of a class in VADA-IW's cross entropy, a weighted mean that would otherwise be 0 / 0 where every
class of a batch has an estimate of 0."""
MIN_FREQUENCY = 1e-3
"""The smallest class frequency in a ratio: an estimate of 0 means that a class is rare, not that it is impossible."""


@dataclass(frozen=True)
class AdaptationConfig:
    """How a network is trained; the same for every method.

    Parameters
    ----------
    losses : VadaConfig
        The weight of each loss. A method ignores the weights of losses that it does not have.
    rate : float, default=1e-3
        Learning rate of Adam, for every network.
    batch : int, default=64
        Rows of each domain in a step.
    warmup : int, default=0
        Steps on the source alone before adaptation begins.
    first_estimate : int, optional
        The step of the first estimate of the target's class frequencies, or of the only one; by default the end of the
        warm-up. Until then a method is plain VADA, as in the paper's public code.
    balanced : {"weights", "batches"} or None, default="weights"
        How classes, instead of rows, count equally in the source's cross entropy: by weights, as in the paper, or by
        batches with the same number of rows of each class. Where a class has less than one row in a batch, weights
        give it rare and large gradients. The domain losses are over the source's own class frequencies either way:
        rows of balanced batches are weighted back.
    estimate_every : int, optional
        Steps between two estimates of the target's class frequencies, where a method makes several; by default an
        epoch of the target.
    decay_end : int, optional
        The step at which the learning rate reaches zero; it falls linearly from half of that step on. By default the
        rate is constant, as in the paper.
    vat_every : int, default=1
        Steps between two that have the VAT terms, with weights that are larger by the same factor.
    """

    losses: VadaConfig = field(default_factory=VadaConfig)
    rate: float = 1e-3
    batch: int = 64
    warmup: int = 0
    first_estimate: int | None = None
    balanced: Literal["weights", "batches"] | None = "weights"
    estimate_every: int | None = None
    decay_end: int | None = None
    vat_every: int = 1

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.batch >= 1 and self.warmup >= 0):
            raise UserError(
                f"rate is {self.rate}, batch is {self.batch}, warmup is {self.warmup}",
                expected="a positive rate, at least one row, and 0 or more steps",
            )
        if self.balanced not in ("weights", "batches", None):
            raise UserError(f"balanced is {self.balanced!r}", expected="'weights', 'batches' or None")
        for name in ("first_estimate", "estimate_every", "decay_end", "vat_every"):
            steps = getattr(self, name)
            if steps is not None and steps < 1:
                raise UserError(f"{name} is {steps}", expected="at least one step, or None")


class AdaptationTask(Task):
    """A method: made from networks, data, a config and a seed; trained by `setminus.nn.training.train`.

    Parameters
    ----------
    networks : VadaNetworks
        Trained in place: those of the paper for images, or small ones for tables.
    data : DomainData
    config : AdaptationConfig
    seed : int
        Of the order of rows. Every method sees the same rows in the same order.
    watch : callable, optional
        From the task to plain values that are kept with each evaluation, such as the accuracy on a test set.

    Attributes
    ----------
    target_prior : ndarray of shape (C,) or None
        The current estimate of the target's class frequencies, where the method has one.
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
        self.networks = networks
        self.data = data
        self.config = config
        self.watch = watch
        self.modules: dict[str, nn.Module] = {"encoder": networks.encoder, "head": networks.head}
        self.optimizers: dict[str, torch.optim.Optimizer] = {
            "classifier": adam([*networks.encoder.parameters(), *networks.head.parameters()], config.rate)
        }
        # two seeds: otherwise domains of the same size would have the same order
        labels = data.source_labels
        balance_by = labels if config.balanced == "batches" else None
        self.source_batches: Batches = Batches(
            data.source, labels, size=config.batch, seed=2 * seed, balance_by=balance_by
        )
        self.target_batches: Batches = Batches(data.target, size=config.batch, seed=2 * seed + 1)
        self._class_weights: torch.Tensor | None = None
        if config.balanced == "weights":
            self._class_weights = torch.from_numpy(1 / (data.n_classes * data.source_prior)).float()

    @property
    def target_prior(self) -> NDArray[np.float64] | None:
        """None: the method has no estimate."""
        return None

    @property
    def first_adapted_step(self) -> int:
        """The first step that uses both domains: the network before it is not adapted."""
        return self.config.warmup

    @property
    def predictor(self) -> tuple[nn.Module, nn.Module]:
        """The encoder and the head for target rows."""
        return self.networks.encoder, self.networks.head

    def class_weights(self, step: int) -> torch.Tensor | None:
        """The weight of each class in the source's cross entropy."""
        return self._class_weights

    def source_weights(self, labels: torch.Tensor) -> torch.Tensor | None:
        """Weights of source rows in the domain losses: they undo the balancing of batches."""
        if self.config.balanced != "batches":
            return None
        shares = torch.from_numpy(self.data.n_classes * self.data.source_prior).float()
        return shares.to(labels.device)[labels]

    def rate(self, step: int) -> float:
        """The factor of the learning rate at a step."""
        end = self.config.decay_end
        return 1.0 if end is None else min(1.0, 2 * (1 - step / end))

    def predict_proba(self, x: torch.Tensor) -> NDArray[np.float64]:
        """Probabilities of shape (n, C) of target rows."""
        proba: NDArray[np.float64] = class_logits(*self.predictor, x).cpu().double().softmax(1).numpy()
        return proba

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        """The estimate of the target's class frequencies and the result of `watch`, in the precision of training."""
        values: dict[str, Any] = {} if self.target_prior is None else {"target_prior": self.target_prior.tolist()}
        with loop.fabric.autocast():
            return values if self.watch is None else {**values, **self.watch(self)}


class SourceOnly(AdaptationTask):
    """No adaptation: the source's cross entropy. It never sees the target."""

    @property
    def first_adapted_step(self) -> int:
        """0: every network counts, none of them is adapted."""
        return 0

    def step(self, loop: Loop) -> None:
        """Cross entropy on a batch of the source."""
        x, labels = loop.batch(self.source_batches)
        weights = self.class_weights(loop.index)
        logits = in_float32(self.networks.head(self.networks.encoder(x)))
        loop.update("classifier", cross_entropy(logits, labels, None if weights is None else weights.to(loop.device)))


class Vada(AdaptationTask):
    """VADA (Shu et al. 2018): a warm-up on the source, then `vada_step` on both domains.

    Methods of this family override the weights of the classes and the domain losses of encoder and discriminator.
    Parameters are those of `AdaptationTask`.
    """

    def __init__(
        self, networks: VadaNetworks, data: DomainData, config: AdaptationConfig, seed: int, **options: Any
    ) -> None:
        super().__init__(networks, data, config, seed, **options)
        self.modules["discriminator"] = networks.discriminator
        self.optimizers["discriminator"] = adam(networks.discriminator.parameters(), config.rate)
        # the discriminator learns during the warm-up: it is ready when the encoder starts to play against it
        warmup = replace(config.losses, domain=0.0, target_entropy=0.0, target_vat=0.0)
        # made once, with VAT and without: a step of a small network takes less time than their checks
        every = config.vat_every
        self._losses = [
            [replace(own, source_vat=f * own.source_vat, target_vat=f * own.target_vat) for f in (every, 0)]
            for own in (config.losses, warmup)
        ]

    def losses(self, step: int) -> VadaConfig:
        """The weights of the losses at a step."""
        return self._losses[step < self.config.warmup][step % self.config.vat_every > 0]

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
            config=self.losses(loop.index),
            class_weights=None if weights is None else weights.to(loop.device),
            source_weights=self.source_weights(labels),
            domain_term=self.domain_term,
            discriminator_term=self.discriminator_term,
            target_term=self.target_term,
        )
        loop.log(**{name: loss for name, loss in terms.items() if name != "discriminator"})

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """The encoder's loss against the discriminator."""
        return plain_domain_term(domains)

    def discriminator_term(self, domains: Domains) -> torch.Tensor:
        """The discriminator's loss."""
        return plain_discriminator_term(domains)

    def target_term(self, logits: torch.Tensor) -> torch.Tensor:
        """The loss of the classifier's predictions for target rows: their entropy."""
        return conditional_entropy(logits)


class Dann(Vada):
    """Domain adversarial training (Ganin et al. 2016): ``cross_entropy + domain * domain_term``, no VAT."""

    def __init__(
        self, networks: VadaNetworks, data: DomainData, config: AdaptationConfig, seed: int, **options: Any
    ) -> None:
        losses = replace(config.losses, source_vat=0.0, target_vat=0.0, target_entropy=0.0)
        super().__init__(networks, data, replace(config, losses=losses), seed, **options)


class EstimatingVada(Vada):
    """VADA with a `TargetPrior` that is updated before each step; how it is used is left to the methods below."""

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        label_shift: LabelShift,
        **options: Any,
    ) -> None:
        super().__init__(networks, data, config, seed, **options)
        epoch = config.estimate_every or len(self.target_batches)
        start = config.first_estimate or config.warmup
        self.prior: TargetPrior = TargetPrior(data, label_shift, start=start, epoch=epoch)
        self.modules["prior"] = self.prior

    @property
    def target_prior(self) -> NDArray[np.float64]:
        """The current estimate of the target's class frequencies."""
        prior: NDArray[np.float64] = self.prior.target.numpy().copy()
        return prior

    def step(self, loop: Loop) -> None:
        """As VADA, with the estimate of this step."""
        self.prior.update(loop.index, *self.predictor, self.data)
        super().step(loop)

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """As VADA; the predictions are counted, where the estimate needs that."""
        self.prior.observe(domains.target_class_logits)
        return super().domain_term(domains)


class VadaIw(EstimatingVada):
    """VADA with importance weights (after Combes et al. 2020).

    A source row of class k weighs ``w[k] = target prior / source prior``, in every loss except VAT. The weighted
    source has the class frequencies of the target, so that its features may be aligned with the target's.

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
        **options: Any,
    ) -> None:
        label_shift = label_shift or LabelShift("bbse", every_epoch=True, momentum=0.5)
        super().__init__(networks, data, config, seed, label_shift=label_shift, **options)

    def class_weights(self, step: int) -> torch.Tensor | None:
        """``w``; before the first estimate, the weights of the other methods."""
        return super().class_weights(step) if step < self.prior.start else self._weights().clamp(min=MIN_CLASS_WEIGHT)

    def source_weights(self, labels: torch.Tensor) -> torch.Tensor:
        """``w`` of each row's class: ``-mean(w log(1 - D(source))) - mean(log D(target))`` is the encoder's loss."""
        return self._weights().to(labels.device)[labels]

    def _weights(self) -> torch.Tensor:
        # over the class frequencies of the batches
        balanced = self.config.balanced == "batches"
        shares = torch.full_like(self.prior.source, 1 / self.data.n_classes) if balanced else self.prior.source
        return (self.prior.target / shares).float()


class VadaOrthogonal(EstimatingVada):
    r"""VADA whose encoder plays against ``w_x \ w_1``; here y is the domain, and z1 is the class.

    What the class alone predicts of the domain is removed from the discriminator before the encoder plays against it,
    so that features of a class are aligned with features of the same class.

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
        ``logits + log odds of w_1``, and the encoder gets its logits. Both have the same value where the network is
        optimal, not the same gradient: the log odds of w_1 are constants of a row. In the first form a network that
        knows the classes still has a slope between them where all classes are aligned, and keeps pushing source and
        target in opposite directions; in the second it is flat there.
    mass : float, default=0.0
        Weight of the mass constraint beside the target's entropy; see `target_term`. 0 is the paper's loss.
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
        mass: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(networks, data, config, seed, label_shift=label_shift or LabelShift("em"), **options)
        if not mass >= 0:
            raise UserError(f"mass is {mass}", expected="a weight of 0 or more")
        self.mass = mass
        if target_classes not in ("soft", "hard"):
            raise UserError(f"target_classes is {target_classes!r}", expected="'soft' or 'hard'")
        if discriminator not in ("full", "orthogonal"):
            raise UserError(f"discriminator is {discriminator!r}", expected="'full' or 'orthogonal'")
        self.target_classes = target_classes
        self.discriminator = discriminator

    def target_term(self, logits: torch.Tensor) -> torch.Tensor:
        """Entropy of the predictions for the target's class frequencies, and the mass constraint.

        Entropy alone is smallest where all rows are predicted as one class. ``mass * KL(prior || mean prediction)``
        keeps the mean prediction at the estimated frequencies: the mean of the true posteriors equals them.
        """
        if not self.mass:
            return conditional_entropy(logits)
        prior = self.prior.target.to(logits).clamp(min=MIN_FREQUENCY)
        log_proba = (logits + prior.log()).log_softmax(1)
        proba = log_proba.exp()
        entropy = -(proba * log_proba).sum(1).mean()
        return entropy + self.mass * (prior * (prior.log() - proba.mean(0).log())).sum()

    def domain_term(self, domains: Domains) -> torch.Tensor:
        """The swapped domain loss of the orthogonal discriminator."""
        if self.discriminator == "full":
            source, target = self.log_odds(domains.source_labels, domains.target_class_logits.softmax(1))
            domains = replace(
                domains, source_logits=domains.source_logits - source, target_logits=domains.target_logits - target
            )
        return super().domain_term(domains)

    def discriminator_term(self, domains: Domains) -> torch.Tensor:
        """The domain loss of the full discriminator."""
        if self.discriminator == "orthogonal":
            source, target = self.log_odds(domains.source_labels, domains.target_class_logits.softmax(1))
            domains = replace(
                domains, source_logits=domains.source_logits + source, target_logits=domains.target_logits + target
            )
        return super().discriminator_term(domains)

    def log_odds(self, labels: torch.Tensor, target_proba: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The log odds of source of w_1 for source rows with their labels, and for target rows with probabilities."""
        if self.target_classes == "hard":
            target_proba = one_hot(target_proba.argmax(1), target_proba.shape[1]).to(target_proba)
        priors = self.prior.source.to(target_proba), self.prior.target.to(target_proba)
        of_source = source_rates(*priors)
        return of_source.logit()[labels], (target_proba @ of_source).logit()


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
    of_source = source_rates(source_prior, target_prior)
    return (proba.to(of_source.dtype) @ of_source).logit()


def source_rates(source_prior: torch.Tensor, target_prior: torch.Tensor) -> torch.Tensor:
    """``p(source | class k)`` of shape (C,); see `principal_log_odds`."""
    source, target = source_prior.clamp(min=MIN_FREQUENCY), target_prior.clamp(min=MIN_FREQUENCY)
    return source / (source + target)


class DirtT(AdaptationTask):
    """A refinement on the target alone, after adaptation (DIRT-T, Shu et al. 2018).

    ``loss = target_vat * VAT(target) + target_entropy * H(target) + anchor * mean KL(teacher || classifier)``

    The teacher is a copy of the classifier, renewed every `teacher_every` steps.

    Parameters
    ----------
    networks : VadaNetworks
        After the training of another method.
    data, seed, watch
        See `AdaptationTask`.
    config : AdaptationConfig
        Its weights of the target's losses; there is no warm-up.
    anchor : float, default=1e-2
    teacher_every : int, default=500
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        anchor: float = 1e-2,
        teacher_every: int = 500,
        **options: Any,
    ) -> None:
        super().__init__(networks, data, config, seed, **options)
        if not (anchor >= 0 and teacher_every >= 1):
            raise UserError(
                f"anchor is {anchor}, teacher_every is {teacher_every}",
                expected="a weight of 0 or more, and at least one step",
            )
        self.anchor = anchor
        self.teacher_every = teacher_every
        self.teacher: nn.Sequential = nn.Sequential(
            copy.deepcopy(networks.encoder), copy.deepcopy(networks.head)
        ).eval()
        self.modules["teacher"] = self.teacher

    def step(self, loop: Loop) -> None:
        """Both losses of the target, and the distance to the teacher."""
        if loop.index % self.teacher_every == 0:
            for taught, learned in zip(self.teacher, self.predictor, strict=True):
                taught.load_state_dict(learned.state_dict())
        losses = self.config.losses
        encoder, head = self.predictor
        (target,) = loop.batch(self.target_batches)

        def classify_unremembered(x: torch.Tensor) -> torch.Tensor:
            with running_statistics_kept(encoder, head):
                return in_float32(head(encoder(x)))

        logits = in_float32(head(encoder(target)))
        with torch.no_grad():
            log_teacher = in_float32(self.teacher(target)).log_softmax(1)
        distance = (log_teacher.exp() * (log_teacher - logits.log_softmax(1))).sum(1).mean()
        loss = losses.target_entropy * conditional_entropy(logits) + self.anchor * distance
        if losses.target_vat:
            loss = loss + losses.target_vat * virtual_adversarial_loss(
                classify_unremembered,
                target,
                radius=losses.vat_radius,
                xi=losses.vat_xi,
                power_steps=losses.vat_power_steps,
                clean_logits=logits,
            )
        loop.update("classifier", loss)


METHODS: dict[str, type[AdaptationTask]] = {
    "source_only": SourceOnly,
    "dann": Dann,
    "vada": Vada,
    "vada_iw": VadaIw,
    "vada_orthogonal": VadaOrthogonal,
}
"""Each is made by ``METHODS[name](networks, data, config, seed)`` and trained by `setminus.nn.training.train`."""
