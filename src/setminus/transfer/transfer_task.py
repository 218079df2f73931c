r"""CycleGAN as a task of the training loop, plain or against the orthogonal discriminator.

The orthogonal loss needs the log of r = P(z2) / Q(z2), A's density of z2 over B's, either from ``full \ principal`` or
from a classifier of p(y|z2). Two ways lead from r to a discriminator without z2:

1. The paper's: the generator to B plays against ``logit D + log r``, with D trained on pictures of B as they are. This
   is exact for the best D. A D of few steps is surer of z2 than log r is, which then cancels only a part of it.
2. By the pictures that are drawn (`TransferConfig.overlap`): those of A with probability proportional to
   ``1 / (1 + r) = p(B|z2)``, those of B to ``r / (1 + r) = p(A|z2)``. Both then have the density ``P Q / (P + Q)`` of
   z2, up to a constant: r is 1, and the discriminator itself is the orthogonal one, at every step of its training.

Either is a loss of distributions: it does not see generators that exchange values of z2 in equal numbers. The keeping
loss (`TransferConfig.keep`) does: r depends on z2 alone, so a picture whose z2 is kept has the same r afterwards,
and ``mean |log r(fake) - log r(real)|`` is 0. This is necessary, not sufficient: values of z2 with one r may be
exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.cyclegan import AdversarialTerm, CycleGAN, CycleGANWeights, cyclegan_step, plain_adversarial
from setminus.nn.losses import Direction, log_density_ratio, orthogonal_generator_loss
from setminus.nn.passes import Batches, adam, device_of, in_float32
from setminus.nn.training import Loop, Task
from setminus.transfer.networks import shifted, signed

__all__ = ["CLAMP", "Judge", "OrthogonalRatio", "PairRatio", "TransferConfig", "TransferTask", "orthogonal_adversarial"]

ROWS_AT_ONCE = 500
PENALTY_EVERY = 8
"""Steps between two gradient penalties, each of which costs as much as the discriminators' whole step."""
CLAMP = (1 / 9, 9.0)
"""Bounds on r: the ratio of the paper's colored digits, p(z2|A) / p(z2|B) = 0.9 / 0.1."""


class _Ratio(nn.Module):  # type: ignore[misc]
    """Frozen classifiers in evaluation mode."""

    def __init__(self, clamp: tuple[float, float] | None) -> None:
        super().__init__()
        self.clamp = clamp

    def train(self, mode: bool = True) -> _Ratio:
        """Stay in evaluation mode: batch statistics of generated images are not those of the domains."""
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
        # a principal classifier that always predicts 1/2 removes nothing
        log_half = torch.full_like(log_orthogonal, 0.5).log()
        return log_density_ratio(log_orthogonal, log_half, self.prior, "uniform", clamp=self.clamp)


def _log_proba(logits: torch.Tensor) -> torch.Tensor:
    return in_float32(logits).log_softmax(-1)


Judge = Callable[[CycleGAN], dict[str, Any]]
"""From the networks, in evaluation mode, to plain values."""


@dataclass(frozen=True)
class TransferConfig:
    """How a translation is trained; the defaults are the paper's for digits.

    Parameters
    ----------
    batch_size : int
        Images of each domain.
    rate : float
        Of Adam, for both players.
    discriminator_pace : float
        The discriminators' rate over the generators'.
    betas : (float, float)
        Of Adam.
    penalty : float
        Weight of the discriminators' `gradient_penalty`; it is taken every eighth step, with eight times the weight.
    weights : CycleGANWeights
    seed : int
        Of the batches.
    plain_steps : int
        Steps of plain CycleGAN before the orthogonal loss begins; half of all in the paper's runs on faces.
    decay_end : int, optional
        The step at which the learning rate reaches zero; it falls linearly from half of that step on, so that the last
        weights, which are kept, have settled. By default the rate is constant, as in the paper.
    keep : float
        Weight of the keeping loss, ``mean |log r(fake) - log r(real)|``; 0 in the paper.
    overlap : bool
        Draw the images such that r is 1, in place of the paper's ``logit D + log r``.
    shift : float
        Largest shift of an image, each time anew, as a share of its side; none in the paper.
    mirror : bool
        Mirror half of the images, left to right, each time anew; none in the paper.
    """

    batch_size: int = 128
    rate: float = 2e-4
    discriminator_pace: float = 1.0
    betas: tuple[float, float] = (0.5, 0.999)
    penalty: float = 0.0
    weights: CycleGANWeights = field(default_factory=CycleGANWeights)
    seed: int = 0
    plain_steps: int = 0
    decay_end: int | None = None
    keep: float = 0.0
    overlap: bool = False
    shift: float = 0.0
    mirror: bool = False


