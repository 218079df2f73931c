"""A linear classifier of the source, its estimate of the target's class frequencies, and how far to trust that.

An estimate by maximum likelihood is right if only the class frequencies changed. Three checks without target labels
test this. *Unexplained*: the part of the difference between the source's and the target's predictions that remains
after the source is weighted to the estimated frequencies. *Disagreement*: how far estimates from two halves of the
features are apart; a shift of the features moves them in different directions, a shift of the frequencies moves them
together. *Column error*: the error of the estimate by shifts of single columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from setminus.adaptation.label_shift import (
    Calibrator,
    calibrator,
    class_frequencies,
    maximum_likelihood_prior,
    mix_distance,
)

__all__ = ["FOLDS", "LinearSource", "PriorEvidence", "fit_linear_source", "prior_evidence", "source_folds", "trust"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
"""Inverse strengths of regularisation, the strongest first."""
FOLDS, HALVINGS = 3, 3
MAX_ROWS = 1_000
"""Rows of each domain in the distance of predictions, which takes all pairs."""
UNEXPLAINED = (0.10, 0.20)
"""An estimate is trusted fully below the first value, and not at all above the second."""
DISAGREEMENT = (0.15, 0.30)
"""The same for the disagreement of two halves of the features over the size of the shift."""
CHANCE_AGREEMENT = (0.30, 0.50)
"""The same for the unexplained part where the disagreement is small: halves can agree by chance."""
CONTRADICTION, SKILL = (0.3, 0.8), (0.5, 0.7)
"""Disagreement over the size of the shift, and skill of the halves, between which trust is lost: where features moved
so far that most target rows are predicted as one class, that class alone explains the predictions. Halves of little
skill disagree anyway. Skill is balanced accuracy on held-out source rows, scaled: 0 by guessing, at most 1."""
ROWS_OF_CLASS = (5.0, 15.0)
"""Target rows for each class below which no estimate is trusted, and from which on it may be: with few rows neither an
estimate nor a check of it is worth much."""
COLUMN_ERROR = (0.15, 0.35)
"""The column error over the size of the shift between which trust is lost."""
MIN_SHIFT = 0.2
"""The size of a shift that a disagreement is compared with is at least this: halves differ by chance without any."""


@dataclass(frozen=True)
class LinearSource:
    """Logistic regression on the source, with its logits out of fold.

    Attributes
    ----------
    weight, bias : ndarray of shape (n_features, C) and (C,)
        Of the model of all source rows, calibrated, for the class frequencies of the source.
    held_out : ndarray of shape (n, C)
        Calibrated log-probabilities of source rows by models of other rows.
    target : ndarray of shape (folds * m, C)
        Those of target rows by the same models: comparable with `held_out`, as the model of all rows is not.
    strength : float
        The inverse strength of regularisation.
    """

    weight: Floats
    bias: Floats
    held_out: Floats
    target: Floats
    strength: float


def fit_linear_source(
    x: Floats, codes: Codes, target: Floats, seed: int, strengths: tuple[float, ...] = STRENGTHS
) -> LinearSource:
    """Fit logistic regression with the strongest regularisation within a standard error of the best log loss.

    A stronger one transfers better: features that help little in the source are as likely to mislead in the target.
    `strengths` are inverse strengths of regularisation, the strongest first.
    """
    n_classes = int(codes.max()) + 1
    rows = np.arange(len(codes))
    fits = []
    for strength in strengths:
        held_out, of_target = _out_of_fold(x, codes, target, strength, seed)
        calibrated = calibrator(held_out, codes)
        losses = -np.log(np.maximum(calibrated.proba(held_out)[rows, codes], 1e-12))
        fits.append((strength, calibrated, held_out, of_target, losses))
    best = min(fits, key=lambda fit: float(fit[-1].mean()))[-1]
    enough = best.mean() + best.std() / np.sqrt(len(codes))
    strength, calibrated, held_out, of_target, _ = next(fit for fit in fits if fit[-1].mean() <= enough)
    model = _logistic(strength).fit(x, codes)
    weight, bias = _coefficients(model, n_classes)
    return LinearSource(
        calibrated.scale * weight,
        calibrated.scale * bias + calibrated.bias,
        _log(calibrated, held_out),
        _log(calibrated, of_target),
        strength,
    )


@dataclass(frozen=True)
class PriorEvidence:
    """An estimate of the target's class frequencies, and the checks of it.

    Attributes
    ----------
    estimate : ndarray of shape (C,)
    shift : float
        Distance of the estimate from the source's frequencies.
    unexplained : float
        The part of the distance between the predictions of both domains that the estimate does not explain, 0 to 1.
    disagreement : float
        Distance of estimates by two halves of the features; NaN with fewer than four features, and where the other
        checks leave no trust.
    column_error : float
        See `column_error`.
    trust : float
        From 0 (no check is met) to 1.
    """

    estimate: Floats
    shift: float
    unexplained: float
    disagreement: float
    column_error: float
    trust: float


def prior_evidence(fitted: LinearSource, x: Floats, codes: Codes, target: Floats, seed: int) -> PriorEvidence:
    """Estimate the target's class frequencies by a linear classifier, and check the estimate."""
    prior = class_frequencies(codes, fitted.bias.size)
    estimate = maximum_likelihood_prior(np.exp(fitted.target), prior)
    shift = mix_distance(estimate, prior)
    rest = unexplained(fitted, codes, prior, estimate, seed)
    error, n_rows = column_error(fitted.weight, x, codes, target, estimate), len(target) / len(prior)
    apart, skill = float("nan"), 0.0
    # most of the time goes into the halves: not where nothing of them could help
    if x.shape[1] >= 4 and trust(0.0, apart, error, shift, skill, n_rows) > 0:
        apart, skill = halves_disagreement(x, codes, target, fitted.strength, seed)
    trusted = trust(rest, apart, error, shift, skill, n_rows)
    return PriorEvidence(estimate, shift, rest, apart, error, trusted)


