"""Several layered networks of one shape as one: all seeds of an experiment take each training step together."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn

from setminus.errors import UserError

__all__ = ["StackedLayers"]


class StackedLayers(nn.Module):  # type: ignore[misc]
    """Layered networks of one shape, each layer by one batched product: ``stacked(x)[k] = networks[k](x[k])``.

    The networks have linear layers, and activations without weights between them. The sum of their losses has, for each
    network, the gradient of its own loss; an optimizer that treats each weight alone (Adam, SGD) then trains each
    network as if it were alone. Clipping the norm of the whole gradient does not. Batches here are so small that calls
    cost more than arithmetic: this took half the time of ``torch.func.vmap``.

    Examples
    --------
    >>> from setminus.nn.networks import mlp
    >>> networks = [mlp((3, 4, 2)) for _ in range(5)]
    >>> x = torch.randn(5, 8, 3)
    >>> torch.allclose(StackedLayers(networks)(x)[2], networks[2](x[2]), atol=1e-6)
    True
    """

    def __init__(self, networks: Sequence[nn.Sequential]):
        super().__init__()
        self._shape = (copy.deepcopy(networks[0]),)
        self.linear = nn.ModuleList()
        for layers in zip(*networks, strict=True):
            if isinstance(layers[0], nn.Linear):
                self.linear.append(_StackedLinear(layers))
            elif len(self.linear) and self.linear[-1].activation is None and not list(layers[0].parameters()):
                self.linear[-1].activation = layers[0]
            else:
                raise UserError(
                    f"a layer is {type(layers[0]).__name__}",
                    expected="linear layers, each followed by at most one activation without weights",
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, hidden units, outputs of each network."""
        return (self.linear[0].weight.shape[1], *(layer.weight.shape[2] for layer in self.linear))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output of each network for its own part of `x`, which has the shape (networks, n, inputs)."""
        for layer in self.linear:
            x = layer(x)
        return x

    def unstacked(self) -> list[nn.Sequential]:
        """The networks one by one, with copies of the weights."""
        networks = []
        for k in range(len(self.linear[0].weight)):
            network = copy.deepcopy(self._shape[0])
            own = [layer for layer in network if isinstance(layer, nn.Linear)]
            with torch.no_grad():
                for layer, stacked in zip(own, self.linear, strict=True):
                    layer.weight.copy_(stacked.weight[k].T)
                    layer.bias.copy_(stacked.bias[k, 0])
            networks.append(network)
        return networks


class _StackedLinear(nn.Module):  # type: ignore[misc]
    """Linear layers of one shape, and the activation after them."""

    def __init__(self, layers: Sequence[nn.Linear]):
        super().__init__()
        # inputs first, so that no product has to transpose them
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))
        self.activation: nn.Module | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.baddbmm(self.bias, x, self.weight)
        return x if self.activation is None else self.activation(x)
