"""Which model to keep for a target without labels: a linear one, an adapted network, or their average.

Each is calibrated on source rows that it was not trained on and predicts for the class frequencies that the evidence
supports: the estimate where it can be trusted, equal frequencies where it cannot. An adapted network that is more
certain of target rows than of held-out source rows is replaced by a network that did not adapt. The network is kept
alone where it is clearly better than the linear model on held-out source rows weighted to the target's frequencies, or
where features shifted and adaptation makes the predictions for the target more informative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import log_softmax

from setminus.adaptation.label_shift import calibrator, class_frequencies, mix_distance
from setminus.adaptation.linear_source import fit_linear_source, prior_evidence

__all__ = ["MASS", "Automatic", "averaged", "choose", "common_scale", "information", "network_logits"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Layers = list[tuple[Floats, Floats]]
Train = Callable[[Literal["source_only", "vada_orthogonal"], Floats | None], Layers]
"""From a method and known class frequencies of the target to a trained network."""

MIN_UNEXPLAINED = 0.05
"""Below it the class frequencies explain the target's predictions: the features of the classes did not shift."""
MIN_GAIN = 1.05
"""The factor by which adaptation must raise the information of the predictions for the target."""
MAX_CONFIDENCE = 1.05
"""Predictions for the target that are more informative by this factor than those for held-out source rows, weighted to
the same class frequencies, are overconfident: target entropy was minimised where the classes overlap."""
CLEARLY_WORSE, CLEARLY_BETTER = 2.0, 3.0
"""Standard errors of the difference on held-out source rows from which a network is not used, or is used alone."""
MASS = 10.0
"""The weight of the mass constraint beside the target's entropy; see `VadaOrthogonal`."""
MAX_SCALE_RATIO = 10.0
"""Columns whose deviations are all within this factor of the median are taken to have one unit."""


@dataclass(frozen=True)
class Automatic:
    """The model that was kept.

    Attributes
    ----------
    layers : list of (weight, bias)
        Its logits are for equal class frequencies.
    target_prior : ndarray of shape (C,)
        The class frequencies that predictions should assume.
    evidence : dict
        What was kept, why, and the numbers behind it; plain values.
    """

    layers: Layers
    target_prior: Floats
    evidence: dict[str, Any]


def common_scale(scale: Floats) -> Floats:
    """One deviation for all columns if they have one unit, such as pixels or word weights; otherwise each its own.

    Dividing rare words or border pixels by their own deviation makes them count as much as the others, and they are
    what differs between two domains.

    Examples
    --------
    >>> common_scale(np.array([3.0, 4.0, 5.0])).round(2), common_scale(np.array([1.0, 2.0, 500.0]))
    (array([4.08, 4.08, 4.08]), array([  1.,   2., 500.]))
    """
    positive = scale[scale > 0]
    own: Floats = np.where(scale > 0, scale, 1.0)
    if len(positive) and positive.max() > MAX_SCALE_RATIO * np.median(positive):
        return own
    return np.full(len(scale), float(np.sqrt(np.mean(scale**2))) if len(positive) else 1.0)


def choose(
    x: Floats, codes: Codes, target: Floats, held: NDArray[np.bool_], train: Train, *, known: Floats | None, seed: int
) -> Automatic:
    """Fit the candidates and keep one.

    Parameters
    ----------
    x : ndarray of shape (n, n_features)
        Source rows.
    codes : ndarray of int of shape (n,)
        Their classes, from 0.
    target : ndarray of shape (m, n_features)
    held : ndarray of bool of shape (n,)
        Source rows that `train` leaves out; without any, the linear model is kept.
    train : callable
    known : ndarray of shape (C,), optional
        The target's class frequencies, if they are known.
    seed : int

    Returns
    -------
    Automatic
    """
    linear = fit_linear_source(x, codes, target, seed)
    prior = class_frequencies(codes, linear.bias.size)
    found = prior_evidence(linear, x, codes, target, seed)
    used = found.trust * found.estimate + (1 - found.trust) / len(prior) if known is None else known
    log_used = np.log(np.maximum(used, np.finfo(float).tiny))
    evidence: dict[str, Any] = {
        "estimate": found.estimate.tolist(),
        "shift": found.shift,
        "unexplained": found.unexplained,
        "disagreement": None if np.isnan(found.disagreement) else found.disagreement,
        "trust": found.trust if known is None else 1.0,
    }
    of_linear: Layers = [(linear.weight, linear.bias - np.log(prior))]
    layers, kept, reason = of_linear, "linear", "a class has too few source rows to hold some out"
    if held.any():
        own = codes[held]
        weights = np.exp(log_used)[own] / prior[own]
        of_rows = linear.held_out[held] - np.log(prior) + log_used

        def informed(layers: Layers) -> float:
            return information(network_logits(layers, target) + log_used)

        def better(layers: Layers) -> tuple[float, float]:
            return _gain(of_rows, network_logits(layers, x[held]) + log_used, own, weights)

        name, network = "source_only", _calibrated(train("source_only", None), x[held], own)
        gain, error = better(network)
        shifted = found.unexplained >= MIN_UNEXPLAINED
        evidence |= {"linear_information": informed(of_linear), "source_only_information": informed(network)}
        if shifted or gain > CLEARLY_BETTER * error:
            adapted = _calibrated(train("vada_orthogonal", used if evidence["trust"] == 1 else None), x[held], own)
            of_target = informed(adapted)
            of_source = information(network_logits(adapted, x[held]) + log_used, weights)
            evidence |= {"adapted_information": of_target, "adapted_source_information": of_source}
            if evidence["source_only_information"] <= of_target <= MAX_CONFIDENCE * of_source:
                name, network = "vada_orthogonal", adapted
                gain, error = better(network)
                shifted = shifted and of_target > MIN_GAIN * evidence["linear_information"]
        evidence |= {"network": name, "held_out_gain": gain, "held_out_error": error}
        kept, reason = _kept(name, gain, error, shifted)
        layers = {"linear": of_linear, "average": averaged(of_linear[0], network)}.get(kept, network)
    predicted = np.exp(log_softmax(network_logits(layers, target) + log_used, axis=1)).mean(axis=0)
    evidence |= {"kept": kept, "reason": reason, "mass_distance": mix_distance(predicted, used)}
    return Automatic(layers, used, evidence)


