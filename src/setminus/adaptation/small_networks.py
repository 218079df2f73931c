"""Adaptation of rows of numbers: small networks, trained by any of the methods and returned as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.adaptation.adapter_parameters import WITH_PRIOR
from setminus.adaptation.domains import DomainData, LabelShift
from setminus.adaptation.methods import METHODS, AdaptationConfig, DirtT
from setminus.adaptation.vada import VadaNetworks
from setminus.nn.networks import DomainDiscriminator, mlp, seeded
from setminus.nn.training import TrainingConfig, train

__all__ = ["Adapted", "adapted", "small_networks"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Adapted:
    """A trained network as arrays.

    Attributes
    ----------
    layers : list of (weight, bias)
        ``relu(x @ weight + bias)`` one after the other, the last without relu, gives logits.
    target_prior : ndarray of shape (C,) or None
        The estimate of the target's class frequencies, where the method has one.
    """

    layers: list[tuple[Floats, Floats]]
    target_prior: Floats | None


def small_networks(n_features: int, n_classes: int, width: int) -> VadaNetworks:
    """An encoder of two layers of ReLU units, a linear head, a discriminator of one hidden layer.

    Parameters
    ----------
    n_features, n_classes, width : int

    Returns
    -------
    VadaNetworks

    Examples
    --------
    >>> networks = small_networks(2, 3, width=8)
    >>> networks.head(networks.encoder(torch.zeros(5, 2))).shape
    torch.Size([5, 3])
    """
    encoder = nn.Sequential(*mlp((n_features, width, width)), nn.ReLU())
    return VadaNetworks(encoder, mlp((width, n_classes)), DomainDiscriminator(width, width=width))


def adapted(
    method: str,
    data: DomainData,
    config: AdaptationConfig,
    *,
    label_shift: LabelShift,
    discriminator: Literal["full", "orthogonal"],
    width: int,
    steps: int,
    refine_steps: int,
    seed: int,
    device: str = "cpu",
    mass: float = 0.0,
) -> Adapted:
    """Train small networks by one of `METHODS`, then refine them by `refine_steps` of DIRT-T."""
    networks = seeded(seed, partial(small_networks, data.source.shape[1], data.n_classes, width))
    options: dict[str, Any] = {"label_shift": label_shift} if method in WITH_PRIOR else {}
    if method == "vada_orthogonal":
        options |= {"discriminator": discriminator, "mass": mass}
    task = METHODS[method](networks, data, config, seed, **options)
    train(task, TrainingConfig(steps=steps, seed=seed, log_every=0, accelerator=device))
    if refine_steps:
        train(
            DirtT(networks, data, config, seed),
            TrainingConfig(steps=refine_steps, seed=seed, log_every=0, accelerator=device),
        )
    linear = [part for module in task.predictor for part in module if isinstance(part, nn.Linear)]
    layers = [(_array(layer.weight).T.copy(), _array(layer.bias)) for layer in linear]
    return Adapted(layers, task.target_prior)


def _array(tensor: torch.Tensor) -> Floats:
    values: Floats = tensor.detach().double().cpu().numpy()
    return values
