"""Rows of two domains, what a network predicts for them, and the target's class frequencies estimated from that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from setminus.adaptation.label_shift import check_proportions, class_frequencies, prior_from_logits
from setminus.errors import UserError
from setminus.nn.passes import device_of, in_float32, running_statistics_kept

__all__ = ["DomainData", "LabelShift", "PriorEstimator", "TargetPrior", "class_logits", "estimated_prior", "evaluating"]

ROWS_AT_ONCE = 100
"""Few enough that their features stay in the processor's cache: half the time of 500."""
ROWS_FOR_STATISTICS = 500
"""More rows at once where they are normalised by their own statistics."""

PriorEstimator = Literal["em", "bbse", "pseudo_hard", "pseudo_soft"]


@dataclass(frozen=True)
class DomainData:
    """Labelled rows of the source, rows of the target.

    Parameters
    ----------
    source : Tensor of shape (n, ...)
    source_labels : Tensor of int64 of shape (n,)
        Classes from 0 to ``n_classes - 1``; each needs rows.
    target : Tensor of shape (m, ...)
        Without labels, so that no method can use them.
    n_classes : int
    held_out, held_out_labels : Tensor, optional
        Source rows that no network is trained on, for estimates of the target's class frequencies.
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


def class_logits(encoder: nn.Module, head: nn.Module, x: torch.Tensor, *, own_statistics: bool = False) -> torch.Tensor:
    """``head(encoder(x))`` without gradients, dropout and noise, in batches.

    Parameters
    ----------
    encoder, head : Module
        Their modes and running statistics do not change.
    x : Tensor of shape (n, ...)
    own_statistics : bool, default=False
        Normalise by the statistics of the rows themselves instead of the running ones, which are those of target rows;
        needed to compare a network's predictions for both domains.

    Returns
    -------
    Tensor of shape (n, C), float32

    Examples
    --------
    >>> class_logits(nn.Linear(2, 4), nn.Linear(4, 3), torch.zeros(7, 2)).shape
    torch.Size([7, 3])
    """
    device = device_of(head)
    n_parts = -(-len(x) // (ROWS_FOR_STATISTICS if own_statistics else ROWS_AT_ONCE))
    answers: torch.Tensor | None = None
    with torch.no_grad(), evaluating(encoder, head, own_statistics=own_statistics):
        for part in range(n_parts):
            # every n-th row: rows sorted by class would otherwise have the statistics of one class
            rows = slice(part, None, n_parts)
            logits = in_float32(head(encoder(x[rows].to(device))))
            if answers is None:
                answers = logits.new_empty((len(x), logits.shape[1]))
            answers[rows] = logits
    if answers is None:
        raise UserError("x has no rows", expected="at least one row to classify")
    return answers


@contextmanager
def evaluating(*networks: nn.Module, own_statistics: bool) -> Iterator[None]:
    """Turn off dropout, noise and the update of running statistics within the context.

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


@dataclass(frozen=True)
class LabelShift:
    """How the target's class frequencies are estimated.

    Parameters
    ----------
    estimator : {"em", "bbse", "pseudo_hard", "pseudo_soft"}
        Maximum likelihood on calibrated probabilities, black-box shift estimation, or the network's own predictions
        for the batches of the last epoch: the frequencies of its decisions, as in the paper, or the mean of its
        probabilities, as in the paper's public code.
    every_epoch : bool, default=False
        Estimate again after each epoch of the target, or every `AdaptationConfig.estimate_every` steps. Without it
        "em" and "bbse" are estimated once, before the domains are aligned, so that the network's later mistakes do
        not enter the estimate. Pseudo-labels are always counted again.
    momentum : float in [0, 1), default=0.0
        The weight of the previous estimate in the new one; 0.5 in the paper's importance weights.
    rows : int, default=5000
        The maximum number of rows of each domain that "em" and "bbse" use.
    shrinkage : float in [0, 1], default=0.0
        Shrink every estimate toward equal frequencies: ``(1 - shrinkage) * estimate + shrinkage / C``. Where the
        features shifted as well, the network's errors on the target enter the estimate; very small estimates, whose
        log odds are unbounded, then cost more than they gain.
    known : tuple of float, optional
        The target's class frequencies where they are known: used instead of any estimate, and not shrunk.
    """

    estimator: PriorEstimator = "em"
    every_epoch: bool = False
    momentum: float = 0.0
    rows: int = 5000
    shrinkage: float = 0.0
    known: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.known is not None:
            check_proportions("known", self.known)
        if self.estimator not in get_args(PriorEstimator):
            raise UserError(
                f"estimator is {self.estimator!r}", expected=f"one of {', '.join(get_args(PriorEstimator))}"
            )
        if not (0 <= self.momentum < 1 and self.rows >= 1):
            raise UserError(
                f"momentum is {self.momentum}, rows is {self.rows}", expected="a share in [0, 1), and at least one row"
            )
        if not 0 <= self.shrinkage <= 1:
            raise UserError(f"shrinkage is {self.shrinkage}", expected="a share in [0, 1]")

    @property
    def by_pseudo_labels(self) -> bool:
        """Whether the estimate is counted from the network's predictions for its batches."""
        return self.estimator.startswith("pseudo")


