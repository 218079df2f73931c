"""Principal classifiers of the domain: from an oracle's set, or from environments that share only p(y | z1).

On whole networks MLDG, TRM and Fish hardly leave the classifier that pools the environments, at rates at which a
network can be trained at all. A linear layer on few whitened features allows rates a hundred times larger, so a second
stage keeps the features of a trained network and learns its last layer again. Which rate to take is decided without an
oracle: a head that ignores what differs among the environments has the same risk in all. This stage is ours; within it
the methods are those of their papers, except for `TrmConfig.beyond`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.core.importance import importance_weights
from setminus.errors import UserError
from setminus.invariant.environments import Environment, EnvironmentConfig, check_environments, pooled, risk
from setminus.invariant.gradient_matching import FishConfig, MldgConfig
from setminus.invariant.methods import METHODS, Method, fit_invariant
from setminus.invariant.trm import TrmConfig, encoder_of
from setminus.nn.networks import DigitClassifier, seeded
from setminus.nn.passes import device_of, prepare, signed
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier, log_proba
from setminus_paper.run import train_on_machine

__all__ = [
    "CANDIDATES",
    "TRM",
    "LastLayer",
    "fit_last_layer",
    "fit_principal",
    "weights_by_importance",
]

_ALL_ROWS: dict[str, Any] = {"batch_size": 1 << 30, "weight_decay": 0.0}
TRM = TrmConfig(
    **_ALL_ROWS,
    steps=120,
    decay_at=80,
    rate=0.2,
    momentum=0.5,
    inner_steps=4,
    inner_rate=0.5,
    neumann_terms=4,
    neumann_rate=0.5,
    ascent=1.0,
)
"""TRM's printed objective, at rates for the last layer."""

CANDIDATES: dict[str, tuple[EnvironmentConfig, ...]] = {
    "erm": (EnvironmentConfig(**_ALL_ROWS, steps=200, decay_at=150, rate=0.5),),
    "mldg": tuple(
        MldgConfig(**_ALL_ROWS, steps=200, decay_at=150, rate=0.05, beta=10.0, inner_rate=rate)
        for rate in (3.0, 6.0, 8.0, 10.0, 15.0, 20.0)
    ),
    "fish": tuple(
        FishConfig(**_ALL_ROWS, steps=400, decay_at=400, rate=rate, meta_rate=0.05)
        for rate in (3.0, 6.0, 8.0, 10.0, 15.0, 20.0)
    ),
    "trm": tuple(replace(TRM, beyond=beyond) for beyond in (1.0, 2.0, 3.0, 4.0, 5.0)),
}
"""Settings that each method chooses from: inner rates, for TRM the extrapolation. A step takes all rows.

The ranges were set by hand on colored digits with the exact classifier known; the choice within them does not use it.
"""


def fit_principal(
    source: str,
    sets: Sequence[Environment],
    classifier: ClassifierConfig,
    *,
    seed: int,
    environments: EnvironmentConfig | None = None,
    network: nn.Module | None = None,
) -> nn.Module:
    """Train a principal classifier of the domain, from images in [-1, 1] to logits of shape (n, 2), frozen.

    "oracle" fits one set in which only z1 predicts the domain; "mldg", "trm" and "fish" learn what two or more sets
    (environments) share, with the training of `environments`, by default the paper's values. `network` is by default
    the paper's for digits, with the width of `classifier`.

    Examples
    --------
    >>> import torch
    >>> x = torch.rand(32, 3, 8, 8)
    >>> y = (x.mean((1, 2, 3)) > 0.5).long()
    >>> principal = fit_principal("oracle", [(x, y)], ClassifierConfig(width=2, epochs=1, batch_size=16), seed=0)
    >>> principal(x).shape
    torch.Size([32, 2])
    """
    if source == "oracle":
        if len(sets) != 1:
            raise UserError(
                f"the oracle was given {len(sets)} sets", do="give the one in which only z1 predicts the domain."
            )
        (x, y), *_ = sets
        return fit_domain_classifier(x, y, classifier, seed=seed, network=network, trainer=train_on_machine)
    known = sorted({*get_args(Method)} - {"erm"})
    if source not in known:
        raise UserError(
            f"no source of principal classifiers is called {source!r}", do=f"there are oracle, {', '.join(known)}."
        )
    method: Any = source
    channels = sets[0][0].shape[1]
    if network is None:
        network = seeded(seed, lambda: DigitClassifier(width=classifier.width, channels=channels))
    config = replace(environments or METHODS[method][1](), seed=seed)
    return fit_invariant(method, sets, prepare(network), config, trainer=train_on_machine)


