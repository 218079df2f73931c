"""The paper's alternative to orthogonalizing: weights under which z1 is independent of y, to fit a classifier with."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core.checks import check_proba, check_unmasked
from setminus.errors import UserError

__all__ = ["effective_sample_size", "importance_weights"]


def importance_weights(
    y_codes: ArrayLike, principal_proba: ArrayLike, prior: ArrayLike | Literal["uniform"]
) -> NDArray[np.float64]:
    """The paper's phi(x, y) = p(y) / w_1(x)_y, one weight per row.

    Under these weights z1 is independent of y, hence a classifier fitted with them estimates the orthogonal
    one. By Bayes' rule phi(x, y) = p(z1) / p(z1 | y), whose mean over the data is one.

    Parameters
    ----------
    y_codes : array-like of int of shape (n,)
        The label of each row as a column index of `principal_proba`.
    principal_proba : array-like of shape (n, n_classes)
        w_1: the principal classifier's probabilities.
    prior : array-like of shape (n_classes,) or "uniform"
        p(y): the class frequencies of the data that the principal classifier was fitted on.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> importance_weights([0, 1], [[0.25, 0.75], [0.5, 0.5]], [0.5, 0.5]).tolist()
    [2.0, 1.0]
    """
    y = np.asarray(y_codes)
    check_unmasked("principal_proba", principal_proba)
    principal = np.asarray(principal_proba, dtype=np.float64)
    if principal.ndim != 2 or y.shape != principal.shape[:1]:
        raise UserError(
            f"y_codes has shape {y.shape} and principal_proba {principal.shape}", expected="(n,) and (n, n_classes)"
        )
    n_classes = principal.shape[1]
    if y.dtype.kind not in "iu" or (len(y) and (y.min() < 0 or y.max() >= n_classes)):
        raise UserError(
            f"y_codes must be integers from 0 to {n_classes - 1}, the columns of principal_proba",
            do="encode the labels first, for example with numpy.unique(y, return_inverse=True).",
        )
    frequency = _prior(prior, n_classes)
    check_proba("principal_proba", principal, np)
    own = np.take_along_axis(principal, y[:, None], axis=1)[:, 0]
    refused = own == 0
    if refused.any():
        counts = ", ".join(f"{(refused & (y == c)).sum()} of class {c}" for c in np.unique(y[refused]))
        raise UserError(
            f"principal_proba is zero at the row's own label in {int(refused.sum())} of {len(y)} rows ({counts})",
            do="their weight is infinite. Smooth the principal classifier, or collapse rare groups.",
        )
    weights: NDArray[np.float64] = frequency[y] / own
    return weights


def effective_sample_size(weights: ArrayLike) -> float:
    """Kish's effective sample size, (sum w)^2 / sum w^2: how many equal rows the weighted rows are worth.

    Parameters
    ----------
    weights : array-like of shape (n,)

    Returns
    -------
    float
        Between 1 and n.

    Examples
    --------
    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size([1, 0, 0, 0])
    (4.0, 1.0)
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any() or not (w > 0).any():
        raise UserError(
            f"weights of shape {w.shape} are not usable", expected="one dimension, finite, not negative, not all zero"
        )
    # scaled by the largest, so that squares neither overflow nor vanish
    scaled = w / w.max()
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def _prior(prior: ArrayLike | Literal["uniform"], n_classes: int) -> NDArray[np.float64]:
    if isinstance(prior, str):
        if prior != "uniform":
            raise UserError(f"prior is {prior!r}", expected=f"'uniform' or {n_classes} class frequencies")
        return np.full(n_classes, 1 / n_classes)
    frequency = np.asarray(prior, dtype=np.float64)
    if frequency.shape != (n_classes,):
        raise UserError(
            f"prior has shape {frequency.shape}, principal_proba has {n_classes} classes",
            expected="one frequency for each class",
        )
    if not ((frequency > 0).all() and np.isclose(frequency.sum(), 1, atol=1e-6)):
        raise UserError(f"prior is {frequency.tolist()}", expected="positive frequencies that sum to 1")
    return frequency
