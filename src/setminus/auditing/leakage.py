"""How much information a score holds about z1 beyond the label y: an estimate in bits, and an exact test.

The score is cut into cells without looking at z1. Then, with rows counted by (fold, cell, y, z1)::

    bits = mean over rows of  log2 p(z1 | cell, y) - log2 p(z1 | y)      probabilities from the other folds

a cross-fitted estimate of the conditional information I(score; z1 | y): zero for the exact orthogonal
classifier, and at most H(z1 | y). For a score independent of z1 given y, the estimate is at or slightly below zero,
because the cells' probabilities are fitted on other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import random_table
from sklearn.cluster import KMeans

from setminus.auditing.rates import read_scored
from setminus.errors import UserError

__all__ = ["Leakage", "leakage", "leakage_from_codes", "score_cells"]

Floats = NDArray[np.float64]

# pseudo-rows that shrink p(z1 | cell, y) towards p(z1 | y): sparse cells would add noise otherwise
_SHRINKAGE = 4.0


@dataclass(frozen=True)
class Leakage:
    """Information about z1 in the score, beyond the label y.

    Attributes
    ----------
    bits : float
        Cross-fitted estimate of I(score; z1 | y); may be slightly below zero.
    share : float
        `bits` as a share of H(z1 | y), the largest possible value.
    auc : float
        How well the score separates groups among rows of one label, one group against all others,
        cross-fitted; 0.5 is no separation.
    p_value : float
        Share of within-label permutations of z1 that score at least as high: exact for any sample size.
    n_cells, n_permutations : int
    """

    bits: float
    share: float
    auc: float
    p_value: float
    n_cells: int
    n_permutations: int


def leakage(
    y: ArrayLike,
    proba: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    classes: Sequence[Any] | None = None,
    n_permutations: int = 200,
    n_cells: int | None = None,
    n_folds: int = 5,
    random_state: int = 0,
) -> Leakage:
    """Estimate and test whether a score depends on z1 given y.

    Parameters
    ----------
    y : array-like of shape (n,)
    proba : array-like of shape (n, n_classes), or (n,) with P(second class)
        The score under test.
    sensitive_features : array-like of shape (n,) or (n, k)
        z1; several columns are crossed.
    classes : sequence, optional
        The class of each column of `proba`; by default the sorted labels of `y`.
    n_permutations : int
        Permutations behind the p-value, whose smallest value is 1 / (n_permutations + 1).
    n_cells : int, optional
        Number of score cells; by default the cube root of n, between 2 and 32.
    n_folds : int
    random_state : int
        Draws the folds and the permutations.

    Returns
    -------
    Leakage

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, z1 = rng.integers(2, size=(2, 2000))
    >>> leaky = leakage(y, 0.2 + 0.3 * y + 0.2 * z1, sensitive_features=z1)
    >>> silent = leakage(y, 0.2 + 0.3 * y, sensitive_features=z1)
    >>> silent.bits < 0.02 < leaky.bits, leaky.p_value < 0.05 < silent.p_value
    (True, True)
    """
    rows = read_scored(y, proba, sensitive_features, classes=classes)
    return leakage_from_codes(
        rows.y,
        rows.proba,
        rows.group,
        n_permutations=n_permutations,
        n_cells=n_cells,
        n_folds=n_folds,
        random_state=random_state,
    )


def leakage_from_codes(
    y: NDArray[np.intp],
    proba: Floats,
    group: NDArray[np.intp],
    *,
    n_permutations: int = 200,
    n_cells: int | None = None,
    n_folds: int = 5,
    random_state: int = 0,
) -> Leakage:
    """`leakage` on labels and groups that are codes already, and probabilities of shape (n, n_classes)."""
    if n_permutations < 1 or not 2 <= n_folds <= len(y):
        raise UserError(
            f"n_permutations is {n_permutations} and n_folds {n_folds}", expected=f"at least 1, and from 2 to {len(y)}"
        )
    rng = np.random.default_rng(random_state)
    cell = score_cells(proba, n_cells)
    shape = (proba.shape[1], n_folds, int(cell.max()) + 1, int(group.max()) + 1)
    index = np.ravel_multi_index((y, _folds(y, n_folds, rng), cell, group), shape)
    table = np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    bits = float(_gain(table).sum()) / len(y)
    permuted = np.zeros(n_permutations)
    for of_label in table:
        permuted += _gain(_permuted(of_label, n_permutations, rng)) / len(y)
    # a hair of slack, so that a permutation that gives back the same table counts as a tie
    reached = int((permuted >= bits - 1e-12).sum())
    by_label = table.sum(axis=(1, 2))
    given_label = by_label / by_label.sum(axis=1, keepdims=True)
    log_given = np.log2(given_label, out=np.zeros_like(given_label), where=given_label > 0)
    entropy = -float((by_label * log_given).sum() / by_label.sum())
    return Leakage(
        bits=bits,
        share=bits / entropy if entropy > 0 else 0.0,
        auc=_auc(table),
        p_value=(1 + reached) / (1 + n_permutations),
        n_cells=shape[2],
        n_permutations=n_permutations,
    )


def score_cells(proba: Floats, n_cells: int | None = None) -> NDArray[np.intp]:
    """The cell of each row's score: quantiles for two classes, k-means for more.

    Neither looks at z1, which is what makes the permutation test exact.

    Examples
    --------
    >>> score_cells(np.array([[0.9, 0.1], [0.1, 0.9], [0.8, 0.2]]), n_cells=2).tolist()
    [0, 1, 0]
    """
    if n_cells is None:
        n_cells = int(np.clip(round(len(proba) ** (1 / 3)), 2, 32))
    if n_cells < 2:
        raise UserError(f"n_cells is {n_cells}", expected="at least 2")
    if proba.shape[1] == 2:
        values, codes = np.unique(proba[:, 1], return_inverse=True)
        if len(values) <= n_cells:
            return codes.astype(np.intp)
        edges = np.unique(np.quantile(proba[:, 1], np.linspace(0, 1, n_cells + 1)[1:-1]))
        # equal scores share a cell; an edge at the smallest score leaves no empty cell behind
        return np.unique(np.searchsorted(edges, proba[:, 1], side="left"), return_inverse=True)[1].astype(np.intp)
    n_cells = min(n_cells, len(np.unique(proba, axis=0)))
    # centres from an even pick of rows: k-means needs no more, and the cost stays bounded
    picked = proba[:: max(1, len(proba) // 5000)]
    n_cells = min(n_cells, len(np.unique(picked, axis=0)))
    kmeans = KMeans(n_clusters=n_cells, n_init=1, max_iter=50, random_state=0).fit(picked)
    return np.unique(kmeans.predict(proba), return_inverse=True)[1].astype(np.intp)


def _folds(y: NDArray[np.intp], n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Random folds of equal size within each label, independent of z1."""
    shuffled = rng.permutation(len(y))
    by_label = shuffled[np.argsort(y[shuffled], kind="stable")]
    folds = np.empty(len(y), dtype=np.intp)
    folds[by_label] = np.arange(len(y)) % n_folds
    return folds