class TargetPrior(nn.Module):  # type: ignore[misc]
    """The estimate of the target's class frequencies, as buffers, so that a resumed training has it.

    Parameters
    ----------
    data : DomainData
    config : LabelShift
    start : int
        The step of the first estimate. Before it, the source's frequencies are used.
    epoch : int
        Steps between two estimates.

    Attributes
    ----------
    source, target : Tensor of shape (C,)
        Class frequencies, float64; on the CPU also where networks are elsewhere: some devices have no float64.
    """

    source: torch.Tensor
    target: torch.Tensor
    _sums: torch.Tensor

    def __init__(self, data: DomainData, config: LabelShift, *, start: int, epoch: int) -> None:
        super().__init__()
        self.config = config
        self.start = start
        self.epoch = epoch
        prior = torch.from_numpy(data.source_prior)
        self.register_buffer("source", prior)
        self.register_buffer("target", prior.clone())
        self.register_buffer("_sums", torch.zeros_like(prior))

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> TargetPrior:
        """Stay on the CPU, in float64."""
        return self

    def observe(self, target_class_logits: torch.Tensor) -> None:
        """Count the network's predictions for a batch, where the estimate is by pseudo-labels."""
        if not self.config.by_pseudo_labels:
            return
        proba = target_class_logits.detach().cpu().double().softmax(1)
        if self.config.estimator == "pseudo_hard":
            proba = torch.nn.functional.one_hot(proba.argmax(1), proba.shape[1]).double()
        self._sums += proba.sum(0)

    def update(self, step: int, encoder: nn.Module, head: nn.Module, data: DomainData) -> None:
        """Estimate again if it is due; called at the beginning of each step."""
        since = step - self.start
        if self.config.known is not None:
            self.target.copy_(self.source if since < 0 else torch.tensor(self.config.known, dtype=torch.float64))
            return
        again = self.config.every_epoch or self.config.by_pseudo_labels
        if since != 0 and not (again and since % self.epoch == 0):
            return
        counts = self._sums.clone()
        # each epoch is counted by itself, also before the first estimate
        self._sums.zero_()
        if since < 0:
            return
        if self.config.by_pseudo_labels:
            # where training starts with an estimate, no batch was counted yet
            estimate = counts / counts.sum() if counts.sum() > 0 else self.target
        else:
            estimate = torch.from_numpy(estimated_prior(encoder, head, data, self.config))
        shrinkage = self.config.shrinkage
        estimate = (1 - shrinkage) * estimate + shrinkage / len(estimate)
        kept = self.config.momentum if since > 0 else 0.0
        self.target.copy_(kept * self.target + (1 - kept) * estimate)


def estimated_prior(encoder: nn.Module, head: nn.Module, data: DomainData, config: LabelShift) -> NDArray[np.float64]:
    """The target's class frequencies of shape (C,) by "em" or "bbse", from a classifier's logits for both domains.

    Source rows are the held-out ones if there are any; the classifier is overconfident on those it was trained on.
    """
    if config.by_pseudo_labels:
        raise UserError(
            f"estimator is {config.estimator!r}", expected="em or bbse; `TargetPrior.observe` counts pseudo-labels"
        )
    source, labels = data.source, data.source_labels
    if data.held_out is not None and data.held_out_labels is not None:
        source, labels = data.held_out, data.held_out_labels
    source_rows, target_rows = _of_every_class(labels, config.rows), _spread(len(data.target), config.rows)
    target_logits = class_logits(encoder, head, data.target[target_rows], own_statistics=True).cpu().double().numpy()
    source_logits = class_logits(encoder, head, source[source_rows], own_statistics=True).cpu().double().numpy()
    codes = labels[source_rows].cpu().numpy()
    return prior_from_logits(source_logits, codes, target_logits, "bbse" if config.estimator == "bbse" else "em")


def _of_every_class(labels: torch.Tensor, max_rows: int) -> torch.Tensor:
    """Evenly spread rows, and the first row of each class that is not among them: both estimates need every class."""
    rows = _spread(len(labels), max_rows)
    left_out = sorted({*labels.tolist()} - {*labels[rows].tolist()})
    first = [int((labels == label).nonzero()[0]) for label in left_out]
    return torch.cat([rows, torch.tensor(first, dtype=torch.long)])


def _spread(n: int, max_rows: int) -> torch.Tensor:
    """At most `max_rows` rows, evenly spread."""
    return torch.arange(n) if n <= max_rows else torch.linspace(0, n - 1, max_rows).round().long()
