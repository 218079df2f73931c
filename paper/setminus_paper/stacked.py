"""Several small networks of one shape as one: all seeds of an experiment take each step together."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch.func import functional_call, stack_module_state, vmap

from setminus.errors import UserError

__all__ = ["Stacked"]


class Stacked(torch.nn.Module):  # type: ignore[misc]
    """Networks of the same shape with their weights stacked, so that one call runs all of them.

    ``stacked(x)[k] = networks[k](x[k])``

    The sum of their losses has, for each network, the gradient of its own loss; an optimizer that treats each weight
    alone (Adam, SGD) then trains each network as if it were alone. Clipping the norm of the whole gradient does not.

    Parameters
    ----------
    networks : sequence of Module
        Copied; of the same class and sizes, without batch statistics that are updated in training.

    Examples
    --------
    >>> networks = [torch.nn.Linear(3, 2) for _ in range(5)]
    >>> x = torch.randn(5, 8, 3)
    >>> Stacked(networks)(x).shape
    torch.Size([5, 8, 2])
    """

    def __init__(self, networks: Sequence[torch.nn.Module]):
        super().__init__()
        if not networks:
            raise UserError("no networks came", do="stack at least one.")
        _check_alike(networks)
        weights, buffers = stack_module_state(list(networks))
        # a module's own name may hold dots, which torch keeps for the path to a weight
        self.weights = torch.nn.ParameterDict(
            {_flat(name): torch.nn.Parameter(w, requires_grad=w.requires_grad) for name, w in weights.items()}
        )
        for name, buffer in buffers.items():
            self.register_buffer(_buffer(name), buffer)
        self._names = {"weights": tuple(weights), "buffers": tuple(buffers)}
        # not registered: only its shape is of use, its weights are replaced in each call
        self._skeleton = (copy.deepcopy(networks[0]).to("meta"),)

    def __len__(self) -> int:
        """How many networks there are."""
        return len(next(iter(self.weights.values())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What each network says of its own part of `x`, which has the shape (networks, n, ...)."""
        if len(x) != len(self):
            raise UserError(f"x has shape {tuple(x.shape)}", expected=f"({len(self)}, n, ...), a part for each network")
        self._skeleton[0].train(self.training)
        return vmap(self._one, randomness="different")(self._state(), x)

    def unstacked(self) -> list[torch.nn.Module]:
        """The networks one by one, with copies of the weights."""
        networks = []
        for k in range(len(self)):
            network = copy.deepcopy(self._skeleton[0]).to_empty(device=next(self.parameters()).device)
            # not by load_state_dict, which does not know buffers that are not saved
            own = dict(network.named_parameters()) | dict(network.named_buffers())
            with torch.no_grad():
                for name, value in self._state().items():
                    own[name].copy_(value[k])
            networks.append(network.train(self.training))
        return networks

    def _one(self, state: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(self._skeleton[0], state, (x,))

    def _state(self) -> dict[str, torch.Tensor]:
        weights = {name: self.weights[_flat(name)] for name in self._names["weights"]}
        return {**weights, **{name: getattr(self, _buffer(name)) for name in self._names["buffers"]}}


def _check_alike(networks: Sequence[torch.nn.Module]) -> None:
    first, *others = [
        (type(n).__name__, n.training, {name: tuple(value.shape) for name, value in n.state_dict().items()})
        for n in networks
    ]
    for k, other in enumerate(others, start=1):
        if other != first:
            raise UserError(
                f"networks 0 and {k} are not alike (class, training mode, shapes)",
                do=f"{first} and {other}. Stack networks that differ in the values of their weights only.",
            )


def _flat(name: str) -> str:
    return name.replace(".", "__")


def _buffer(name: str) -> str:
    # a prefix: a buffer may be called as an attribute of this class is, such as weights
    return f"buffer__{_flat(name)}"