def _kept(network: str, gain: float, error: float, shifted: bool) -> tuple[str, str]:
    """The model to keep, and the reason."""
    if gain < -CLEARLY_WORSE * error:
        return "linear", "it predicts held-out source rows better than the network"
    if gain > CLEARLY_BETTER * error:
        return network, "it predicts held-out source rows better than the linear model"
    if network == "vada_orthogonal" and shifted:
        return network, "features shifted, and adaptation makes the predictions for the target more informative"
    return "average", "neither the linear model nor the network is clearly better"


def information(logits: Floats, weights: Floats | None = None) -> float:
    """Mutual information of row and class, in nats: entropy of the mean prediction less the mean entropy.

    Examples
    --------
    >>> sure = 50 * np.eye(2)[[0, 1, 0, 1]]
    >>> round(information(sure), 3), round(information(0 * sure), 3)
    (0.693, 0.0)
    """
    log_proba = log_softmax(logits, axis=1)
    proba = np.exp(log_proba)
    mean = np.average(proba, axis=0, weights=weights)
    of_mean = -float(np.sum(mean * np.log(np.maximum(mean, np.finfo(float).tiny))))
    return max(of_mean + float(np.average(np.sum(proba * log_proba, axis=1), weights=weights)), 0.0)


def averaged(linear: tuple[Floats, Floats], layers: Layers) -> Layers:
    """One network whose logits are the mean of a linear model's and a network's.

    The linear logits pass through hidden units as ``u = relu(u) - relu(-u)``.

    Examples
    --------
    >>> linear, network = (np.eye(2), np.zeros(2)), [(-np.eye(2), np.zeros(2)), (np.eye(2), np.ones(2))]
    >>> network_logits(averaged(linear, network), np.array([[3.0, -5.0]]))
    array([[2. , 0.5]])
    """
    weight, bias = linear
    (first, offset), *inner, (last, end) = layers
    n = weight.shape[1]
    joined = [(np.hstack([first, weight, -weight]), np.concatenate([offset, bias, -bias]))]
    joined += [(block_diag(one, np.eye(2 * n)), np.concatenate([own, np.zeros(2 * n)])) for one, own in inner]
    return [*joined, (np.vstack([last, np.eye(n), -np.eye(n)]) / 2, end / 2)]


def network_logits(layers: Layers, x: Floats) -> Floats:
    """``relu(x @ weight + bias)`` one layer after the other, the last without relu."""
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0.0)
    weight, bias = layers[-1]
    logits: Floats = x @ weight + bias
    return logits


def _calibrated(layers: Layers, held: Floats, codes: Codes) -> Layers:
    """A network calibrated on held-out source rows for equal class frequencies, by its last layer.

    A network that weighs classes equally learns the few rows of a rare class by heart, and predicts the class too
    seldom on new rows: the calibrated bias corrects this.
    """
    weight, bias = layers[-1]
    fitted = calibrator(network_logits(layers, held), codes)
    for_equal = fitted.bias - np.log(class_frequencies(codes, len(bias)))
    return [*layers[:-1], (fitted.scale * weight, fitted.scale * bias + for_equal)]


def _gain(linear: Floats, network: Floats, codes: Codes, weights: Floats) -> tuple[float, float]:
    """Weighted log loss of the linear model less the network's on held-out source rows, and its standard error."""
    rows = np.arange(len(codes))
    gains = log_softmax(network, axis=1)[rows, codes] - log_softmax(linear, axis=1)[rows, codes]
    gain = float(np.average(gains, weights=weights))
    return gain, float(np.sqrt(np.average((gains - gain) ** 2, weights=weights) / len(gains)))
