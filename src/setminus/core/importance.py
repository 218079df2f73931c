"""The paper's alternative to orthogonalizing: weights under which z1 is independent of y, to fit a classifier with.

With the paper's two statements about its error: the variance of importance sampling, and the bound of theorem 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.core.checks import check_proba, check_unmasked
from setminus.errors import UserError

__all__ = [
    "chi_square_divergence",
    "effective_sample_size",
    "generalization_bound",
    "importance_variance",
    "importance_weights",
]


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


def chi_square_divergence(p: ArrayLike, q: ArrayLike) -> float:
    """Pearson's divergence D(p || q) = sum (p - q)^2 / q = sum p^2 / q - 1 of two discrete distributions.

    Parameters
    ----------
    p, q : array-like of shape (k,)

    Returns
    -------
    float
        Zero where p = q; infinite where p has mass that q has not.

    Examples
    --------
    >>> round(chi_square_divergence([0.5, 0.5], [0.25, 0.75]), 12)
    0.333333333333
    """
    p_, q_ = _distributions(p, "p", 1), _distributions(q, "q", 1)
    if p_.shape != q_.shape:
        raise UserError(f"p has {p_.size} values and q {q_.size}", expected="the same support")
    if (p_[q_ == 0] > 0).any():
        return float("inf")
    held = q_ > 0
    return float(((p_ - q_)[held] ** 2 / q_[held]).sum())


def importance_variance(prior: ArrayLike, z1_given_y: ArrayLike, z2_given_y: ArrayLike, *, n: int = 1) -> float:
    """Variance of the empirical importance-sampling objective at w_2, for discrete Z_1 and Z_2.

    The objective is L_IS(w) = E[phi(x, y) log w(x)_y]. Estimated on n rows, at w = w_2, its variance is::

        Var = 1/n * ( E_Y[ (D(p_Z1 || p_Z1|Y=y) + 1) * E_{Z2|Y=y}[log^2 p(y | z2)] ] - L(w_2)^2 )

    with Pearson's chi-square divergence D and L(w_2) = E[log p(y | z2)]. It grows linearly with the
    divergence between p(z1) and p(z1 | y), for any classifier.

    Parameters
    ----------
    prior : array-like of shape (n_classes,)
        p(y).
    z1_given_y : array-like of shape (n_classes, n_values)
        p(z1 | y), one row for each class.
    z2_given_y : array-like of shape (n_classes, n_other_values)
        p(z2 | y), one row for each class.
    n : int
        Number of rows in the estimate.

    Returns
    -------
    float
        Infinite where some value of z1 never occurs with some label, which breaks the method's overlap.

    Examples
    --------
    >>> balanced = importance_variance([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[0.8, 0.2], [0.2, 0.8]])
    >>> skewed = importance_variance([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]])
    >>> round(balanced, 3), round(skewed, 3)
    (0.307, 1.299)
    """
    p_y = _distributions(prior, "prior", 1)
    p_z1, p_z2 = _distributions(z1_given_y, "z1_given_y", 2), _distributions(z2_given_y, "z2_given_y", 2)
    if not len(p_y) == len(p_z1) == len(p_z2):
        raise UserError(
            f"prior has {len(p_y)} classes, z1_given_y {len(p_z1)} rows, z2_given_y {len(p_z2)}",
            expected="one row for each class",
        )
    if n < 1:
        raise UserError(f"n is {n}", expected="at least one row")
    divergence = np.array([chi_square_divergence(p_y @ p_z1, given_y) for given_y in p_z1])
    joint = p_y[:, None] * p_z2
    # where p(z2 | y) is zero the term has no weight: any finite logarithm will do
    log_orthogonal = np.log(np.divide(joint, joint.sum(axis=0), out=np.ones_like(joint), where=joint > 0))
    second_moment = (p_z2 * log_orthogonal**2).sum(axis=1)
    # a label without error (or without rows) adds nothing, even where its divergence is infinite
    counted = second_moment > 0
    expected_square = (p_y[counted] * (divergence[counted] + 1) * second_moment[counted]).sum()
    objective = (joint * log_orthogonal).sum()
    return float((expected_square - objective**2) / n)


def generalization_bound(rademacher: float, n: int, m: float, gamma: float, delta: float) -> float:
    r"""The right-hand side of the paper's theorem 1, as printed.

    For a uniform p(y), full classifiers with values in (m, 1 - m) and 1 / p(x | y) < gamma, the theorem says
    that with probability at least 1 - delta::

        |R(w_x^ \ w_1) - R(w_x* \ w_1)| <= (1 + gamma) * (2 R_n(W) + 2 log(1/m) sqrt(2 log(1/delta) / n))

    Use it to see how the terms scale, not as a guarantee: the proof has five gaps.

    * The statement bounds 1 / p(x | y), while the proof divides by p(y | x). These are different conditions:
      the second asks every label to be possible everywhere, with probability at least 1 / gamma.
    * The proof passes from the full classifier's excess risk to the orthogonal one's by the factor 1 + gamma.
      To do so it pulls a bounded weight out of the mean of a log-ratio that takes both signs. Those signs
      cancel at the optimum, so the full excess is of second order in the error of w_x (about 1/n); the
      orthogonal classifier does not minimise R, so its risk moves at first order (about 1/sqrt(n)). No
      constant bounds the larger by the smaller. (The rate 1/sqrt(n) of the statement may still be right.)
    * The excess risk of the full classifier is the sum of two deviations of an empirical risk, each with the bound
      in brackets. The proof keeps one of them: a factor of 2 is missing.
    * Both deviations have to be small at once, which a union bound gives with delta / 2 for each. The proof has
      log(2/delta) in one and log(1/delta) in the other and in the result.
    * The complexity in such a bound is that of the losses -log w, not of W. The logarithm has a slope of up to 1/m
      there, and the complexity can be larger by that factor.

    Parameters
    ----------
    rademacher : float
        R_n(W), the Rademacher complexity of the full classifiers at sample size n.
    n : int
        |D|, the number of rows.
    m : float
        Lower bound on the full classifier's probabilities, between 0 and 1/2.
    gamma : float
        Upper bound on 1 / p(x | y).
    delta : float
        Probability of failure, between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(generalization_bound(rademacher=0.01, n=10_000, m=0.1, gamma=2.0, delta=0.05), 4)
    0.3982
    """
    for name, value, low, high in [
        ("rademacher", rademacher, -np.finfo(float).tiny, np.inf),
        ("n", n, 0, np.inf),
        ("m", m, 0, 0.5),
        ("gamma", gamma, 0, np.inf),
        ("delta", delta, 0, 1),
    ]:
        if not low < value < high:
            raise UserError(f"{name} is {value}", expected=f"a value between {max(low, 0):g} and {high:g}")
    deviation = 2 * np.log(1 / m) * np.sqrt(2 * np.log(1 / delta) / n)
    return float((1 + gamma) * (2 * rademacher + deviation))


def _distributions(values: ArrayLike, name: str, ndim: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise UserError(f"{name} has shape {array.shape}", expected=f"{ndim} dimension(s), not empty")
    if not ((array >= 0).all() and np.allclose(array.sum(axis=-1), 1)):
        raise UserError(f"{name} is not a distribution", expected="values >= 0 that sum to 1 over the last axis")
    return array
