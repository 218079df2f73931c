"""What every method of adaptation has in common: two domains, a network, how it is trained, what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from setminus.adaptation.label_shift import check_proportions, class_frequencies
from setminus.adaptation.vada import VadaConfig, VadaNetworks
from setminus.errors import UserError
from setminus.nn.batches import Batches
from setminus.nn.passes import adam, in_float32, running_statistics_kept
from setminus.nn.training import Loop, Task

__all__ = ["AdaptationConfig", "AdaptationTask", "DomainData", "class_logits", "evaluating"]

ROWS_AT_ONCE = 100
"""So many that their features stay in the processor's cache: half the time of 500."""
ROWS_FOR_STATISTICS = 500
"""Rows that are normalised by their own statistics need company."""


@dataclass(frozen=True)
class DomainData:
    """Labelled rows of the source, rows of the target.

    Parameters
    ----------
    source : Tensor of shape (n, ...)
    source_labels : Tensor of int64 of shape (n,)
        Classes from 0 to ``n_classes - 1``; each needs rows.
    target : Tensor of shape (m, ...)
        There is no place for labels of the target: no method can look at them.
    n_classes : int
    held_out, held_out_labels : Tensor, optional
        Source rows that no network is trained on, to estimate the target's class frequencies with.
    """

    source: torch.Tensor
    source_labels: torch.Tensor
    target: torch.Tensor
    n_classes: int
    held_out: torch.Tensor | None = None
    held_out_labels: torch.Tensor | None = None

    def __post_init__(self) -> None:
        for name, rows in (("source", self.source), ("target", self.target)):
            if len(rows) == 0:
                raise UserError(f"the {name} domain has no rows", do="adaptation needs rows of both domains.")
        for name, rows in (("target", self.target), ("held_out", self.held_out)):
            if rows is not None and rows.shape[1:] != self.source.shape[1:]:
                raise UserError(
                    f"source rows have shape {tuple(self.source.shape[1:])}, {name} rows {tuple(rows.shape[1:])}",
                    expected="the same features, or images of the same size",
                )
        for name, rows in (("source", self.source), ("target", self.target), ("held_out", self.held_out)):
            if rows is not None and not rows.is_floating_point():
                raise UserError(f"{name} is of {rows.dtype}", expected="numbers that networks take, as by `.float()`")
        if (self.held_out is None) != (self.held_out_labels is None):
            raise UserError("held_out and held_out_labels belong together", do="pass both or none.")
        for name, rows, labels in (
            ("source", self.source, self.source_labels),
            ("held_out", self.held_out, self.held_out_labels),
        ):
            if rows is None or labels is None:
                continue
            if labels.shape != (len(rows),):
                raise ValueError(f"{name} has {len(rows)} rows, its labels have shape {tuple(labels.shape)}.")
            if labels.dtype != torch.int64:
                raise UserError(f"labels of {name} are of {labels.dtype}", expected="int64, as by `.long()`")
            # both refuse labels that are no classes, and classes without rows
            check_proportions(name, class_frequencies(labels.numpy(force=True), self.n_classes), positive=True)

    @property
    def source_prior(self) -> NDArray[np.float64]:
        """The class frequencies of the source rows."""
        return class_frequencies(self.source_labels.numpy(force=True), self.n_classes)


