"""Probabilities that mean what they say on the source: a temperature, and a bias for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from setminus.errors import UserError

__all__ = ["Calibrator", "calibrator"]

Floats = NDArray[np.float64]


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

    Estimates of label shift by likelihood need it: a temperature alone leaves the classes' mean probability unlike
    their frequency, and that difference would be taken for a shift. The fit is the most probable one where
    ``log scale`` and each ``bias`` are standard normal beforehand: with few rows, all of them classified rightly, the
    likeliest scale would be infinite.

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
