"""Proposition 4 on finite variables: the equalized-odds gap of the orthogonal classifier, exactly and on samples.

The sensitive attribute u is z1. The exact gap is that of the population: the table of joint probabilities takes the
place of counts. With "decisions" the most probable class is predicted; with "scores" a class is drawn from the
predicted probabilities, so that a gap in them cannot hide behind a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.core.gap_tables import equalized_odds_from_table
from setminus.core.gaps import equalized_odds_gap
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic.discrete import DiscreteModel
from setminus.progress import Step
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "plan"]

Floats = NDArray[np.float64]

CLAIM = (
    "Where a variable orthogonal to the sensitive attribute exists, that is, where u and the rest z2 of x are "
    "independent given the label, the classifier w_x minus w_1 satisfies equalized odds."
)
DEFAULT_SEEDS = 20
DEPENDENCE = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ROWS = {"quick": 50_000, "paper": 1_000_000}
N_Z2 = 6


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...]) -> list[Run]:
    """One run: all dependences on one random model for each seed.

    Examples
    --------
    >>> plan("quick", (0,))[0].config["rows"]
    50000
    """
    config = {"scale": scale, "rows": ROWS[scale], "n_z2": N_Z2, "dependence": list(DEPENDENCE)}
    return [Run("prop4", config, seeds, partial(measure, rows=ROWS[scale]))]


def measure(seeds: tuple[int, ...], step: Step, *, rows: int) -> Iterator[dict[str, Any]]:
    """Measure the gaps of the full and the orthogonal classifier as u and z2 grow dependent given the label."""
    for seed in seeds:
        with step(f"gaps on model {seed}"):
            gaps = [_gaps(DiscreteModel.random(2, 2, N_Z2, seed, dependence), rows, seed) for dependence in DEPENDENCE]
        names = gaps[0]["full"]
        yield {
            "dependence": list(DEPENDENCE),
            **{who: {name: [gap[who][name] for gap in gaps] for name in names} for who in ("full", "orthogonal")},
        }


def exact_gaps(joint: Floats, proba: Floats) -> dict[str, float]:
    """The population's gaps (summed over labels) of a classifier given by its probabilities on each value of x.

    Parameters
    ----------
    joint : ndarray of shape (n_classes, n_u, n_z2)
    proba : ndarray of shape (n_u, n_z2, n_classes)

    Returns
    -------
    dict
        Of "decisions", "scores" and "accuracy".

    Examples
    --------
    >>> joint = DiscreteModel.random(n_classes=2, n_z1=2, n_z2=3, seed=0).joint
    >>> exact_gaps(joint, np.full((2, 3, 2), 0.5))["scores"]
    0.0
    """
    decided = np.eye(len(joint))[proba.argmax(axis=2)]
    tables = {name: np.einsum("yuz,uzc->uyc", joint, p) for name, p in (("decisions", decided), ("scores", proba))}
    found = {name: float(equalized_odds_from_table(table, "sum")) for name, table in tables.items()}
    return {**found, "accuracy": float(np.einsum("uyy->", tables["decisions"]))}


def _gaps(model: DiscreteModel, rows: int, seed: int) -> dict[str, dict[str, float]]:
    u, z2 = np.indices(model.joint.shape[1:])
    full = model.full(u.ravel(), z2.ravel())
    orthogonal = orthogonalize(full, model.principal(u.ravel()), model.prior)
    sample = model.sample(rows, seed)
    seen_u, seen_z2 = sample.x.T
    gaps = {}
    for name, flat in (("full", full), ("orthogonal", orthogonal)):
        proba = flat.reshape(*u.shape, -1)
        decisions = proba.argmax(axis=2)[seen_u, seen_z2]
        sampled = equalized_odds_gap(sample.y, decisions, sensitive_features=seen_u, agg="sum")
        gaps[name] = {**exact_gaps(model.joint, proba), "decisions_sampled": sampled}
    return gaps
