"""The target's class frequencies as a network learns: estimated when, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.adaptation.adaptation_task import DomainData, class_logits
from setminus.adaptation.label_shift import prior_from_logits
from setminus.errors import UserError

__all__ = ["LabelShift", "PriorEstimator", "TargetPrior", "estimated_prior"]

PriorEstimator = Literal["em", "bbse", "pseudo_hard", "pseudo_soft"]


@dataclass(frozen=True)
class LabelShift:
    """How the target's class frequencies are estimated.

    Parameters
    ----------
    estimator : {"em", "bbse", "pseudo_hard", "pseudo_soft"}
        Maximum likelihood on calibrated probabilities, black-box shift estimation, or what the network itself said
        of the batches of the last epoch: the share of its decisions, as the paper writes, or the mean of its
        probabilities, as its public code did.
    every_epoch : bool, default=False
        Estimate again after each epoch of the target, or as often as `AdaptationConfig.estimate_every` says. Without
        it "em" and "bbse" are estimated once, before the domains are aligned: an estimate that follows the network
        follows it into its mistakes. The pseudo-labels always follow it.
    momentum : float in [0, 1), default=0.0
        The share of the estimate before in the new one; 0.5 in the paper's importance weights.
    rows : int, default=5000
        Rows of each domain that "em" and "bbse" look at, at most.
    shrinkage : float in [0, 1], default=0.0
        The share of equal frequencies in every estimate: ``(1 - shrinkage) * estimate + shrinkage / C``. Where the
        features moved as well, a network errs on the target in ways that an estimate takes for frequencies; what it
        makes of a class that is rarely predicted, log odds without bound, then costs more than it gains.
    """

    estimator: PriorEstimator = "em"
    every_epoch: bool = False
    momentum: float = 0.0
    rows: int = 5000
    shrinkage: float = 0.0

    def __post_init__(self) -> None:
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
    def follows(self) -> bool:
        """Whether the estimate is what the network says of its batches."""
        return self.estimator.startswith("pseudo")


class TargetPrior(nn.Module):  # type: ignore[misc]
    """The estimate, as buffers next to the weights, so that a resumed training has it.

    Parameters
    ----------
    data : DomainData
    config : LabelShift
    start : int
        The step at which it is estimated for the first time. Until then it is the source's.
    epoch : int
        Steps between two estimates, where they are repeated.

    Attributes
    ----------
    source, target : Tensor of shape (C,)
        Class frequencies, float64.
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

    def observe(self, target_class_logits: torch.Tensor) -> None:
        """Count what the network says of a batch, for the estimates that follow it."""
        proba = target_class_logits.detach().double().softmax(1)
        if self.config.estimator == "pseudo_hard":
            proba = torch.nn.functional.one_hot(proba.argmax(1), proba.shape[1]).double()
        self._sums += proba.sum(0)

    def update(self, step: int, encoder: nn.Module, head: nn.Module, data: DomainData) -> None:
        """Estimate anew, if it is time to; call it at the begin of each step."""
        since = step - self.start
        seen = self._sums.clone()
        if since % self.epoch == 0:
            # each epoch is counted by itself, also before the first estimate
            self._sums.zero_()
        again = self.config.every_epoch or self.config.follows
        if since < 0 or (since > 0 and not (again and since % self.epoch == 0)):
            return
        if self.config.follows:
            # where training starts with an estimate, no batch was seen yet
            estimate = seen / seen.sum() if seen.sum() > 0 else self.target
        else:
            found = estimated_prior(encoder, head, data, self.config)
            estimate = torch.from_numpy(found).to(self.target.device)
        shrinkage = self.config.shrinkage
        estimate = (1 - shrinkage) * estimate + shrinkage / len(estimate)
        kept = self.config.momentum if since > 0 else 0.0
        self.target.copy_(kept * self.target + (1 - kept) * estimate)


def estimated_prior(encoder: nn.Module, head: nn.Module, data: DomainData, config: LabelShift) -> NDArray[np.float64]:
    """The target's class frequencies by "em" or "bbse", from what a classifier says of both domains.

    Source rows are those held out, where there are some; otherwise those it was trained on, of which it is too sure.

    Parameters
    ----------
    encoder, head : Module
    data : DomainData
    config : LabelShift

    Returns
    -------
    ndarray of shape (C,)
    """
    if config.follows:
        raise UserError(
            f"estimator is {config.estimator!r}", do="it is counted batch by batch, see `TargetPrior.observe`."
        )
    source, labels = data.source, data.source_labels
    if data.held_out is not None and data.held_out_labels is not None:
        source, labels = data.held_out, data.held_out_labels
    source_rows, target_rows = _of_every_class(labels, config.rows), _spread(len(data.target), config.rows)
    target_logits = class_logits(encoder, head, data.target[target_rows], own_statistics=True).double().cpu().numpy()
    source_logits = class_logits(encoder, head, source[source_rows], own_statistics=True).double().cpu().numpy()
    codes = labels[source_rows].cpu().numpy()
    return prior_from_logits(source_logits, codes, target_logits, "bbse" if config.estimator == "bbse" else "em")


def _of_every_class(labels: torch.Tensor, most: int) -> torch.Tensor:
    """Rows evenly spread, and the first of each class that none of them is of: neither estimate can do without it."""
    rows = _spread(len(labels), most)
    left_out = sorted({*labels.tolist()} - {*labels[rows].tolist()})
    first = [int((labels == label).nonzero()[0]) for label in left_out]
    return torch.cat([rows, torch.tensor(first, dtype=torch.long)])


def _spread(n: int, most: int) -> torch.Tensor:
    """At most so many rows, evenly spread."""
    return torch.arange(n) if n <= most else torch.linspace(0, n - 1, most).round().long()
