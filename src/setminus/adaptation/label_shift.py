"""Estimates of the target's class frequencies from a source classifier's predictions for unlabelled target rows.

They assume label shift: p(x | label) is the same in both domains, p(label) is not. Where the features shifted as well,
each estimate is biased by the classifier's errors on the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from setminus.errors import UserError

__all__ = [
    "Calibrator",
    "Estimator",
    "black_box_prior",
    "calibration_draws",
    "calibrator",
    "check_proportions",
    "class_frequencies",
    "confusion",
    "maximum_likelihood_prior",
    "mix_distance",
    "prior_from_logits",
]

Floats = NDArray[np.float64]
Estimator = Literal["em", "bbse"]


def prior_from_logits(
    source_logits: ArrayLike, labels: ArrayLike, target_logits: ArrayLike, estimator: Estimator
) -> Floats:
    """The target's class frequencies from a classifier's logits for rows of both domains.

    Parameters
    ----------
    source_logits : array of shape (n, C)
        Of rows that the classifier was not trained on, with rows of each class.
    labels : array of int of shape (n,)
    target_logits : array of shape (m, C)
    estimator : {"em", "bbse"}
        `maximum_likelihood_prior` of calibrated probabilities, or `black_box_prior` of decisions.

    Returns
    -------
    ndarray of shape (C,)
    """
    source, target = np.asarray(source_logits), np.asarray(target_logits)
    n_classes = target.shape[1]
    if estimator == "bbse":
        decided = class_frequencies(target.argmax(axis=1), n_classes)
        return black_box_prior(confusion(source.argmax(axis=1), labels, n_classes), decided)
    calibrated = calibrator(source, labels).proba(target)
    return maximum_likelihood_prior(calibrated, class_frequencies(labels, n_classes))


def mix_distance(one: ArrayLike, other: ArrayLike) -> float:
    """Total variation distance of two class frequencies: ``sum_k |one[k] - other[k]| / 2``.

    Examples
    --------
    >>> mix_distance([0.75, 0.25], [0.25, 0.75])
    0.5
    """
    return float(np.abs(np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)).sum() / 2)


def class_frequencies(labels: ArrayLike, n_classes: int) -> Floats:
    """The frequency of each class, from labels 0 to ``n_classes - 1``.

    Examples
    --------
    >>> class_frequencies([0, 2, 2, 0], 3)
    array([0.5, 0. , 0.5])
    """
    codes = _as_codes("labels", labels, n_classes)
    frequencies: Floats = np.bincount(codes, minlength=n_classes) / len(codes)
    return frequencies


def maximum_likelihood_prior(
    target_proba: ArrayLike,
    source_prior: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 10_000,
) -> Floats:
    """The class frequencies that make the target rows most likely (EM, Saerens et al. 2002).

    ``prior = mean over rows of normalised(target_proba * prior / source_prior)``, repeated: the fixed point maximises
    ``mean log(sum_k target_proba[:, k] * prior[k] / source_prior[k])``, which is concave in `prior`.

    Parameters
    ----------
    target_proba : array of shape (n, C)
        A source classifier's probabilities for target rows. They must be calibrated on the source: overconfident
        probabilities pull the estimate toward the frequencies of the decisions.
    source_prior : array of shape (C,)
        The class frequencies of the data that the probabilities are calibrated on; none may be 0.
    sample_weight : array of shape (n,), optional
        The weight of each target row.
    start : array of shape (C,), optional
        Where to begin, by default at `source_prior`; none may be 0.
    tolerance : float, default=1e-9
        Stop when no frequency changes by more than this.
    max_iterations : int, default=10000

    Returns
    -------
    ndarray of shape (C,)

    Examples
    --------
    >>> proba = np.repeat([[0.9, 0.1], [0.1, 0.9]], [30, 70], axis=0)
    >>> maximum_likelihood_prior(proba, [0.5, 0.5]).round(4)
    array([0.25, 0.75])
    """
    proba = np.asarray(target_proba, dtype=np.float64)
    prior_of_source = check_proportions("source_prior", source_prior, positive=True)
    if proba.ndim != 2 or len(proba) == 0 or proba.shape[1] != len(prior_of_source):
        raise UserError(
            f"target_proba has shape {proba.shape}, source_prior has {len(prior_of_source)} classes",
            expected=f"(n, {len(prior_of_source)}) with at least one row",
        )
    off = np.abs(proba.sum(axis=1) - 1) > 1e-6
    if np.any(off) or not np.all(proba >= 0):
        raise UserError(
            f"target_proba has {int(off.sum())} rows that do not sum to 1 or values below 0", do="pass probabilities."
        )
    if sample_weight is None:
        weights = np.full(len(proba), 1 / len(proba))
    else:
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != proba.shape[:1] or not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
            raise UserError(
                f"sample_weight has shape {weights.shape}, target_proba has {len(proba)} rows",
                expected="one weight of 0 or more for each row, and one above 0",
            )
        weights = weights / weights.sum()
    first = prior_of_source if start is None else check_proportions("start", start, len(prior_of_source), positive=True)
    return _maximum(proba / prior_of_source, weights, first, tolerance, max_iterations)


def _maximum(ratio: Floats, weights: Floats, prior: Floats, tolerance: float, max_iterations: int) -> Floats:
    """EM with squared extrapolation (SQUAREM, Varadhan and Roland 2008): the same maximum in far fewer steps."""

    def step(prior: Floats) -> tuple[Floats, float]:
        density = ratio @ prior
        return prior * (ratio.T @ (weights / density)), float(weights @ np.log(density))

    for _ in range(max_iterations // 3):
        first, _ = step(prior)
        change = first - prior
        if np.abs(change).max() <= tolerance:
            return first
        second, _ = step(first)
        bend = second - first - change
        curvature = float(np.linalg.norm(bend))
        length = float(np.linalg.norm(change)) / curvature if curvature > 0 else 1.0
        # EM never leaves a frequency of 0, and so the extrapolation must not reach one
        ahead = np.maximum(prior + 2 * length * change + length**2 * bend, 0.1 * second)
        third, likelihood = step(ahead / ahead.sum())
        after_second, least = step(second)
        prior = third if likelihood >= least else after_second
    return prior


def confusion(predicted: ArrayLike, labels: ArrayLike, n_classes: int) -> Floats:
    """``C[i, j] = p(prediction i, label j)`` on source rows that the classifier was not trained on.

    Parameters
    ----------
    predicted, labels : array of int of shape (n,)
    n_classes : int

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Its columns sum to the class frequencies of the source, all of it to 1.

    Examples
    --------
    >>> confusion([0, 0, 1, 1], [0, 1, 1, 1], 2)
    array([[0.25, 0.25],
           [0.  , 0.5 ]])
    """
    rows = _as_codes("predicted", predicted, n_classes)
    columns = _as_codes("labels", labels, n_classes)
    if len(rows) != len(columns):
        raise UserError(f"predicted has {len(rows)} rows, labels have {len(columns)}", expected="the same rows")
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (rows, columns), 1.0)
    return counts / len(rows)


def black_box_prior(source_confusion: ArrayLike, target_predictions: ArrayLike) -> Floats:
    """The class frequencies that explain the target's predictions by the source's mistakes (BBSE, Lipton et al. 2018).

    Minimises ``|target_predictions - C w|^2`` subject to ``w >= 0`` and ``source_prior . w = 1``; the answer is
    ``source_prior * w``. The classifier need not be calibrated.

    Parameters
    ----------
    source_confusion : array of shape (C, C)
        See `confusion`; every class needs rows.
    target_predictions : array of shape (C,)
        How often each class is predicted on the target.

    Returns
    -------
    ndarray of shape (C,)

    Examples
    --------
    >>> right = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> black_box_prior(right * [0.5, 0.5], right @ [0.25, 0.75]).round(4)
    array([0.25, 0.75])
    """
    joint = np.asarray(source_confusion, dtype=np.float64)
    observed = check_proportions("target_predictions", target_predictions)
    if joint.shape != (len(observed), len(observed)):
        raise UserError(
            f"source_confusion has shape {joint.shape}, target_predictions have {len(observed)} classes",
            expected=f"({len(observed)}, {len(observed)})",
        )
    check_proportions("source_confusion", joint.ravel())
    source_prior = check_proportions("the source's class frequencies", joint.sum(axis=0), positive=True)
    # in prior = source_prior * w, all unknowns are of one size: the problem is the same, and better conditioned
    given_label = joint / source_prior

    def error(prior: Floats) -> tuple[float, Floats]:
        residual = given_label @ prior - observed
        return float(residual @ residual), 2 * given_label.T @ residual

    solved = minimize(
        error,
        source_prior,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(observed),
        constraints={"type": "eq", "fun": lambda prior: prior.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    clipped = np.clip(solved.x, 0.0, None)
    prior: Floats = clipped / clipped.sum()
    return prior


def check_proportions(
    name: str, proportions: ArrayLike, n_classes: int | None = None, *, positive: bool = False
) -> Floats:
    """Check that proportions are not negative (or positive), sum to 1 and are `n_classes` many; return them as array.

    Examples
    --------
    >>> check_proportions("prior", [0.5, 0.6])
    Traceback (most recent call last):
        ...
    setminus.errors.UserError: prior sums to 1.1: expected proportions that sum to 1; divide by their sum.
    """
    values = np.asarray(proportions, dtype=np.float64)
    if values.ndim != 1 or len(values) != (n_classes or len(values)) or len(values) == 0:
        wanted = "C" if n_classes is None else n_classes
        raise UserError(f"{name} has shape {values.shape}", expected=f"({wanted},), one proportion for each class")
    # `not all >=` also catches NaN
    if not np.all(values >= 0):
        raise UserError(f"{name} is {values.tolist()}", expected="proportions of 0 or more")
    if abs(values.sum() - 1) > 1e-6:
        raise UserError(f"{name} sums to {values.sum():.6g}", expected="proportions that sum to 1; divide by their sum")
    if positive and not np.all(values > 0):
        raise UserError(
            f"{name} has no rows of class {', '.join(map(str, np.flatnonzero(values == 0)))}",
            do="a class without source rows cannot be learned; leave it out.",
        )
    return values


def _as_codes(name: str, labels: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    codes = np.asarray(labels)
    if codes.ndim != 1 or len(codes) == 0 or not np.issubdtype(codes.dtype, np.integer):
        raise UserError(f"{name} has shape {codes.shape} of {codes.dtype}", expected="integers, one for each row")
    if codes.min() < 0 or codes.max() >= n_classes:
        raise UserError(
            f"{name} has values from {codes.min()} to {codes.max()}", expected=f"classes from 0 to {n_classes - 1}"
        )
    return codes.astype(np.int64)


@dataclass(frozen=True)
class Calibrator:
    """``softmax(scale * logits + bias)``.

    Parameters
    ----------
    scale : float
        One over the temperature.
    bias : ndarray of shape (C,)
    """

    scale: float
    bias: Floats

    def proba(self, logits: ArrayLike) -> Floats:
        """Calibrated probabilities of shape (n, C)."""
        calibrated: Floats = softmax(self.scale * np.asarray(logits, dtype=np.float64) + self.bias, axis=1)
        return calibrated


def calibrator(logits: ArrayLike, labels: ArrayLike) -> Calibrator:
    """Fit a temperature and a bias to labelled rows (bias-corrected temperature scaling, Alexandari et al. 2020).

    With a temperature alone the mean probability of a class differs from its frequency, and maximum likelihood would
    take that difference for a shift. The fit is the posterior mode with standard normal priors of ``log scale`` and
    each ``bias``: with few rows, all of them classified correctly, the likelihood alone has no maximum.

    Parameters
    ----------
    logits : array of shape (n, C)
        Of rows that the classifier was not trained on.
    labels : array of int of shape (n,)

    Returns
    -------
    Calibrator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 4000)
    >>> logit = 2 * labels - 1 + rng.normal(size=4000)
    >>> true_logits = np.column_stack([-logit, logit])
    >>> round(calibrator(3 * true_logits, labels).scale, 1)
    0.3
    """
    scores = np.asarray(logits, dtype=np.float64)
    codes = np.asarray(labels)
    if scores.ndim != 2 or codes.shape != scores.shape[:1] or len(codes) == 0:
        raise UserError(
            f"logits have shape {scores.shape}, labels {codes.shape}", expected="(n, C) and (n,) with at least one row"
        )
    rows = np.arange(len(codes))
    one_hot = np.zeros_like(scores)
    one_hot[rows, codes] = 1.0

    def loss(parameters: Floats) -> tuple[float, Floats]:
        scale, bias = np.exp(parameters[0]), parameters[1:]
        log_proba = log_softmax(scale * scores + bias, axis=1)
        slope = np.exp(log_proba) - one_hot
        gradient = np.concatenate([[scale * np.sum(slope * scores)], slope.sum(axis=0)]) + parameters
        return float(0.5 * parameters @ parameters - log_proba[rows, codes].sum()), gradient

    found = minimize(loss, np.zeros(1 + scores.shape[1]), jac=True, method="L-BFGS-B")
    return Calibrator(float(np.exp(found.x[0])), found.x[1:] - found.x[1:].mean())


def calibration_draws(fitted: Calibrator, logits: ArrayLike, n: int, rng: np.random.Generator) -> list[Calibrator]:
    """Draws of the calibrator from its posterior, by the normal approximation at the mode.

    Parameters
    ----------
    fitted : Calibrator
    logits : array of shape (n_rows, C)
        Those that it was fitted to.
    n : int
        Number of draws.
    rng : numpy Generator

    Returns
    -------
    list of Calibrator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 4000)
    >>> logits = np.column_stack([np.zeros(4000), 2 * labels - 1 + rng.normal(size=4000)])
    >>> fitted = calibrator(logits, labels)
    >>> scales = [draw.scale for draw in calibration_draws(fitted, logits, 100, rng)]
    >>> bool(0.02 < np.std(scales) < 0.2)
    True
    """
    scores = fitted.scale * np.asarray(logits, dtype=np.float64)
    proba = fitted.proba(logits)
    mean = np.sum(proba * scores, axis=1, keepdims=True)
    # the curvature of the loss of `calibrator`, in log scale and biases
    curvature = np.eye(1 + proba.shape[1])
    curvature[0, 0] += np.sum(proba * (scores - mean) ** 2)
    curvature[0, 1:] += np.sum(proba * (scores - mean), axis=0)
    curvature[1:, 0] = curvature[0, 1:]
    curvature[1:, 1:] += np.diag(proba.sum(axis=0)) - proba.T @ proba
    # x = L^-T z has the covariance (L L^T)^-1
    lower = np.linalg.cholesky(curvature)
    steps = np.linalg.solve(lower.T, rng.normal(size=(len(lower), n))).T
    return [Calibrator(fitted.scale * float(np.exp(step[0])), fitted.bias + step[1:]) for step in steps]
