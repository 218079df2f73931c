"""Proposition 4 on finite variables: the equalized-odds gap of the orthogonal classifier, exactly and on samples.

The sensitive attribute u is z1. The exact gap is that of the population: the table of joint probabilities takes the
place of counts. With "decisions" the most probable class is predicted; with "scores" a class is drawn from the
predicted probabilities, so that a gap in them cannot hide behind a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.core.gaps import equalized_odds_from_table, equalized_odds_gap
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic.discrete import DiscreteModel
from setminus.progress import tracked
from setminus.report.charts.chart import Chart, Line, Mark
from setminus_paper.claims.over_seeds import mean_and_deviation
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

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


def measure(seeds: tuple[int, ...], *, rows: int) -> Iterator[dict[str, Any]]:
    """Measure the gaps of the full and the orthogonal classifier as u and z2 grow dependent given the label."""
    for seed in seeds:
        with tracked(f"gaps on model {seed}"):
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


Record = dict[str, Any]
WHO = ("full", "orthogonal")


def charts(records: Sequence[Record]) -> list[Chart]:
    """The gap of the probabilities and that of the decisions, mean and middle half over models."""
    scores = {who: _stack(records, who, "scores") for who in WHO}
    decisions = {who: _stack(records, who, "decisions") for who in WHO}
    rows = records[0]["config"]["rows"]
    dependence = records[0]["metrics"]["dependence"]
    sampled = _stack(records, "orthogonal", "decisions_sampled")
    on_samples = Line(dependence, sampled.mean(axis=0).tolist(), f"orthogonal, {rows:,} rows")
    return [
        Chart(
            "Gap of the probabilities",
            "dependence of u and z2 given y",
            "equalized-odds gap (sum)",
            _lines(dependence, scores),
            caption=(
                "The paper: without dependence the orthogonal classifier satisfies equalized odds. Seen: its largest "
                f"gap over {len(records)} models is then {scores['orthogonal'][:, 0].max():.1g}, that of the full one "
                f"{scores['full'][:, 0].mean():.2f} in the mean. "
                f"At dependence {dependence[-1]:g} they are {scores['orthogonal'][:, -1].mean():.2f} and "
                f"{scores['full'][:, -1].mean():.2f} in the mean. Lines: mean; bars: middle half of the models."
            ),
        ),
        Chart(
            "Gap of the decisions",
            "dependence of u and z2 given y",
            "equalized-odds gap (sum)",
            [*_lines(dependence, decisions), on_samples],
            caption=(
                "The same for the most probable class. A threshold turns small differences into large ones: at "
                f"dependence {dependence[1]:g} the mean gap is {decisions['orthogonal'][:, 1].mean():.3f}, that of the "
                f"probabilities {scores['orthogonal'][:, 1].mean():.4f}."
            ),
        ),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, expected, measured)."""
    dependence = records[0]["metrics"]["dependence"]
    rows = []
    for name, expected in (("decisions", "0"), ("scores", "0")):
        gap = _stack(records, "orthogonal", name)[:, 0].max()
        rows.append((f"largest gap, orthogonal, {name}, independent", expected, f"{gap:.1g}"))
    for name in ("decisions", "scores"):
        rows.append(
            (f"gap, full, {name}, independent", "> 0", mean_and_deviation(_stack(records, "full", name)[:, 0], ".3g"))
        )
    sampled = _stack(records, "orthogonal", "decisions_sampled")[:, 0]
    rows.append(
        (
            f"gap, orthogonal, {records[0]['config']['rows']:,} rows, independent",
            "near 0",
            mean_and_deviation(sampled, ".3g"),
        )
    )
    for place in (1, len(dependence) // 2, len(dependence) - 1):
        for who in WHO:
            gaps = _stack(records, who, "scores")[:, place]
            rows.append(
                (f"gap, {who}, scores, dependence {dependence[place]:g}", "> 0", mean_and_deviation(gaps, ".3g"))
            )
    wider = np.mean(_stack(records, "orthogonal", "decisions")[:, -1] > _stack(records, "full", "decisions")[:, -1])
    what = f"models whose orthogonal decisions have the wider gap, dependence {dependence[-1]:g}"
    rows.append((what, "", f"{wider:.0%}"))
    accuracy = [100 * _stack(records, who, "accuracy")[:, 0].mean() for who in WHO]
    rows.append(("accuracy, full and orthogonal, independent", "", f"{accuracy[0]:.1f} % and {accuracy[1]:.1f} %"))
    return rows


def _stack(records: Sequence[Record], who: str, name: str) -> NDArray[np.float64]:
    return np.array([record["metrics"][who][name] for record in records])


def _lines(dependence: list[float], gaps: dict[str, NDArray[np.float64]]) -> list[Mark]:
    return [
        Line(
            dependence,
            values.mean(axis=0).tolist(),
            who,
            low=np.quantile(values, 0.25, axis=0).tolist(),
            high=np.quantile(values, 0.75, axis=0).tolist(),
        )
        for who, values in gaps.items()
    ]