def trust(
    unexplained: float, disagreement: float, column_error: float, shift: float, skill: float, rows_of_class: float
) -> float:
    """How far to trust an estimate: 1 if the predictions or the halves support it and nothing is against it.

    Against it are few target rows, and a large column error.

    Examples
    --------
    >>> trust(unexplained=0.01, disagreement=0.1, column_error=0.01, shift=0.4, skill=0.9, rows_of_class=300)
    1.0
    >>> trust(unexplained=0.3, disagreement=0.1, column_error=0.01, shift=0.2, skill=0.9, rows_of_class=300)
    0.0
    >>> trust(unexplained=0.01, disagreement=0.1, column_error=0.2, shift=0.4, skill=0.9, rows_of_class=300)
    0.0
    """
    limit = 1 - _ramp(rows_of_class, ROWS_OF_CLASS)
    limit *= _ramp(column_error / max(shift, MIN_SHIFT), COLUMN_ERROR)
    by_fit = _ramp(unexplained, UNEXPLAINED)
    if np.isnan(disagreement):
        return limit * by_fit
    apart = disagreement / max(shift, MIN_SHIFT)
    by_halves = _ramp(apart, DISAGREEMENT) * _ramp(unexplained, CHANCE_AGREEMENT)
    contradicted = (1 - _ramp(apart, CONTRADICTION)) * (1 - _ramp(skill, SKILL))
    return limit * (1 - contradicted) * max(by_fit, by_halves)


def unexplained(fitted: LinearSource, codes: Codes, prior: Floats, estimate: Floats, seed: int) -> float:
    """Energy distance of the target's predictions from the weighted source's, over that from the source's.

    Predictions are for equal class frequencies. What a sample of the weighted source itself has is subtracted.
    """
    rng = np.random.default_rng(seed)
    own = rng.permutation(len(codes))[:MAX_ROWS]
    others = rng.permutation(len(fitted.target))[:MAX_ROWS]
    source, target = (_for_equal(rows, prior) for rows in (fitted.held_out[own], fitted.target[others]))
    weights = (estimate / prior)[codes[own]]
    weights = weights / weights.sum()
    drawn = [rng.choice(len(own), size=len(target), p=weights) for _ in range(5)]
    within, between = cdist(source, source), cdist(source, target).mean(axis=1)
    n = len(target)
    of_target = cdist(target, target).sum() / max(n * (n - 1), 1)
    counts = [np.bincount(rows, minlength=len(own)) for rows in drawn]
    chance = float(
        np.mean(
            [_energy(weights, within, within @ own / n, own @ within @ own / max(n * (n - 1), 1)) for own in counts]
        )
    )
    before = _energy(np.full(len(own), 1 / len(own)), within, between, of_target)
    after = _energy(weights, within, between, of_target) - chance
    return float(np.clip(after / max(before, 1e-9), 0.0, 1.0))


def column_error(weight: Floats, x: Floats, codes: Codes, target: Floats, estimate: Floats) -> float:
    """The error of an estimate of the class frequencies by shifts of single columns.

    ``gap[j] = mean of column j in the target - its mean in the source, weighted to the estimate`` is what the estimate
    does not explain. It moves the mean logits by ``gap[j] * weight[j]``, as other class frequencies would that differ
    by ``error[j]``. The estimate makes all gaps together nearly vanish, not each of them: if columns shift
    independently, its error is ``sqrt(sum_j |error[j]|^2)``, large for few columns that moved, small for many that
    moved a little.

    Parameters
    ----------
    weight : ndarray of shape (n_features, C)
        Of a linear classifier of the source.
    x, codes : ndarray of shape (n, n_features) and (n,)
        Source rows and their classes.
    target : ndarray of shape (m, n_features)
    estimate : ndarray of shape (C,)

    Returns
    -------
    float
        As a distance of class frequencies, such as `shift`.

    Examples
    --------
    >>> codes = np.repeat([0, 1], 50)
    >>> x = np.stack([codes, codes], axis=1) * 2.0 - 1
    >>> weight = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    >>> both = np.repeat(x, [1] * 50 + [3] * 50, axis=0)
    >>> column_error(weight, x, codes, both, np.array([0.25, 0.75]))
    0.0
    >>> one = np.array([[1.0, 0.0]])
    >>> round(column_error(weight, x, codes, one, np.array([0.25, 0.75])), 2)
    0.18
    """
    weight = weight - weight.mean(axis=1, keepdims=True)
    means = np.stack([x[codes == k].mean(axis=0) for k in range(len(estimate))])
    gap = target.mean(axis=0) - estimate @ means
    # from mean logits back to class frequencies; those that sum to 1, hence without the singular direction
    back = np.linalg.pinv(weight.T @ (means - means.mean(axis=0)).T, rcond=1e-9)
    errors = gap[:, None] * (weight @ back.T)
    # a distance is half of the absolute differences: of two classes, the length over the root of 2
    return float(np.sqrt(np.sum(errors**2) / 2))


