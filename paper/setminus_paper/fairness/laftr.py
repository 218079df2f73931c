"""LAFTR (Madras, Creager, Pitassi and Zemel 2018): a representation from which an adversary cannot tell the group."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from setminus.nn.networks import mlp
from setminus.nn.training import Loop
from setminus_paper.fairness.predictions import Predictions
from setminus_paper.fairness.training import EPOCHS, FairTask, adam, cross_entropy, stacked, trained
from setminus_paper.fairness.trials import Trials

__all__ = ["LaftrTask", "laftr", "sum_of_cell_means"]


class LaftrTask(FairTask):
    """``min over encoder, head max over adversary of cross entropy - gamma * distance(adversary(z, y), u)``.

    The distance is the sum over groups and labels of the mean |adversary(z, y) - u| over the rows of that cell.
    The adversary is given the label beside the representation: what it gains is then bounded by equalized odds.
    """

    def __init__(self, trials: Trials, gamma: float):
        super().__init__(trials)
        self.gamma = gamma
        n_latent, width, _ = self.head.sizes
        self.adversary = stacked(partial(mlp, (n_latent + 1, width, 1), nn.Softplus), trials.seeds, stream=1)
        self.modules["adversary"] = self.adversary
        self.optimizers["adversary"] = adam(self.adversary)
        counts = torch.from_numpy(trials.group_counts).float()
        self.share = counts / counts.sum((1, 2), keepdim=True)

    def step(self, loop: Loop) -> None:
        """The adversary first, then what it plays against."""
        x, y, u = loop.batch(self.batches)
        z = self.encoder(x)
        # by its surprise: one that learns by the distance itself is soon sure of every row, its slope is then 0, and
        # what it plays against is free; at gamma 0.5 the gap on Adult came back to that of no adversary
        surprise = binary_cross_entropy_with_logits(self._guess(z.detach(), y), u, reduction="none")
        loop.update("adversary", self._cell_means(surprise, y, u).sum())
        distance = self._cell_means((self._guess(z, y).sigmoid() - u).abs(), y, u)
        loop.update("network", (cross_entropy(self.logits(z), y) - self.gamma * distance).sum())

    def _guess(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.adversary(torch.cat([z, y[..., None]], dim=-1)).squeeze(-1)

    def _cell_means(self, values: torch.Tensor, y: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return sum_of_cell_means(values, y, u, self.share.to(values.device))


def sum_of_cell_means(values: torch.Tensor, y: torch.Tensor, u: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """``sum over (u, y) of the mean of values over the rows of that group and label``.

    The means divide by the expected number of such rows in a batch, not by the number that came, which may be 0;
    over batches this is the same.

    Parameters
    ----------
    values : Tensor of shape (seeds, n)
        Such as the distance |guess - u| of an adversary from the group: the sum is then 2 for one that does not know,
        and 0 for one that is always right.
    y, u : Tensor of shape (seeds, n)
        Labels and groups, 0 or 1.
    share : Tensor of shape (seeds, 2, 2)
        The share of all rows in each group (first) and label (second).

    Returns
    -------
    Tensor of shape (seeds,)

    Examples
    --------
    >>> u, y = torch.tensor([[0.0, 0, 1, 1]]), torch.tensor([[0.0, 1, 0, 1]])
    >>> sum_of_cell_means((torch.full((1, 4), 0.5) - u).abs(), y, u, torch.full((1, 2, 2), 0.25))
    tensor([2.])
    """
    cells = (2 * u + y).long()
    expected = share.flatten(1).gather(1, cells) * values.shape[1]
    return (values / expected).sum(1)


def laftr(trials: Trials, *, gamma: float, epochs: int = EPOCHS) -> Predictions:
    """Train the network against the adversary, in turns.

    Parameters
    ----------
    trials : Trials
    gamma : float
        What the adversary counts beside the cross entropy: more is fairer.
    epochs : int

    Returns
    -------
    Predictions
    """
    return trained(LaftrTask(trials, gamma), epochs)
