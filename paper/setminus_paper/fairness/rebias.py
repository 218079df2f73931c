"""ReBias as the paper uses it (Bahng et al. 2020): a representation that is independent of the group by HSIC."""

from __future__ import annotations

from functools import partial

import torch

from setminus.nn.training import Loop
from setminus_paper.fairness.hsic import hsic
from setminus_paper.fairness.predictions import Predictions
from setminus_paper.fairness.training import EPOCHS, FairTask, cross_entropy, trained
from setminus_paper.fairness.trials import Trials

__all__ = ["RebiasTask", "rebias"]

BANDWIDTH = 1.0
"""Of both kernels. The median distance instead starves the representation: German ends at the majority class."""


class RebiasTask(FairTask):
    """``min over encoder, head of cross entropy + gamma * hsic(z, u)``.

    The original compares with representations of biased networks; here the bias is given, it is the group.
    """

    def __init__(self, trials: Trials, gamma: float):
        super().__init__(trials)
        self.gamma = gamma

    def step(self, loop: Loop) -> None:
        """Both terms on the same batch."""
        x, y, u = loop.batch(self.batches)
        z = self.encoder(x)
        dependence = torch.vmap(partial(hsic, bandwidth_x=BANDWIDTH, bandwidth_y=BANDWIDTH))(z, u)
        loop.update("network", (cross_entropy(self.logits(z), y) + self.gamma * dependence).sum())


def rebias(trials: Trials, *, gamma: float, epochs: int = EPOCHS) -> Predictions:
    """Train the network with the dependence as a penalty.

    Parameters
    ----------
    trials : Trials
    gamma : float
        What the dependence counts beside the cross entropy: more is fairer.
    epochs : int

    Returns
    -------
    Predictions
    """
    return trained(RebiasTask(trials, gamma), epochs)
