"""The paper's network for tables."""

from __future__ import annotations

import torch
from torch import nn

from setminus.errors import UserError
from setminus.nn.networks import mlp

__all__ = ["TabularNetwork", "check_rows"]


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


def check_rows(rows: torch.Tensor, n_features: int) -> None:
    """Refuse anything but rows of `n_features` numbers.

    Parameters
    ----------
    rows : Tensor
    n_features : int

    Examples
    --------
    >>> check_rows(torch.zeros(5, 3), n_features=4)
    Traceback (most recent call last):
        ...
    setminus.errors.UserError: the input has shape (5, 3): expected (n, 4); ...
    """
    if rows.ndim != 2 or rows.shape[1] != n_features:
        fix = (
            f"build the network with n_features={rows.shape[1]}, or pass other columns"
            if rows.ndim == 2
            else ("flatten each row to numbers")
        )
        raise UserError(f"the input has shape {tuple(rows.shape)}", expected=f"(n, {n_features}); {fix}")
