"""Mutual information of finite variables, from the table of their probabilities, in nats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

__all__ = ["conditional_mutual_information", "mutual_information"]

Floats = NDArray[np.float64]


def mutual_information(joint: Floats) -> float:
    """I(A; B) = sum p(a, b) log(p(a, b) / (p(a) p(b))).

    Parameters
    ----------
    joint : ndarray of shape (n_a, n_b)
        p(a, b).

    Returns
    -------
    float

    Examples
    --------
    >>> round(mutual_information(np.eye(2) / 2), 6), mutual_information(np.full((2, 2), 0.25))
    (0.693147, 0.0)
    """
    return conditional_mutual_information(joint[:, :, None])


def conditional_mutual_information(joint: Floats) -> float:
    """I(A; B | C) = sum p(a, b, c) log(p(a, b, c) p(c) / (p(a, c) p(b, c))).

    Parameters
    ----------
    joint : ndarray of shape (n_a, n_b, n_c)
        p(a, b, c).

    Returns
    -------
    float

    Examples
    --------
    Two bits, and whether they differ: independent, until the third is known.

    >>> joint = np.array([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]])
    >>> mutual_information(joint.sum(axis=2)), round(conditional_mutual_information(joint), 6)
    (0.0, 0.693147)
    """
    p_c = joint.sum(axis=(0, 1))
    products = joint.sum(axis=1)[:, None, :] * joint.sum(axis=0)[None, :, :]
    independent = np.divide(products, p_c, out=np.zeros_like(joint), where=p_c > 0)
    return float(rel_entr(joint, independent).sum())