class TransferTask(Task):
    """Translate images of domain A to domain B and back.

    Parameters
    ----------
    networks : CycleGAN
        Trained in place.
    a, b : Tensor of shape (n, channels, height, width)
        Images of each domain, as bytes (see `image_tensor`) or on the scale of [-1, 1].
    config : TransferConfig
    log_ratio : Module, optional
        From images to log r = log P(z2) / Q(z2), such as `PairRatio`; with it the generators play against the
        orthogonal discriminator. Without it this is plain CycleGAN.
    judge : callable, optional
        Scores of the networks, kept with each evaluation.

    Examples
    --------
    >>> from setminus.nn.training import TrainingConfig, train
    >>> from setminus.transfer.networks import digit_networks
    >>> task = TransferTask(digit_networks(8, 4, seed=0), *torch.rand(2, 6, 3, 8, 8), TransferConfig(batch_size=2))
    >>> outcome = train(task, TrainingConfig(steps=2))
    >>> sorted(outcome.history[-1])[:4]
    ['a_to_b', 'b_to_a', 'cycle', 'discriminator_a']
    """

    def __init__(
        self,
        networks: CycleGAN,
        a: torch.Tensor,
        b: torch.Tensor,
        config: TransferConfig | None = None,
        *,
        log_ratio: nn.Module | None = None,
        judge: Judge | None = None,
    ):
        config = config or TransferConfig()
        if a.shape[1:] != b.shape[1:]:
            raise UserError(
                f"images of A have the shape {tuple(a.shape[1:])}, those of B {tuple(b.shape[1:])}",
                do="resize them to the same size.",
            )
        self.networks = networks
        self.weights: CycleGANWeights = config.weights
        self.plain_steps: int = config.plain_steps
        self.decay_end: int | None = config.decay_end
        self.judge = judge
        self.modules: dict[str, torch.nn.Module] = {
            "a_to_b": networks.a_to_b,
            "b_to_a": networks.b_to_a,
            "discriminator_a": networks.discriminator_a,
            "discriminator_b": networks.discriminator_b,
        }
        if log_ratio is not None:
            # among the modules, so that it goes to the device where the images are
            self.modules["log_ratio"] = log_ratio
        self.optimizers: Mapping[str, torch.optim.Optimizer] = {
            "generators": adam(networks.generators.parameters(), config.rate, betas=config.betas),
            "discriminators": adam(
                networks.discriminators.parameters(), config.rate * config.discriminator_pace, betas=config.betas
            ),
        }
        self.penalty: float = config.penalty * PENALTY_EVERY
        self.keep: float = config.keep
        self.shift: int = round(config.shift * a.shape[-1])
        self.mirror: bool = config.mirror
        ratios: list[list[torch.Tensor]] = [[], []]
        weights: list[torch.Tensor | None] = [None, None]
        self.adversarial: AdversarialTerm = plain_adversarial
        if log_ratio is not None:
            if config.overlap or config.keep:
                # once: the real images do not change
                ratios = [[log_ratios(log_ratio, x)] for x in (a, b)]
            if config.overlap:
                weights = [torch.sigmoid(sign * found) for sign, (found,) in zip((-1, 1), ratios, strict=True)]
            else:
                self.adversarial = orthogonal_adversarial(log_ratio)
        self.batches: list[Batches] = [
            Batches(x, *found, size=config.batch_size, seed=2 * config.seed + k, weights=drawn)
            for k, (x, found, drawn) in enumerate(zip((a, b), ratios, weights, strict=True))
        ]

    def step(self, loop: Loop) -> None:
        """One step of both players."""
        drawn_a, drawn_b = (loop.batch(batches) for batches in self.batches)
        real_a, real_b = (self._varied(signed(drawn[0])) for drawn in (drawn_a, drawn_b))
        adversarial = plain_adversarial if loop.index < self.plain_steps else self.adversarial
        if self.keep and "log_ratio" in self.modules:
            # of the images as they are: z2 does not depend on where they lie
            before: dict[Direction, torch.Tensor] = {"a_to_b": drawn_a[1], "b_to_a": drawn_b[1]}
            adversarial = keeping_adversarial(adversarial, self.modules["log_ratio"], before, self.keep)
        terms = cyclegan_step(
            self.networks,
            real_a,
            real_b,
            loop.update,
            weights=self.weights,
            adversarial=adversarial,
            penalty=self.penalty if loop.index % PENALTY_EVERY == 0 else 0.0,
        )
        loop.log(**terms)

    def _varied(self, images: torch.Tensor) -> torch.Tensor:
        varied = shifted(images, self.shift)
        if not self.mirror:
            return varied
        drawn = (torch.rand(len(images)) < 0.5).to(images.device)
        return torch.where(drawn[:, None, None, None], varied.flip(3), varied)

    def rate(self, step: int) -> float:
        """The factor of the learning rate at a step."""
        return 1.0 if self.decay_end is None else min(1.0, 2 * (1 - step / self.decay_end))

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        """The judge's scores of the networks in evaluation mode."""
        if self.judge is None:
            return {}
        for network in self.modules.values():
            network.eval()
        return self.judge(self.networks)


def orthogonal_adversarial(log_ratio: Callable[[torch.Tensor], torch.Tensor]) -> AdversarialTerm:
    """The generators' adversarial term against the orthogonal discriminator, ``logit D + log r`` from A to B.

    Parameters
    ----------
    log_ratio : callable
        From generated images to log P(z2) / Q(z2) of shape (n,), differentiable.
    """

    def term(fake_logits: torch.Tensor, fakes: torch.Tensor, direction: Direction) -> torch.Tensor:
        return orthogonal_generator_loss(fake_logits, log_ratio(fakes), direction)

    return term


def keeping_adversarial(
    adversarial: AdversarialTerm, log_ratio: nn.Module, before: Mapping[Direction, torch.Tensor], weight: float
) -> AdversarialTerm:
    """An adversarial term plus ``weight * mean |log r(fake) - log r(real)|``.

    Parameters
    ----------
    adversarial : callable
    log_ratio : Module
        From images to log P(z2) / Q(z2) of shape (n,), differentiable.
    before : mapping of direction to Tensor of shape (n,)
        The log ratios of the images that the generated ones are made of.
    weight : float
    """

    def term(fake_logits: torch.Tensor, fakes: torch.Tensor, direction: Direction) -> torch.Tensor:
        kept = (log_ratio(fakes) - before[direction]).abs().mean()
        return adversarial(fake_logits, fakes, direction) + weight * kept

    return term


def log_ratios(log_ratio: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """The log ratios of any number of images, as bytes or in [-1, 1], of shape (n,), on the CPU."""
    device = device_of(log_ratio)
    with torch.no_grad():
        return torch.cat([log_ratio(signed(part).to(device)).cpu() for part in images.split(ROWS_AT_ONCE)])
