"""Which model to keep for a target without labels, and which class frequencies it should assume.

Two predictions are made. The *corrected* one is for the case that only the class frequencies changed: logistic
regression, calibrated out of fold, for the frequencies that EM estimates, moved toward the source's by one error of the
estimate; networks replace it, or are averaged with it, as far as they predict held-out source rows, weighted to the
estimate, better. The *uncorrected* one is for the case that the features changed and the estimate cannot be trusted:
linear model and networks, adapted if adaptation passes its checks, averaged with a network of all source rows. It
assumes equal class frequencies, or those of the source where the estimates hardly differ from them. The evidence for
the first case, from 0 to 1, is the weight of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import log_softmax, softmax

from setminus.adaptation.label_shift import (
    Calibrator,
    calibrator,
    class_frequencies,
    maximum_likelihood_prior,
    mix_distance,
)
from setminus.adaptation.linear_source import FOLDS, LinearSource, fit_linear_source, prior_evidence, source_folds

__all__ = [
    "MASS",
    "Automatic",
    "Trainer",
    "agreement_beyond_chance",
    "choose",
    "common_scale",
    "information",
    "joined",
    "network_logits",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Layers = list[tuple[Floats, Floats]]

MIN_ROWS = 3
"""Source rows of each class from which on networks are trained."""
BETTER, CLEARLY_BETTER = 2.0, 3.0
"""Standard errors of the difference on held-out source rows from which a model counts as better: the first for the
linear model to be used alone and for networks to be averaged with it, the second for networks to be used alone."""
MAX_CONFIDENCE = 1.05
"""Predictions for the target that are more informative by this factor than those for held-out source rows, weighted to
the same class frequencies, are overconfident: target entropy was minimised where the classes overlap."""
MIN_AGREEMENT = 0.4
"""The least agreement beyond chance of an adapted network with each model without adaptation, on target rows: below it,
adversarial training may have aligned a class with another one, which no other check sees."""
MASS = 10.0
"""The weight of the mass constraint beside the target's entropy; see `VadaOrthogonal`."""
MAX_SCALE_RATIO = 10.0
"""Columns whose deviations are all within this factor of the median are taken to have one unit."""
TYPICAL_ERROR = 0.1
"""The error of an estimate of the class frequencies beside that by shifts of single columns, as a distance."""
LITTLE_SHIFT = 0.3
"""An estimated change of the class frequencies below it, as a distance, counts as none, in proportion: where every
model estimates a small one, the uncorrected model assumes frequencies near the source's instead of equal ones."""
SINGLE = 1 / 3
"""The weight of the network of all source rows in the uncorrected model: models of folds have seen fewer rows, and
where features moved far, each model errs in its own way."""
MIN_FREQUENCY = 1e-4
"""A smaller estimate counts as this: a class without an estimated share is rare, not impossible."""
REASONS = {
    "linear": "networks do not predict held-out source rows better",
    "networks": "they predict held-out source rows better than the linear model",
    "average": "neither the linear model nor the networks are clearly better on held-out source rows",
    "adapted": "features shifted, and the adapted network passes its checks",
    "blend": "the evidence for a change of the class frequencies alone is mixed",
    "few rows": "a class has too few source rows to hold some out",
}


@dataclass(frozen=True)
class Trainer:
    """How networks are trained.

    Parameters
    ----------
    fold_networks : callable
        From folds of the source rows to a network for each.
    adapted : callable
        From the target's class frequencies, if they are known, to an adapted network that leaves out `held`.
    single : callable
        To a network of all source rows.
    held : ndarray of bool of shape (n,)
    """

    fold_networks: Callable[[list[tuple[Codes, Codes]]], list[Layers]]
    adapted: Callable[[Floats | None], Layers]
    single: Callable[[], Layers]
    held: NDArray[np.bool_]


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


