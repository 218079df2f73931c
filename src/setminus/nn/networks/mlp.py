"""Networks on rows of numbers: a plain one, and the paper's for tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.networks.input_checks import check_rows

__all__ = ["TabularNetwork", "mlp"]


def mlp(sizes: Sequence[int], activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with an activation between each two: ``Linear(sizes[0], sizes[1])``, activation, and so on.

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden layers, outputs: two numbers or more.
    activation : callable, default=torch.nn.ReLU
        Makes the module between two layers. There is none after the last.

    Returns
    -------
    torch.nn.Sequential

    Examples
    --------
    >>> mlp((2, 64, 64, 3))(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """
    if len(sizes) < 2 or min(sizes) < 1:
        raise UserError(
            f"sizes are {tuple(sizes)}", expected="two or more positive numbers, inputs first, outputs last"
        )
    layers: list[nn.Module] = []
    for n_inputs, n_outputs in pairwise(sizes):
        layers += [nn.Linear(n_inputs, n_outputs), activation()]
    return nn.Sequential(*layers[:-1])


class TabularNetwork(nn.Module):  # type: ignore[misc]
    """The paper's network for tables: ``head(encoder(x))``, both with one hidden layer of softplus units.

    Parameters
    ----------
    n_features : int
        Columns of the table.
    n_classes : int, default=2
        Logits that come out.
    width : int, default=50
        Hidden units of the encoder and of the head.
    n_latent : int, default=10
        Size of the representation between them.

    Attributes
    ----------
    encoder, head : torch.nn.Module
        From rows to representations, and from those to logits; methods that train on the representation need them
        apart.

    Examples
    --------
    >>> network = TabularNetwork(102)
    >>> network(torch.zeros(4, 102)).shape, network.encoder(torch.zeros(4, 102)).shape
    (torch.Size([4, 2]), torch.Size([4, 10]))
    """

    def __init__(self, n_features: int, n_classes: int = 2, *, width: int = 50, n_latent: int = 10) -> None:
        super().__init__()
        self.encoder = _RowEncoder(n_features, *mlp((n_features, width, n_latent), nn.Softplus))
        self.head = mlp((n_latent, width, n_classes), nn.Softplus)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_classes)."""
        return self.head(self.encoder(x))


class _RowEncoder(nn.Sequential):  # type: ignore[misc]
    """Layers that look at their rows first."""

    def __init__(self, n_features: int, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.n_features = n_features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        check_rows(x, self.n_features)
        return super().forward(x)