@dataclass(frozen=True)
class AdaptationConfig:
    """How a network is trained; the same for every method.

    Parameters
    ----------
    losses : VadaConfig
        The weight of each loss. A method without a loss does not look at its weight.
    rate : float, default=1e-3
        Adam's, of every network.
    batch : int, default=64
        Rows of each domain.
    warmup : int, default=0
        Steps before the domains meet, on the source alone. Estimates of the target's class frequencies that are made
        once are made at the end of it.
    balanced : {"weights", "batches"} or None, default="weights"
        How classes, instead of rows, count alike in the source's cross entropy: by weights, as in the paper, or by
        batches with as many rows of each. Where a class has less than one row in a batch, weights let it be heard
        seldom and loudly. The game about domains is over the source as it is in either way: rows of such batches are
        weighted back.
    estimate_every : int, optional
        Steps between two estimates of the target's class frequencies, where a method makes more than one; by default
        an epoch of the target.
    rest_at : int, optional
        The step at which the rate has fallen to zero, from half of it on; by default the rate stays, as in the paper.
    """

    losses: VadaConfig = field(default_factory=VadaConfig)
    rate: float = 1e-3
    batch: int = 64
    warmup: int = 0
    balanced: Literal["weights", "batches"] | None = "weights"
    estimate_every: int | None = None
    rest_at: int | None = None

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.batch >= 1 and self.warmup >= 0):
            raise UserError(
                f"rate is {self.rate}, batch is {self.batch}, warmup is {self.warmup}",
                expected="a positive rate, at least one row, and 0 or more steps",
            )
        if self.balanced not in ("weights", "batches", None):
            raise UserError(f"balanced is {self.balanced!r}", expected="'weights', 'batches' or None")
        for name in ("estimate_every", "rest_at"):
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
        Of the order of rows. Each method deals the same rows in the same order.
    watch : callable, optional
        From the task to plain values, kept with each evaluation: accuracy on a test set, or what else there is to see.

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
        # of two seeds: domains of one size would otherwise be dealt in one order
        alike = data.source_labels if config.balanced == "batches" else None
        self.source_batches = Batches(data.source, data.source_labels, size=config.batch, seed=2 * seed, alike=alike)
        self.target_batches = Batches(data.target, size=config.batch, seed=2 * seed + 1)

    @property
    def target_prior(self) -> NDArray[np.float64] | None:
        """None: the method has no estimate."""
        return None

    @property
    def met(self) -> int:
        """The step from which on the domains have met: a network of before is not adapted."""
        return self.config.warmup

    @property
    def predictor(self) -> tuple[nn.Module, nn.Module]:
        """The encoder and the head for target rows."""
        return self.networks.encoder, self.networks.head

    def class_weights(self, step: int) -> torch.Tensor | None:
        """The weight of each class in the source's cross entropy."""
        if self.config.balanced != "weights":
            return None
        return torch.from_numpy(1 / (self.data.n_classes * self.data.source_prior)).float()

    def source_weights(self, labels: torch.Tensor) -> torch.Tensor | None:
        """What source rows of a batch count in the game about domains, so that it is over the source as it is."""
        if self.config.balanced != "batches":
            return None
        shares = torch.from_numpy(self.data.n_classes * self.data.source_prior).float()
        return shares.to(labels.device)[labels]

    def rate(self, step: int) -> float:
        """What part of the rate is left."""
        rest_at = self.config.rest_at
        return 1.0 if rest_at is None else min(1.0, 2 * (1 - step / rest_at))

    def predict_proba(self, x: torch.Tensor) -> NDArray[np.float64]:
        """Probabilities of shape (n, C) of target rows."""
        proba: NDArray[np.float64] = class_logits(*self.predictor, x).double().softmax(1).cpu().numpy()
        return proba

    def evaluate(self, loop: Loop) -> dict[str, Any]:
        """The estimate of the target's class frequencies, and what `watch` sees, in the precision of training."""
        seen: dict[str, Any] = {} if self.target_prior is None else {"target_prior": self.target_prior.tolist()}
        with loop.fabric.autocast():
            return seen if self.watch is None else {**seen, **self.watch(self)}


def class_logits(encoder: nn.Module, head: nn.Module, x: torch.Tensor, *, own_statistics: bool = False) -> torch.Tensor:
    """``head(encoder(x))`` without gradients, dropout and noise, some rows at a time.

    Parameters
    ----------
    encoder, head : Module
        Their modes and running statistics are left as they are.
    x : Tensor of shape (n, ...)
    own_statistics : bool, default=False
        Normalise by the statistics of the rows themselves instead of the running ones, which are those of target rows:
        the way to compare what a network says of both domains.

    Returns
    -------
    Tensor of shape (n, C), float32

    Examples
    --------
    >>> class_logits(nn.Linear(2, 4), nn.Linear(4, 3), torch.zeros(7, 2)).shape
    torch.Size([7, 3])
    """
    device = next(head.parameters()).device
    n_parts = -(-len(x) // (ROWS_FOR_STATISTICS if own_statistics else ROWS_AT_ONCE))
    answers: torch.Tensor | None = None
    with torch.no_grad(), evaluating(encoder, head, own_statistics=own_statistics):
        for part in range(n_parts):
            # every n-th row: rows sorted by class would otherwise have statistics of one class
            rows = slice(part, None, n_parts)
            logits = in_float32(head(encoder(x[rows].to(device))))
            if answers is None:
                answers = logits.new_empty((len(x), logits.shape[1]))
            answers[rows] = logits
    if answers is None:
        raise UserError("x has no rows", do="there is nothing to classify.")
    return answers


@contextmanager
def evaluating(*networks: nn.Module, own_statistics: bool) -> Iterator[None]:
    """Within it, networks have no dropout and no noise, and remember no statistics; afterwards they are as before.

    Parameters
    ----------
    *networks : Module
    own_statistics : bool
        As in `class_logits`.

    Examples
    --------
    >>> network = nn.Dropout(0.5)
    >>> with evaluating(network, own_statistics=False):
    ...     network(torch.ones(2))
    tensor([1., 1.])
    >>> network.training
    True
    """
    modes = {module: module.training for network in networks for module in network.modules()}
    try:
        for module in modes:
            module.training = own_statistics and isinstance(module, _NormBase)
        with running_statistics_kept(*networks):
            yield
    finally:
        for module, training in modes.items():
            module.training = training