@dataclass(frozen=True)
class _Model:
    """A calibrated model for equal class frequencies, and the logarithm of those that predictions should assume.

    `held_out` are logits of source rows by models that were not fitted to them, `target` those of target rows by the
    same models.
    """

    layers: Layers
    held_out: Floats
    target: Floats
    log_prior: Floats


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
    x: Floats, codes: Codes, target: Floats, trainer: Trainer, *, strength: float, known: Floats | None, seed: int
) -> Automatic:
    """Fit the candidates and combine them by the evidence.

    Parameters
    ----------
    x : ndarray of shape (n, n_features)
        Source rows.
    codes : ndarray of int of shape (n,)
        Their classes, from 0.
    target : ndarray of shape (m, n_features)
    trainer : Trainer
    strength : float
        The inverse strength of regularisation of the logistic regression that is corrected.
    known : ndarray of shape (C,), optional
        The target's class frequencies, if they are known.
    seed : int

    Returns
    -------
    Automatic
    """
    n_classes = int(codes.max()) + 1
    prior = class_frequencies(codes, n_classes)
    equal = np.zeros(n_classes)
    plain, strong = (fit_linear_source(x, codes, target, seed, *strengths) for strengths in ([(strength,)], []))
    found = prior_evidence(strong, x, codes, target, seed)
    of_target = log_softmax(target @ plain.weight + plain.bias, axis=1)
    estimate = maximum_likelihood_prior(np.exp(of_target), prior) if known is None else known
    used = cautious(estimate, prior, found.column_error) if known is None else known
    evidence: dict[str, Any] = {
        "estimate": estimate.tolist(),
        "shift": mix_distance(estimate, prior),
        "unexplained": found.unexplained,
        "disagreement": None if np.isnan(found.disagreement) else found.disagreement,
        "column_error": found.column_error,
        "trust": found.trust,
    }
    corrected = _linear(plain, prior, _log(used))
    uncorrected = _linear(strong, prior, equal if known is None else _log(known))
    estimates = [estimate, found.estimate]
    names, reason = ["linear", "linear"], "few rows"
    if np.bincount(codes).min() >= MIN_ROWS:
        folds = list(source_folds(codes, FOLDS, seed))
        networks = _networks(trainer.fold_networks(folds), folds, x, codes, target)
        reason = ""
        estimates.append(_estimated(networks, prior))
        if found.trust > 0:
            names[0], corrected, evidence["held_out_gain"] = _better(corrected, networks, codes, prior)
        if found.trust < 1:
            base = uncorrected
            names[1], uncorrected = _steadier(base, networks, codes, prior)
            checked = _checked(base, networks, trainer, x, codes, target, estimate if known is not None else None)
            evidence |= checked[1]
            if checked[0] is not None:
                names[1], uncorrected = "adapted", _averaged(networks, checked[0], base.log_prior)
            single = _as_spread(trainer.single(), networks, target)
            layers = joined([(1 - SINGLE, uncorrected.layers), (SINGLE, single)])
            uncorrected = replace(uncorrected, layers=layers)
    if known is None:
        evidence["unchanged"] = _unchanged(estimates, prior)
        uncorrected = replace(uncorrected, log_prior=evidence["unchanged"] * np.log(prior))
    return _blended(corrected, uncorrected, names, reason, evidence, target)


def cautious(estimate: Floats, source_prior: Floats, column_error: float) -> Floats:
    """An estimate of the class frequencies, moved toward the source's by its error.

    An estimate that is wrong because features shifted costs most where it is extreme: a class without an estimated
    share would never be predicted. Where the estimate is right, a part of the correction has most of its gain.

    Examples
    --------
    >>> cautious(np.array([0.0, 1.0]), np.array([0.5, 0.5]), column_error=0.0).round(2)
    array([0.1, 0.9])
    >>> cautious(np.array([0.0, 1.0]), np.array([0.5, 0.5]), column_error=1.0)
    array([0.5, 0.5])
    """
    error, distance = float(np.hypot(column_error, TYPICAL_ERROR)), mix_distance(estimate, source_prior)
    moved = min(error / distance, 1.0) if distance > 0 else 1.0
    nearer: Floats = (1 - moved) * estimate + moved * source_prior
    return nearer


def _unchanged(estimates: Sequence[Floats], prior: Floats) -> float:
    """From 1, if all estimates of the class frequencies are the source's, to 0, if one is far from them."""
    return max(1 - max(mix_distance(one, prior) for one in estimates) / LITTLE_SHIFT, 0.0)


def _blended(
    corrected: _Model, uncorrected: _Model, names: Sequence[str], reason: str, evidence: dict[str, Any], target: Floats
) -> Automatic:
    """Both predictions, weighted by the trust in the first."""
    trust = evidence["trust"]
    layers = joined([(trust, corrected.layers), (1 - trust, uncorrected.layers)])
    log_used = trust * corrected.log_prior + (1 - trust) * uncorrected.log_prior
    used: Floats = softmax(log_used)
    kept = names[0] if trust == 1 else names[1] if trust == 0 else "blend"
    predicted = softmax(network_logits(layers, target) + log_used, axis=1).mean(axis=0)
    evidence |= {
        "corrected": names[0],
        "uncorrected": names[1],
        "kept": kept,
        "reason": REASONS[reason or kept],
        "mass_distance": mix_distance(predicted, used),
    }
    return Automatic(layers, used, evidence)


