"""LinearPost, written here from its paper, on scipy's HiGHS.

Xian and Zhao, "A unified post-processing framework for group fairness in classification" (2024, arXiv 2405.04025). Of
all classifiers whose rates by group differ by at most the tolerance, the most accurate one is a linear function of
p(y | x) and p(u, y | x). A linear program over the decisions of the tuning rows finds its weights: they are the
multipliers of the constraints. Where groups are known, the scores are first calibrated in each group by logistic
regression, because the program takes them for p(y | x, u). The authors' code was not used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from benchmarks.libraries import Answer, Scored

Floats = NDArray[np.float64]

NOISE = 1e-6
"""Uniform noise on the scores that breaks ties, as in the paper."""


def linear_post(
    tune: Scored, test: Scored, tolerances: Sequence[float], seed: int, *, inferred: bool = False
) -> Iterator[Answer]:
    """Equalized odds within each tolerance, with known groups or with p(u | y, x) in their place."""
    names = np.unique(tune.u)
    if not inferred:
        tune, test = (calibrated(tune, rows) for rows in (tune, test))
    cells, new_cells = (_cell_proba(rows, names, inferred) for rows in (tune, test))
    prior = cells.mean(axis=0)
    rng = np.random.default_rng(seed)
    gain, new_gain = (rows.proba[:, 1] - rows.proba[:, 0] + NOISE * rng.random(len(rows.y)) for rows in (tune, test))
    for tolerance in tolerances:
        start = time.perf_counter()
        weights = multipliers(gain, cells / prior, tolerance)
        seconds = time.perf_counter() - start
        margin = new_gain - (new_cells / prior) @ weights
        yield Answer((margin > 0).astype(int), None, seconds, tolerance, {}, score=margin)


def calibrated(tune: Scored, rows: Scored) -> Scored:
    """The rows with p(y | x, u) in place of p(y | x): logistic regression on the log-odds in each group of `tune`."""
    proba = rows.proba.copy()
    learned, new = (np.log(part.proba[:, 1:] / part.proba[:, :1]) for part in (tune, rows))
    for name in np.unique(tune.u):
        own = tune.u == name
        model = LogisticRegression().fit(learned[own], tune.y[own])
        proba[rows.u == name] = model.predict_proba(new[rows.u == name])
    return replace(rows, proba=proba)


def multipliers(gain: Floats, cells: Floats, tolerance: float) -> Floats:
    """The weights w for which ``gain - cells @ w > 0`` is the best decision within the tolerance.

    Parameters
    ----------
    gain : ndarray of shape (n,)
        p(y=1 | x) - p(y=0 | x), what the decision 1 adds to the accuracy.
    cells : ndarray of shape (n, 2 * groups)
        p(u, y | x) / p(u, y), groups first and the labels 0 and 1 of each side by side.
    tolerance : float
        Largest difference of two groups' rates of the same label.
    """
    n, count = cells.shape
    # rate - centre - slack = 0 for each cell: a slack is within half the tolerance, a centre belongs to each label
    rates = sparse.csr_matrix(cells.T / n)
    centres = sparse.csr_matrix(-np.tile(np.eye(2), (count // 2, 1)))
    half = tolerance / 2
    found = linprog(
        np.concatenate([-gain / n, np.zeros(2 + count)]),
        A_eq=sparse.hstack([rates, centres, -sparse.eye(count)]).tocsc(),
        b_eq=np.zeros(count),
        bounds=np.vstack([np.tile([0.0, 1.0], (n + 2, 1)), np.tile([-half, half], (count, 1))]),
        method="highs-ds",
        # few rows and many bounded columns: the simplex is done before the presolve would be
        options={"presolve": False},
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program of LinearPost was not solved: {found.message}")
    weights: Floats = -found.eqlin.marginals
    return weights


def _cell_proba(rows: Scored, names: NDArray[np.str_], inferred: bool) -> Floats:
    """p(u, y | x) of shape (n, 2 * groups)."""
    if inferred:
        if rows.given is None:
            raise ValueError("inferred groups need p(u | y, x)")
        given = rows.given
    else:
        known = (rows.u[:, None] == names).astype(float)
        given = np.stack([known, known], axis=1)
    joint = rows.proba[:, :, None] * given
    return joint.transpose(0, 2, 1).reshape(len(joint), -1)
