"""Small networks for rows of numbers, as arrays: adapted to a target, or trained on folds of the source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.adaptation.adapter_parameters import WITH_PRIOR
from setminus.adaptation.domains import DomainData, LabelShift
from setminus.adaptation.methods import METHODS, AdaptationConfig, DirtT
from setminus.adaptation.small_training import LinearLayers, class_slope, linear_layers, train_small
from setminus.adaptation.vada import VadaNetworks
from setminus.nn.networks import DomainDiscriminator, mlp, seeded
from setminus.nn.passes import Batches, pick_device
from setminus.progress import tracked

__all__ = ["Adapted", "adapted", "fold_networks", "small_networks"]

Floats = NDArray[np.float64]
Layers = list[tuple[Floats, Floats]]

CHECK_EVERY, PATIENCE = 50, 3
"""Steps between two looks at the rows that a fold leaves out, and the looks without a smaller loss until it stops."""


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

    layers: Layers
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
    early_stopping: bool = False,
) -> Adapted:
    """Train small networks by one of `METHODS`, then refine them by `refine_steps` of DIRT-T."""
    place = pick_device(device)
    networks = seeded(seed, partial(small_networks, data.source.shape[1], data.n_classes, width))
    options: dict[str, Any] = {"label_shift": label_shift} if method in WITH_PRIOR else {}
    if method == "vada_orthogonal":
        options |= {"discriminator": discriminator, "mass": mass}
    task = METHODS[method](networks, data, config, seed, **options)
    train_small(task, steps, seed, place, early_stopping=early_stopping)
    if refine_steps:
        train_small(DirtT(networks, data, config, seed), refine_steps, seed, place)
    layers = [(_array(layer.weight).T.copy(), _array(layer.bias)) for layer in linear_layers(*task.predictor)]
    return Adapted(layers, task.target_prior)


def fold_networks(
    x: Floats,
    codes: NDArray[np.int64],
    folds: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    *,
    width: int,
    steps: int,
    batch: int,
    rate: float,
    seed: int,
    device: str = "cpu",
) -> list[Layers]:
    """A network for each fold, of the size of `small_networks`, trained on its rows by class-weighted cross entropy.

    Training stops where the loss on the rows that the folds leave out no longer falls, and the weights of the smallest
    one are returned.

    Parameters
    ----------
    x : ndarray of shape (n, n_features)
    codes : ndarray of int of shape (n,)
    folds : list of (ndarray of int, ndarray of int)
        Rows to train on, and rows that are left out.
    width, steps, batch, rate, seed, device
        See `OrthogonalAdapter`.

    Returns
    -------
    list of layers

    Examples
    --------
    >>> x, codes = np.repeat(np.eye(2), 40, axis=0), np.repeat([0, 1], 40)
    >>> rows = np.arange(80)
    >>> folds = [(rows[rows % 2 == k], rows[rows % 2 != k]) for k in (0, 1)]
    >>> networks = fold_networks(x, codes, folds, width=8, steps=50, batch=16, rate=1e-2, seed=0)
    >>> len(networks), [weight.shape for weight, _ in networks[0]]
    (2, [(2, 8), (8, 8), (8, 2)])
    """
    place = torch.device(pick_device(device))
    n_classes, n = int(codes.max()) + 1, len(folds)
    generator = torch.Generator().manual_seed(seed)
    # for each layer, the weights and the biases of all folds
    drawn = [
        [(2 * torch.rand(n, rows, own, generator=generator) - 1).to(place) / before**0.5 for rows in (before, 1)]
        for before, own in pairwise((x.shape[1], width, width, n_classes))
    ]
    networks = [
        LinearLayers([part for weight, bias in drawn for part in (weight[k].T, bias[k, 0])], rate, (0.9, 0.999))
        for k in range(n)
    ]
    rows, labels = torch.from_numpy(x).float().to(place), torch.from_numpy(codes).to(place)
    weights = (len(codes) / (n_classes * torch.bincount(labels, minlength=n_classes).clamp(min=1))).float()
    learned, left_out = zip(*folds, strict=True)
    batches = [
        Batches(torch.from_numpy(own), size=min(batch, *map(len, learned)), seed=seed + k)
        for k, own in enumerate(learned)
    ]
    best, kept, waited = np.inf, [network.vector.clone() for network in networks], 0
    with torch.inference_mode(), tracked("train without adaptation", total=steps, unit="steps") as progress:
        for step in range(steps):
            for network, own in zip(networks, batches, strict=True):
                (chosen,) = own.at(step)
                seen = network.forward(rows[chosen])
                network.backward(seen, class_slope(seen[-1].softmax(1), labels[chosen], weights))
                network.update()
            progress.advance()
            if (step + 1) % CHECK_EVERY and step + 1 < steps:
                continue
            found = sum(
                float(cross_entropy(network.forward(rows[own])[-1], labels[own], weights))
                for network, own in zip(networks, left_out, strict=True)
            )
            waited = 0 if found < best else waited + 1
            if found < best:
                best, kept = found, [network.vector.clone() for network in networks]
            if waited == PATIENCE:
                break
    for network, vector in zip(networks, kept, strict=True):
        network.vector.copy_(vector)
    return [[(_array(weight).T.copy(), _array(bias).copy()) for weight, bias in network.layers] for network in networks]


def _array(tensor: torch.Tensor) -> Floats:
    values: Floats = tensor.detach().cpu().double().numpy()
    return values