def _linear(fitted: LinearSource, prior: Floats, log_prior: Floats) -> _Model:
    log_source = np.log(prior)
    layers = [(fitted.weight, fitted.bias - log_source)]
    return _Model(layers, fitted.held_out - log_source, fitted.target - log_source, log_prior)


def _networks(
    networks: list[Layers], folds: list[tuple[Codes, Codes]], x: Floats, codes: Codes, target: Floats
) -> _Model:
    """The mean of the networks of the folds, calibrated on the rows that each of them left out."""
    n_classes = networks[0][-1][1].size
    held_out = np.zeros((len(x), n_classes))
    for layers, (_, unseen) in zip(networks, folds, strict=True):
        held_out[unseen] = network_logits(layers, x[unseen])
    fitted = calibrator(held_out, codes)
    offset = fitted.bias - np.log(class_frequencies(codes, n_classes))
    of_target = np.concatenate([network_logits(layers, target) for layers in networks])
    layers = _scaled(joined([(1 / len(networks), layers) for layers in networks]), fitted, offset)
    return _Model(layers, fitted.scale * held_out + offset, fitted.scale * of_target + offset, np.zeros(n_classes))


def _as_spread(layers: Layers, networks: _Model, target: Floats) -> Layers:
    """A network whose logits spread over the target's rows at most as those of the calibrated ones do.

    It has seen all source rows, so that none are left to calibrate it on.
    """
    spread, own = (
        float(np.std(logits - logits.mean(axis=1, keepdims=True)))
        for logits in (network_logits(networks.layers, target), network_logits(layers, target))
    )
    scale = min(spread / own, 1.0) if own > 0 else 1.0
    weight, bias = layers[-1]
    return [*layers[:-1], (scale * weight, scale * bias)]


def _better(linear: _Model, networks: _Model, codes: Codes, prior: Floats) -> tuple[str, _Model, tuple[float, float]]:
    """The model to correct, for the estimate of the linear model: the checks are of that one.

    Under a change of the class frequencies alone, the weighted loss of held-out source rows estimates that of target
    rows without bias.
    """
    gain, error = _gain(linear, networks, codes, prior)
    if gain > CLEARLY_BETTER * error:
        return "networks", _Model(networks.layers, networks.held_out, networks.target, linear.log_prior), (gain, error)
    if gain > BETTER * error:
        return "average", _averaged(linear, networks, linear.log_prior), (gain, error)
    return "linear", linear, (gain, error)


def _steadier(linear: _Model, networks: _Model, codes: Codes, prior: Floats) -> tuple[str, _Model]:
    """The model that is not corrected: the average, unless one of the two is clearly better on held-out source rows."""
    gain, error = _gain(linear, networks, codes, prior)
    if gain < -BETTER * error:
        return "linear", linear
    if gain > CLEARLY_BETTER * error:
        return "networks", _Model(networks.layers, networks.held_out, networks.target, linear.log_prior)
    return "average", _averaged(linear, networks, linear.log_prior)


def _checked(
    linear: _Model,
    networks: _Model,
    trainer: Trainer,
    x: Floats,
    codes: Codes,
    target: Floats,
    known: Floats | None,
) -> tuple[_Model | None, dict[str, float]]:
    """An adapted network, if it passes four checks.

    It predicts held-out source rows at least as well as the linear model; its predictions for the target are at least
    as informative as those without adaptation, and not more so than its predictions for held-out source rows; and they
    agree with those without adaptation.
    """
    held, own = trainer.held, codes[trainer.held]
    layers = trainer.adapted(known)
    fitted = calibrator(network_logits(layers, x[held]), own)
    prior = class_frequencies(own, len(fitted.bias))
    layers = _scaled(layers, fitted, fitted.bias - np.log(prior))
    of_rows, of_target = network_logits(layers, x[held]), network_logits(layers, target)
    adapted = _Model(layers, of_rows, of_target, linear.log_prior)
    of_linear = _Model(linear.layers, linear.held_out[held], linear.target, linear.log_prior)
    gain, _ = _gain(of_linear, adapted, own, prior)
    weights = np.exp(linear.log_prior)[own] / prior[own]
    unadapted = [network_logits(model.layers, target) for model in (networks, linear)]
    plain, after, of_source = (
        information(rows + linear.log_prior, given)
        for rows, given in ((unadapted[0], None), (of_target, None), (of_rows, weights))
    )
    agreement = min(agreement_beyond_chance(of_target.argmax(axis=1), rows.argmax(axis=1)) for rows in unadapted)
    numbers = {
        "adapted_gain": gain,
        "adapted_agreement": agreement,
        "networks_information": plain,
        "adapted_information": after,
        "adapted_source_information": of_source,
    }
    passed = gain > 0 and plain <= after <= MAX_CONFIDENCE * of_source and agreement >= MIN_AGREEMENT
    return adapted if passed else None, numbers