def halves_disagreement(x: Floats, codes: Codes, target: Floats, strength: float, seed: int) -> tuple[float, float]:
    """Distance of estimates by two random halves of the features beyond that by chance, and the skill of the halves.

    The distance is at least that by chance: where that is large, halves that agree prove little.
    """
    rng = np.random.default_rng(seed)
    n_classes = int(codes.max()) + 1
    prior = class_frequencies(codes, n_classes)
    apart, chance, recalls = [], [], []
    for _ in range(HALVINGS):
        columns = np.array_split(rng.permutation(x.shape[1]), 2)
        estimates = []
        for half in columns:
            held_out, of_target = _out_of_fold(x[:, half], codes, target[:, half], strength, seed, folds=2)
            calibrated = calibrator(held_out, codes)
            estimates.append(maximum_likelihood_prior(calibrated.proba(of_target), prior, tolerance=1e-6))
            weights = (estimates[-1] / prior)[codes]
            rows = rng.choice(len(codes), size=len(target), p=weights / weights.sum())
            again = maximum_likelihood_prior(calibrated.proba(held_out[rows]), prior, tolerance=1e-6)
            chance.append(mix_distance(again, estimates[-1]))
            right = (held_out - np.log(prior)).argmax(axis=1) == codes
            recalls.append(np.mean([right[codes == k].mean() for k in range(n_classes)]))
        apart.append(mix_distance(*estimates))
    by_chance = float(np.mean(chance))
    beyond = float(np.mean(apart)) ** 2 - 2 * by_chance**2
    skill = (float(np.mean(recalls)) - 1 / n_classes) / (1 - 1 / n_classes)
    return max(float(np.sqrt(max(beyond, 0.0))), by_chance), skill


def _ramp(value: float, ends: tuple[float, float]) -> float:
    """1 below the first end, 0 above the second, linear between."""
    return float(np.clip((ends[1] - value) / (ends[1] - ends[0]), 0.0, 1.0))


def _out_of_fold(
    x: Floats, codes: Codes, target: Floats, strength: float, seed: int, folds: int = FOLDS
) -> tuple[Floats, Floats]:
    """Logits of source rows by models of other rows, and of all target rows by each of these models."""
    n_classes = int(codes.max()) + 1
    held_out, of_target = np.zeros((len(x), n_classes)), []
    for seen, unseen in source_folds(codes, folds, seed):
        weight, bias = _coefficients(_logistic(strength).fit(x[seen], codes[seen]), n_classes)
        held_out[unseen] = x[unseen] @ weight + bias
        of_target.append(target @ weight + bias)
    return held_out, np.concatenate(of_target)


def source_folds(codes: Codes, folds: int, seed: int) -> Iterator[tuple[Codes, Codes]]:
    """Rows to fit on and rows to predict; the only row of a class is fitted on in every fold."""
    turn = np.zeros(len(codes), dtype=np.int64)
    rng = np.random.default_rng(seed)
    single = np.bincount(codes)[codes] < 2
    for k in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == k))
        turn[rows] = (np.arange(len(rows)) + rng.integers(folds)) % folds
    for fold in range(folds):
        unseen = turn == fold
        if unseen.any():
            yield np.flatnonzero(~unseen | single), np.flatnonzero(unseen)


def _logistic(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=200, tol=1e-3)


def _coefficients(model: LogisticRegression, n_classes: int) -> tuple[Floats, Floats]:
    """Weights and biases of every class, also of two."""
    weight, bias = model.coef_, model.intercept_
    if n_classes == 2:
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return weight.T, bias


def _log(calibrated: Calibrator, logits: Floats) -> Floats:
    log_proba: Floats = np.log(np.maximum(calibrated.proba(logits), 1e-300))
    return log_proba


def _for_equal(log_proba: Floats, prior: Floats) -> Floats:
    """Probabilities for equal class frequencies."""
    proba = np.exp(log_proba) / prior
    equal: Floats = proba / proba.sum(axis=1, keepdims=True)
    return equal


def _energy(weights: Floats, within: Floats, between: Floats, of_others: float) -> float:
    """Unbiased energy distance of weighted rows from other rows.

    `within` are the distances of the rows, `between` the mean distance of each of them from the other rows, `of_others`
    the mean distance of two of these.
    """
    own = float(weights @ within @ weights) / max(1 - float(weights @ weights), 1e-9)
    return 2 * float(weights @ between) - own - of_others