def _cross_fitted(table: Floats) -> tuple[Floats, Floats]:
    """p(z1 | cell, y) and p(z1 | y) for each fold, from the counts of the other folds.

    table : (..., n_folds, n_cells, n_groups), one label each; the second result has one cell.
    """
    others = table.sum(axis=-3, keepdims=True) - table
    rows = others.sum(axis=-1, keepdims=True)
    # half a row of each group, spread over the cells as their rows are: one cell alone then gains exactly nothing
    others = others + 0.5 * (rows + 1 / rows.shape[-2]) / (rows.sum(axis=-2, keepdims=True) + 1)
    by_label = others.sum(axis=-2, keepdims=True)
    base = by_label / by_label.sum(axis=-1, keepdims=True)
    return (others + _SHRINKAGE * base) / (others.sum(axis=-1, keepdims=True) + _SHRINKAGE), base


def _gain(table: Floats) -> Floats:
    """Log-likelihood gain, in bits, of (..., n_folds, n_cells, n_groups) counts of one label."""
    fitted, base = _cross_fitted(table)
    gain: Floats = (table * (np.log2(fitted) - np.log2(base))).sum(axis=(-3, -2, -1))
    return gain


def _permuted(table: Floats, n_permutations: int, rng: np.random.Generator) -> Floats:
    """Tables of one label's rows after permutations of their z1.

    Permuting rows and counting them is drawing a table with the same margins: drawn directly, the cost does
    not depend on the number of rows.
    """
    counts = table.reshape(-1, table.shape[-1]).astype(np.int64)
    margins = random_table(counts.sum(axis=1), counts.sum(axis=0))
    drawn: Floats = margins.rvs(n_permutations, random_state=rng).astype(np.float64)
    return drawn.reshape(n_permutations, *table.shape)


def _auc(table: Floats) -> float:
    """Share of rightly ordered pairs: same label and fold, one row in the group and one not; ties half."""
    fitted, _ = _cross_fitted(table)
    # (label, fold, group, cell): each group's fitted probability orders the cells
    score = np.moveaxis(fitted, -1, -2)
    inside = np.moveaxis(table, -1, -2)
    outside = table.sum(axis=-1)[..., None, :] - inside
    order = 0.5 + 0.5 * np.sign(score[..., :, None] - score[..., None, :])
    right = np.einsum("lfgc,lfgcd,lfgd->", inside, order, outside)
    pairs = (inside.sum(axis=-1) * outside.sum(axis=-1)).sum()
    return float(right / pairs) if pairs > 0 else 0.5