def _gain(one: _Model, other: _Model, codes: Codes, prior: Floats) -> tuple[float, float]:
    """Log loss of a model less that of another on held-out source rows, and its standard error.

    Rows are weighted to the frequencies of the first.
    """
    rows, weights = np.arange(len(codes)), (np.exp(one.log_prior) / prior)[codes]
    first, second = (log_softmax(model.held_out + one.log_prior, axis=1)[rows, codes] for model in (one, other))
    gain = float(np.average(second - first, weights=weights))
    return gain, float(np.sqrt(np.average((second - first - gain) ** 2, weights=weights) / len(rows)))


def _estimated(model: _Model, prior: Floats) -> Floats:
    return maximum_likelihood_prior(softmax(model.target + np.log(prior), axis=1), prior)


def _averaged(one: _Model, other: _Model, log_prior: Floats) -> _Model:
    # logits of source rows are not needed any more, and may be of different rows
    return _Model(joined([(0.5, one.layers), (0.5, other.layers)]), one.held_out, one.target, log_prior)


def _log(prior: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(prior, MIN_FREQUENCY))
    return logs


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


def agreement_beyond_chance(one: Codes, other: Codes) -> float:
    """Cohen's kappa of two predictions of classes: 1 where they are equal, 0 where they agree as often as by chance.

    Examples
    --------
    >>> first = np.array([0, 0, 1, 1])
    >>> agreement_beyond_chance(first, first), agreement_beyond_chance(first, np.array([0, 1, 0, 1]))
    (1.0, 0.0)
    """
    n_classes = int(max(one.max(), other.max())) + 1
    chance = float(class_frequencies(one, n_classes) @ class_frequencies(other, n_classes))
    return 1.0 if chance == 1 else (float(np.mean(one == other)) - chance) / (1 - chance)


def joined(members: Sequence[tuple[float, Layers]]) -> Layers:
    """One network whose logits are the weighted sum of those of linear models and of networks of one depth.

    Linear logits pass through hidden units as ``u = relu(u) - relu(-u)``. Members of weight 0 are left out.

    Examples
    --------
    >>> linear, network = [(np.eye(2), np.zeros(2))], [(-np.eye(2), np.zeros(2)), (np.eye(2), np.ones(2))]
    >>> network_logits(joined([(0.5, linear), (0.5, network)]), np.array([[3.0, -5.0]]))
    array([[2. , 0.5]])
    """
    members = [(share, layers) for share, layers in members if share]
    linear = [(share, layers[0]) for share, layers in members if len(layers) == 1]
    parts = [(share, layers) for share, layers in members if len(layers) > 1]
    if linear:
        weight, bias = (np.sum([share * layer[part] for share, layer in linear], axis=0) for part in (0, 1))
        if not parts:
            return [(weight, bias)]
        both = np.eye(2 * weight.shape[1])
        through = [(both, np.zeros(len(both)))] * (len(parts[0][1]) - 2)
        ends = np.vstack([np.eye(weight.shape[1]), -np.eye(weight.shape[1])])
        first = (np.hstack([weight, -weight]), np.concatenate([bias, -bias]))
        parts.append((1.0, [first, *through, (ends, np.zeros(weight.shape[1]))]))
    firsts, *inner = zip(*(layers[:-1] for _, layers in parts), strict=True)
    layers = [(np.hstack([weight for weight, _ in firsts]), np.concatenate([bias for _, bias in firsts]))]
    layers += [(block_diag(*(w for w, _ in own)), np.concatenate([b for _, b in own])) for own in inner]
    last = np.vstack([share * own[-1][0] for share, own in parts])
    return [*layers, (last, np.sum([share * own[-1][1] for share, own in parts], axis=0))]


def network_logits(layers: Layers, x: Floats) -> Floats:
    """``relu(x @ weight + bias)`` one layer after the other, the last without relu."""
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0.0)
    weight, bias = layers[-1]
    logits: Floats = x @ weight + bias
    return logits


def _scaled(layers: Layers, fitted: Calibrator, offset: Floats) -> Layers:
    """Calibrate by the last layer.

    A network that weighs classes equally learns the few rows of a rare class by heart, and predicts the class too
    seldom on new rows: the calibrated bias corrects this.
    """
    weight, bias = layers[-1]
    return [*layers[:-1], (fitted.scale * weight, fitted.scale * bias + offset)]