def weights_by_importance(
    x: torch.Tensor, y: torch.Tensor, principal: nn.Module, cut: float | None = None
) -> NDArray[np.float64]:
    """``phi = p(y) / w_1(x)_y`` of images; with `cut`, of mean 1 and at most `cut` before that mean is restored.

    The domains are equally frequent in the data of the principal classifier. Without `cut` a few images that w_1 is
    wrong about can have most of the weight, and a network trained on them diverges.

    Examples
    --------
    >>> x, y = torch.rand(4, 3, 8, 8), torch.tensor([0, 0, 1, 1])
    >>> sure = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    >>> _ = nn.init.zeros_(sure[1].weight), sure[1].bias.data.copy_(torch.tensor([5.0, -5.0]))
    >>> weights_by_importance(x, y, sure, cut=1.5).round(2).tolist()
    [0.0, 0.0, 2.0, 2.0]
    """
    phi = importance_weights(y.numpy(), log_proba(principal, x).exp().numpy(), "uniform")
    if cut is None:
        return phi
    limited = np.minimum(phi / phi.mean(), cut)
    return np.asarray(limited / limited.mean())


class LastLayer(nn.Module):  # type: ignore[misc]
    """A network's features with another last layer, whose logits are calibrated.

    `config` is the chosen candidate, `gap` the largest difference of its held-out risks between environments.
    """

    def __init__(self, features: nn.Module, head: nn.Module, config: EnvironmentConfig, gap: float):
        super().__init__()
        self.features, self.head, self.config, self.gap = features, head, config, gap

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, n_classes)."""
        return self.head(self.features(x))


def fit_last_layer(
    method: Method,
    environments: Sequence[Environment],
    held_out: Sequence[Environment],
    network: nn.Module,
    candidates: Sequence[EnvironmentConfig] | None = None,
    *,
    n_components: int = 4,
    keep: float = 0.5,
) -> LastLayer:
    """Learn the last layer of a trained network again, by a method that compares environments.

    The features are centered, projected on at most `n_components` leading principal components of all environments'
    rows together, and scaled to variance 1. Each candidate (by default `CANDIDATES`) starts from the pooled head on
    these, is fitted, calibrated on all held-out rows, and judged by the gap between its held-out risks; the one with
    the smallest gap is kept. It must reach the part `keep` of the pooled head's held-out gain over class frequencies: a
    constant head has no gap either. `network` has the parts `encoder` (or `features`) and `head`, and is not changed.

    Examples
    --------
    >>> x = torch.tensor([[-1.0, 0.0], [-1.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(20, 1)
    >>> y = torch.tensor([0, 0, 1, 1]).repeat(20)
    >>> y[:3] = torch.tensor([1, 1, 0])
    >>> network = nn.Module()
    >>> network.encoder, network.head = nn.Identity(), nn.Linear(2, 2)
    >>> fitted = fit_last_layer("mldg", [(x, y), (x, y)], [(x, y), (x, y)], network, [CANDIDATES["mldg"][0]])
    >>> fitted(torch.tensor([[-1.0, 0.5], [1.0, 0.5]])).argmax(dim=1).tolist()
    [0, 1]
    """
    for sets in (environments, held_out):
        check_environments(sets, 1)
    if len(held_out) != len(environments):
        raise UserError(
            f"{len(held_out)} held-out environments were given for {len(environments)}",
            do="give other rows of each, in order.",
        )
    candidates = CANDIDATES[method] if candidates is None else candidates
    features = encoder_of(network).eval()
    train, judged = _features(features, environments), _features(features, held_out)
    whitening = _whitening(train, n_components)
    train = [(whitening(x), y) for x, y in train]
    judged = [(whitening(x), y) for x, y in judged]
    start = _pooled_head(train, n_classes=1 + int(max(y.max() for _, y in train)))
    fits = [_calibrated(_fit(method, train, start, config), pooled(judged)) for config in candidates]
    risks = [[float(risk(fit, environment)) for environment in judged] for fit in fits]
    place = _smallest_gap(risks, _largest_risk(start, judged, keep))
    gap = max(risks[place]) - min(risks[place])
    head = _as_linear(whitening, fits[place]).to(device_of(features))
    fitted = LastLayer(features, head, candidates[place], gap)
    fitted.eval()
    return fitted


def _features(features: nn.Module, environments: Sequence[Environment]) -> list[Environment]:
    device = device_of(features)
    with torch.no_grad():
        return [
            (torch.cat([features(signed(part).to(device)).cpu() for part in x.split(1024)]), y) for x, y in environments
        ]


def _linear(weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer.requires_grad_(False)


def _whitening(environments: Sequence[Environment], n_components: int) -> nn.Linear:
    """From features to their leading components, of mean 0 and variance 1 over all rows."""
    x, _ = pooled(environments)
    x = x.double()
    mean = x.mean(dim=0)
    _, scales, directions = torch.linalg.svd(x - mean, full_matrices=False)
    # a constant direction cannot be scaled to variance 1
    known = min(n_components, int((scales > 1e-6 * scales[0]).sum()))
    matrix = directions[:known] / scales[:known, None] * math.sqrt(len(x))
    return _linear(matrix, -matrix @ mean)


def _pooled_head(environments: Sequence[Environment], n_classes: int) -> nn.Linear:
    zeros = torch.zeros(n_classes, environments[0][0].shape[1])
    start = _linear(zeros, zeros[:, 0]).requires_grad_(True)
    (config,) = CANDIDATES["erm"]
    return fit_invariant("erm", environments, start, config)


def _fit(method: Method, environments: Sequence[Environment], start: nn.Linear, config: EnvironmentConfig) -> nn.Module:
    return fit_invariant(method, environments, _Split(start) if method == "trm" else _trainable(start), config)


def _trainable(layer: nn.Linear) -> nn.Linear:
    return _linear(layer.weight.detach(), layer.bias.detach()).requires_grad_(True)


class _Split(nn.Module):  # type: ignore[misc]
    """A linear head in the two parts that TRM needs: log-ratios to class 0 as its features, and a layer on these.

    With as many features as components any head could be undone by the next layer, and no features would be better
    than others.
    """

    def __init__(self, start: nn.Linear):
        super().__init__()
        weight, bias = start.weight.detach(), start.bias.detach()
        n_ratios = len(bias) - 1
        ratios = _linear(weight[1:] - weight[0], torch.zeros(n_ratios)).requires_grad_(True)
        # the layer on top has the intercepts
        ratios.bias.requires_grad_(False)
        identity = torch.cat([torch.zeros(1, n_ratios), torch.eye(n_ratios)])
        self.encoder, self.head = ratios, _linear(identity, bias - bias[0]).requires_grad_(True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x))


def _calibrated(head: nn.Module, rows: Environment) -> nn.Module:
    """One scale for all logits and an intercept for each (Platt's, for two classes), of smallest risk on some rows."""
    x, y = rows
    with torch.no_grad():
        logits = head(x).double()
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(logits.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([scale, shift], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(scale * logits + shift, y)
        loss.backward()
        return loss

    optimizer.step(closure)
    n_classes = len(shift)
    calibration = _linear(scale.detach() * torch.eye(n_classes), shift.detach())
    return nn.Sequential(head, calibration).requires_grad_(False).eval()


def _largest_risk(start: nn.Module, held_out: Sequence[Environment], keep: float) -> float:
    """The largest mean risk that a candidate may have."""
    x, y = pooled(held_out)
    counts = torch.bincount(y).double()
    entropy = float(torch.special.entr(counts / counts.sum()).sum())
    return entropy - keep * (entropy - float(risk(_calibrated(start, (x, y)), (x, y))))


def _smallest_gap(risks: Sequence[Sequence[float]], allowed: float) -> int:
    gaps = {place: max(some) - min(some) for place, some in enumerate(risks) if sum(some) / len(some) <= allowed}
    if not gaps:
        raise UserError(
            f"no candidate has a mean held-out risk of {allowed:.3g} or less",
            do="give smaller inner rates, or a smaller `keep`.",
        )
    return min(gaps, key=lambda place: gaps[place])


def _as_linear(whitening: nn.Linear, head: nn.Module) -> nn.Linear:
    """Several linear layers in one."""
    with torch.no_grad():
        n_components = whitening.out_features
        shift = head(torch.zeros(1, n_components))
        matrix = (head(torch.eye(n_components)) - shift).T
        return _linear(matrix @ whitening.weight, matrix @ whitening.bias + shift[0])
